//! Which rows compute a shape. Rows are found by what they mean, never by name: shape and row are run on the same probes, and a row matches when every
//! result agrees wherever the shape's is defined. Selection is untrusted: replay and the row tests judge what it finds.

use super::constants::{self, SingleRowConstant};
use super::permutes::{self, Move};
use super::probes::{self, Results};
use super::shapes::{Shape, ShapeInput, content_type};
use crate::machine::{FileId, Machine, OperandKind, Row, RowId, TimingClass};
use kgen_ir::body::{Effect, Op};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Most assignments of a shape's inputs to one row's operands that are tried.
const ASSIGNMENT_LIMIT: usize = 512;
/// Longest range of an immediate that is searched for a constant that makes the row fit.
const SOLVED_RANGE_LIMIT: i128 = 64;

/// A row whose immediates admit fewer probes than this is not taken.
const PROBES_NEEDED: u32 = 4;

/// What stands for one operand of a matching row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The shape's input of this number.
    Input(u32),
    /// The shape's output of this number.
    Output(u32),
    /// A constant that was solved for.
    Constant(i64),
    /// The constant zero of a register-or-zero operand.
    Zero,
    /// A result that the shape does not ask for.
    Discarded,
}

/// A row that computes a shape, with the part of every operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMatch {
    /// The row.
    pub row: RowId,
    /// Parallel to the row's operands.
    pub operands: Vec<Source>,
}

impl RowMatch {
    /// Whether the constant for shape input `input` fits the row.
    pub fn takes_immediate(&self, machine: &Machine, input: u32, value: i64) -> bool {
        self.operands.iter().zip(&machine[self.row].operands).all(|(source, operand)| {
            *source != Source::Input(input)
                || match operand.kind {
                    OperandKind::Immediate { low, high, step } => immediate_fits(low, high, step, value),
                    _ => true,
                }
        })
    }
}

/// A row seen as a function: which operands it reads and writes.
pub(crate) struct RowPorts {
    /// Operand numbers read, parallel to the meaning's inputs.
    pub read: Vec<usize>,
    /// Operand numbers written, parallel to the meaning's outputs.
    pub written: Vec<usize>,
}

impl RowPorts {
    pub(crate) fn of(row: &Row) -> Self {
        let numbers = |wanted: fn(&crate::machine::RowOperand) -> bool| {
            row.operands.iter().enumerate().filter(|(_, operand)| wanted(operand)).map(|(number, _)| number).collect()
        };
        Self { read: numbers(|operand| operand.read), written: numbers(|operand| operand.written) }
    }
}

/// What a row's meaning touches besides registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Registers only.
    Compute,
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Changes control.
    Control,
}

pub(crate) fn kind_of(row: &Row) -> RowKind {
    if row.control.is_some() || row.meaning.effects.iter().any(|effect| matches!(effect, Effect::Branch { .. })) {
        RowKind::Control
    } else if row.meaning.effects.iter().any(|effect| matches!(effect, Effect::Store { .. })) {
        RowKind::Store
    } else if row.meaning.nodes.iter().any(|(_, node)| matches!(node.op, Op::Load { .. })) {
        RowKind::Load
    } else {
        RowKind::Compute
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Binding {
    Input(u32),
    Constant(i64),
    Zero,
}

type ShapeKey = (String, Vec<ShapeInput>, Vec<FileId>);
type EvaluationKey = (RowId, Vec<Binding>, Vec<ShapeInput>);

/// The index of a machine's rows by meaning. Answers are remembered; asking twice is cheap.
pub struct Selector<'m> {
    machine: &'m Machine,
    kinds: Vec<RowKind>,
    matches: RefCell<HashMap<ShapeKey, Rc<[RowMatch]>>>,
    evaluations: RefCell<HashMap<EvaluationKey, Vec<Option<Results>>>>,
    constants: RefCell<HashMap<FileId, Rc<[SingleRowConstant]>>>,
    moves: RefCell<HashMap<FileId, Rc<[Move]>>>,
}

impl<'m> Selector<'m> {
    /// The index over this machine.
    pub fn new(machine: &'m Machine) -> Self {
        let kinds = machine.rows.iter().map(kind_of).collect();
        Self {
            machine,
            kinds,
            matches: RefCell::default(),
            evaluations: RefCell::default(),
            constants: RefCell::default(),
            moves: RefCell::default(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    pub(crate) fn rows_of_kind(&self, kind: RowKind) -> impl Iterator<Item = (RowId, &'m Row)> {
        let rows = &self.machine.rows;
        self.kinds.iter().enumerate().filter(move |(_, of)| **of == kind).map(move |(index, _)| (RowId(index as u32), &rows[index]))
    }

    /// The constants of a file that one row makes from its immediates alone.
    pub fn single_row_constants(&self, file: FileId) -> Rc<[SingleRowConstant]> {
        if let Some(found) = self.constants.borrow().get(&file) {
            return found.clone();
        }
        let found = constants::single_row_constants(self, file);
        self.constants.borrow_mut().insert(file, found.clone());
        found
    }

    /// What each row does to the bytes of registers of a file.
    pub fn moves(&self, file: FileId) -> Rc<[Move]> {
        if let Some(found) = self.moves.borrow().get(&file) {
            return found.clone();
        }
        let found = permutes::moves(self, file);
        self.moves.borrow_mut().insert(file, found.clone());
        found
    }

    /// The best row that computes the shape: one that need not wait to be the oldest, of constant time, with fewest results beyond those asked for, then
    /// lowest latency, then highest throughput, then the target file's order.
    pub fn row_for(&self, shape: &Shape) -> Option<RowMatch> {
        self.rows_for(shape).first().cloned()
    }

    /// All rows that compute the shape, best first.
    pub fn rows_for(&self, shape: &Shape) -> Rc<[RowMatch]> {
        let key = (shape.title.clone(), shape.inputs.clone(), shape.outputs.clone());
        if let Some(found) = self.matches.borrow().get(&key) {
            return found.clone();
        }
        let mut wanted = Wanted { shape, results: Vec::new() };
        let mut found: Vec<RowMatch> =
            self.rows_of_kind(RowKind::Compute).filter_map(|(id, row)| self.match_row(&mut wanted, id, row)).collect();
        found.sort_by_key(|candidate| {
            let row = &self.machine[candidate.row];
            let extra = candidate.operands.iter().filter(|source| **source == Source::Discarded).count();
            let variable = row.timing.class == TimingClass::Operands;
            (row.timing.serialized, variable, extra, row.timing.latency_cycles, row.timing.throughput_cycles, candidate.row)
        });
        let found: Rc<[RowMatch]> = found.into();
        self.matches.borrow_mut().insert(key, found.clone());
        found
    }

    fn match_row(&self, wanted: &mut Wanted<'_>, id: RowId, row: &Row) -> Option<RowMatch> {
        let shape = wanted.shape;
        let ports = RowPorts::of(row);
        if row.operands.iter().any(|operand| operand.tuple != 1) {
            return None;
        }
        let output_files: Vec<Option<FileId>> = ports.written.iter().map(|number| register_file(&row.operands[*number].kind)).collect();
        if shape.outputs.iter().any(|file| !output_files.contains(&Some(*file))) {
            return None;
        }
        for assignment in self.assignments(shape, row, &ports) {
            if let Some(outputs) = self.compare(wanted, id, row, &ports, &output_files, &assignment) {
                let mut operands = vec![Source::Discarded; row.operands.len()];
                for (number, binding) in ports.read.iter().zip(&assignment) {
                    operands[*number] = match binding {
                        Binding::Input(input) => Source::Input(*input),
                        Binding::Constant(value) => Source::Constant(*value),
                        Binding::Zero => Source::Zero,
                    };
                }
                for (output, place) in outputs.iter().enumerate() {
                    operands[ports.written[*place]] = Source::Output(output as u32);
                }
                return Some(RowMatch { row: id, operands });
            }
        }
        None
    }

    /// Every way to feed the row's operands from the shape's inputs so that each input is used.
    fn assignments(&self, shape: &Shape, row: &Row, ports: &RowPorts) -> Vec<Vec<Binding>> {
        if ports.read.len() < shape.inputs.len() {
            return Vec::new();
        }
        let mut choices: Vec<Vec<Binding>> = Vec::new();
        for number in &ports.read {
            let inputs_of = |kind: ShapeInput| {
                shape.inputs.iter().enumerate().filter(move |(_, input)| **input == kind).map(|(input, _)| Binding::Input(input as u32))
            };
            choices.push(match row.operands[*number].kind {
                OperandKind::Register(file) => inputs_of(ShapeInput::Register(file)).collect(),
                OperandKind::RegisterOrZero(file) => inputs_of(ShapeInput::Register(file)).chain([Binding::Zero]).collect(),
                OperandKind::Immediate { low, high, step } => {
                    let solved = (high - low) / step.max(1) <= SOLVED_RANGE_LIMIT;
                    let constants =
                        (low..if solved { high } else { low }).step_by(step.max(1) as usize).map(|value| Binding::Constant(value as i64));
                    inputs_of(ShapeInput::Immediate).chain(constants).collect()
                }
                OperandKind::Label | OperandKind::Symbol => Vec::new(),
            });
        }
        let total = choices.iter().try_fold(1usize, |total, list| total.checked_mul(list.len())).unwrap_or(usize::MAX);
        if total == 0 || total > ASSIGNMENT_LIMIT {
            return Vec::new();
        }
        let mut found = vec![Vec::new()];
        for list in &choices {
            found = found
                .iter()
                .flat_map(|head: &Vec<Binding>| list.iter().map(|next| [&head[..], std::slice::from_ref(next)].concat()))
                .collect();
        }
        found.retain(|assignment| (0..shape.inputs.len() as u32).all(|input| assignment.contains(&Binding::Input(input))));
        found
    }

    fn compare(
        &self,
        wanted: &mut Wanted<'_>,
        id: RowId,
        row: &Row,
        ports: &RowPorts,
        output_files: &[Option<FileId>],
        assignment: &[Binding],
    ) -> Option<Vec<usize>> {
        let shape = wanted.shape;
        // Candidate places of each output; probes strike out those that differ.
        let mut places: Vec<Vec<usize>> = shape
            .outputs
            .iter()
            .map(|file| (0..output_files.len()).filter(|place| output_files[*place] == Some(*file)).collect())
            .collect();
        let mut evaluations = self.evaluations.borrow_mut();
        let mut compared = 0;
        let known = evaluations.entry((id, assignment.to_vec(), shape.inputs.clone())).or_default();
        for probe in 0..probes::COUNT as usize {
            let fits = immediates_fit(row, ports, assignment, probe as u32);
            if known.len() == probe {
                known.push(if fits { self.evaluate_row(row, ports, assignment, probe as u32) } else { None });
            }
            if !fits {
                continue;
            }
            let Some(wanted) = wanted.results(probe) else { continue };
            let got = known[probe].as_ref()?;
            compared += 1;
            for (output, candidates) in places.iter_mut().enumerate() {
                candidates.retain(|place| probes::agrees(&wanted[output], &got[*place]));
                if candidates.is_empty() {
                    return None;
                }
            }
        }
        if compared < PROBES_NEEDED {
            return None;
        }
        let chosen: Vec<usize> = places.iter().map(|candidates| candidates[0]).collect();
        let distinct = chosen.iter().enumerate().all(|(index, place)| !chosen[..index].contains(place));
        distinct.then_some(chosen)
    }

    fn evaluate_row(&self, row: &Row, ports: &RowPorts, assignment: &[Binding], probe: u32) -> Option<Results> {
        let inputs: Vec<_> = ports
            .read
            .iter()
            .zip(assignment)
            .zip(&row.meaning.inputs)
            .map(|((number, binding), port)| match (binding, register_file(&row.operands[*number].kind)) {
                (Binding::Input(input), Some(file)) => probes::register(probe, *input, &content_type(self.machine, file)),
                (Binding::Input(input), None) => probes::integer(&port.ty, probes::immediate(probe, *input)),
                (Binding::Constant(value), _) => probes::integer(&port.ty, *value),
                (Binding::Zero, _) => probes::integer(&port.ty, 0),
            })
            .collect();
        probes::run(&row.meaning, &inputs)
    }
}

/// The results of a shape on the probes, computed as far as rows are compared with them: most rows differ on the first.
struct Wanted<'s> {
    shape: &'s Shape,
    results: Vec<Option<Results>>,
}

impl Wanted<'_> {
    fn results(&mut self, probe: usize) -> Option<&Results> {
        while self.results.len() <= probe {
            let next = self.results.len() as u32;
            let ports = self.shape.body.inputs.iter().zip(&self.shape.inputs).enumerate();
            let inputs: Vec<_> = ports
                .map(|(number, (port, kind))| match kind {
                    ShapeInput::Register(_) => probes::register(next, number as u32, &port.ty),
                    ShapeInput::Immediate => probes::integer(&port.ty, probes::immediate(next, number as u32)),
                })
                .collect();
            self.results.push(probes::run(&self.shape.body, &inputs));
        }
        self.results[probe].as_ref()
    }
}

/// Whether the probe's constants lie in the ranges of the immediates they are bound to.
fn immediates_fit(row: &Row, ports: &RowPorts, assignment: &[Binding], probe: u32) -> bool {
    ports.read.iter().zip(assignment).all(|(number, binding)| match (binding, &row.operands[*number].kind) {
        (Binding::Input(input), OperandKind::Immediate { low, high, step }) => {
            immediate_fits(*low, *high, *step, probes::immediate(probe, *input))
        }
        _ => true,
    })
}

/// Whether a constant lies in an immediate's range.
pub(crate) fn immediate_fits(low: i128, high: i128, step: i128, value: i64) -> bool {
    let value = i128::from(value);
    (low..high).contains(&value) && (value - low) % step.max(1) == 0
}

/// The file of a register operand.
pub(crate) fn register_file(kind: &OperandKind) -> Option<FileId> {
    match kind {
        OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => Some(*file),
        _ => None,
    }
}
