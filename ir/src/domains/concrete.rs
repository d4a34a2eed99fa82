//! Concrete bits with an undefined shadow: what interpretation and replay run on.
//!
//! Undefined bits read as zero in [`ShadowedBits::bits`] and stand for any value; see `lane.rs` for how they propagate. Executing with an undefined address,
//! condition, loop count or array index is a fault, as is a forbidden condition that holds or is undefined.

use super::lane::{self, Shadowed};
use super::memory::Memory;
use crate::bits::Bits;
use crate::body::{BinaryOp, NaryOp, Op, UnaryOp};
use crate::evaluate::{Context, Domain, evaluate};
use crate::natural::{self, MontgomeryRadix};
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bits of which some may be undefined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedBits {
    /// Undefined bits are zero here, so equality is structural.
    bits: Bits,
    /// Absent where every bit is defined; otherwise not zero and of the same width.
    undefined: Option<Box<Bits>>,
}

impl From<Bits> for ShadowedBits {
    fn from(bits: Bits) -> Self {
        Self { bits, undefined: None }
    }
}

impl From<Shadowed> for ShadowedBits {
    fn from(lane: Shadowed) -> Self {
        Self::new(lane.bits, lane.undefined)
    }
}

impl ShadowedBits {
    /// Bits with their shadow, a mask of the same width.
    pub fn new(bits: Bits, undefined: Bits) -> Self {
        if undefined.is_zero() { bits.into() } else { Self { bits: bits.and_not(&undefined), undefined: Some(Box::new(undefined)) } }
    }

    /// No bit is known.
    pub fn all_undefined(width: u32) -> Self {
        Self::new(Bits::zero(width), Bits::ones(width))
    }

    /// The bits; undefined ones are zero.
    pub fn bits(&self) -> &Bits {
        &self.bits
    }

    /// The mask of undefined bits, absent where there is none.
    pub fn undefined(&self) -> Option<&Bits> {
        self.undefined.as_deref()
    }

    /// The bits, where all are defined.
    pub fn defined(&self) -> Option<&Bits> {
        self.undefined.is_none().then_some(&self.bits)
    }

    /// How many bits.
    pub fn width(&self) -> u32 {
        self.bits.width()
    }

    /// Bits `start … start+width−1`.
    pub fn extract(&self, start: u32, width: u32) -> Self {
        let bits = self.bits.extract(start, width);
        match &self.undefined {
            None => bits.into(),
            Some(undefined) => Self::new(bits, undefined.extract(start, width)),
        }
    }

    /// The parts one after another, the first lowest.
    pub fn concatenate<'a>(parts: impl IntoIterator<Item = &'a Self, IntoIter: Clone>) -> Self {
        let parts = parts.into_iter();
        let join = |pick: &dyn Fn(&'a Self) -> Option<&'a Bits>| {
            let mut joined = Bits::zero(parts.clone().map(Self::width).sum());
            let mut place = 0;
            for part in parts.clone() {
                if let Some(bits) = pick(part) {
                    joined.insert(place, bits);
                }
                place += part.width();
            }
            joined
        };
        let bits = join(&|part| Some(&part.bits));
        if parts.clone().all(|part| part.undefined.is_none()) { bits.into() } else { Self::new(bits, join(&|part| part.undefined())) }
    }

    /// Whether every bit that is defined here has the same value in `other`; widths must agree.
    pub fn agrees_with(&self, other: &Bits) -> bool {
        self.width() == other.width() && self.undefined.as_ref().map_or(&self.bits == other, |mask| self.bits == other.and_not(mask))
    }

    /// The same function of bits on value and shadow: for moves of bits, of which the shadow moves along.
    fn moved(&self, function: impl Fn(&Bits) -> Bits) -> Self {
        Self { bits: function(&self.bits), undefined: self.undefined.as_deref().map(|undefined| Box::new(function(undefined))) }.normal()
    }

    fn normal(self) -> Self {
        match self.undefined {
            Some(undefined) => Self::new(self.bits, *undefined),
            None => self,
        }
    }

    fn shadowed(&self) -> Shadowed {
        let undefined = self.undefined.as_deref().cloned().unwrap_or_else(|| Bits::zero(self.width()));
        Shadowed { bits: self.bits.clone(), undefined }
    }
}

/// A value of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a `Bits` type.
    Bits(ShadowedBits),
    /// A natural, modulus or residue.
    Integer(BigUint),
    /// An array or slice.
    List(Arc<Vec<Value>>),
}

impl From<Bits> for Value {
    fn from(bits: Bits) -> Self {
        Value::Bits(bits.into())
    }
}

impl From<ShadowedBits> for Value {
    fn from(bits: ShadowedBits) -> Self {
        Value::Bits(bits)
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// No mapped region holds the whole access.
    #[error("access of {bytes} bytes at unmapped address {address:#x}")]
    Unmapped {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u32,
    },
    /// The region is read only.
    #[error("store of {bytes} bytes to read-only address {address:#x}")]
    NotWritable {
        /// First byte.
        address: u64,
        /// Length.
        bytes: u32,
    },
    /// An address with undefined bits.
    #[error("address with undefined bits")]
    UndefinedAddress,
    /// A branch, store or selection of integers on an undefined condition.
    #[error("undefined condition")]
    UndefinedCondition,
    /// A forbidden condition holds.
    #[error("forbidden condition holds")]
    Forbidden,
    /// A forbidden condition is undefined.
    #[error("forbidden condition is undefined")]
    UndefinedForbidden,
    /// An array index out of range.
    #[error("index {index} in an array of {length} elements")]
    IndexOutOfRange {
        /// The index, cut to 64 bits from above (`u64::MAX` where larger).
        index: u64,
        /// Elements.
        length: u32,
    },
    /// An array index that is undefined and may be out of range, or of a store.
    #[error("array index with undefined bits")]
    UndefinedIndex,
    /// A loop count that is undefined.
    #[error("loop count with undefined bits")]
    UndefinedCount,
    /// A difference of naturals below zero.
    #[error("difference of naturals below zero")]
    NegativeNatural,
    /// A natural that its type does not hold.
    #[error("natural of {actual} bits in a type of {allowed} bits")]
    NaturalTooWide {
        /// Bits it has.
        actual: u64,
        /// Bits of the type.
        allowed: u32,
    },
    /// The modulus is even or zero.
    #[error("modulus is not odd")]
    EvenModulus,
    /// Slices of one map differ in length.
    #[error("slices of {first} and {other} elements in one map")]
    UnequalSlices {
        /// Of the first slice.
        first: usize,
        /// Of the one that differs.
        other: usize,
    },
    /// The body breaks a rule that elaboration keeps; named for whoever makes bodies otherwise.
    #[error("ill-typed body: {0}")]
    Malformed(&'static str),
}

/// A fault and the place in the source that caused it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Where; the empty span for memory and branch effects.
    pub span: Span,
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, span: Span::default() }
    }
}

impl Fault {
    /// Names the place unless an inner one is named already.
    fn or_at(mut self, span: Span) -> Self {
        if self.span == Span::default() {
            self.span = span;
        }
        self
    }
}

/// The domain: memory, and the radix that `mont` is interpreted with.
pub struct Concrete<'a, M> {
    /// Where loads and stores go.
    pub memory: &'a mut M,
    radix: &'a MontgomeryRadix,
    /// Inverse of R for the modulus met last.
    inverse: Option<(BigUint, BigUint)>,
}

impl<'a, M: Memory> Concrete<'a, M> {
    /// A domain over this memory, with `mont` interpreted for this radix.
    pub fn new(memory: &'a mut M, radix: &'a MontgomeryRadix) -> Self {
        Self { memory, radix, inverse: None }
    }

    fn montgomery(&mut self, bits: u32, modulus: &BigUint, a: &BigUint, b: &BigUint) -> Result<BigUint, FaultKind> {
        let inverse = match &self.inverse {
            Some((known, inverse)) if known == modulus => inverse.clone(),
            _ => {
                let inverse = natural::radix_inverse(modulus, self.radix.exponent(bits)).ok_or(FaultKind::EvenModulus)?;
                self.inverse = Some((modulus.clone(), inverse.clone()));
                inverse
            }
        };
        Ok(a * b % modulus * inverse % modulus)
    }

    fn run(&mut self, body: &crate::body::Body, inputs: &[Value]) -> Result<Vec<Value>, Fault> {
        evaluate(self, body, inputs).map(|outcome| outcome.outputs)
    }

    fn run_loop(&mut self, context: Context<'_>, operands: &[&Value]) -> Result<Vec<Value>, Fault> {
        let Op::Loop { carried, body, .. } = &context.node.op else { return Err(FaultKind::Malformed("not a loop").into()) };
        let (count, operands) = operands.split_first().ok_or(FaultKind::Malformed("loop without a count"))?;
        let rounds = bits(count)?.defined().ok_or(FaultKind::UndefinedCount)?;
        let width = rounds.width();
        let rounds = rounds.to_u64().ok_or(FaultKind::Malformed("loop count above 2^64"))?;
        let mut inputs: Vec<Value> = std::iter::once(*count).chain(operands.iter().copied()).cloned().collect();
        for round in 0..rounds {
            inputs[0] = Bits::from_u64(width, round).into();
            let next = self.run(body, &inputs)?;
            for (place, value) in inputs[1..=carried.len()].iter_mut().zip(next) {
                *place = value;
            }
        }
        Ok(inputs[1..=carried.len()].to_vec())
    }

    fn run_map(&mut self, context: Context<'_>, operands: &[&Value]) -> Result<Vec<Value>, Fault> {
        let Op::Map { slices, written, body, .. } = &context.node.op else { return Err(FaultKind::Malformed("not a map").into()) };
        let (elements, captured) = operands.split_at(slices.len());
        let elements = elements.iter().map(|slice| list(slice)).collect::<Result<Vec<_>, _>>()?;
        let length = elements.first().map_or(0, |slice| slice.len());
        if let Some(other) = elements.iter().find(|slice| slice.len() != length) {
            return Err(FaultKind::UnequalSlices { first: length, other: other.len() }.into());
        }
        let mut results: Vec<Vec<Value>> = written.iter().map(|_| Vec::with_capacity(length)).collect();
        for index in 0..length {
            let inputs: Vec<Value> = elements.iter().map(|slice| &slice[index]).chain(captured.iter().copied()).cloned().collect();
            for (place, value) in results.iter_mut().zip(self.run(body, &inputs)?) {
                place.push(value);
            }
        }
        Ok(results.into_iter().map(|list| Value::List(Arc::new(list))).collect())
    }
}

fn bits(value: &Value) -> Result<&ShadowedBits, FaultKind> {
    if let Value::Bits(bits) = value { Ok(bits) } else { Err(FaultKind::Malformed("bits expected")) }
}

fn integer(value: &Value) -> Result<&BigUint, FaultKind> {
    if let Value::Integer(integer) = value { Ok(integer) } else { Err(FaultKind::Malformed("integer expected")) }
}

fn list(value: &Value) -> Result<&Arc<Vec<Value>>, FaultKind> {
    if let Value::List(list) = value { Ok(list) } else { Err(FaultKind::Malformed("array expected")) }
}

fn condition(value: &Value) -> Result<bool, FaultKind> {
    bits(value)?.defined().map(|bit| !bit.is_zero()).ok_or(FaultKind::UndefinedCondition)
}

fn address(value: &Value) -> Result<u64, FaultKind> {
    let address = bits(value)?.defined().ok_or(FaultKind::UndefinedAddress)?;
    address.to_u64().ok_or(FaultKind::Malformed("address above 2^64"))
}

/// Lane width and number of lanes.
fn shape(ty: &Type) -> Result<(u32, u32), FaultKind> {
    if let Type::Bits { width, lanes } = ty { Ok((*width, *lanes)) } else { Err(FaultKind::Malformed("bits type expected")) }
}

/// An operand of a lanewise operation.
struct Lanewise<'a> {
    value: &'a ShadowedBits,
    width: u32,
    lanes: u32,
}

impl<'a> Lanewise<'a> {
    fn new(value: &'a Value, ty: &Type) -> Result<Self, FaultKind> {
        let (width, lanes) = shape(ty)?;
        let value = bits(value)?;
        if value.width() != width * lanes {
            return Err(FaultKind::Malformed("value of another width than its type"));
        }
        Ok(Self { value, width, lanes })
    }
}

/// Runs a function of lanes over all lanes; operands with one lane serve all. `defined` gives `None` for an undefined lane.
fn lanewise<const N: usize>(
    (width, lanes): (u32, u32),
    operands: [Lanewise<'_>; N],
    defined: impl Fn([&Bits; N]) -> Option<Bits>,
    shadowed: impl Fn([&Shadowed; N]) -> Shadowed,
) -> Result<Value, FaultKind> {
    if operands.iter().any(|operand| operand.lanes != lanes && operand.lanes != 1) {
        return Err(FaultKind::Malformed("lanes differ"));
    }
    let place = |operand: &Lanewise<'_>, lane: u32| if operand.lanes == 1 { 0 } else { lane * operand.width };
    let mut result = Bits::zero(width * lanes);
    let mut undefined: Option<Bits> = None;
    let all_defined = operands.iter().all(|operand| operand.value.undefined.is_none());
    for lane in 0..lanes {
        let (lane_bits, lane_undefined) = if all_defined {
            let parts: [Bits; N] = std::array::from_fn(|n| operands[n].value.bits.extract(place(&operands[n], lane), operands[n].width));
            match defined(parts.each_ref()) {
                Some(bits) => (bits, None),
                None => (Bits::zero(width), Some(Bits::ones(width))),
            }
        } else {
            let parts: [Shadowed; N] =
                std::array::from_fn(|n| operands[n].value.extract(place(&operands[n], lane), operands[n].width).shadowed());
            let outcome = shadowed(parts.each_ref());
            (outcome.bits, Some(outcome.undefined))
        };
        if lane_bits.width() != width {
            return Err(FaultKind::Malformed("node of another lane width than its operation gives"));
        }
        result.insert(lane * width, &lane_bits);
        if let Some(mask) = lane_undefined {
            undefined.get_or_insert_with(|| Bits::zero(width * lanes)).insert(lane * width, &mask);
        }
    }
    Ok(match undefined {
        None => result.into(),
        Some(undefined) => ShadowedBits::new(result, undefined).into(),
    })
}

fn apply_unary(op: UnaryOp, context: Context<'_>, operand: Lanewise<'_>) -> Result<Value, FaultKind> {
    lanewise(shape(&context.node.ty)?, [operand], |[a]| Some(lane::unary(op, a)), |[a]| lane::unary_shadowed(op, a))
}

fn apply_binary(op: BinaryOp, context: Context<'_>, a: Lanewise<'_>, b: Lanewise<'_>) -> Result<Value, FaultKind> {
    if !op.is_shift() && a.width != b.width {
        return Err(FaultKind::Malformed("operands of different widths"));
    }
    let (_, lanes) = shape(&context.node.ty)?;
    let width = lane::binary_width(op, a.width);
    lanewise((width, lanes), [a, b], |[a, b]| lane::binary(op, a, b), |[a, b]| lane::binary_shadowed(op, a, b))
}

fn apply_nary(op: NaryOp, context: Context<'_>, handles: &[crate::body::NodeHandle], operands: &[&Value]) -> Result<Value, FaultKind> {
    let (width, lanes) = shape(&context.node.ty)?;
    // Bitwise operations do not see lanes.
    let shape = if op == NaryOp::Add { (width, lanes) } else { (width * lanes, 1) };
    if handles.iter().any(|handle| context.type_of(*handle) != &context.node.ty) {
        return Err(FaultKind::Malformed("operands of different types"));
    }
    let (first, rest) = operands.split_first().ok_or(FaultKind::Malformed("no operands"))?;
    let mut total = (*first).clone();
    for operand in rest {
        let [a, b] = [bits(&total)?, bits(operand)?].map(|value| Lanewise { value, width: shape.0, lanes: shape.1 });
        total = lanewise(shape, [a, b], |[a, b]| Some(lane::nary(op, a, b)), |[a, b]| lane::nary_shadowed(op, a, b))?;
    }
    Ok(total)
}

fn apply_select(context: Context<'_>, operands: &[&Value]) -> Result<Value, FaultKind> {
    let Op::Select { condition: handle, then, otherwise } = &context.node.op else { return Err(FaultKind::Malformed("not a select")) };
    let (Value::Bits(_), Value::Bits(_)) = (operands[1], operands[2]) else {
        return Ok(if condition(operands[0])? { operands[1] } else { operands[2] }.clone());
    };
    let choose = Lanewise::new(operands[0], context.type_of(*handle))?;
    let [a, b] = [Lanewise::new(operands[1], context.type_of(*then))?, Lanewise::new(operands[2], context.type_of(*otherwise))?];
    let (width, lanes) = shape(&context.node.ty)?;
    // One condition for all lanes: take the whole.
    let shape = if choose.lanes == 1 { (width * lanes, 1) } else { (width, lanes) };
    let [a, b] = [a, b].map(|operand| Lanewise { width: shape.0, lanes: shape.1, ..operand });
    lanewise(
        shape,
        [choose, a, b],
        |[choose, a, b]| Some(if choose.is_zero() { b } else { a }.clone()),
        |[choose, a, b]| {
            if !choose.undefined.is_zero() {
                a.merge(b)
            } else if choose.bits.is_zero() {
                b.clone()
            } else {
                a.clone()
            }
        },
    )
}

/// Groups bytes in address order by `order`: first the operand's lanes to bytes, then bytes to the node's lanes.
pub(crate) fn reinterpret(value: &Bits, from_bits: u32, to_bits: u32, order: ByteOrder) -> Bits {
    match order {
        ByteOrder::Little => value.clone(),
        ByteOrder::Big if from_bits == to_bits => value.clone(),
        ByteOrder::Big => value.swap_lane_bytes(from_bits).swap_lane_bytes(to_bits),
    }
}

fn apply_lane(context: Context<'_>, vector: Lanewise<'_>, index: &Value) -> Result<Value, FaultKind> {
    let (width, _) = shape(&context.node.ty)?;
    let as_bits = width == 1 && vector.lanes == 1;
    let lanes = if as_bits { vector.width } else { vector.lanes };
    if !as_bits && vector.width != width {
        return Err(FaultKind::Malformed("lane of another width"));
    }
    Ok(match bits(index)?.defined().map(Bits::saturating_u32) {
        Some(index) if index < lanes => vector.value.extract(index * width, width).into(),
        _ => ShadowedBits::all_undefined(width).into(),
    })
}

/// One element of an array by a scalar index.
fn element(array: &[Value], index: &ShadowedBits, ty: &Type) -> Result<Value, FaultKind> {
    let length = array.len() as u32;
    match index.defined() {
        Some(index) => {
            let place = index.to_u64().unwrap_or(u64::MAX);
            array.get(usize::try_from(place).unwrap_or(usize::MAX)).cloned().ok_or(FaultKind::IndexOutOfRange { index: place, length })
        }
        // Every value of the index names an element, so only its choice is unknown.
        None if index.width() < 32 && 1 << index.width() <= length => match ty {
            Type::Bits { width, lanes } => Ok(ShadowedBits::all_undefined(width * lanes).into()),
            _ => Err(FaultKind::UndefinedIndex),
        },
        None => Err(FaultKind::UndefinedIndex),
    }
}

fn apply_element(context: Context<'_>, array: &Value, index: &Value, index_type: &Type) -> Result<Value, FaultKind> {
    let array = list(array)?;
    let (width, lanes) = shape(index_type)?;
    let index = bits(index)?;
    if lanes == 1 {
        return element(array, index, &context.node.ty);
    }
    let (element_width, _) = shape(&context.node.ty)?;
    let parts = (0..lanes)
        .map(|lane| match element(array, &index.extract(lane * width, width), &Type::bits(element_width))? {
            Value::Bits(bits) => Ok(bits),
            _ => Err(FaultKind::Malformed("lanewise lookup of no bits")),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ShadowedBits::concatenate(&parts).into())
}

/// A modulus that can be divided by.
fn positive(modulus: &Value) -> Result<&BigUint, FaultKind> {
    let modulus = integer(modulus)?;
    if modulus.is_zero() { Err(FaultKind::EvenModulus) } else { Ok(modulus) }
}

fn natural(value: BigUint, ty: &Type) -> Result<Value, FaultKind> {
    match ty {
        Type::Natural { bits } | Type::Modulus { bits } if value.bits() > u64::from(*bits) => {
            Err(FaultKind::NaturalTooWide { actual: value.bits(), allowed: *bits })
        }
        _ => Ok(Value::Integer(value)),
    }
}

fn compare_integers(op: BinaryOp, a: &BigUint, b: &BigUint) -> Result<Value, FaultKind> {
    let bit = |value: bool| Ok(Bits::from_bool(value).into());
    match op {
        BinaryOp::Equal => bit(a == b),
        BinaryOp::Less => bit(a < b),
        BinaryOp::Minimum => Ok(Value::Integer(a.min(b).clone())),
        BinaryOp::Maximum => Ok(Value::Integer(a.max(b).clone())),
        _ => Err(FaultKind::Malformed("operation without a meaning on naturals")),
    }
}

impl<M: Memory> Concrete<'_, M> {
    fn apply_kind(&mut self, context: Context<'_>, operands: &[&Value]) -> Result<Value, FaultKind> {
        let ty = &context.node.ty;
        let lanewise_operand = |position: usize, handle| Lanewise::new(operands[position], context.type_of(handle));
        Ok(match &context.node.op {
            Op::Undefined => match ty {
                Type::Bits { width, lanes } => ShadowedBits::all_undefined(width * lanes).into(),
                _ => return Err(FaultKind::Malformed("undefined value without bits")),
            },
            Op::Unary(op, a) => apply_unary(*op, context, lanewise_operand(0, *a)?)?,
            Op::Binary(op, a, b) => match operands {
                [Value::Integer(a), Value::Integer(b)] => compare_integers(*op, a, b)?,
                _ => apply_binary(*op, context, lanewise_operand(0, *a)?, lanewise_operand(1, *b)?)?,
            },
            Op::Nary(op, handles) => apply_nary(*op, context, handles, operands)?,
            Op::Select { .. } => apply_select(context, operands)?,
            Op::Resize(a) | Op::ResizeSigned(a) => {
                let signed = matches!(context.node.op, Op::ResizeSigned(_));
                let (width, lanes) = shape(ty)?;
                let resize = |bits: &Bits| if signed { bits.resize_signed(width) } else { bits.resize(width) };
                let moved = |[a]: [&Shadowed; 1]| Shadowed { bits: resize(&a.bits), undefined: resize(&a.undefined) };
                // A sign that is undefined fills with undefined bits: the shadow is extended by its own sign.
                lanewise((width, lanes), [lanewise_operand(0, *a)?], |[a]| Some(resize(a)), moved)?
            }
            Op::Reinterpret(a, order) => {
                let (from, lanes) = shape(context.type_of(*a))?;
                let (to, to_lanes) = shape(ty)?;
                if from % 8 != 0 || to % 8 != 0 || from * lanes != to * to_lanes {
                    return Err(FaultKind::Malformed("view of other bytes"));
                }
                bits(operands[0])?.moved(|bits| reinterpret(bits, from, to, *order)).into()
            }
            Op::Lane { vector, .. } => apply_lane(context, lanewise_operand(0, *vector)?, operands[1])?,
            Op::Lanes(_) | Op::Concatenate(_) => {
                let parts = operands.iter().map(|operand| bits(operand)).collect::<Result<SmallVec<[_; 16]>, _>>()?;
                ShadowedBits::concatenate(parts.iter().copied()).into()
            }
            Op::Slice { start, .. } => {
                let (width, lanes) = shape(ty)?;
                bits(operands[0])?.extract(start * width, width * lanes).into()
            }
            Op::FieldMultiply { polynomial, a, b } => lanewise(
                shape(ty)?,
                [lanewise_operand(0, *a)?, lanewise_operand(1, *b)?],
                |[a, b]| Some(a.field_mul(b, polynomial)),
                |[a, b]| lane::field_mul_shadowed(a, b, polynomial),
            )?,
            Op::Affine { matrix, constant, value } => lanewise(
                shape(ty)?,
                [lanewise_operand(0, *value)?],
                |[a]| Some(a.matrix_mul(matrix).xor(constant)),
                |[a]| lane::affine_shadowed(matrix, constant, a),
            )?,
            Op::Array(_) => Value::List(Arc::new(operands.iter().map(|operand| (*operand).clone()).collect())),
            Op::Element { index, .. } => apply_element(context, operands[0], operands[1], context.type_of(*index))?,
            Op::WithElement { .. } => {
                let mut array = list(operands[0])?.clone();
                let index = bits(operands[1])?.defined().ok_or(FaultKind::UndefinedIndex)?;
                let index = index.to_u64().unwrap_or(u64::MAX);
                let length = array.len() as u32;
                let place = usize::try_from(index).ok().and_then(|index| Arc::make_mut(&mut array).get_mut(index));
                *place.ok_or(FaultKind::IndexOutOfRange { index, length })? = operands[2].clone();
                Value::List(array)
            }
            Op::NaturalAdd(..) => natural(integer(operands[0])? + integer(operands[1])?, ty)?,
            Op::NaturalSubtract(..) => {
                let (a, b) = (integer(operands[0])?, integer(operands[1])?);
                if a < b {
                    return Err(FaultKind::NegativeNatural);
                }
                natural(a - b, ty)?
            }
            Op::NaturalMultiply(..) => natural(integer(operands[0])? * integer(operands[1])?, ty)?,
            Op::NaturalSlice { start, .. } => {
                let Type::Natural { bits } = ty else { return Err(FaultKind::Malformed("slice of a natural is a natural")) };
                let shifted = integer(operands[0])? >> start;
                Value::Integer(shifted & natural::mask(*bits))
            }
            Op::Montgomery { modulus, .. } => {
                let Type::Modulus { bits } = context.type_of(*modulus) else { return Err(FaultKind::Malformed("modulus expected")) };
                Value::Integer(self.montgomery(*bits, integer(operands[0])?, integer(operands[1])?, integer(operands[2])?)?)
            }
            Op::ResidueAdd { .. } => {
                let modulus = positive(operands[0])?;
                Value::Integer((integer(operands[1])? + integer(operands[2])?) % modulus)
            }
            Op::ResidueSubtract { .. } => {
                let modulus = positive(operands[0])?;
                Value::Integer((integer(operands[1])? % modulus + modulus - integer(operands[2])? % modulus) % modulus)
            }
            Op::Canonical { .. } => Value::Integer(integer(operands[1])? % positive(operands[0])?),
            Op::Input(_) | Op::Constant(_) | Op::Integer(_) | Op::Load { .. } | Op::Loop { .. } | Op::Map { .. } | Op::Result(..) => {
                return Err(FaultKind::Malformed("operation that the evaluator itself does"));
            }
        })
    }
}

impl<M: Memory> Domain for Concrete<'_, M> {
    type Value = Value;
    type Fault = Fault;

    fn constant(&mut self, _ty: &Type, bits: &Bits) -> Value {
        bits.clone().into()
    }

    fn integer(&mut self, _ty: &Type, value: &BigUint) -> Value {
        Value::Integer(value.clone())
    }

    fn apply(&mut self, context: Context<'_>, operands: &[&Value]) -> Result<Value, Fault> {
        self.apply_kind(context, operands).map_err(|kind| Fault { kind, span: context.node.span })
    }

    fn structured(&mut self, context: Context<'_>, operands: &[&Value]) -> Result<Vec<Value>, Fault> {
        let results = match &context.node.op {
            Op::Loop { .. } => self.run_loop(context, operands),
            _ => self.run_map(context, operands),
        };
        results.map_err(|fault| fault.or_at(context.node.span))
    }

    fn load(&mut self, context: Context<'_>, at: &Value, bytes: u32) -> Result<Value, Fault> {
        let at_node = |kind| Fault { kind, span: context.node.span };
        let at = address(at).map_err(at_node)?;
        self.memory.load(at, bytes).map(Value::Bits).map_err(at_node)
    }

    fn store(&mut self, at: &Value, value: &Value, _bytes: u32, when: Option<&Value>) -> Result<(), Fault> {
        if when.map_or(Ok(true), condition)? {
            self.memory.store(address(at)?, bits(value)?)?;
        }
        Ok(())
    }

    fn branch(&mut self, when: Option<&Value>, target: Option<&Value>) -> Result<(), Fault> {
        if when.map_or(Ok(true), condition)?
            && let Some(target) = target
        {
            address(target)?;
        }
        Ok(())
    }

    fn forbidden(&mut self, condition: &Value, span: Span) -> Result<(), Fault> {
        let kind = match bits(condition)?.defined() {
            None => FaultKind::UndefinedForbidden,
            Some(bit) if !bit.is_zero() => FaultKind::Forbidden,
            Some(_) => return Ok(()),
        };
        Err(Fault { kind, span })
    }
}

/// A value's number, where it is a defined scalar of at most 64 bits.
pub fn defined_u64(value: &Value) -> Option<u64> {
    match value {
        Value::Bits(bits) => bits.defined()?.to_u64(),
        Value::Integer(integer) => integer.to_u64(),
        Value::List(_) => None,
    }
}

/// The value of an operation whose operands are all known, where it has one that depends on neither memory nor a radix: what other domains fold constants with.
pub(super) fn fold(context: Context<'_>, operands: &[&Value]) -> Option<Value> {
    if matches!(context.node.op, Op::Montgomery { .. } | Op::Load { .. } | Op::Loop { .. } | Op::Map { .. } | Op::Result(..) | Op::Input(_))
    {
        return None;
    }
    let radix = MontgomeryRadix::one();
    Concrete::new(&mut super::memory::NoMemory, &radix).apply_kind(context, operands).ok()
}
