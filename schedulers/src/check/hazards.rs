//! Rule *hazards*: what the hardware does not interlock, cycle by cycle. Latency is rule *holds*; ties, clobbers and tuples are checked with registers.

use super::{Products, Violation};
use crate::machine::{Enforcement, HazardKind, OperandKind, UnitId};
use crate::program::{MemoryAccess, Operand};
use std::collections::BTreeMap;

pub(super) fn check(products: Products<'_>, violations: &mut Vec<Violation>) {
    for block in 0..products.program.blocks.len() {
        Cycles { products, block, violations }.check();
    }
}

struct Cycles<'a, 'v> {
    products: Products<'a>,
    block: usize,
    violations: &'v mut Vec<Violation>,
}

impl Cycles<'_, '_> {
    fn must(&self, kind: HazardKind) -> Option<u32> {
        let hazard = self.products.machine.hazard(kind)?;
        (hazard.enforcement == Enforcement::Must).then_some(hazard.limit.unwrap_or(1))
    }

    fn complain(&mut self, rule: &'static str, cycle: u32, text: &str) {
        let text = format!("block {}, cycle {cycle}: {text}", self.block);
        self.violations.push(Violation { rule, instruction: None, text });
    }

    /// A branch takes effect so many bundles later: they belong to the block, nothing after them does, and no other branch starts among them.
    fn branch_delay(&mut self) {
        let Some(delay) = self.must(HazardKind::BranchDelay) else { return };
        let block = &self.products.schedule.blocks[self.block];
        let instructions = &self.products.program.blocks[self.block].instructions;
        let row = |instruction: u32| &self.products.machine[instructions[instruction as usize].row];
        for slot in block.slots.iter().filter(|slot| row(slot.instruction).control.is_some()) {
            let name = &row(slot.instruction).name;
            if block.cycles <= slot.cycle + delay {
                let text = format!("{name} takes effect after {delay} more cycles, the block has {}", block.cycles);
                self.complain("branch-delay", slot.cycle, &text);
            }
            for other in block.slots.iter().filter(|other| other.cycle >= slot.cycle && other.instruction != slot.instruction) {
                let other_name = &row(other.instruction).name;
                if other.cycle > slot.cycle + delay {
                    self.complain("branch-delay", other.cycle, &format!("{other_name} stands after the delay slots of {name}"));
                } else if row(other.instruction).control.is_some() {
                    self.complain("branch-delay", other.cycle, &format!("{other_name} stands in a delay slot of {name}"));
                }
            }
        }
    }

    /// An interrupt lets everything under way land, so a register may not be read for what it held before a result that is under way to it.
    fn interrupts(&mut self) {
        if self.must(HazardKind::Interrupts).is_none() {
            return;
        }
        let machine = self.products.machine;
        let slots = &self.products.schedule.blocks[self.block].slots;
        let instructions = &self.products.program.blocks[self.block].instructions;
        let registers = &self.products.allocation.registers;
        let places = |instruction: u32, written: bool| {
            let instruction = &instructions[instruction as usize];
            let row = &machine[instruction.row];
            let operands = row.operands.iter().zip(&instruction.operands).enumerate();
            operands
                .filter_map(|(index, (declared, operand))| match (&declared.kind, operand) {
                    (OperandKind::Register(file), Operand::Value(value)) if if written { declared.written } else { declared.read } => {
                        let latency = row.timing.latency_of.iter().find(|(number, _)| *number as usize == index);
                        let latency = latency.map_or(row.timing.latency_cycles, |(_, cycles)| *cycles);
                        let first = registers[value.0 as usize]?;
                        Some(((file.0, first, first + declared.tuple), latency))
                    }
                    _ => None,
                })
                .collect::<Vec<_>>()
        };
        for slot in slots {
            for ((file, first, end), latency) in places(slot.instruction, true) {
                for other in slots.iter().filter(|other| other.cycle > slot.cycle && other.cycle < slot.cycle + latency) {
                    let reads = places(other.instruction, false);
                    if reads.iter().any(|((of, low, high), _)| *of == file && *low < end && first < *high) {
                        let reader = &machine[instructions[other.instruction as usize].row].name;
                        let writer = &machine[instructions[slot.instruction as usize].row].name;
                        let text =
                            format!("{reader} reads a register that a result of {writer} is under way to; an interrupt would let it land");
                        self.complain("interrupts", other.cycle, &text);
                    }
                }
            }
        }
    }

    /// Memory lies in so many banks of one word each, in turn: accesses of one cycle must be known to touch different ones.
    fn banks(&mut self) {
        let Some(banks) = self.must(HazardKind::Bank).map(u64::from) else { return };
        let machine = self.products.machine;
        let word = u64::from(machine.word_bits / 8).max(1);
        let program = self.products.program;
        let instructions = &program.blocks[self.block].instructions;
        let slots = &self.products.schedule.blocks[self.block].slots;
        let conflicts = |a: &MemoryAccess, b: &MemoryAccess| {
            let aligned =
                |access: &MemoryAccess| u64::from(program.regions[access.region.0 as usize].align_bytes).is_multiple_of(banks * word);
            // Distances in one region say enough; those of two only where both start at the same bank.
            if a.region != b.region && !(aligned(a) && aligned(b)) {
                return true;
            }
            let touched =
                |access: &MemoryAccess| (access.low / word..access.high.div_ceil(word)).take(banks as usize).map(move |word| word % banks);
            let unaligned = [a, b].iter().any(|access| u64::from(program.regions[access.region.0 as usize].align_bytes) < word);
            unaligned || touched(a).any(|bank| touched(b).any(|other| other == bank))
        };
        for (index, slot) in slots.iter().enumerate() {
            for other in slots[index + 1..].iter().filter(|other| other.cycle == slot.cycle) {
                let accesses = [slot, other].map(|slot| instructions[slot.instruction as usize].memory.as_ref());
                if let [Some(a), Some(b)] = accesses
                    && conflicts(a, b)
                {
                    self.complain("bank", slot.cycle, "two accesses may touch one bank");
                }
            }
        }
    }

    fn check(&mut self) {
        let machine = self.products.machine;
        let instructions = &self.products.program.blocks[self.block].instructions;
        let slots = &self.products.schedule.blocks[self.block].slots;
        let mut busy: BTreeMap<(UnitId, u32), u32> = BTreeMap::new();
        let mut issued: BTreeMap<u32, u32> = BTreeMap::new();
        let mut landing: BTreeMap<(u16, u32), u32> = BTreeMap::new();
        let mut reads: BTreeMap<(u32, u16, u32), u32> = BTreeMap::new();
        let mut crossing: BTreeMap<(u32, u8), u32> = BTreeMap::new();
        let mut accesses: BTreeMap<u32, u32> = BTreeMap::new();
        let mut last_cycle = 0;
        for slot in slots {
            let instruction = &instructions[slot.instruction as usize];
            let row = &machine[instruction.row];
            if slot.cycle < last_cycle {
                self.complain("order", slot.cycle, &format!("{} stands after an instruction of cycle {last_cycle}", row.name));
            }
            last_cycle = last_cycle.max(slot.cycle);
            let unit = slot.unit.and_then(|unit| machine.units.get(unit.0 as usize));
            if !row.timing.units.is_empty() && !slot.unit.is_some_and(|unit| row.timing.units.contains(&unit)) {
                self.complain("unit", slot.cycle, &format!("{} cannot run on {}", row.name, unit.map_or("no unit", |unit| &unit.name)));
            }
            let occupied = if self.must(HazardKind::UnitBusy).is_some() { row.timing.throughput_cycles.max(1) } else { 1 };
            if let (Some(taken), Some(_)) = (slot.unit, unit) {
                for cycle in slot.cycle..slot.cycle + occupied {
                    *busy.entry((taken, cycle)).or_default() += 1;
                }
            }
            *issued.entry(slot.cycle).or_default() += 1;
            *accesses.entry(slot.cycle).or_default() += u32::from(instruction.memory.is_some());
            for (index, operand) in row.operands.iter().enumerate() {
                let OperandKind::Register(file) = operand.kind else { continue };
                if operand.written {
                    let latency = row
                        .timing
                        .latency_of
                        .iter()
                        .find(|(number, _)| *number as usize == index)
                        .map_or(row.timing.latency_cycles, |(_, cycles)| *cycles);
                    *landing.entry((file.0, slot.cycle + latency)).or_default() += 1;
                }
                if let (true, Operand::Value(value)) = (operand.read, &instruction.operands[index]) {
                    if let Some(register) = self.products.allocation.registers[value.0 as usize] {
                        *reads.entry((slot.cycle, file.0, register)).or_default() += 1;
                    }
                    if let (Some(unit), Some(side)) = (unit.and_then(|unit| unit.side), machine.side_of(file))
                        && unit != side
                    {
                        *crossing.entry((slot.cycle, unit)).or_default() += 1;
                    }
                }
            }
        }
        self.branch_delay();
        self.interrupts();
        self.banks();
        if self.must(HazardKind::UnitPerCycle).is_some() || self.must(HazardKind::UnitBusy).is_some() {
            for ((unit, cycle), count) in busy {
                let copies = machine.units.get(unit.0 as usize).map_or(1, |unit| unit.copies);
                if count > copies {
                    self.complain("unit-per-cycle", cycle, &format!("{count} operations on {}, which has {copies}", machine[unit].name));
                }
            }
        }
        let limits = [
            (HazardKind::BundleShape, "bundle-shape", issued.into_iter().collect::<Vec<_>>(), "instructions in one bundle"),
            (HazardKind::MemoryPort, "memory-port", accesses.into_iter().collect(), "memory accesses"),
            (
                HazardKind::ResultPort,
                "result-port",
                landing.into_iter().map(|((_, cycle), count)| (cycle, count)).collect(),
                "results land in one file",
            ),
            (
                HazardKind::ReadPort,
                "read-port",
                reads.into_iter().map(|((cycle, ..), count)| (cycle, count)).collect(),
                "reads of one register",
            ),
            (
                HazardKind::CrossPath,
                "cross-path",
                crossing.into_iter().map(|((cycle, _), count)| (cycle, count)).collect(),
                "operands cross to one side",
            ),
        ];
        for (kind, rule, counts, text) in limits {
            let Some(limit) = self.must(kind) else { continue };
            for (cycle, count) in counts {
                if count > limit {
                    self.complain(rule, cycle, &format!("{count} {text}, {limit} allowed"));
                }
            }
        }
    }
}
