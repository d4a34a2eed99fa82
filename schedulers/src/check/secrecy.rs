//! Rule *constant time*: secrets derived again from parameters and regions, through every instruction, to addresses, branches and rows of variable time.

use super::Violation;
use crate::machine::{Machine, MemoryKind, Row, TimingClass};
use crate::program::{Operand, Program, ProgramParameterKind};
use kgen_ir::body::{Body, Effect, NodeHandle, Op};
use std::collections::BTreeSet;

/// Whether secret addresses on cached memory were asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretAddresses {
    /// Refused.
    Refused,
    /// Asked for; the header says so.
    AskedFor,
}

/// Which operands of a row (by number) flow into its addresses and into its branch.
struct Sinks {
    addresses: BTreeSet<usize>,
    branches: BTreeSet<usize>,
}

pub(super) fn check(machine: &Machine, program: &Program, secret_addresses: SecretAddresses, violations: &mut Vec<Violation>) {
    let mut secret = vec![false; program.values.len()];
    for parameter in &program.parameters {
        if let ProgramParameterKind::Scalar { value, .. } = parameter.kind {
            secret[value.0 as usize] = parameter.secret;
        }
    }
    let mut region_secret: Vec<bool> = program.regions.iter().map(|region| region.secret).collect();
    // Secrets only grow: a fixpoint over loops and memory.
    loop {
        let mut changed = false;
        let mut mark = |place: &mut bool, value: bool| {
            changed |= value && !*place;
            *place |= value;
        };
        for instruction in program.blocks.iter().flat_map(|block| &block.instructions) {
            let row = &machine[instruction.row];
            let reads = row.operands.iter().zip(&instruction.operands).any(|(declared, operand)| match operand {
                Operand::Value(value) => declared.read && secret[value.0 as usize],
                _ => false,
            });
            let loads = instruction.memory.as_ref().is_some_and(|access| access.read && region_secret[access.region.0 as usize]);
            for (declared, operand) in row.operands.iter().zip(&instruction.operands) {
                if let (true, Operand::Value(value)) = (declared.written, operand) {
                    mark(&mut secret[value.0 as usize], reads || loads);
                }
            }
            if let Some(access) = instruction.memory.as_ref().filter(|access| access.write) {
                mark(&mut region_secret[access.region.0 as usize], reads);
            }
        }
        for carried in program.loops.iter().flat_map(|lap| &lap.carried) {
            let value = secret[carried.initial.0 as usize] || secret[carried.next.0 as usize];
            mark(&mut secret[carried.current.0 as usize], value);
            mark(&mut secret[carried.last.0 as usize], value);
        }
        if !changed {
            break;
        }
    }
    for (number, block) in program.blocks.iter().enumerate() {
        for instruction in &block.instructions {
            let row = &machine[instruction.row];
            let sinks = sinks(row);
            for (index, operand) in instruction.operands.iter().enumerate() {
                let Operand::Value(value) = operand else { continue };
                if !row.operands[index].read || !secret[value.0 as usize] {
                    continue;
                }
                let name = &program.values[value.0 as usize].name;
                let mut complain = |rule: &'static str, what: &str| {
                    let text = format!("block {number}: secret `{name}` reaches {what} of {}", row.name);
                    violations.push(Violation { rule, instruction: None, text });
                };
                if row.timing.class == TimingClass::Operands {
                    complain("secret-time", "the operand-dependent time");
                }
                if sinks.branches.contains(&index) {
                    complain("secret-branch", "the branch");
                }
                let refused = machine.memory == MemoryKind::Cached && secret_addresses == SecretAddresses::Refused;
                if refused && sinks.addresses.contains(&index) {
                    complain("secret-address", "the address");
                }
            }
        }
    }
}

fn sinks(row: &Row) -> Sinks {
    let body = &row.meaning;
    // Input k of the meaning is the k-th operand that is read.
    let operands: Vec<usize> = row.operands.iter().enumerate().filter(|(_, operand)| operand.read).map(|(index, _)| index).collect();
    let gather = |roots: Vec<NodeHandle>| -> BTreeSet<usize> {
        inputs(body, roots).into_iter().filter_map(|input| operands.get(input).copied()).collect()
    };
    let mut addresses: Vec<NodeHandle> =
        body.nodes.iter().filter_map(|(_, node)| if let Op::Load { address } = &node.op { Some(*address) } else { None }).collect();
    let mut branches = Vec::new();
    for effect in &body.effects {
        match effect {
            Effect::Store { address, .. } => addresses.push(*address),
            Effect::Branch { condition, target } => branches.extend(condition.iter().chain(target).copied()),
            Effect::Forbidden { .. } => {}
        }
    }
    Sinks { addresses: gather(addresses), branches: gather(branches) }
}

/// The inputs that these nodes depend on.
fn inputs(body: &Body, roots: Vec<NodeHandle>) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut work = roots;
    let mut found = BTreeSet::new();
    while let Some(handle) = work.pop() {
        if seen.insert(handle) {
            if let Op::Input(index) = body.nodes[handle].op {
                found.insert(index as usize);
            }
            work.extend(body.nodes[handle].op.operands());
        }
    }
    found
}
