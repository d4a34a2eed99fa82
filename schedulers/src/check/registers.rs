//! Rules *holds*, *tied*, *zero*, *tuple*, *clobber*: which values each register holds, position by position, on every path.

use super::body::{Body, explicit_pairs};
use super::{Products, Violation};
use crate::code::CodeOperand;
use crate::machine::{Enforcement, FileId, HazardKind, OperandKind};
use crate::program::{BlockId, Carried, Operand, ProgramParameterKind, ValueId};
use std::collections::{BTreeMap, BTreeSet};

type Register = (FileId, u32);

/// What every path to a point agrees on. A value of a tuple stands at its first register, and every register of the tuple names it with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    holds: BTreeMap<Register, BTreeSet<(ValueId, u32)>>,
    /// Results in flight on a machine with exposed latency: (cycle from the block's start in which it lands, register, value, place in the tuple).
    flight: Vec<(u32, Register, ValueId, u32)>,
}

impl State {
    fn meet(&mut self, other: &State) -> bool {
        let before = self.clone();
        self.holds.retain(|register, values| {
            match other.holds.get(register) {
                Some(theirs) => values.retain(|value| theirs.contains(value)),
                None => values.clear(),
            }
            !values.is_empty()
        });
        *self != before
    }

    fn rename(&mut self, pairs: impl Iterator<Item = (ValueId, ValueId)>) {
        for (from, to) in pairs {
            for values in self.holds.values_mut() {
                let places: Vec<u32> = values.iter().filter(|(value, _)| *value == from).map(|(_, place)| *place).collect();
                values.extend(places.into_iter().map(|place| (to, place)));
            }
        }
    }

    fn write(&mut self, register: Register, value: Option<(ValueId, u32)>) {
        self.holds.insert(register, value.into_iter().collect());
    }

    fn land(&mut self, cycle: u32) {
        let (landed, flying) = std::mem::take(&mut self.flight).into_iter().partition(|(lands, ..)| *lands <= cycle);
        self.flight = flying;
        let mut landed: Vec<_> = landed;
        landed.sort_by_key(|(lands, ..)| *lands);
        for (_, register, value, place) in landed {
            self.write(register, Some((value, place)));
        }
    }
}

pub(super) fn check(products: Products<'_>, body: &Body, violations: &mut Vec<Violation>) {
    let blocks = products.program.blocks.len();
    let mut entries: Vec<Option<State>> = vec![None; blocks];
    if blocks == 0 {
        return;
    }
    entries[0] = Some(arguments(products));
    let mut work: BTreeSet<usize> = BTreeSet::from([0]);
    // Sets only shrink, so the fixpoint is reached.
    while let Some(block) = work.pop_first() {
        let state = entries[block].clone().expect("a block in the work list has an entry state");
        let leaving = run_block(products, body, block, state, &mut Vec::new());
        for (next, state) in successors(products, block, leaving) {
            let changed = match &mut entries[next] {
                Some(entry) => entry.meet(&state),
                empty => {
                    *empty = Some(state);
                    true
                }
            };
            if changed {
                work.insert(next);
            }
        }
    }
    for (block, entry) in entries.into_iter().enumerate() {
        if let Some(state) = entry {
            run_block(products, body, block, state, violations);
        }
    }
}

/// Parameters stand in the convention's argument registers, the stack pointer in its own.
fn arguments(products: Products<'_>) -> State {
    let mut state = State::default();
    let Some(abi) = &products.machine.abi else { return state };
    let registers = products.program.parameters.iter().zip(&abi.arguments);
    let stack = products.program.stack_pointer.map(|value| (value, abi.stack_pointer));
    let arriving = registers.map(|(parameter, register)| {
        let (ProgramParameterKind::Pointer { value, .. } | ProgramParameterKind::Scalar { value, .. }) = parameter.kind;
        (value, *register)
    });
    for (value, register) in arriving.chain(stack) {
        state.write((abi.integer_file, register), Some((value, 0)));
    }
    state
}

fn exposed(products: Products<'_>) -> bool {
    products.machine.hazard(HazardKind::Latency).is_some_and(|hazard| hazard.enforcement == Enforcement::Must)
}

fn run_block(products: Products<'_>, body: &Body, block: usize, mut state: State, violations: &mut Vec<Violation>) -> State {
    let exposed = exposed(products);
    let schedule = &products.schedule.blocks[block];
    let instructions = &products.program.blocks[block].instructions;
    for (offset, slot) in schedule.slots.iter().enumerate() {
        let index = body.starts[block] + offset;
        let instruction = &instructions[slot.instruction as usize];
        let row = &products.machine[instruction.row];
        let code = &products.code.instructions[index];
        let mut complain = |rule: &'static str, text: String| violations.push(Violation { rule, instruction: Some(index), text });
        if exposed {
            state.land(slot.cycle);
        }
        let mut registers: Vec<Option<Register>> = vec![None; row.operands.len()];
        for (operand, wanted, found) in explicit_pairs(products, instruction, code) {
            if let (Operand::Value(_) | Operand::Unused, CodeOperand::Register(file, number)) = (wanted, found) {
                registers[operand] = Some((*file, *number));
            }
        }
        // Implicit operands: the register of the operand they are tied to, the one register they can be, or the only one of their file.
        for (operand, declared) in row.operands.iter().enumerate() {
            if let (true, OperandKind::Register(file)) = (declared.implicit, &declared.kind) {
                registers[operand] = match declared.tied {
                    Some(tied) => registers[tied as usize],
                    None => Some((*file, declared.fixed_register.unwrap_or(0))),
                };
            }
        }
        for (operand, declared) in row.operands.iter().enumerate() {
            let Some(register) = registers[operand] else { continue };
            if let OperandKind::RegisterOrZero(file) = declared.kind
                && products.machine[file].zero_in_base == Some(register.1)
            {
                complain("zero", format!("register {} of `{}` means the constant zero there", register.1, declared.name));
            }
            if declared.tuple > 1
                && let Some((_, align)) = products.machine[register.0].tuples.iter().find(|(length, _)| *length == declared.tuple)
                && register.1 % align != 0
            {
                complain("tuple", format!("`{}` starts at register {}, not a multiple of {align}", declared.name, register.1));
            }
            if let Some(tied) = declared.tied
                && registers[tied as usize] != Some(register)
            {
                complain("tied", format!("`{}` and `{}` must share a register", declared.name, row.operands[tied as usize].name));
            }
            if declared.written && products.machine[register.0].reserved.contains(&register.1) {
                complain("reserved", format!("`{}` writes reserved register {}", declared.name, register_text(products, register)));
            }
            if declared.written && declared.early_clobber {
                let clash = row
                    .operands
                    .iter()
                    .enumerate()
                    .any(|(other, source)| other != operand && source.read && registers[other] == Some(register));
                if clash {
                    complain(
                        "clobber",
                        format!("`{}` is written before the operands are read and shares a register with one", declared.name),
                    );
                }
            }
            if let (true, Operand::Value(value)) = (declared.read, &instruction.operands[operand]) {
                for place in 0..declared.tuple {
                    let part = (register.0, register.1 + place);
                    let held = state.holds.get(&part);
                    if !held.is_some_and(|values| values.contains(&(*value, place))) {
                        let name = &products.program.values[value.0 as usize].name;
                        let text = format!(
                            "`{}` reads `{name}` from {}, which holds {}",
                            declared.name,
                            register_text(products, part),
                            held_text(products, held)
                        );
                        complain("holds", text);
                    }
                }
            }
        }
        for (operand, declared) in row.operands.iter().enumerate() {
            let (true, Some(register)) = (declared.written, registers[operand]) else { continue };
            let written = result_of(instruction, operand);
            let latency = row
                .timing
                .latency_of
                .iter()
                .find(|(number, _)| *number as usize == operand)
                .map_or(row.timing.latency_cycles, |(_, cycles)| *cycles);
            for place in 0..declared.tuple {
                let part = (register.0, register.1 + place);
                match written {
                    Some(value) if exposed => state.flight.push((slot.cycle + latency, part, value, place)),
                    value => state.write(part, value.map(|value| (value, place))),
                }
            }
        }
    }
    if exposed {
        state.land(schedule.cycles);
        // What lands later must not be relied on, nor may it overwrite anything: the block is too short.
        for (lands, register, value, _) in std::mem::take(&mut state.flight) {
            let text = format!(
                "`{}` lands in {} in cycle {lands}, after the block's {} cycles",
                products.program.values[value.0 as usize].name,
                register_text(products, register),
                schedule.cycles
            );
            violations.push(Violation { rule: "latency", instruction: None, text });
        }
    }
    state
}

/// The value written at an operand. An operand that is read and written names the value it reads; the result's name is that of the operand tied to it,
/// so such rows declare two operands.
fn result_of(instruction: &crate::program::Instruction, operand: usize) -> Option<ValueId> {
    match instruction.operands[operand] {
        Operand::Value(value) => Some(value),
        _ => None,
    }
}

fn successors(products: Products<'_>, block: usize, state: State) -> Vec<(usize, State)> {
    let program = products.program;
    let mut edges = Vec::new();
    let branch =
        products.program.blocks[block].instructions.iter().rev().find(|instruction| products.machine[instruction.row].control.is_some());
    let target = branch.and_then(|instruction| {
        instruction.operands.iter().find_map(|operand| match operand {
            Operand::Block(BlockId(target)) => Some(*target as usize),
            _ => None,
        })
    });
    let falls = branch.is_none_or(|instruction| {
        !matches!(products.machine[instruction.row].control, Some(crate::machine::ControlKind::Jump | crate::machine::ControlKind::Return))
    });
    let destinations = target.into_iter().chain(falls.then_some(block + 1)).filter(|next| *next < program.blocks.len());
    for next in destinations {
        let mut leaving = state.clone();
        for lap in &program.loops {
            let (first, last) = (lap.first.0 as usize, lap.last.0 as usize);
            let inside = (first..=last).contains(&block);
            let arrives = (first..=last).contains(&next);
            let pairs = |choose: fn(&Carried) -> (ValueId, ValueId)| lap.carried.iter().map(choose).collect::<Vec<_>>();
            if !inside && arrives {
                leaving.rename(pairs(|carried| (carried.initial, carried.current)).into_iter());
            } else if inside && next == first && block == last {
                leaving.rename(pairs(|carried| (carried.next, carried.current)).into_iter());
            } else if inside && !arrives {
                leaving.rename(pairs(|carried| (carried.next, carried.last)).into_iter());
            } else if !inside && next > last && block < first {
                // The loop is passed over: no round ran.
                leaving.rename(pairs(|carried| (carried.initial, carried.last)).into_iter());
            }
        }
        edges.push((next, leaving));
    }
    edges
}

fn register_text(products: Products<'_>, register: Register) -> String {
    products.machine[register.0].text.replace("{n}", &register.1.to_string())
}

fn held_text(products: Products<'_>, held: Option<&BTreeSet<(ValueId, u32)>>) -> String {
    match held {
        Some(values) if !values.is_empty() => values
            .iter()
            .map(|(value, _)| format!("`{}`", products.program.values[value.0 as usize].name))
            .collect::<Vec<_>>()
            .join(" and "),
        _ => "nothing that all paths agree on".to_owned(),
    }
}
