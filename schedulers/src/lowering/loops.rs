//! Loops and branches of the program builder: counted jumps where the machine has them, else a counter in a register, a comparison and a conditional jump.

use super::builder::{Input, Lowering, ProgramBuilder};
use super::probes;
use super::selection::{RowKind, RowPorts, register_file};
use super::shapes::{self, LaneOp};
use crate::machine::{ControlKind, FileId, OperandKind, Row, RowId};
use crate::program::{BlockId, Carried, Instruction, Loop, Operand, ValueId};
use kgen_ir::domains::concrete::{Value, defined_u64};
use kgen_ir::domains::memory::NoMemory;

/// How often a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// A constant, at least 1.
    Constant(u64),
    /// A public value of the integer file; the loop is skipped where it is 0.
    Value(ValueId),
    /// A public value of the integer file that is known not to be 0.
    NonZero(ValueId),
}

/// When a branch is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The value is zero.
    Zero,
    /// The value is not zero.
    NonZero,
}

/// Values on which a comparison and its jump are tried.
const TEST_PROBES: [i64; 8] = [0, 1, 2, 0x10, 0x7fff_ffff, -0x8000_0000, -1, 0x10000];

/// A counted jump: decrements its counter and jumps to the label while it is not zero.
struct CountedJump {
    row: RowId,
    label: usize,
    read: usize,
    written: usize,
    counter: FileId,
}

/// A jump on a test of a register, with the comparison before it where one is needed.
struct TestedJump {
    /// Row, operand of the value, operand of the result; all immediates are zero.
    comparison: Option<(RowId, usize, usize)>,
    jump: RowId,
    /// Operand of the jump that reads the comparison's result or the value.
    flag: usize,
    label: usize,
    immediates: Vec<(usize, i64)>,
}

impl ProgramBuilder<'_> {
    /// A counted jump whose counter is free; outside of other loops (`has_inner`) not one whose counter exists only once.
    fn counted_jump(&self, has_inner: bool) -> Option<CountedJump> {
        let rows = self.selector.rows_of_kind(RowKind::Control).filter(|(_, row)| row.control == Some(ControlKind::CountedJump));
        rows.filter_map(|(id, row)| {
            let ports = RowPorts::of(row);
            let label = row.operands.iter().position(|operand| operand.kind == OperandKind::Label)?;
            let read: Vec<usize> = ports.read.iter().copied().filter(|number| *number != label).collect();
            let ([read], [written]) = (&read[..], &ports.written[..]) else { return None };
            let counter = register_file(&row.operands[*read].kind)?;
            if register_file(&row.operands[*written].kind) != Some(counter) || !counts_down(row, &ports, label) {
                return None;
            }
            Some(CountedJump { row: id, label, read: *read, written: *written, counter })
        })
        .find(|jump| {
            let from = self.integer_file();
            let taken = self.busy_singletons.contains(&jump.counter) || (has_inner && self.machine()[jump.counter].is_singleton());
            !taken && (jump.counter == from || self.selector.row_for(&shapes::move_shape(self.machine(), from, jump.counter)).is_some())
        })
    }

    /// Runs `body` as often as `rounds` says; it gets the carried values and returns their next ones. Returns them after the loop.
    /// Inner loops may be built inside; a counter register that only exists once goes to the innermost loop when `has_inner` says so for the outer ones.
    ///
    /// # Errors
    /// The machine has no rows for the loop's control; what the body gives; a body that returns another number of values.
    pub fn counted_loop(
        &mut self,
        rounds: Rounds,
        has_inner: bool,
        carried: &[ValueId],
        body: impl FnOnce(&mut Self, &[ValueId]) -> Lowering<Vec<ValueId>>,
    ) -> Lowering<Vec<ValueId>> {
        let jump = self.counted_jump(has_inner);
        let count = match rounds {
            Rounds::Constant(count) => self.integer(count as i64)?,
            Rounds::Value(value) | Rounds::NonZero(value) => value,
        };
        let initial_counter = match &jump {
            Some(jump) if jump.counter != self.integer_file() => {
                self.set_name("counter");
                let shape = shapes::move_shape(self.machine(), self.integer_file(), jump.counter);
                self.emit_single(&shape, &[Input::Value(count)])?
            }
            _ => count,
        };
        let skip = match rounds {
            Rounds::Value(value) => Some(self.jump_if(Test::Zero, value)?),
            _ => None,
        };
        let place = self.program.loops.len();
        let first = self.start_block();
        self.set_name("counter");
        let counter = self.new_value(self.file_of(initial_counter), false);
        let current: Vec<ValueId> = carried
            .iter()
            .map(|value| {
                let name = self.program.values[value.0 as usize].name.clone();
                self.set_name(&name);
                self.new_value(self.file_of(*value), self.is_secret(*value))
            })
            .collect();
        let busy = jump.as_ref().map(|jump| jump.counter).filter(|file| self.machine()[*file].is_singleton());
        self.busy_singletons.extend(busy);
        let next = body(self, &current);
        if busy.is_some() {
            self.busy_singletons.pop();
        }
        let mut next = next?;
        if next.len() != current.len() {
            return Err(self.missing("as many next values as a loop carries"));
        }
        // A next value from outside of the loop, or one that is another carried value's, needs a register of its own.
        for (index, value) in next.iter_mut().enumerate() {
            if *value != current[index] && (!self.defined_since(first, *value) || current.contains(value)) {
                *value = self.copy(*value)?;
            }
        }
        for index in 1..next.len() {
            if next[..index].contains(&next[index]) {
                next[index] = self.copy(next[index])?;
            }
        }
        for (value, now) in next.iter().zip(&current) {
            self.widen_secrecy(*now, *value);
        }
        let span = Some(self.span());
        let next_counter = match &jump {
            Some(jump) => {
                self.set_name("counter");
                let written = self.new_value(jump.counter, false);
                let mut operands = vec![Operand::Unused; self.machine()[jump.row].operands.len()];
                operands[jump.label] = Operand::Block(first);
                operands[jump.read] = Operand::Value(counter);
                operands[jump.written] = Operand::Value(written);
                self.place_instruction(Instruction { row: jump.row, operands, memory: None, span });
                written
            }
            None => {
                self.set_name("counter");
                let written = self.with_constant(LaneOp::Add, counter, -1)?;
                let (block, place) = self.jump_if(Test::NonZero, written)?;
                self.set_target(block, place, first);
                written
            }
        };
        let last = self.current_block();
        let after = self.start_block();
        if let Some((block, place)) = skip {
            self.set_target(block, place, after);
        }
        let mut entries = Vec::with_capacity(carried.len() + 1);
        let mut results = Vec::with_capacity(carried.len());
        let counted = (initial_counter, counter, next_counter);
        let rows = carried.iter().zip(&current).zip(&next).map(|((initial, current), next)| (*initial, *current, *next));
        for (index, (initial, current, next)) in std::iter::once(counted).chain(rows).enumerate() {
            let name = self.program.values[initial.0 as usize].name.clone();
            self.set_name(&name);
            let last = self.new_value(self.file_of(initial), self.is_secret(current) || self.is_secret(next));
            entries.push(Carried { initial, current, next, last });
            if index > 0 {
                results.push(last);
            }
        }
        let rounds = match rounds {
            Rounds::Constant(count) => Some(count),
            _ => None,
        };
        self.push_loop(place, Loop { first, last, carried: entries, rounds });
        Ok(results)
    }

    /// A copy of a value in a register of its own.
    ///
    /// # Errors
    /// The machine cannot copy in this file.
    pub fn copy(&mut self, value: ValueId) -> Lowering<ValueId> {
        let width = self.machine()[self.file_of(value)].width_bits;
        let name = self.program.values[value.0 as usize].name.clone();
        self.set_name(&name);
        self.lane_row(LaneOp::Copy, width, &[value])
    }

    fn defined_since(&self, first: BlockId, value: ValueId) -> bool {
        let machine = self.machine();
        let inside = &self.program.blocks[first.0 as usize..];
        let by_instruction =
            inside.iter().flat_map(|block| &block.instructions).any(|instruction| instruction.writes(machine).any(|(_, of)| of == value));
        by_instruction
            || self.program.loops.iter().any(|inner| inner.first >= first && inner.carried.iter().any(|carried| carried.last == value))
    }

    /// A carried value that becomes secret in the loop is secret from its head.
    fn widen_secrecy(&mut self, current: ValueId, next: ValueId) {
        if self.is_secret(next) {
            self.program.values[current.0 as usize].secret = true;
        }
    }

    fn set_target(&mut self, block: usize, index: usize, target: BlockId) {
        for operand in &mut self.program.blocks[block].instructions[index].operands {
            if matches!(operand, Operand::Block(_)) {
                *operand = Operand::Block(target);
            }
        }
    }

    /// A jump at the end of the current block that is taken when the test of a public value holds; its target is set by the caller.
    fn jump_if(&mut self, test: Test, value: ValueId) -> Lowering<(usize, usize)> {
        let found = self.tested_jump(test).ok_or_else(|| self.missing("a jump on a register that is zero or not"))?;
        let span = Some(self.span());
        let mut flag = value;
        if let Some((row, operand, result)) = found.comparison {
            let declared = &self.machine()[row].operands;
            let file = register_file(&declared[result].kind).ok_or_else(|| self.missing("a comparison with a result in a register"))?;
            self.set_name("is_zero");
            flag = self.new_value(file, false);
            let mut operands: Vec<Operand> = declared
                .iter()
                .map(|operand| if register_file(&operand.kind).is_none() { Operand::Immediate(0) } else { Operand::Unused })
                .collect();
            operands[operand] = Operand::Value(value);
            operands[result] = Operand::Value(flag);
            self.place_instruction(Instruction { row, operands, memory: None, span });
        }
        let mut operands = vec![Operand::Unused; self.machine()[found.jump].operands.len()];
        operands[found.flag] = Operand::Value(flag);
        operands[found.label] = Operand::Block(BlockId(0));
        for (operand, constant) in found.immediates {
            operands[operand] = Operand::Immediate(constant);
        }
        self.place_instruction(Instruction { row: found.jump, operands, memory: None, span });
        let block = self.current_block().0 as usize;
        Ok((block, self.program.blocks[block].instructions.len() - 1))
    }

    fn tested_jump(&self, test: Test) -> Option<TestedJump> {
        let machine = self.machine();
        let file = self.integer_file();
        let wanted: Vec<bool> = TEST_PROBES.iter().map(|value| (*value == 0) == (test == Test::Zero)).collect();
        // What a jump may look at: the value itself, or the result of a comparison of it with zero.
        let mut flags: Vec<Flag> = Vec::new();
        let content = machine[file].value_type(1);
        flags.push((None, file, TEST_PROBES.iter().map(|value| probes::integer(&content, *value)).collect()));
        for (id, row) in self.selector.rows_of_kind(RowKind::Compute) {
            let ports = RowPorts::of(row);
            let registers: Vec<usize> =
                ports.read.iter().copied().filter(|number| register_file(&row.operands[*number].kind).is_some()).collect();
            let ([operand], [result]) = (&registers[..], &ports.written[..]) else { continue };
            let is_value = register_file(&row.operands[*operand].kind) == Some(file);
            let Some(result_file) = register_file(&row.operands[*result].kind) else { continue };
            let zero_fits = ports.read.iter().all(|number| match row.operands[*number].kind {
                OperandKind::Immediate { low, high, .. } => (low..high).contains(&0),
                OperandKind::Label | OperandKind::Symbol => false,
                _ => true,
            });
            if !is_value || !zero_fits || result_file == file {
                continue;
            }
            let results = TEST_PROBES.iter().map(|value| {
                let inputs: Vec<Value> = ports
                    .read
                    .iter()
                    .zip(&row.meaning.inputs)
                    .map(|(number, port)| probes::integer(&port.ty, if number == operand { *value } else { 0 }))
                    .collect();
                probes::run(&row.meaning, &inputs)?.first().cloned().map(Value::Bits)
            });
            if let Some(results) = results.collect::<Option<Vec<Value>>>() {
                flags.push((Some((id, *operand, *result)), result_file, results));
            }
        }
        for (comparison, flag_file, results) in &flags {
            for (id, row) in self.selector.rows_of_kind(RowKind::Control) {
                if row.control == Some(ControlKind::ConditionalJump)
                    && let Some((flag, label, immediates)) = jump_taken_as(row, *flag_file, results, &wanted)
                {
                    return Some(TestedJump { comparison: *comparison, jump: id, flag, label, immediates });
                }
            }
        }
        None
    }
}

/// Whether a counted jump writes its counter less one and jumps while that is not zero.
fn counts_down(row: &Row, ports: &RowPorts, label: usize) -> bool {
    [1u32, 2, 3, 0x100, 0xffff_ffff].iter().all(|count| {
        let inputs: Vec<Value> = ports
            .read
            .iter()
            .zip(&row.meaning.inputs)
            .map(|(number, port)| probes::integer(&port.ty, if *number == label { 0x40 } else { i64::from(*count) }))
            .collect();
        let Some(outcome) = probes::run_with(&row.meaning, &inputs, &mut NoMemory) else { return false };
        let condition = outcome.branch.and_then(|(condition, _)| condition).and_then(|condition| defined_u64(&condition));
        let next = outcome.outputs.first().and_then(defined_u64);
        condition == Some(u64::from(*count != 1)) && next == Some(u64::from(*count) - 1)
    })
}

/// What a jump may look at: the comparison that makes it (row, operand compared, operand written) where there is one, its file, its value for every probe.
type Flag = (Option<(RowId, usize, usize)>, FileId, Vec<Value>);

/// Operand numbers of the register and of the label, and immediates by operand number.
type JumpOperands = (usize, usize, Vec<(usize, i64)>);

/// Whether a conditional jump on a register of `file` is taken as wanted: operand of the register, of the label, immediates.
fn jump_taken_as(row: &Row, file: FileId, flags: &[Value], wanted: &[bool]) -> Option<JumpOperands> {
    let ports = RowPorts::of(row);
    if !ports.written.is_empty() {
        return None;
    }
    let of = |wanted: &dyn Fn(&OperandKind) -> bool| -> Vec<usize> {
        (0..row.operands.len()).filter(|number| wanted(&row.operands[*number].kind)).collect()
    };
    let registers = of(&|kind| register_file(kind).is_some());
    // A label need not be read: a branch without a target value goes there.
    let labels = of(&|kind| *kind == OperandKind::Label);
    let immediates = of(&|kind| matches!(kind, OperandKind::Immediate { .. }));
    let ([flag], [label]) = (&registers[..], &labels[..]) else { return None };
    if register_file(&row.operands[*flag].kind) != Some(file) {
        return None;
    }
    let mut choices: Vec<Vec<(usize, i64)>> = vec![Vec::new()];
    for number in &immediates {
        let OperandKind::Immediate { low, high, step } = row.operands[*number].kind else { continue };
        let values: Vec<i64> = (low..high).step_by(step.max(1) as usize).take(32).map(|value| value as i64).collect();
        choices = choices.iter().flat_map(|head| values.iter().map(|value| [&head[..], &[(*number, *value)]].concat())).collect();
    }
    choices.into_iter().find_map(|choice| {
        let as_wanted = flags.iter().zip(wanted).all(|(given, wanted)| {
            let inputs: Vec<Value> = ports
                .read
                .iter()
                .zip(&row.meaning.inputs)
                .map(|(number, port)| {
                    if number == flag {
                        given.clone()
                    } else {
                        let constant = choice.iter().find(|(operand, _)| operand == number).map_or(0x40, |(_, value)| *value);
                        probes::integer(&port.ty, constant)
                    }
                })
                .collect();
            let outcome = probes::run_with(&row.meaning, &inputs, &mut NoMemory);
            let condition = outcome.and_then(|outcome| outcome.branch).and_then(|(condition, _)| condition);
            condition.and_then(|condition| defined_u64(&condition)) == Some(u64::from(*wanted))
        });
        as_wanted.then_some((*flag, *label, choice))
    })
}
