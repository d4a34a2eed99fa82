//! What domains that know each bit by itself share: moves of bits, and gates that each of them defines.

use super::concrete;
use crate::bits::Bits;
use crate::body::{BinaryOp, NaryOp, Op, UnaryOp};
use crate::evaluate::{Context, Domain};
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use num_bigint::BigUint;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::sync::Arc;

/// What is known of one bit.
pub trait Bit: Clone + PartialEq {
    /// It is always this.
    fn constant(value: bool) -> Self;
    /// Nothing.
    fn unknown() -> Self;
    /// Its value, where it is always the same.
    fn as_constant(&self) -> Option<bool>;
    /// Exclusive or of two bits.
    fn xor(&self, other: &Self) -> Self;
    /// And of two bits.
    fn and(&self, other: &Self) -> Self {
        match (self.as_constant(), other.as_constant()) {
            (Some(false), _) | (_, Some(false)) => Self::constant(false),
            (Some(true), _) => other.clone(),
            (_, Some(true)) => self.clone(),
            _ if self == other => self.clone(),
            _ => Self::unknown(),
        }
    }
    /// Or of two bits.
    fn or(&self, other: &Self) -> Self {
        let one = Self::constant(true);
        self.xor(&one).and(&other.xor(&one)).xor(&one)
    }
}

/// A value of a bit-level domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BitValue<B> {
    /// Of a `Bits` type, least significant bit first.
    Bits(Arc<Vec<B>>),
    /// An array.
    List(Arc<Vec<BitValue<B>>>),
    /// Of another type; nothing is known.
    Other,
}

impl<B: Bit> BitValue<B> {
    /// These constant bits.
    pub fn constant(bits: &Bits) -> Self {
        Self::Bits(Arc::new((0..bits.width()).map(|bit| B::constant(bits.bit(bit))).collect()))
    }

    /// Nothing is known of a value of this type.
    pub fn unknown(ty: &Type) -> Self {
        match ty {
            Type::Bits { width, lanes } => Self::Bits(Arc::new(vec![B::unknown(); (width * lanes) as usize])),
            _ => Self::Other,
        }
    }

    /// The bits, where the value has some.
    pub fn bits(&self) -> Option<&[B]> {
        if let Self::Bits(bits) = self { Some(bits) } else { None }
    }

    fn to_concrete(&self) -> Option<concrete::Value> {
        match self {
            Self::Bits(bits) => constant_bits(bits).map(concrete::Value::from),
            Self::List(list) => {
                let list = list.iter().map(Self::to_concrete).collect::<Option<Vec<_>>>()?;
                Some(concrete::Value::List(Arc::new(list)))
            }
            Self::Other => None,
        }
    }

    fn from_concrete(value: &concrete::Value) -> Self {
        match value {
            concrete::Value::Bits(bits) => {
                let source = |bit| match bits.undefined() {
                    Some(undefined) if undefined.bit(bit) => B::unknown(),
                    _ => B::constant(bits.bits().bit(bit)),
                };
                Self::Bits(Arc::new((0..bits.width()).map(source).collect()))
            }
            concrete::Value::List(list) => Self::List(Arc::new(list.iter().map(Self::from_concrete).collect())),
            concrete::Value::Integer(_) => Self::Other,
        }
    }
}

/// The value of these bits, where all are constant.
pub(super) fn constant_bits<B: Bit>(bits: &[B]) -> Option<Bits> {
    let mut constant = Bits::zero(bits.len() as u32);
    for (index, bit) in bits.iter().enumerate() {
        if bit.as_constant()? {
            constant.insert(index as u32, &Bits::from_bool(true));
        }
    }
    Some(constant)
}

/// Where at most one operand can be one in each place, a sum is an exclusive or; that still holds for the first clash, above which carries come.
fn add<B: Bit>(a: &[B], b: &[B]) -> Vec<B> {
    let zero = |bit: &B| bit.as_constant() == Some(false);
    let clean = a.iter().zip(b).take_while(|(a, b)| zero(a) || zero(b)).count();
    let sum = |(index, (a, b)): (usize, (&B, &B))| if index <= clean { a.xor(b) } else { B::unknown() };
    a.iter().zip(b).enumerate().map(sum).collect()
}

/// `condition ? a : b`, exact where the condition is known or a and b differ by a constant.
fn select<B: Bit>(condition: &B, a: &B, b: &B) -> B {
    match (condition.as_constant(), a.xor(b).as_constant()) {
        (Some(condition), _) => if condition { a } else { b }.clone(),
        (None, Some(false)) => a.clone(),
        (None, Some(true)) => condition.xor(b),
        (None, None) => B::unknown(),
    }
}

fn shift<B: Bit>(op: BinaryOp, lane: &[B], count: &Bits) -> Option<Vec<B>> {
    let width = lane.len();
    let distance = (count.saturating_u32() as usize).min(width);
    let zeros = std::iter::repeat_n(B::constant(false), distance);
    Some(match op {
        BinaryOp::ShiftLeft => zeros.chain(lane[..width - distance].iter().cloned()).collect(),
        BinaryOp::ShiftRight => lane[distance..].iter().cloned().chain(zeros).collect(),
        BinaryOp::ShiftRightSigned => lane[distance..].iter().chain(std::iter::repeat_n(&lane[width - 1], distance)).cloned().collect(),
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

/// Each result bit is the parity of the bits that its row selects.
fn matrix<B: Bit>(rows: impl Iterator<Item = Bits>, lane: &[B]) -> Vec<B> {
    rows.map(|row| {
        let selected = lane.iter().enumerate().filter(|(index, _)| row.bit(*index as u32));
        selected.fold(B::constant(false), |sum, (_, bit)| sum.xor(bit))
    })
    .collect()
}

/// Multiplication by a constant, given what it makes of each power of two, is a matrix.
fn times_constant<B: Bit>(lane: &[B], image: impl Fn(&Bits) -> Bits) -> Vec<B> {
    let width = lane.len() as u32;
    let one = Bits::from_u64(width, 1);
    let columns: Vec<Bits> = (0..width).map(|bit| image(&one.shift_left(bit))).collect();
    let row = |index: u32| {
        let mut row = Bits::zero(width);
        for (bit, column) in columns.iter().enumerate() {
            row.insert(bit as u32, &Bits::from_bool(column.bit(index)));
        }
        row
    };
    matrix((0..width).map(row), lane)
}

/// Bytes of every lane in reverse order.
fn swap_lanes<B: Bit>(bits: &[B], lane_bits: usize) -> Vec<B> {
    bits.chunks(lane_bits).flat_map(|lane| lane.chunks(8).rev().flatten().cloned()).collect()
}

/// The lanewise product where one factor of each lane is constant.
fn product<B: Bit>(a: &[B], b: &[B], width: usize, multiply: impl Fn(&Bits, &Bits) -> Bits) -> Option<Vec<B>> {
    let lanes = a.chunks(width).zip(b.chunks(width)).map(|(a, b)| match (constant_bits(a), constant_bits(b)) {
        (Some(a), _) => Some(times_constant(b, |x| multiply(&a, x))),
        (_, Some(b)) => Some(times_constant(a, |x| multiply(x, &b))),
        _ => None,
    });
    lanes.collect::<Option<Vec<_>>>().map(|lanes| lanes.concat())
}

fn apply<B: Bit>(context: Context<'_>, operands: &[&BitValue<B>]) -> Option<BitValue<B>> {
    let Type::Bits { width, lanes } = context.node.ty else {
        return match context.node.op {
            Op::Array(_) => Some(BitValue::List(Arc::new(operands.iter().map(|operand| (*operand).clone()).collect()))),
            _ => None,
        };
    };
    let (width, lanes) = (width as usize, lanes as usize);
    let bits = |index: usize| operands[index].bits();
    let lane_width = |handle| match context.type_of(handle) {
        Type::Bits { width, .. } => *width as usize,
        _ => 1,
    };
    let result = match &context.node.op {
        Op::Unary(UnaryOp::Not, _) => bits(0)?.iter().map(|bit| bit.xor(&B::constant(true))).collect(),
        Op::Nary(op, _) => {
            let lists = operands.iter().map(|operand| operand.bits()).collect::<Option<Vec<_>>>()?;
            let (first, rest) = lists.split_first()?;
            rest.iter().fold(first.to_vec(), |total, next| {
                let pairs = total.iter().zip(*next);
                match op {
                    NaryOp::Add => total.chunks(width).zip(next.chunks(width)).flat_map(|(a, b)| add(a, b)).collect(),
                    NaryOp::Xor => pairs.map(|(a, b)| a.xor(b)).collect(),
                    NaryOp::And => pairs.map(|(a, b)| a.and(b)).collect(),
                    NaryOp::Or => pairs.map(|(a, b)| a.or(b)).collect(),
                }
            })
        }
        Op::Binary(BinaryOp::CarrylessMultiply, ..) => product(bits(0)?, bits(1)?, width, Bits::carryless_mul)?,
        Op::FieldMultiply { polynomial, .. } => product(bits(0)?, bits(1)?, width, |a, b| a.field_mul(b, polynomial))?,
        Op::Affine { matrix: rows, constant, .. } => {
            let image = |lane| matrix(rows.iter().cloned(), lane);
            let shifted = |(index, bit): (usize, B)| bit.xor(&B::constant(constant.bit((index % width) as u32)));
            bits(0)?.chunks(width).flat_map(image).enumerate().map(shifted).collect()
        }
        Op::Binary(op, _, count) if op.is_shift() => {
            let counts = bits(1)?;
            let count_width = lane_width(*count);
            let mut result = Vec::with_capacity(width * lanes);
            for (index, lane) in bits(0)?.chunks(width).enumerate() {
                let place = if counts.len() == count_width { 0 } else { index * count_width };
                result.extend(match constant_bits(&counts[place..place + count_width]) {
                    Some(count) => shift(*op, lane, &count)?,
                    None => vec![B::unknown(); width],
                });
            }
            result
        }
        Op::Select { .. } => {
            let (conditions, then, otherwise) = (bits(0)?, bits(1)?, bits(2)?);
            let step = if conditions.len() == 1 { width * lanes } else { width };
            let pairs = then.iter().zip(otherwise).enumerate();
            pairs.map(|(index, (a, b))| conditions.get(index / step).map_or_else(B::unknown, |condition| select(condition, a, b))).collect()
        }
        Op::Resize(a) | Op::ResizeSigned(a) => {
            let signed = matches!(context.node.op, Op::ResizeSigned(_));
            let from = lane_width(*a);
            let resize = |lane: &[B]| -> Vec<B> {
                let fill = if signed { lane[from - 1].clone() } else { B::constant(false) };
                lane.iter().cloned().chain(std::iter::repeat(fill)).take(width).collect()
            };
            bits(0)?.chunks(from).flat_map(resize).collect()
        }
        Op::Reinterpret(a, order) => match order {
            ByteOrder::Little => bits(0)?.to_vec(),
            ByteOrder::Big => swap_lanes(&swap_lanes(bits(0)?, lane_width(*a)), width),
        },
        Op::Lane { vector, .. } => {
            let index = constant_bits(bits(1)?)?.saturating_u32() as usize;
            let is_bit = width == 1 && matches!(context.type_of(*vector), Type::Bits { lanes: 1, .. });
            let from = if is_bit { 1 } else { lane_width(*vector) };
            bits(0)?.chunks(from).nth(index)?.to_vec()
        }
        Op::Lanes(_) | Op::Concatenate(_) => operands.iter().map(|operand| operand.bits()).collect::<Option<Vec<_>>>()?.concat(),
        Op::Slice { start, .. } => {
            let start = *start as usize * width;
            bits(0)?.get(start..start + width * lanes)?.to_vec()
        }
        Op::Element { index, .. } => {
            let BitValue::List(list) = operands[0] else { return None };
            let parts = bits(1)?.chunks(lane_width(*index)).map(|index| {
                let index = constant_bits(index)?.saturating_u32() as usize;
                list.get(index)?.bits()
            });
            parts.collect::<Option<Vec<_>>>()?.concat()
        }
        _ => return None,
    };
    Some(BitValue::Bits(Arc::new(result)))
}

/// The domain of a kind of bit; it has no state.
#[derive(Clone, Copy, Debug)]
pub struct BitLevelDomain<B>(PhantomData<B>);

impl<B> Default for BitLevelDomain<B> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<B: Bit> Domain for BitLevelDomain<B> {
    type Value = BitValue<B>;
    type Fault = Infallible;

    fn constant(&mut self, _ty: &Type, bits: &Bits) -> BitValue<B> {
        BitValue::constant(bits)
    }

    fn integer(&mut self, _ty: &Type, _value: &BigUint) -> BitValue<B> {
        BitValue::Other
    }

    fn apply(&mut self, context: Context<'_>, operands: &[&BitValue<B>]) -> Result<BitValue<B>, Infallible> {
        let constants = operands.iter().map(|operand| operand.to_concrete()).collect::<Option<Vec<_>>>();
        let folded = constants.and_then(|constants| concrete::fold(context, &constants.iter().collect::<Vec<_>>()));
        let value = folded.map(|value| BitValue::from_concrete(&value)).or_else(|| apply(context, operands));
        Ok(value.unwrap_or_else(|| BitValue::unknown(&context.node.ty)))
    }

    fn structured(&mut self, context: Context<'_>, _operands: &[&BitValue<B>]) -> Result<Vec<BitValue<B>>, Infallible> {
        Ok(super::structured_types(context).map(BitValue::unknown).collect())
    }

    fn load(&mut self, context: Context<'_>, _address: &BitValue<B>, _bytes: u32) -> Result<BitValue<B>, Infallible> {
        Ok(BitValue::unknown(&context.node.ty))
    }

    fn store(&mut self, _: &BitValue<B>, _: &BitValue<B>, _: u32, _: Option<&BitValue<B>>) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch(&mut self, _: Option<&BitValue<B>>, _: Option<&BitValue<B>>) -> Result<(), Infallible> {
        Ok(())
    }

    fn forbidden(&mut self, _: &BitValue<B>, _: Span) -> Result<(), Infallible> {
        Ok(())
    }
}
