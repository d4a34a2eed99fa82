//! Limbs one by one in integer registers: for what runs once per key or per conversion. No multiplication, since its time may depend on operands; no branch but on counts.

use crate::lowering::builder::{Lowering, Place, ProgramBuilder};
use crate::lowering::loops::Rounds;
use crate::lowering::shapes::LaneOp;
use crate::machine::FileId;
use crate::program::{RegionId, ValueId};

/// An array of unsigned numbers in memory, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Where.
    pub region: RegionId,
    /// Byte offset of number 0.
    pub offset: u64,
    /// Bytes of a number.
    pub number_bytes: u32,
    /// How many there are.
    pub count: u32,
}

impl Numbers {
    fn window(&self) -> (u64, u64) {
        (self.offset, self.offset + u64::from(self.number_bytes) * u64::from(self.count))
    }

    /// The place of the number whose byte distance from number 0 is in a register.
    fn at(&self, index: ValueId) -> Place {
        Place::indexed(self.region, index, self.offset, self.window())
    }

    fn at_constant(&self, index: u32) -> Place {
        Place::at(self.region, self.offset + u64::from(self.number_bytes * index))
    }
}

/// Integer arithmetic of the setup code, on public counts and secret limbs alike.
pub(super) struct Scalar<'b, 'm> {
    /// Where instructions go.
    pub builder: &'b mut ProgramBuilder<'m>,
}

impl Scalar<'_, '_> {
    /// A constant.
    pub fn constant(&mut self, value: i64) -> Lowering<ValueId> {
        self.builder.integer(value)
    }

    fn operation(&mut self, op: LaneOp, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        let width = self.builder.machine()[self.builder.integer_file()].width_bits;
        self.builder.lane_row(op, width, &[a, b])
    }

    /// a + b.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        self.operation(LaneOp::Add, a, b)
    }

    /// a − b.
    pub fn subtract(&mut self, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        self.operation(LaneOp::Subtract, a, b)
    }

    /// a & b.
    pub fn and(&mut self, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        self.operation(LaneOp::And, a, b)
    }

    /// a | b.
    pub fn or(&mut self, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        self.operation(LaneOp::Or, a, b)
    }

    /// a ^ b.
    pub fn xor(&mut self, a: ValueId, b: ValueId) -> Lowering<ValueId> {
        self.operation(LaneOp::Xor, a, b)
    }

    /// An operation with a constant.
    pub fn with(&mut self, op: LaneOp, a: ValueId, constant: i64) -> Lowering<ValueId> {
        self.builder.with_constant(op, a, constant)
    }

    /// Number `index` (a byte distance).
    pub fn load(&mut self, numbers: Numbers, index: ValueId) -> Lowering<ValueId> {
        self.builder.load_integer(numbers.number_bytes, numbers.at(index))
    }

    /// Number `index`.
    pub fn load_at(&mut self, numbers: Numbers, index: u32) -> Lowering<ValueId> {
        self.builder.load_integer(numbers.number_bytes, numbers.at_constant(index))
    }

    /// Sets number `index` (a byte distance).
    pub fn store(&mut self, value: ValueId, numbers: Numbers, index: ValueId) -> Lowering<()> {
        self.builder.store_integer(value, numbers.number_bytes, numbers.at(index))
    }

    /// Sets number `index`.
    pub fn store_at(&mut self, value: ValueId, numbers: Numbers, index: u32) -> Lowering<()> {
        self.builder.store_integer(value, numbers.number_bytes, numbers.at_constant(index))
    }

    /// The numbers from `index` (a byte distance) on that fill a register of a file.
    pub fn load_register(&mut self, file: FileId, bytes: u32, numbers: Numbers, index: ValueId) -> Lowering<ValueId> {
        self.builder.load(file, bytes, numbers.at(index))
    }

    /// Sets the numbers from `index` (a byte distance) on.
    pub fn store_register(&mut self, value: ValueId, bytes: u32, numbers: Numbers, index: ValueId) -> Lowering<()> {
        self.builder.store(value, bytes, numbers.at(index))
    }

    /// Every number to zero.
    pub fn clear(&mut self, numbers: Numbers) -> Lowering<()> {
        let zero = self.constant(0)?;
        self.for_each(numbers.count, numbers.number_bytes, &[], |scalar, index, _| {
            scalar.store(zero, numbers, index)?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Runs `body` for `count` indices, given as byte distances in steps of `step_bytes`, innermost.
    pub fn for_each(
        &mut self,
        count: u32,
        step_bytes: u32,
        carried: &[ValueId],
        body: impl FnOnce(&mut Scalar<'_, '_>, ValueId, &[ValueId]) -> Lowering<Vec<ValueId>>,
    ) -> Lowering<Vec<ValueId>> {
        self.rounds(count, step_bytes, false, carried, body)
    }

    /// As [`Self::for_each`], with loops inside.
    pub fn for_each_outer(
        &mut self,
        count: u32,
        step_bytes: u32,
        carried: &[ValueId],
        body: impl FnOnce(&mut Scalar<'_, '_>, ValueId, &[ValueId]) -> Lowering<Vec<ValueId>>,
    ) -> Lowering<Vec<ValueId>> {
        self.rounds(count, step_bytes, true, carried, body)
    }

    fn rounds(
        &mut self,
        count: u32,
        step_bytes: u32,
        has_inner: bool,
        carried: &[ValueId],
        body: impl FnOnce(&mut Scalar<'_, '_>, ValueId, &[ValueId]) -> Lowering<Vec<ValueId>>,
    ) -> Lowering<Vec<ValueId>> {
        let first = self.constant(0)?;
        let initial: Vec<ValueId> = std::iter::once(first).chain(carried.iter().copied()).collect();
        let results = self.builder.counted_loop(Rounds::Constant(u64::from(count)), has_inner, &initial, |builder, current| {
            let mut scalar = Scalar { builder };
            let next = body(&mut scalar, current[0], &current[1..])?;
            scalar.builder.set_name("index");
            let index = scalar.with(LaneOp::Add, current[0], i64::from(step_bytes))?;
            Ok(std::iter::once(index).chain(next).collect())
        })?;
        Ok(results[1..].to_vec())
    }
}
