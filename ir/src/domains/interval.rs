//! Bounds of unsigned lanes: can this sum leave its lane?
//!
//! A value is a row of *pieces*, least significant first; a piece is a run of bits of a *word* whose bounds are known. Operations that only move bits (views, lanes,
//! permutes, constant shifts and masks) cut and reorder pieces, so bounds survive any regrouping: a 16-bit limb whose two bytes go through a byte permute has its
//! bounds again when the bytes stand together again. Arithmetic reads a lane's bounds off its pieces and makes a new word.
//!
//! Bounds are kept for words of up to 128 bits; wider lanes come out of arithmetic without bounds.

use super::concrete;
use crate::bits::Bits;
use crate::body::{BinaryOp, NaryOp, NodeHandle, Op, UnaryOp};
use crate::evaluate::{Context, Domain};
use crate::source::Span;
use crate::types::{ByteOrder, Type};
use num_bigint::BigUint;
use smallvec::{SmallVec, smallvec};
use std::convert::Infallible;
use std::sync::Arc;

/// The widest word with bounds.
const WIDEST: u32 = 128;

/// Least and greatest value, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// Least.
    pub low: u128,
    /// Greatest, at least `low`.
    pub high: u128,
}

impl Range {
    /// Exactly this value.
    pub const fn exactly(value: u128) -> Self {
        Self { low: value, high: value }
    }

    /// Everything that `width` bits (at most 128) hold.
    pub const fn full(width: u32) -> Self {
        Self { low: 0, high: ones(width) }
    }

    /// Zero up to `high`.
    pub const fn up_to(high: u128) -> Self {
        Self { low: 0, high }
    }

    /// The smallest range with both.
    pub fn union(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Whether every value of this one lies in `other`.
    pub const fn is_within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// The one value there is, if only one.
    pub fn single(self) -> Option<u128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Bits `offset … offset+width−1` of the values.
    fn slice(self, offset: u32, width: u32) -> Self {
        let shifted = |value: u128| value.checked_shr(offset).unwrap_or(0);
        let above = |value: u128| shifted(value).checked_shr(width).unwrap_or(0);
        // While the bits above stay the same, these bits run from one end to the other; otherwise they wrap and take every value.
        if above(self.low) == above(self.high) {
            Self { low: shifted(self.low) & ones(width), high: shifted(self.high) & ones(width) }
        } else {
            Self::full(width)
        }
    }
}

/// 2^width − 1, width at most 128.
const fn ones(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width) }
}

/// Bits needed for a value.
const fn length(value: u128) -> u32 {
    128 - value.leading_zeros()
}

/// A run of bits of a word. Two pieces with the same `word` are parts of one and the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Identity; 0 for constants, which are whole words.
    word: u32,
    /// Bounds of the whole word.
    range: Range,
    /// First bit in the word.
    offset: u32,
    /// Bits of this piece, at least 1.
    width: u32,
}

impl Piece {
    fn constant(width: u32, value: u128) -> Self {
        Self { word: 0, range: Range::exactly(value & ones(width)), offset: 0, width }
    }

    fn bounds(&self) -> Range {
        self.range.slice(self.offset, self.width)
    }

    fn cut(&self, start: u32, width: u32) -> Self {
        match self.bounds().single() {
            Some(value) => Self::constant(width, value >> start),
            None => Self { offset: self.offset + start, width, ..*self },
        }
    }

    fn is(&self, value: u128) -> bool {
        self.bounds().single() == Some(value)
    }
}

/// Pieces one after another, coalesced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pieces(SmallVec<[Piece; 4]>);

impl Pieces {
    fn push(&mut self, piece: Piece) {
        if let Some(last) = self.0.last_mut() {
            if last.word != 0 && last.word == piece.word && last.offset + last.width == piece.offset {
                last.width += piece.width;
                return;
            }
            if let (Some(low), Some(high)) = (last.bounds().single(), piece.bounds().single())
                && last.width + piece.width <= WIDEST
            {
                *last = Piece::constant(last.width + piece.width, low | high << last.width);
                return;
            }
        }
        self.0.push(piece);
    }

    fn append(&mut self, other: &Self) {
        for piece in &other.0 {
            self.push(*piece);
        }
    }

    fn zeros(&mut self, mut width: u32) {
        while width != 0 {
            let step = width.min(WIDEST);
            self.push(Piece::constant(step, 0));
            width -= step;
        }
    }

    fn slice(&self, start: u32, width: u32) -> Self {
        let mut result = Self::default();
        let (mut place, end) = (0, start + width);
        for piece in &self.0 {
            let (first, last) = (place.max(start), (place + piece.width).min(end));
            if first < last {
                result.push(piece.cut(first - place, last - first));
            }
            place += piece.width;
        }
        result
    }

    fn width(&self) -> u32 {
        self.0.iter().map(|piece| piece.width).sum()
    }

    /// Bounds of the whole as one number; `None` where it is wider than 128 bits.
    fn bounds(&self) -> Option<Range> {
        let mut range = Range::exactly(0);
        let mut place = 0;
        for piece in &self.0 {
            if place + piece.width > WIDEST {
                return None;
            }
            let bounds = piece.bounds();
            range = Range { low: range.low | bounds.low << place, high: range.high | bounds.high << place };
            place += piece.width;
        }
        Some(range)
    }

    fn lanes(&self, width: u32) -> impl Iterator<Item = Self> {
        (0..self.width() / width).map(move |lane| self.slice(lane * width, width))
    }
}

/// A value of this domain. It belongs to the domain that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every value is of bits; a box would be an allocation for each")]
enum Form {
    Bits(Pieces),
    List(Arc<Vec<Interval>>),
    /// Of another type; nothing is known.
    Other,
}

impl Interval {
    /// Bounds of every lane of `width` bits; `None` where lanes are wider than 128 bits or the value has none.
    pub fn ranges(&self, width: u32) -> Option<Vec<Range>> {
        self.pieces()?.lanes(width).map(|lane| lane.bounds()).collect()
    }

    fn pieces(&self) -> Option<&Pieces> {
        if let Form::Bits(pieces) = &self.0 { Some(pieces) } else { None }
    }
}

/// An operation of which the exact result may not fit its lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    /// The node.
    pub node: NodeHandle,
    /// Which lane of it.
    pub lane: u32,
    /// Where it was written.
    pub span: Span,
    /// Lane width in bits.
    pub width: u32,
    /// The greatest exact value; `None` where it is not below 2^128 or, for a subtraction, the least is below zero.
    pub high: Option<u128>,
}

/// The domain. It numbers words, so values of different domains must not meet.
#[derive(Clone, Debug, Default)]
pub struct IntervalDomain {
    words: u32,
    wraps: Vec<Wrap>,
}

impl IntervalDomain {
    /// A domain that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The possible wrap-arounds of sums, differences, products and left shifts modulo 2^W seen since the last call, in the order of evaluation.
    pub fn take_wraps(&mut self) -> Vec<Wrap> {
        std::mem::take(&mut self.wraps)
    }

    /// A value whose lanes of `width` bits (at most 128) have these bounds.
    pub fn value(&mut self, width: u32, lanes: &[Range]) -> Interval {
        let mut pieces = Pieces::default();
        for range in lanes {
            self.push_word(&mut pieces, width, *range);
        }
        Interval(Form::Bits(pieces))
    }

    /// A value of which nothing is known but its type.
    pub fn unknown(&mut self, ty: &Type) -> Interval {
        match ty {
            Type::Bits { width, lanes } => {
                let mut pieces = Pieces::default();
                for _ in 0..*lanes {
                    self.unknown_bits(&mut pieces, *width);
                }
                Interval(Form::Bits(pieces))
            }
            Type::Array { element, length } => Interval(Form::List(Arc::new((0..*length).map(|_| self.unknown(element)).collect()))),
            _ => Interval(Form::Other),
        }
    }

    /// A constant.
    pub fn constant_bits(&self, bits: &Bits) -> Interval {
        let mut pieces = Pieces::default();
        let mut place = 0;
        while place < bits.width() {
            let step = (bits.width() - place).min(WIDEST);
            pieces.push(Piece::constant(step, bits.extract(place, step).low_u128()));
            place += step;
        }
        Interval(Form::Bits(pieces))
    }

    /// The same bytes seen as other lanes, as [`Op::Reinterpret`] does; widths are multiples of eight.
    pub fn view(value: &Interval, from_width: u32, to_width: u32, order: ByteOrder) -> Interval {
        match (&value.0, order) {
            (Form::Bits(pieces), ByteOrder::Big) if from_width != to_width => {
                Interval(Form::Bits(swap_lanes(&swap_lanes(pieces, from_width), to_width)))
            }
            _ => value.clone(),
        }
    }

    /// What holds for both, lane by lane of `width` bits: for values that meet where control does.
    pub fn union(&mut self, a: &Interval, b: &Interval) -> Interval {
        match (&a.0, &b.0) {
            (Form::Bits(a), Form::Bits(b)) if a.width() == b.width() => Interval(Form::Bits(self.either(a, b))),
            (Form::List(a), Form::List(b)) if a.len() == b.len() => {
                Interval(Form::List(Arc::new(a.iter().zip(b.iter()).map(|(a, b)| self.union(a, b)).collect())))
            }
            _ => Interval(Form::Other),
        }
    }

    /// A new word of `width` bits, at most 128. Bits that both bounds share at the top are constant, so that equal knowledge has one form.
    fn push_word(&mut self, pieces: &mut Pieces, width: u32, range: Range) {
        let varying = length(range.low ^ range.high);
        if varying != 0 {
            self.words += 1;
            pieces.push(Piece { word: self.words, range: range.slice(0, varying), offset: 0, width: varying });
        }
        if varying < width {
            pieces.push(Piece::constant(width - varying, range.low.checked_shr(varying).unwrap_or(0)));
        }
    }

    fn unknown_bits(&mut self, pieces: &mut Pieces, mut width: u32) {
        while width != 0 {
            let step = width.min(WIDEST);
            self.push_word(pieces, step, Range::full(step));
            width -= step;
        }
    }

    fn lane(&mut self, width: u32, range: Option<Range>) -> Pieces {
        let mut pieces = Pieces::default();
        match range {
            Some(range) if width <= WIDEST => self.push_word(&mut pieces, width, range),
            _ => self.unknown_bits(&mut pieces, width),
        }
        pieces
    }

    /// Pieces of both with the same cuts, pair by pair.
    fn segments(a: &Pieces, b: &Pieces) -> SmallVec<[(Piece, Piece); 8]> {
        let mut result = smallvec![];
        let (mut left, mut right) = (a.0.iter().copied(), b.0.iter().copied());
        let (mut x, mut y) = (left.next(), right.next());
        while let (Some(p), Some(q)) = (x, y) {
            let width = p.width.min(q.width);
            result.push((p.cut(0, width), q.cut(0, width)));
            x = if p.width > width { Some(p.cut(width, p.width - width)) } else { left.next() };
            y = if q.width > width { Some(q.cut(width, q.width - width)) } else { right.next() };
        }
        result
    }

    fn either(&mut self, a: &Pieces, b: &Pieces) -> Pieces {
        let mut result = Pieces::default();
        for (p, q) in Self::segments(a, b) {
            if p == q {
                result.push(p);
            } else {
                self.push_word(&mut result, p.width, p.bounds().union(q.bounds()));
            }
        }
        result
    }

    fn bitwise(&mut self, op: NaryOp, a: &Pieces, b: &Pieces) -> Pieces {
        let mut result = Pieces::default();
        for (p, q) in Self::segments(a, b) {
            self.bitwise_segment(op, p, q, &mut result);
        }
        result
    }

    fn bitwise_segment(&mut self, op: NaryOp, p: Piece, q: Piece, result: &mut Pieces) {
        let width = p.width;
        let (p, q) = if p.bounds().single().is_some() { (q, p) } else { (p, q) };
        let Some(constant) = q.bounds().single() else {
            let (x, y) = (p.bounds(), q.bounds());
            let cover = ones(length(x.high | y.high));
            let sum = x.high.saturating_add(y.high);
            let range = match op {
                NaryOp::Xor if p == q => Range::exactly(0),
                _ if p == q => return result.push(p),
                NaryOp::And => Range::up_to(x.high.min(y.high)),
                NaryOp::Or => Range { low: x.low.max(y.low), high: cover.min(sum) },
                _ => Range::up_to(cover.min(sum)),
            };
            return self.push_word(result, width, range);
        };
        // Runs of equal bits of the constant: each keeps, clears, sets or inverts its part of the other operand.
        let mut start = 0;
        while start < width {
            let bit = constant >> start & 1 == 1;
            let rest = constant >> start;
            let run = if bit { rest.trailing_ones() } else { rest.trailing_zeros() }.min(width - start);
            let part = p.cut(start, run);
            match (op, bit) {
                (NaryOp::And, true) | (NaryOp::Or | NaryOp::Xor, false) => result.push(part),
                (NaryOp::And, false) => result.push(Piece::constant(run, 0)),
                (NaryOp::Or, true) => result.push(Piece::constant(run, ones(run))),
                _ => {
                    let bounds = part.bounds();
                    self.push_word(result, run, Range { low: ones(run) - bounds.high, high: ones(run) - bounds.low });
                }
            }
            start += run;
        }
    }

    fn wrap(&mut self, context: Context<'_>, lane: u32, width: u32, high: Option<u128>) {
        self.wraps.push(Wrap { node: context.handle, lane, span: context.node.span, width, high });
    }

    fn sum(&mut self, context: Context<'_>, lane: u32, width: u32, operands: &[Pieces]) -> Pieces {
        let ranges: Option<SmallVec<[Range; 8]>> = operands.iter().map(Pieces::bounds).collect();
        let mut ranges = ranges.unwrap_or_default();
        if width > WIDEST || ranges.is_empty() {
            self.wrap(context, lane, width, None);
            return self.lane(width, None);
        }
        let first = ranges.remove(0);
        let total = ranges
            .iter()
            .try_fold(first, |sum, next| Some(Range { low: sum.low.checked_add(next.low)?, high: sum.high.checked_add(next.high)? }));
        match total {
            Some(total) if total.high <= ones(width) => self.lane(width, Some(total)),
            _ => {
                self.wrap(context, lane, width, total.map(|range| range.high));
                self.lane(width, None)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, context: Context<'_>, lane: u32, a: &Pieces, b: &Pieces) -> Pieces {
        let width = a.width();
        let result_width = if op.is_comparison() { 1 } else { width };
        let (Some(x), Some(y)) = (a.bounds(), b.bounds()) else {
            if matches!(op, BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::ShiftLeft) {
                self.wrap(context, lane, width, None);
            }
            return self.lane(result_width, None);
        };
        if op.is_shift() {
            return self.shift(op, context, lane, a, x, y);
        }
        let non_negative = x.high.max(y.high) <= ones(width - 1);
        let less = |x: Range, y: Range| {
            if x.high < y.low {
                Range::exactly(1)
            } else if x.low >= y.high {
                Range::exactly(0)
            } else {
                Range::full(1)
            }
        };
        let minimum = Range { low: x.low.min(y.low), high: x.high.min(y.high) };
        let maximum = Range { low: x.low.max(y.low), high: x.high.max(y.high) };
        let range = match op {
            BinaryOp::Subtract if x.low >= y.high => Some(Range { low: x.low - y.high, high: x.high - y.low }),
            BinaryOp::Subtract => {
                self.wrap(context, lane, width, None);
                None
            }
            BinaryOp::Multiply => {
                let product = x.high.checked_mul(y.high);
                let fits = product.filter(|high| *high <= ones(width)).map(|high| Range { low: x.low * y.low, high });
                if fits.is_none() {
                    self.wrap(context, lane, width, product);
                }
                fits
            }
            BinaryOp::Divide => (y.low != 0).then(|| Range { low: x.low / y.high, high: x.high / y.low }),
            BinaryOp::Remainder if y.low != 0 && x.high < y.low => Some(x),
            BinaryOp::Remainder => (y.low != 0).then(|| Range::up_to(x.high.min(y.high - 1))),
            BinaryOp::CarrylessMultiply => Some(Range::up_to(match (length(x.high), length(y.high)) {
                (0, _) | (_, 0) => 0,
                (p, q) => ones((p + q - 1).min(width)),
            })),
            BinaryOp::Equal => Some(match (x.single(), y.single()) {
                _ if x.high < y.low || y.high < x.low => Range::exactly(0),
                (Some(p), Some(q)) => Range::exactly(u128::from(p == q)),
                _ => Range::full(1),
            }),
            BinaryOp::Less => Some(less(x, y)),
            BinaryOp::LessSigned => non_negative.then(|| less(x, y)),
            BinaryOp::Minimum => Some(minimum),
            BinaryOp::Maximum => Some(maximum),
            BinaryOp::MinimumSigned => non_negative.then_some(minimum),
            BinaryOp::MaximumSigned => non_negative.then_some(maximum),
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned | BinaryOp::RotateLeft => None,
        };
        self.lane(result_width, range)
    }

    fn shift(&mut self, op: BinaryOp, context: Context<'_>, lane: u32, a: &Pieces, x: Range, count: Range) -> Pieces {
        let width = a.width();
        let op = if op == BinaryOp::ShiftRightSigned && x.high <= ones(width - 1) { BinaryOp::ShiftRight } else { op };
        let Some(exact) = count.single() else {
            let by = |value: u128, count: u128| if count < u128::from(width) { value >> count } else { 0 };
            let range = match op {
                BinaryOp::ShiftRight => Some(Range { low: by(x.low, count.high), high: by(x.high, count.low) }),
                BinaryOp::ShiftLeft if count.high < u128::from(x.high.leading_zeros()) && x.high << count.high <= ones(width) => {
                    Some(Range { low: x.low << count.low, high: x.high << count.high })
                }
                BinaryOp::ShiftLeft => {
                    self.wrap(context, lane, width, None);
                    None
                }
                _ => None,
            };
            return self.lane(width, range);
        };
        let distance = exact.min(u128::from(width)) as u32;
        let mut result = Pieces::default();
        match op {
            BinaryOp::ShiftLeft => {
                if a.slice(width - distance, distance).0.iter().any(|piece| !piece.is(0)) {
                    let high = (distance < x.high.leading_zeros()).then(|| x.high << distance);
                    self.wrap(context, lane, width, high);
                }
                result.zeros(distance);
                result.append(&a.slice(0, width - distance));
            }
            BinaryOp::ShiftRight => {
                result.append(&a.slice(distance, width - distance));
                result.zeros(distance);
            }
            BinaryOp::RotateLeft => {
                let distance = (exact % u128::from(width)) as u32;
                result.append(&a.slice(width - distance, distance));
                result.append(&a.slice(0, width - distance));
            }
            _ => return self.lane(width, None),
        }
        result
    }

    fn unary(&mut self, op: UnaryOp, a: &Pieces) -> Pieces {
        let width = a.width();
        if op == UnaryOp::Not {
            let mut result = Pieces::default();
            for piece in &a.0 {
                self.bitwise_segment(NaryOp::Xor, *piece, Piece::constant(piece.width, ones(piece.width)), &mut result);
            }
            return result;
        }
        let range = a.bounds().and_then(|range| {
            let counts = match op {
                UnaryOp::Not => return None,
                UnaryOp::LeadingZeros => Range { low: u128::from(width - length(range.high)), high: u128::from(width - length(range.low)) },
                UnaryOp::PopulationCount => Range { low: u128::from(range.low != 0), high: u128::from(length(range.high)) },
            };
            (counts.high <= ones(width)).then_some(counts)
        });
        self.lane(width, range)
    }

    fn element(&mut self, list: &[Interval], index: &Pieces, ty: &Type) -> Interval {
        let range = index.bounds().unwrap_or(Range::full(WIDEST));
        let place = |value: u128| usize::try_from(value).unwrap_or(usize::MAX).min(list.len());
        let candidates = &list[place(range.low)..place(range.high.saturating_add(1))];
        let Some((first, rest)) = candidates.split_first() else { return self.unknown(ty) };
        rest.iter().fold(first.clone(), |all, next| self.union(&all, next))
    }

    fn apply_bits(&mut self, context: Context<'_>, operands: &[&Interval], width: u32, lanes: u32) -> Option<Pieces> {
        let pieces = |index: usize| operands[index].pieces();
        let lane_width = |handle: NodeHandle| match context.type_of(handle) {
            Type::Bits { width, .. } => *width,
            _ => 1,
        };
        let mut result = Pieces::default();
        match &context.node.op {
            Op::Unary(op, _) => {
                for lane in pieces(0)?.lanes(width) {
                    result.append(&self.unary(*op, &lane));
                }
            }
            Op::Binary(op, a, b) => {
                let (a_width, b_width) = (lane_width(*a), lane_width(*b));
                let counts = pieces(1)?;
                for (lane, a) in pieces(0)?.lanes(a_width).enumerate() {
                    let place = if counts.width() == b_width { 0 } else { lane as u32 * b_width };
                    result.append(&self.binary(*op, context, lane as u32, &a, &counts.slice(place, b_width)));
                }
            }
            Op::Nary(NaryOp::Add, _) => {
                let values = operands.iter().map(|operand| operand.pieces()).collect::<Option<SmallVec<[_; 4]>>>()?;
                for lane in 0..lanes {
                    let parts: SmallVec<[Pieces; 4]> = values.iter().map(|value| value.slice(lane * width, width)).collect();
                    result.append(&self.sum(context, lane, width, &parts));
                }
            }
            Op::Nary(op, _) => {
                result = pieces(0)?.clone();
                for operand in &operands[1..] {
                    result = self.bitwise(*op, &result, operand.pieces()?);
                }
            }
            Op::Select { .. } => {
                let (conditions, then, otherwise) = (pieces(0)?, pieces(1)?, pieces(2)?);
                let step = if conditions.width() == 1 { width * lanes } else { width };
                for (lane, condition) in conditions.lanes(1).enumerate() {
                    let [a, b] = [then, otherwise].map(|value| value.slice(lane as u32 * step, step));
                    result.append(&match condition.bounds()?.single() {
                        Some(0) => b,
                        Some(_) => a,
                        None => self.either(&a, &b),
                    });
                }
            }
            Op::Resize(a) | Op::ResizeSigned(a) => {
                let from = lane_width(*a);
                let signed = matches!(context.node.op, Op::ResizeSigned(_));
                for lane in pieces(0)?.lanes(from) {
                    result.append(&lane.slice(0, width.min(from)));
                    let fill = width.saturating_sub(from);
                    match lane.slice(from - 1, 1).bounds()?.single() {
                        Some(1) if signed => result.append(self.constant_bits(&Bits::ones(fill)).pieces()?),
                        None if signed => self.unknown_bits(&mut result, fill),
                        _ => result.zeros(fill),
                    }
                }
            }
            Op::Reinterpret(a, order) => return Self::view(operands[0], lane_width(*a), width, *order).pieces().cloned(),
            Op::Lane { vector, .. } => {
                let is_bit = width == 1 && matches!(context.type_of(*vector), Type::Bits { lanes: 1, .. });
                let all = pieces(0)?;
                let step = if is_bit { 1 } else { lane_width(*vector) };
                let count = all.width() / step;
                let range = pieces(1)?.bounds().unwrap_or(Range::full(WIDEST));
                // An index that may be out of range gives undefined, which is anything.
                if range.high >= u128::from(count) {
                    return None;
                }
                result = all.slice(range.low as u32 * step, step);
                for index in range.low as u32 + 1..=range.high as u32 {
                    result = self.either(&result, &all.slice(index * step, step));
                }
            }
            Op::Lanes(_) | Op::Concatenate(_) => {
                for operand in operands {
                    result.append(operand.pieces()?);
                }
            }
            Op::Slice { start, .. } => result = pieces(0)?.slice(start * width, width * lanes),
            Op::Element { index, .. } => {
                let Form::List(list) = &operands[0].0 else { return None };
                let index_width = lane_width(*index);
                if pieces(1)?.width() == index_width {
                    return self.element(list, pieces(1)?, &context.node.ty).pieces().cloned();
                }
                for index in pieces(1)?.lanes(index_width) {
                    result.append(self.element(list, &index, &Type::bits(width)).pieces()?);
                }
            }
            _ => return None,
        }
        Some(result)
    }

    fn apply_list(&mut self, context: Context<'_>, operands: &[&Interval]) -> Option<Interval> {
        match (&context.node.op, operands) {
            (Op::Array(_), elements) => Some(Interval(Form::List(Arc::new(elements.iter().map(|element| (*element).clone()).collect())))),
            (Op::Select { .. }, [_, a, b]) => Some(self.union(a, b)),
            (Op::Element { .. }, [Interval(Form::List(list)), index]) => Some(self.element(list, index.pieces()?, &context.node.ty)),
            (Op::WithElement { .. }, [Interval(Form::List(list)), index, value]) => {
                let range = index.pieces()?.bounds()?;
                let mut list = list.to_vec();
                for (place, element) in list.iter_mut().enumerate() {
                    let place = Range::exactly(place as u128);
                    if range == place {
                        *element = (*value).clone();
                    } else if place.is_within(range) {
                        *element = self.union(element, value);
                    }
                }
                Some(Interval(Form::List(Arc::new(list))))
            }
            _ => None,
        }
    }
}

/// Bytes of every lane in reverse order.
fn swap_lanes(pieces: &Pieces, width: u32) -> Pieces {
    if width == 8 {
        return pieces.clone();
    }
    let mut result = Pieces::default();
    for lane in pieces.lanes(width) {
        for byte in (0..width / 8).rev() {
            result.append(&lane.slice(byte * 8, 8));
        }
    }
    result
}

fn to_concrete(value: &Interval) -> Option<concrete::Value> {
    let Form::Bits(pieces) = &value.0 else { return None };
    let mut bits = Bits::zero(pieces.width());
    let mut place = 0;
    for piece in &pieces.0 {
        bits.insert(place, &Bits::from_u128(piece.width, piece.bounds().single()?));
        place += piece.width;
    }
    Some(bits.into())
}

impl Domain for IntervalDomain {
    type Value = Interval;
    type Fault = Infallible;

    fn constant(&mut self, _ty: &Type, bits: &Bits) -> Interval {
        self.constant_bits(bits)
    }

    fn integer(&mut self, _ty: &Type, _value: &BigUint) -> Interval {
        Interval(Form::Other)
    }

    fn apply(&mut self, context: Context<'_>, operands: &[&Interval]) -> Result<Interval, Infallible> {
        let Type::Bits { width, lanes } = context.node.ty else {
            return Ok(self.apply_list(context, operands).unwrap_or_else(|| self.unknown(&context.node.ty)));
        };
        // Operations that wrap are not folded, so that the wrap is seen.
        let wraps = matches!(
            context.node.op,
            Op::Nary(NaryOp::Add, _) | Op::Binary(BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::ShiftLeft, ..)
        );
        if !wraps
            && !operands.is_empty()
            && let Some(constants) = operands.iter().map(|operand| to_concrete(operand)).collect::<Option<SmallVec<[_; 4]>>>()
            && let Some(concrete::Value::Bits(bits)) = concrete::fold(context, &constants.iter().collect::<SmallVec<[_; 4]>>())
            && let Some(bits) = bits.defined()
        {
            return Ok(self.constant_bits(bits));
        }
        Ok(match self.apply_bits(context, operands, width, lanes) {
            Some(pieces) => Interval(Form::Bits(pieces)),
            None => self.unknown(&context.node.ty),
        })
    }

    fn structured(&mut self, context: Context<'_>, _operands: &[&Interval]) -> Result<Vec<Interval>, Infallible> {
        Ok(super::structured_types(context).map(|ty| self.unknown(ty)).collect())
    }

    fn load(&mut self, context: Context<'_>, _address: &Interval, _bytes: u32) -> Result<Interval, Infallible> {
        Ok(self.unknown(&context.node.ty))
    }

    fn store(&mut self, _: &Interval, _: &Interval, _: u32, _: Option<&Interval>) -> Result<(), Infallible> {
        Ok(())
    }

    fn branch(&mut self, _: Option<&Interval>, _: Option<&Interval>) -> Result<(), Infallible> {
        Ok(())
    }

    fn forbidden(&mut self, _: &Interval, _: Span) -> Result<(), Infallible> {
        Ok(())
    }
}
