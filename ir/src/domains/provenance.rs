//! Where each bit of a result comes from: which permute, rotation, shift or mask is this body, given constants for some inputs?

use super::concrete;
use crate::bits::Bits;
use crate::body::{BinaryOp, Body, NaryOp, Op};
use crate::evaluate::{Context, Domain, evaluate};
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use num_bigint::BigUint;
use std::convert::Infallible;
use std::sync::Arc;

/// Where a bit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BitSource {
    /// It is always this.
    Constant(bool),
    /// It is bit `bit` of input `input` of the body.
    Input {
        /// Number of the input.
        input: u32,
        /// Bit, counted from lane 0's least significant one as in [`Bits`].
        bit: u32,
    },
    /// None of these, or not known.
    Unknown,
}

/// Where a byte comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ByteSource {
    /// It is always this.
    Constant(u8),
    /// It is byte `byte` of input `input` of the body.
    Input {
        /// Number of the input.
        input: u32,
        /// Byte in address order.
        byte: u32,
    },
    /// None of these, or not known.
    Unknown,
}

/// A value of this domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// Of a `Bits` type, least significant bit first.
    Bits(Arc<Vec<BitSource>>),
    /// An array.
    List(Arc<Vec<Provenance>>),
    /// Of another type; nothing is known.
    Other,
}

impl Provenance {
    /// All bits of input number `input`.
    pub fn input(input: u32, width: u32) -> Self {
        Self::Bits(Arc::new((0..width).map(|bit| BitSource::Input { input, bit }).collect()))
    }

    /// These constant bits.
    pub fn constant(bits: &Bits) -> Self {
        Self::Bits(Arc::new((0..bits.width()).map(|bit| BitSource::Constant(bits.bit(bit))).collect()))
    }

    /// Nothing is known of a value of this type.
    pub fn unknown(ty: &Type) -> Self {
        match ty {
            Type::Bits { width, lanes } => Self::Bits(Arc::new(vec![BitSource::Unknown; (width * lanes) as usize])),
            _ => Self::Other,
        }
    }

    /// The bits, where the value has some.
    pub fn bits(&self) -> Option<&[BitSource]> {
        if let Self::Bits(bits) = self { Some(bits) } else { None }
    }

    /// Byte by byte in address order; `None` where the value is not of whole bytes.
    pub fn bytes(&self) -> Option<Vec<ByteSource>> {
        let bits = self.bits()?;
        bits.len().is_multiple_of(8).then(|| bits.chunks(8).map(byte_source).collect())
    }

    fn to_concrete(&self) -> Option<concrete::Value> {
        match self {
            Self::Bits(bits) => constant_bits(bits).map(concrete::Value::from),
            Self::List(list) => {
                list.iter().map(Self::to_concrete).collect::<Option<Vec<_>>>().map(|list| concrete::Value::List(Arc::new(list)))
            }
            Self::Other => None,
        }
    }

    fn from_concrete(value: &concrete::Value) -> Self {
        match value {
            concrete::Value::Bits(bits) => {
                let source = |bit| match bits.undefined() {
                    Some(undefined) if undefined.bit(bit) => BitSource::Unknown,
                    _ => BitSource::Constant(bits.bits().bit(bit)),
                };
                Self::Bits(Arc::new((0..bits.width()).map(source).collect()))
            }
            concrete::Value::List(list) => Self::List(Arc::new(list.iter().map(Self::from_concrete).collect())),
            concrete::Value::Integer(_) => Self::Other,
        }
    }
}

fn byte_source(bits: &[BitSource]) -> ByteSource {
    if let Some(constant) = constant_bits(bits) {
        return ByteSource::Constant(constant.low_u128() as u8);
    }
    match bits[0] {
        BitSource::Input { input, bit: first } if first % 8 == 0 => {
            let consecutive = bits.iter().zip(first..).all(|(source, bit)| *source == BitSource::Input { input, bit });
            if consecutive { ByteSource::Input { input, byte: first / 8 } } else { ByteSource::Unknown }
        }
        _ => ByteSource::Unknown,
    }
}

fn constant_bits(bits: &[BitSource]) -> Option<Bits> {
    let mut constant = Bits::zero(bits.len() as u32);
    for (index, source) in bits.iter().enumerate() {
        match source {
            BitSource::Constant(true) => constant.insert(index as u32, &Bits::from_bool(true)),
            BitSource::Constant(false) => {}
            _ => return None,
        }
    }
    Some(constant)
}

/// The sources of each output's bits. `constants` gives a value for inputs that are taken as known (a permute's control); it may be shorter than the inputs.
///
/// # Panics
/// Where a constant has another width than its input.
pub fn sources(body: &Body, constants: &[Option<Bits>]) -> Vec<Provenance> {
    let inputs: Vec<Provenance> = body
        .inputs
        .iter()
        .enumerate()
        .map(|(index, port)| match (constants.get(index), &port.ty) {
            (Some(Some(bits)), ty) => {
                assert_eq!(Some(bits.width()), ty.total_bits(), "a constant for input {} of another width", port.name);
                Provenance::constant(bits)
            }
            (_, Type::Bits { width, lanes }) => Provenance::input(index as u32, width * lanes),
            _ => Provenance::Other,
        })
        .collect();
    let Ok(outcome) = evaluate(&mut ProvenanceDomain, body, &inputs);
    outcome.outputs
}

/// The domain; it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProvenanceDomain;

type Sources = Vec<BitSource>;

const ZERO: BitSource = BitSource::Constant(false);
const ONE: BitSource = BitSource::Constant(true);

fn and(a: BitSource, b: BitSource) -> BitSource {
    match (a, b) {
        (ZERO, _) | (_, ZERO) => ZERO,
        (ONE, other) | (other, ONE) => other,
        _ if a == b => a,
        _ => BitSource::Unknown,
    }
}

fn or(a: BitSource, b: BitSource) -> BitSource {
    match (a, b) {
        (ONE, _) | (_, ONE) => ONE,
        (ZERO, other) | (other, ZERO) => other,
        _ if a == b => a,
        _ => BitSource::Unknown,
    }
}

fn xor(a: BitSource, b: BitSource) -> BitSource {
    match (a, b) {
        (BitSource::Constant(a), BitSource::Constant(b)) => BitSource::Constant(a ^ b),
        (ZERO, other) | (other, ZERO) => other,
        (BitSource::Input { .. }, BitSource::Input { .. }) if a == b => ZERO,
        _ => BitSource::Unknown,
    }
}

/// Where at most one operand has something in each place, a sum is an or; from the first clash upward nothing is known.
fn add(a: &[BitSource], b: &[BitSource]) -> Sources {
    let clean = a.iter().zip(b).take_while(|(a, b)| **a == ZERO || **b == ZERO).count();
    let sum = |(index, (a, b)): (usize, (&BitSource, &BitSource))| if index < clean { or(*a, *b) } else { BitSource::Unknown };
    a.iter().zip(b).enumerate().map(sum).collect()
}

fn merge(a: &[BitSource], b: &[BitSource]) -> Sources {
    a.iter().zip(b).map(|(a, b)| if a == b { *a } else { BitSource::Unknown }).collect()
}

fn shift(op: BinaryOp, lane: &[BitSource], count: &Bits) -> Option<Sources> {
    let width = lane.len();
    let distance = (count.saturating_u32() as usize).min(width);
    let fill = |source, count| std::iter::repeat_n(source, count);
    Some(match op {
        BinaryOp::ShiftLeft => fill(ZERO, distance).chain(lane[..width - distance].iter().copied()).collect(),
        BinaryOp::ShiftRight => lane[distance..].iter().copied().chain(fill(ZERO, distance)).collect(),
        BinaryOp::ShiftRightSigned => lane[distance..].iter().copied().chain(fill(lane[width - 1], distance)).collect(),
        BinaryOp::RotateLeft => {
            let modulus = Bits::from_u64(count.width().max(32), width as u64);
            let (_, distance) = count.resize(modulus.width()).div_rem(&modulus)?;
            let mut rotated = lane.to_vec();
            rotated.rotate_right(distance.saturating_u32() as usize);
            rotated
        }
        _ => return None,
    })
}

/// Bytes of every lane in reverse order.
fn swap_lanes(bits: &[BitSource], lane_bits: u32) -> Sources {
    bits.chunks(lane_bits as usize).flat_map(|lane| lane.chunks(8).rev().flatten().copied()).collect()
}

fn apply(context: Context<'_>, operands: &[&Provenance]) -> Option<Provenance> {
    let Type::Bits { width, lanes } = context.node.ty else {
        return match context.node.op {
            Op::Array(_) => Some(Provenance::List(Arc::new(operands.iter().map(|operand| (*operand).clone()).collect()))),
            _ => None,
        };
    };
    let (width, lanes) = (width as usize, lanes as usize);
    let bits = |index: usize| operands[index].bits();
    let lane_width = |handle| match context.type_of(handle) {
        Type::Bits { width, .. } => *width as usize,
        _ => 1,
    };
    let done = |sources: Sources| Some(Provenance::Bits(Arc::new(sources)));
    match &context.node.op {
        Op::Nary(op, _) => {
            let lists = operands.iter().map(|operand| operand.bits()).collect::<Option<Vec<_>>>()?;
            let (first, rest) = lists.split_first()?;
            done(rest.iter().fold(first.to_vec(), |total, next| match op {
                NaryOp::Add => total.chunks(width).zip(next.chunks(width)).flat_map(|(a, b)| add(a, b)).collect(),
                NaryOp::Xor => total.iter().zip(*next).map(|(a, b)| xor(*a, *b)).collect(),
                NaryOp::And => total.iter().zip(*next).map(|(a, b)| and(*a, *b)).collect(),
                NaryOp::Or => total.iter().zip(*next).map(|(a, b)| or(*a, *b)).collect(),
            }))
        }
        Op::Binary(op, _, count) if op.is_shift() => {
            let counts = bits(1)?;
            let count_width = lane_width(*count);
            let mut result = Vec::with_capacity(width * lanes);
            for (index, lane) in bits(0)?.chunks(width).enumerate() {
                let place = if counts.len() == count_width { 0 } else { index * count_width };
                result.extend(match constant_bits(&counts[place..place + count_width]) {
                    Some(count) => shift(*op, lane, &count)?,
                    None => vec![BitSource::Unknown; width],
                });
            }
            done(result)
        }
        Op::Select { .. } => {
            let (conditions, then, otherwise) = (bits(0)?, bits(1)?, bits(2)?);
            let step = if conditions.len() == 1 { width * lanes } else { width };
            let pairs = then.chunks(step).zip(otherwise.chunks(step));
            done(
                pairs
                    .zip(conditions)
                    .flat_map(|((a, b), condition)| match *condition {
                        ONE => a.to_vec(),
                        ZERO => b.to_vec(),
                        _ => merge(a, b),
                    })
                    .collect(),
            )
        }
        Op::Resize(a) | Op::ResizeSigned(a) => {
            let signed = matches!(context.node.op, Op::ResizeSigned(_));
            let from = lane_width(*a);
            done(
                bits(0)?
                    .chunks(from)
                    .flat_map(|lane| {
                        let fill = if signed { lane[from - 1] } else { ZERO };
                        lane.iter().copied().chain(std::iter::repeat(fill)).take(width)
                    })
                    .collect(),
            )
        }
        Op::Reinterpret(a, order) => done(match order {
            ByteOrder::Little => bits(0)?.to_vec(),
            ByteOrder::Big => swap_lanes(&swap_lanes(bits(0)?, lane_width(*a) as u32), width as u32),
        }),
        Op::Lane { vector, .. } => {
            let index = constant_bits(bits(1)?)?.saturating_u32() as usize;
            let from = if width == 1 && matches!(context.type_of(*vector), Type::Bits { lanes: 1, .. }) { 1 } else { lane_width(*vector) };
            done(bits(0)?.chunks(from).nth(index)?.to_vec())
        }
        Op::Lanes(_) | Op::Concatenate(_) => {
            let lists = operands.iter().map(|operand| operand.bits()).collect::<Option<Vec<_>>>()?;
            done(lists.concat())
        }
        Op::Slice { start, .. } => {
            let start = *start as usize * width;
            done(bits(0)?.get(start..start + width * lanes)?.to_vec())
        }
        Op::Element { index, .. } => {
            let Provenance::List(list) = operands[0] else { return None };
            let index_width = lane_width(*index);
            let parts = bits(1)?.chunks(index_width).map(|index| {
                let index = constant_bits(index)?.saturating_u32() as usize;
                list.get(index)?.bits()
            });
            done(parts.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}

impl Domain for ProvenanceDomain {
    type Value = Provenance;
    type Fault = Infallible;

    fn constant(&mut self, _ty: &Type, bits: &Bits) -> Provenance {
        Provenance::constant(bits)
    }

    fn integer(&mut self, _ty: &Type, _value: &BigUint) -> Provenance {
        Provenance::Other
    }

    fn apply(&mut self, context: Context<'_>, operands: &[&Provenance]) -> Result<Provenance, Infallible> {
        let constants = operands.iter().map(|operand| operand.to_concrete()).collect::<Option<Vec<_>>>();
        let folded = constants.and_then(|constants| concrete::fold(context, &constants.iter().collect::<Vec<_>>()));
        let value = folded.map(|value| Provenance::from_concrete(&value)).or_else(|| apply(context, operands));
        Ok(value.unwrap_or_else(|| Provenance::unknown(&context.node.ty)))
    }

    fn structured(&mut self, context: Context<'_>, _operands: &[&Provenance]) -> Result<Vec<Provenance>, Infallible> {
        Ok(super::structured_types(context).map(Provenance::unknown).collect())
    }

    fn load(&mut self, context: Context<'_>, _address: &Provenance, _bytes: u32) -> Result<Provenance, Infallible> {
        Ok(Provenance::unknown(&context.node.ty))
    }

    fn store(&mut self, _: &Provenance, _: &Provenance, _: u32, _: Option<&Provenance>) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch(&mut self, _: Option<&Provenance>, _: Option<&Provenance>) -> Result<(), Infallible> {
        Ok(())
    }

    fn forbidden(&mut self, _: &Provenance, _: Span) -> Result<(), Infallible> {
        Ok(())
    }
}
