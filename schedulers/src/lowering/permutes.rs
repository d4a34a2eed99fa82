//! Constant byte permutes of registers to the fewest instructions, by byte provenance. What each row does with each of its immediates is found by running
//! its meaning over the provenance domain; renaming comes first, then one row, then the general permute by a control constant where it reaches, then two
//! rows, then trees of general permutes.

use super::builder::{Input, Lowering, ProgramBuilder};
use super::selection::{RowKind, RowMatch, RowPorts, Selector, Source, register_file};
use super::shapes;
use crate::machine::{FileId, OperandKind};
use crate::program::ValueId;
use kgen_ir::bits::Bits;
use kgen_ir::domains::provenance::{self, ByteSource};
use std::rc::Rc;

/// Most settings of one row's immediates that are entered in the table.
const SETTING_LIMIT: i128 = 64;

/// What a byte of the result shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Byte {
    /// Byte `byte`, in address order, of source `source`.
    Of {
        /// Index in the list of sources.
        source: u32,
        /// Byte of it.
        byte: u32,
    },
    /// Zero.
    Zero,
    /// Anything.
    Any,
}

/// What one row does to bytes, with its immediates fixed.
#[derive(Clone, Debug)]
pub struct Move {
    /// The row; inputs 0 and 1 are its register operands.
    row: RowMatch,
    /// Registers that it reads, 1 or 2.
    registers: u32,
    /// Where each byte of the result comes from.
    bytes: Vec<ByteSource>,
}

/// The moves of all rows on registers of `file`, in the machine's order.
pub fn moves(selector: &Selector<'_>, file: FileId) -> Rc<[Move]> {
    let machine = selector.machine();
    let mut found = Vec::new();
    for (id, row) in selector.rows_of_kind(RowKind::Compute) {
        let ports = RowPorts::of(row);
        let registers: Vec<usize> =
            ports.read.iter().copied().filter(|number| register_file(&row.operands[*number].kind).is_some()).collect();
        let is_lane = |number: &usize| register_file(&row.operands[*number].kind) == Some(file);
        if !(1..=2).contains(&registers.len())
            || !registers.iter().all(is_lane)
            || !matches!(&ports.written[..], [result] if is_lane(result))
        {
            continue;
        }
        let mut settings: Vec<Vec<(usize, i64)>> = vec![Vec::new()];
        for number in ports.read.iter().filter(|number| !registers.contains(number)) {
            settings = match row.operands[*number].kind {
                OperandKind::Immediate { low, high, step } if (high - low) / step.max(1) * settings.len() as i128 <= SETTING_LIMIT => {
                    settings
                        .iter()
                        .flat_map(|head| {
                            (low..high).step_by(step.max(1) as usize).map(|value| [&head[..], &[(*number, value as i64)]].concat())
                        })
                        .collect()
                }
                _ => Vec::new(),
            };
        }
        for setting in settings {
            let constant = |number: &usize| setting.iter().find(|(operand, _)| operand == number).map(|(_, value)| *value);
            let constants: Vec<Option<Bits>> = ports
                .read
                .iter()
                .zip(&row.meaning.inputs)
                .map(|(number, port)| constant(number).map(|value| sign_filled(port.ty.total_bits().unwrap_or(0), value)))
                .collect();
            let Some(bytes) = provenance::sources(&row.meaning, &constants).first().and_then(|result| result.bytes()) else { continue };
            // Body inputs become register numbers of this move.
            let register_of =
                |input: u32| registers.iter().position(|number| *number == ports.read[input as usize]).map(|index| index as u32);
            let renamed: Option<Vec<ByteSource>> = bytes
                .into_iter()
                .map(|byte| match byte {
                    ByteSource::Input { input, byte } => register_of(input).map(|input| ByteSource::Input { input, byte }),
                    ByteSource::Constant(0) => Some(ByteSource::Constant(0)),
                    ByteSource::Constant(_) | ByteSource::Unknown => None,
                })
                .collect();
            let Some(bytes) = renamed else { continue };
            if bytes.iter().all(|byte| matches!(byte, ByteSource::Constant(_))) {
                continue;
            }
            let operands = (0..row.operands.len())
                .map(|number| match (registers.iter().position(|register| *register == number), constant(&number)) {
                    (Some(input), _) => Source::Input(input as u32),
                    (None, Some(value)) => Source::Constant(value),
                    (None, None) => Source::Output(0),
                })
                .collect();
            found.push(Move { row: RowMatch { row: id, operands }, registers: registers.len() as u32, bytes });
        }
    }
    found.sort_by_key(|item| machine[item.row.row].timing.latency_cycles);
    found.into()
}

fn sign_filled(width: u32, value: i64) -> Bits {
    Bits::from_words(width, [value as u64, if value < 0 { u64::MAX } else { 0 }])
}

/// Where the byte comes from when the move's registers hold `registers`.
fn moved(item: &Move, registers: &[&[Byte]; 2], place: usize) -> Byte {
    match item.bytes[place] {
        ByteSource::Input { input, byte } => registers[input as usize][byte as usize],
        _ => Byte::Zero,
    }
}

fn serves(have: Byte, want: Byte) -> bool {
    want == Byte::Any || have == want
}

/// A chain of at most two moves: (move, operands); operand `n` below the number of registers is that register, the number itself the first move's result.
type Chain = Vec<(usize, [usize; 2])>;

/// The shortest chain of one or two moves that gives `wanted` from `registers` (what each register's bytes are).
fn search(table: &[Move], registers: &[Vec<Byte>], wanted: &[Byte], steps: u32) -> Option<Chain> {
    let pairs = |count: usize, item: &Move| -> Vec<[usize; 2]> {
        let seconds = if item.registers == 1 { 1 } else { count };
        (0..count).flat_map(|a| (0..seconds).map(move |b| [a, b])).collect()
    };
    for (index, item) in table.iter().enumerate() {
        for pair in pairs(registers.len(), item) {
            let operands = [&registers[pair[0]][..], &registers[pair[1]][..]];
            if wanted.iter().enumerate().all(|(place, want)| serves(moved(item, &operands, place), *want)) {
                return Some(vec![(index, pair)]);
            }
        }
    }
    if steps < 2 {
        return None;
    }
    for (first, item) in table.iter().enumerate() {
        for pair in pairs(registers.len(), item) {
            let operands = [&registers[pair[0]][..], &registers[pair[1]][..]];
            let between: Vec<Byte> = (0..wanted.len()).map(|place| moved(item, &operands, place)).collect();
            let mut all = registers.to_vec();
            all.push(between);
            for (second, item) in table.iter().enumerate() {
                for pair_after in pairs(all.len(), item).into_iter().filter(|pair_after| pair_after.contains(&registers.len())) {
                    let operands = [&all[pair_after[0]][..], &all[pair_after[1]][..]];
                    if wanted.iter().enumerate().all(|(place, want)| serves(moved(item, &operands, place), *want)) {
                        return Some(vec![(first, pair), (second, pair_after)]);
                    }
                }
            }
        }
    }
    None
}

impl ProgramBuilder<'_> {
    /// A register of the lane file whose bytes are chosen from `sources`, with the fewest instructions.
    ///
    /// # Errors
    /// The machine has no general byte permute and no other rows reach the wanted bytes.
    pub fn permute(&mut self, sources: &[ValueId], wanted: &[Byte]) -> Lowering<ValueId> {
        let file = self.lane_file().ok_or_else(|| self.missing("registers of many lanes"))?;
        // Only the sources that are used, each once.
        let mut used: Vec<ValueId> = Vec::new();
        let wanted: Vec<Byte> = wanted
            .iter()
            .map(|want| match want {
                Byte::Of { source, byte } => {
                    let value = sources[*source as usize];
                    let known = used.iter().position(|other| *other == value);
                    let index = known.unwrap_or_else(|| {
                        used.push(value);
                        used.len() - 1
                    });
                    Byte::Of { source: index as u32, byte: *byte }
                }
                other => *other,
            })
            .collect();
        if used.is_empty() {
            return self.splat(8, 0);
        }
        let register = |source: u32| (0..wanted.len() as u32).map(|byte| Byte::Of { source, byte }).collect::<Vec<_>>();
        for (source, value) in used.iter().enumerate() {
            if register(source as u32).iter().zip(&wanted).all(|(have, want)| serves(*have, *want)) {
                return Ok(*value);
            }
        }
        let needs_zero = wanted.contains(&Byte::Zero);
        let mut registers: Vec<Vec<Byte>> = (0..used.len() as u32).map(register).collect();
        let zero_index = registers.len();
        if needs_zero {
            registers.push(vec![Byte::Zero; wanted.len()]);
        }
        let table = self.selector.moves(file);
        let general = self.selector.row_for(&shapes::byte_permute_shape(self.machine(), file, 2)).is_some();
        let within_reach = registers.len() <= 2 && general;
        let steps = if within_reach || registers.len() > 3 { 1 } else { 2 };
        if let Some(chain) = search(&table, &registers, &wanted, steps) {
            let mut values: Vec<Option<ValueId>> = used.iter().map(|value| Some(*value)).collect();
            if needs_zero {
                let touched =
                    chain.iter().any(|(index, pair)| pair[0] == zero_index || table[*index].registers == 2 && pair[1] == zero_index);
                values.push(if touched { Some(self.splat(8, 0)?) } else { None });
            }
            for (index, pair) in &chain {
                let item = &table[*index];
                let inputs: Vec<Input> =
                    pair[..item.registers as usize].iter().filter_map(|operand| values[*operand]).map(Input::Value).collect();
                let results = self.emit(&item.row, &inputs)?;
                values.push(results.first().copied());
            }
            return values.pop().flatten().ok_or_else(|| self.missing("a permute with a result"));
        }
        if !general {
            return Err(self.missing("a byte permute of two registers by a control"));
        }
        if needs_zero {
            used.push(self.splat(8, 0)?);
        }
        let zero_source = used.len() as u32 - 1;
        let wanted: Vec<Byte> = wanted
            .iter()
            .enumerate()
            .map(|(place, want)| if *want == Byte::Zero { Byte::Of { source: zero_source, byte: place as u32 } } else { *want })
            .collect();
        self.permute_tree(&used, &wanted)
    }

    /// One general permute for each source beyond the first; every step puts its bytes where they belong.
    fn permute_tree(&mut self, sources: &[ValueId], wanted: &[Byte]) -> Lowering<ValueId> {
        let length = wanted.len() as u32;
        let mut result = sources[0];
        // Bytes of source 0 stand where they came from until the first step.
        let mut placed: Vec<Option<u32>> = wanted
            .iter()
            .map(|want| match want {
                Byte::Of { source: 0, byte } => Some(*byte),
                _ => None,
            })
            .collect();
        let rest = if sources.len() == 1 { &sources[..1] } else { &sources[1..] };
        for (step, next) in rest.iter().enumerate() {
            let source = step as u32 + 1;
            let one_register = sources.len() == 1;
            let mask = if one_register { length - 1 } else { 2 * length - 1 } as u8;
            let mut control = vec![0u8; wanted.len()];
            let mut care = vec![0u8; wanted.len()];
            for (place, want) in wanted.iter().enumerate() {
                let chosen = match (placed[place], want) {
                    (Some(byte), _) => Some(byte),
                    (None, Byte::Of { source: of, byte }) if *of == source => Some(length + byte),
                    _ => None,
                };
                if let Some(chosen) = chosen {
                    control[place] = chosen as u8;
                    care[place] = mask;
                    placed[place] = Some(place as u32);
                }
            }
            let control = self.constant_under(&control, &care)?;
            result = self.permute_by(&[result, *next], control)?;
        }
        Ok(result)
    }
}
