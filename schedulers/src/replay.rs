//! Replay: the scheduled, allocated code is executed by its rows' meanings and compared with the interpreter of the kernel, on fixed edges and seeded random inputs,
//! setup functions included. It uses the language, the machine and the stages' products, and nothing of the searches.

use crate::call::{CallArgument, CallError, Called, call};
use crate::code::{Code, CodeOperand};
use crate::execute::Step;
use crate::finished::FunctionRole;
use crate::layout;
use crate::machine::Machine;
use crate::program::{Block, Layout, MontgomeryForm, Program, ProgramParameterKind};
use crate::program_run::run_program;
use crate::random::Words;
use kgen_ir::answers::compare_results;
use kgen_ir::bits::Bits;
use kgen_ir::body::Op;
use kgen_ir::interpret::{Argument, InterpretError, Interpretation, interpret};
use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::types::{ByteOrder, Type};
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use std::sync::{Arc, Mutex, PoisonError};

/// A function to replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayFunction<'a> {
    /// What for.
    pub role: FunctionRole,
    /// Its program, for parameters and layouts.
    pub program: &'a Program,
    /// Its code, best read back from text; `None` on a machine without assembly, where the program itself runs.
    pub code: Option<&'a Code>,
    /// Copies of the kernel in it.
    pub copies: u32,
}

impl ReplayFunction<'_> {
    fn call(&self, machine: &Machine, arguments: &[CallArgument], seed: u64) -> Result<Called, CallError> {
        match self.code {
            Some(code) => call(machine, self.program, code, arguments, seed),
            None => run_program(machine, self.program, arguments, seed),
        }
    }

    fn identity(&self) -> SetupFunction {
        match self.code {
            Some(code) => SetupFunction::Code(code.clone()),
            None => SetupFunction::Program(self.program.blocks.clone()),
        }
    }
}

/// What a setup function does, apart from names.
#[derive(Debug)]
enum SetupFunction {
    Code(Code),
    Program(Vec<Block>),
}

impl SetupFunction {
    fn is(&self, function: ReplayFunction<'_>) -> bool {
        match (self, function.code) {
            (Self::Code(known), Some(code)) => same_code(known, code),
            (Self::Program(known), None) => *known == function.program.blocks,
            _ => false,
        }
    }
}

/// How much to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Settings of the setup parameters.
    pub setups: u32,
    /// Inputs for each of them.
    pub inputs: u32,
}

/// What a replay did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Inputs compared.
    pub inputs: u32,
    /// For each function in the order given, steps of runs for the timing simulation: of a kernel with a loop count, one round and two rounds; none of conversions.
    pub runs: Vec<Vec<Arc<[Step]>>>,
}

/// Why a replay failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The code could not be run, or broke the calling convention.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A result is not the interpreter's.
    #[error("`{function}`: `{place}` is {actual}, the interpreter says {expected} (input {input})")]
    Differs {
        /// The function.
        function: String,
        /// The parameter, with indices.
        place: String,
        /// Wanted.
        expected: String,
        /// Got.
        actual: String,
        /// Number of the input.
        input: u32,
    },
    /// The kernel has no meaning for any input that was tried.
    #[error("`{kernel}` has no meaning for the inputs tried: {reason}")]
    NoMeaning {
        /// The kernel.
        kernel: String,
        /// The interpreter's word.
        reason: String,
    },
    /// A value cannot be written in its parameter's layout.
    #[error("`{function}`: a value does not fit the layout of `{parameter}`")]
    Layout {
        /// The function.
        function: String,
        /// The parameter.
        parameter: String,
    },
}

/// Results of setup functions already run in this process: the same code on the same bytes gives the same bytes. Kernels that are replayed at the same time share it; who
/// asks while a run is going on waits for it.
#[derive(Debug, Default)]
pub struct SetupCache {
    entries: Mutex<Vec<Arc<SetupRun>>>,
}

/// One run of a setup function.
#[derive(Debug)]
struct SetupRun {
    function: SetupFunction,
    given: Vec<u8>,
    block: Vec<u8>,
    steps: Arc<[Step]>,
}

/// Rounds given to a run-time loop at most: enough to go around, and none.
const ROUNDS: u64 = 4;

/// Runs a kernel with its setup function and compares; conversions have [`replay_conversion`].
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(
    machine: &Machine,
    kernel: &Kernel,
    functions: &[ReplayFunction<'_>],
    options: ReplayOptions,
    cache: &SetupCache,
) -> Result<Replayed, ReplayError> {
    let mut replayed = Replayed { inputs: 0, runs: vec![Vec::new(); functions.len()] };
    let mut first_setup = None;
    let mut refused = None;
    for setup in 0..options.setups {
        let mut words = Words(u64::from(setup).wrapping_mul(0x1000_0001));
        for input in 0..options.inputs {
            let kernels = functions.iter().enumerate().filter(|(_, function)| function.role == FunctionRole::Kernel);
            for (number, function) in kernels {
                let number_of_input = setup * options.inputs + input;
                let mut replay = Replay { machine, kernel, functions, setup, cache, first_setup: first_setup.take() };
                let outcome = replay.kernel(*function, input, &mut words);
                first_setup = replay.first_setup;
                match outcome {
                    Ok(steps) => {
                        replayed.inputs += 1;
                        let runs = &mut replayed.runs[number];
                        if runs.len() < 2 && number_of_input < 2 {
                            runs.push(steps.into());
                        }
                    }
                    Err(ReplayError::NoMeaning { reason, .. }) => refused = Some(reason),
                    Err(ReplayError::Differs { function, place, expected, actual, .. }) => {
                        return Err(ReplayError::Differs { function, place, expected, actual, input: number_of_input });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    if let Some(number) = functions.iter().position(|function| function.role == FunctionRole::Setup) {
        replayed.runs[number].extend(first_setup.map(|run| run.steps.clone()));
    }
    match (replayed.inputs, refused) {
        (0, Some(reason)) => Err(ReplayError::NoMeaning { kernel: kernel.name.clone(), reason }),
        _ => Ok(replayed),
    }
}

struct Replay<'a> {
    machine: &'a Machine,
    kernel: &'a Kernel,
    functions: &'a [ReplayFunction<'a>],
    setup: u32,
    cache: &'a SetupCache,
    /// The first run of the setup function that this replay asked for.
    first_setup: Option<Arc<SetupRun>>,
}

impl Replay<'_> {
    fn kernel(&mut self, function: ReplayFunction<'_>, input: u32, words: &mut Words) -> Result<Vec<Step>, ReplayError> {
        let kernel = self.kernel;
        let montgomery = function.program.montgomery;
        let radix = match (montgomery, self.modulus_bits()) {
            (Some(form), Some(bits)) => MontgomeryRadix::one().with(bits, form.radix_bits),
            _ => MontgomeryRadix::one(),
        };
        let interpretation = Interpretation { montgomery_radix: radix };
        let mut copies = Vec::new();
        for copy in 0..function.copies {
            copies.push(self.copy(copy, input, montgomery, &interpretation, words)?);
        }
        let mut arguments = Vec::new();
        // For each parameter of the function: which copy, and which parameter of the kernel where it is one of it.
        let mut origins = Vec::new();
        for declared in &function.program.parameters {
            let (copy, name) = origin(&declared.name, function.copies);
            let index = kernel.parameters.iter().position(|parameter| parameter.name == name);
            let unfit = || ReplayError::Layout { function: function.program.name.clone(), parameter: declared.name.clone() };
            let values = &copies.get(copy).ok_or_else(unfit)?.values;
            origins.push((copy, index));
            arguments.push(match (declared.kind.clone(), index) {
                (ProgramParameterKind::Scalar { .. }, Some(index)) => CallArgument::Scalar(scalar(&values[index])),
                // The count that goes with a slice.
                (ProgramParameterKind::Scalar { .. }, None) => {
                    let slice = name
                        .strip_suffix("_count")
                        .and_then(|slice| kernel.parameters.iter().position(|parameter| parameter.name == slice));
                    match slice.map(|slice| &values[slice]) {
                        Some(Argument::List(list)) => CallArgument::Scalar(list.len() as u64),
                        _ => return Err(unfit()),
                    }
                }
                (ProgramParameterKind::Pointer { region, .. }, Some(index)) => {
                    let parameter = &kernel.parameters[index];
                    let layout = &function.program.layouts[region.0 as usize];
                    if let Layout::SetupBlock { .. } = layout {
                        CallArgument::Region(self.setup_block(&values[index])?)
                    } else {
                        let bytes = encode(layout, &parameter.ty, &values[index], self.machine.byte_order, words).ok_or_else(unfit)?;
                        if parameter.direction == Direction::Out {
                            CallArgument::Undefined(bytes.len())
                        } else {
                            CallArgument::Region(bytes)
                        }
                    }
                }
                (ProgramParameterKind::Pointer { .. }, None) => return Err(unfit()),
            });
        }
        let called = function.call(self.machine, &arguments, words.word())?;
        for (copy, chosen) in copies.iter().enumerate() {
            let mut actual = Vec::new();
            for (index, parameter) in kernel.parameters.iter().enumerate().filter(|(_, parameter)| parameter.direction != Direction::In) {
                let unfit = || ReplayError::Layout { function: function.program.name.clone(), parameter: parameter.name.clone() };
                let place = origins.iter().position(|origin| *origin == (copy, Some(index))).ok_or_else(unfit)?;
                let ProgramParameterKind::Pointer { region, .. } = function.program.parameters[place].kind else { return Err(unfit()) };
                let layout = &function.program.layouts[region.0 as usize];
                actual.push(decode(layout, &parameter.ty, &called.regions[place], self.machine.byte_order).ok_or_else(unfit)?);
            }
            let bound = montgomery.map_or(1, |form| form.bound);
            if let Some(difference) = compare_results(kernel, &chosen.read, &chosen.expected, &actual, bound).into_iter().next() {
                return Err(ReplayError::Differs {
                    function: function.program.name.clone(),
                    place: difference.place,
                    expected: format!("{:x?}", difference.expected),
                    actual: format!("{:x?}", difference.actual),
                    input,
                });
            }
        }
        Ok(called.steps)
    }

    /// Values and results for one copy of the kernel. Setup parameters keep their values over the inputs of one setting.
    fn copy(
        &self,
        copy: u32,
        input: u32,
        montgomery: Option<MontgomeryForm>,
        interpretation: &Interpretation,
        words: &mut Words,
    ) -> Result<CopyValues, ReplayError> {
        let kernel = self.kernel;
        let mut setup_words = Words(0x5e70 + u64::from(self.setup) + (u64::from(copy) << 32));
        let mut values: Vec<Argument> = Vec::new();
        for (index, parameter) in kernel.parameters.iter().enumerate() {
            let words = if parameter.setup { &mut setup_words } else { &mut *words };
            let edge = if parameter.setup { self.setup } else { input };
            let value = self.value(index, &parameter.ty, edge, montgomery, &values, words);
            values.push(value);
        }
        let read: Vec<Argument> =
            kernel.parameters.iter().zip(&values).filter(|(parameter, _)| parameter.is_input()).map(|(_, value)| value.clone()).collect();
        let expected = interpret(kernel, &read, interpretation).map_err(|error| self.no_meaning(&error))?;
        Ok(CopyValues { values, read, expected })
    }

    fn no_meaning(&self, error: &InterpretError) -> ReplayError {
        ReplayError::NoMeaning { kernel: self.kernel.name.clone(), reason: error.to_string() }
    }

    fn modulus_bits(&self) -> Option<u32> {
        self.kernel.parameters.iter().find_map(|parameter| match parameter.ty {
            Type::Modulus { bits } => Some(bits),
            _ => None,
        })
    }

    /// A value for a parameter: the edges first, then at random.
    fn value(
        &self,
        index: usize,
        ty: &Type,
        edge: u32,
        montgomery: Option<MontgomeryForm>,
        before: &[Argument],
        words: &mut Words,
    ) -> Argument {
        match ty {
            Type::Bits { width, lanes: 1 } => {
                let value = match self.scalar_limit(index) {
                    // The first runs go around once and twice, for the timing simulation.
                    Some(ScalarUse::Count) => u64::from(edge).wrapping_add(1) % ROUNDS,
                    Some(ScalarUse::Index(entries)) => {
                        [0, entries.saturating_sub(1)].get(edge as usize).copied().unwrap_or_else(|| words.word() % entries.max(1))
                    }
                    None => match edge {
                        0 => 0,
                        1 => u64::MAX,
                        _ => words.word(),
                    },
                };
                Argument::Bits(if *width > 64 { random_bits(*width, edge, words) } else { Bits::from_u64(*width, value) })
            }
            Type::Bits { width, lanes } => Argument::Bits(random_bits(width * lanes, edge, words)),
            Type::Natural { bits } => Argument::Integer(integer(&(BigUint::one() << *bits), edge, words)),
            Type::Modulus { bits } => {
                let top = BigUint::one() << *bits;
                Argument::Integer(match edge {
                    // A full-size modulus first, since it is what users have; then the greatest and a small one.
                    0 => below(&(&top >> 1u32), words) | BigUint::one() | (&top >> 1u32),
                    1 => &top - 1u32,
                    2 => BigUint::from(3u32),
                    _ => below(&top, words) | BigUint::one(),
                })
            }
            Type::Residue { modulus, .. } => {
                let bound = montgomery.map_or(1, |form| form.bound);
                let limit = match before.get(*modulus as usize) {
                    Some(Argument::Integer(modulus)) => modulus * bound,
                    _ => BigUint::one(),
                };
                Argument::Integer(integer(&limit, edge, words))
            }
            Type::Array { element, length } => {
                Argument::List((0..*length).map(|_| self.value(usize::MAX, element, edge + 2, montgomery, before, words)).collect())
            }
            Type::Slice { element } => {
                Argument::List((0..edge % 10).map(|_| self.value(usize::MAX, element, edge + 2, montgomery, before, words)).collect())
            }
        }
    }

    fn scalar_limit(&self, parameter: usize) -> Option<ScalarUse> {
        let kernel = self.kernel;
        let input = kernel.parameters.get(..parameter)?.iter().filter(|parameter| parameter.is_input()).count() as u32;
        let is_input = |handle: kgen_ir::body::NodeHandle| kernel.body.nodes[handle].op == Op::Input(input);
        kernel.body.nodes.iter().find_map(|(_, node)| match &node.op {
            Op::Loop { count, .. } if is_input(*count) => Some(ScalarUse::Count),
            Op::Element { array, index } if is_input(*index) => match &kernel.body.nodes[*array].ty {
                Type::Array { length, .. } => Some(ScalarUse::Index(u64::from(*length))),
                _ => None,
            },
            _ => None,
        })
    }

    /// The block that the setup function makes of a modulus.
    fn setup_block(&mut self, value: &Argument) -> Result<Vec<u8>, ReplayError> {
        let function = self.functions.iter().find(|function| function.role == FunctionRole::Setup);
        let function =
            *function.ok_or_else(|| ReplayError::Layout { function: self.kernel.name.clone(), parameter: "setup".to_owned() })?;
        let unfit = || ReplayError::Layout { function: function.program.name.clone(), parameter: "modulus".to_owned() };
        let given = match (value, function.program.layouts.get(1)) {
            (Argument::Integer(modulus), Some(layout)) => {
                let limbs = layout::canonical_limbs(layout, modulus).ok_or_else(unfit)?;
                layout::limbs_to_bytes(layout, &limbs, self.machine.byte_order)
            }
            _ => return Err(unfit()),
        };
        // Nothing panics while the lock is held; were it so, the entries would be whole still.
        let mut entries = self.cache.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let run = match entries.iter().find(|run| run.given == given && run.function.is(function)) {
            Some(run) => run.clone(),
            None => {
                let bytes = function.program.regions.first().and_then(|region| region.bytes).unwrap_or(0) as usize;
                let arguments = [CallArgument::Undefined(bytes), CallArgument::Region(given.clone())];
                let called = function.call(self.machine, &arguments, 1)?;
                let block = called.regions.into_iter().next().unwrap_or_default();
                let run = Arc::new(SetupRun { function: function.identity(), given, block, steps: called.steps.into() });
                entries.push(run.clone());
                run
            }
        };
        drop(entries);
        let block = run.block.clone();
        self.first_setup.get_or_insert(run);
        Ok(block)
    }
}

/// What one copy of a kernel is given and what it must give.
struct CopyValues {
    /// A value for every parameter.
    values: Vec<Argument>,
    /// Those that are read.
    read: Vec<Argument>,
    /// The interpreter's results.
    expected: Vec<Argument>,
}

/// Copy and name in the kernel of a function's parameter.
fn origin(name: &str, copies: u32) -> (usize, &str) {
    let split = name.rsplit_once('_').filter(|_| copies > 1);
    split.and_then(|(name, copy)| Some((copy.parse().ok()?, name))).unwrap_or((0, name))
}

/// What a scalar parameter is used for, where that limits its values.
enum ScalarUse {
    /// Rounds of a loop.
    Count,
    /// Index of so many elements.
    Index(u64),
}

/// Equal but for the names of labels and comments.
fn same_code(a: &Code, b: &Code) -> bool {
    let plain = |operand: &CodeOperand| match operand {
        CodeOperand::Label(_) | CodeOperand::Symbol(..) => None,
        other => Some(other.clone()),
    };
    a.instructions.len() == b.instructions.len()
        && a.instructions.iter().zip(&b.instructions).all(|(a, b)| {
            a.row == b.row && a.operands.len() == b.operands.len() && a.operands.iter().zip(&b.operands).all(|(a, b)| plain(a) == plain(b))
        })
        && a.data.len() == b.data.len()
        && a.data.iter().zip(&b.data).all(|(a, b)| a.bytes == b.bytes)
}

/// Runs an import or export function on edges and random naturals and compares with big integers; steps of its first run.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay_conversion(machine: &Machine, function: ReplayFunction<'_>, inputs: u32) -> Result<Vec<Arc<[Step]>>, ReplayError> {
    let mut words = Words(CONVERSION_SEED);
    let mut first = Vec::new();
    for input in 0..inputs {
        let steps = conversion(machine, function, input, &mut words)?;
        if input == 0 {
            first.push(steps.into());
        }
    }
    Ok(first)
}

/// Seed of the naturals that conversions get.
const CONVERSION_SEED: u64 = 0xc047;

/// Bits that the limbs of a layout have room for, which need not be whole bytes.
fn natural_bits(layout: &Layout) -> Option<usize> {
    match layout {
        Layout::Limbs { radix_bits, limb_order, .. } => Some(*radix_bits as usize * limb_order.len()),
        _ => None,
    }
}

/// Import and export, against big integers.
fn conversion(machine: &Machine, function: ReplayFunction<'_>, input: u32, words: &mut Words) -> Result<Vec<Step>, ReplayError> {
    let program = function.program;
    let differs = |place: &str, expected: String, actual: String| ReplayError::Differs {
        function: program.name.clone(),
        place: place.to_owned(),
        expected,
        actual,
        input,
    };
    let unfit = |parameter: &str| ReplayError::Layout { function: program.name.clone(), parameter: parameter.to_owned() };
    let (natural, bytes) = if function.role == FunctionRole::Import { (0, 1) } else { (1, 0) };
    let layout = program.layouts.get(natural).ok_or_else(|| unfit("natural"))?;
    let size = |index: usize| program.regions.get(index).and_then(|region| region.bytes).unwrap_or(0) as usize;
    let bits = (8 * size(bytes)).min(natural_bits(layout).unwrap_or(usize::MAX));
    let value = integer(&(BigUint::one() << bits), input, words);
    let outside = {
        let digits = value.to_bytes_be();
        let mut padded = vec![0; size(bytes).saturating_sub(digits.len())];
        padded.extend(digits);
        padded.truncate(size(bytes));
        padded
    };
    let value = BigUint::from_bytes_be(&outside);
    let limbs = layout::canonical_limbs(layout, &value).ok_or_else(|| unfit("natural"))?;
    let called = if function.role == FunctionRole::Import {
        function.call(machine, &[CallArgument::Undefined(size(0)), CallArgument::Region(outside)], words.word())?
    } else {
        let limbs = layout::perturbed_limbs(layout, &limbs, || words.word());
        let image = layout::limbs_to_bytes(layout, &limbs, machine.byte_order);
        let called = function.call(machine, &[CallArgument::Undefined(size(0)), CallArgument::Region(image)], words.word())?;
        if called.regions[0] != outside {
            return Err(differs("bytes", format!("{outside:02x?}"), format!("{:02x?}", called.regions[0])));
        }
        return Ok(called.steps);
    };
    let got = layout::bytes_to_integer(layout, &called.regions[0], machine.byte_order);
    if got != Some(BigInt::from(value.clone())) {
        return Err(differs("natural", format!("{value:x}"), format!("{got:x?}")));
    }
    Ok(called.steps)
}

fn scalar(value: &Argument) -> u64 {
    match value {
        Argument::Bits(bits) => bits.words().first().copied().unwrap_or(0),
        _ => 0,
    }
}

fn random_bits(width: u32, edge: u32, words: &mut Words) -> Bits {
    match edge {
        0 => Bits::zero(width),
        1 => Bits::ones(width),
        _ => Bits::from_words(width, (0..width.div_ceil(64)).map(|_| words.word()).collect::<Vec<_>>()),
    }
}

/// An integer below the limit: the greatest, zero, then at random.
fn integer(limit: &BigUint, edge: u32, words: &mut Words) -> BigUint {
    match edge {
        0 => limit - 1u32,
        1 => BigUint::ZERO,
        _ => below(limit, words),
    }
}

fn below(limit: &BigUint, words: &mut Words) -> BigUint {
    let digits: Vec<u32> = (0..limit.bits() / 32 + 2).map(|_| words.word() as u32).collect();
    BigUint::new(digits) % limit
}

/// Bytes of a value; naturals in any limbs that functions accept.
fn encode(layout: &Layout, ty: &Type, value: &Argument, order: ByteOrder, words: &mut Words) -> Option<Vec<u8>> {
    match (layout, ty, value) {
        (Layout::Limbs { .. }, _, Argument::Integer(value)) => {
            let limbs = layout::canonical_limbs(layout, value)?;
            let limbs = layout::perturbed_limbs(layout, &limbs, || words.word());
            Some(layout::limbs_to_bytes(layout, &limbs, order))
        }
        (Layout::Array { element, stride_bytes, .. }, Type::Array { element: ty, .. }, Argument::List(list)) => {
            let mut bytes = Vec::new();
            for item in list {
                let mut image = encode(element, ty, item, order, words)?;
                image.resize(*stride_bytes as usize, 0);
                bytes.extend(image);
            }
            Some(bytes)
        }
        (_, Type::Bits { width, lanes }, Argument::Bits(bits)) => {
            let size = width.div_ceil(8) as usize;
            Some(
                (0..*lanes)
                    .flat_map(|lane| {
                        // A lane takes whole bytes, its unused bits zero.
                        let mut padded = Bits::zero(size as u32 * 8);
                        padded.insert(0, &bits.extract(lane * width, *width));
                        let mut image = padded.to_bytes();
                        if order == ByteOrder::Big {
                            image.reverse();
                        }
                        image
                    })
                    .collect(),
            )
        }
        (_, Type::Array { element, .. } | Type::Slice { element }, Argument::List(list)) => {
            let mut bytes = Vec::new();
            for item in list {
                bytes.extend(encode(layout, element, item, order, words)?);
            }
            Some(bytes)
        }
        _ => None,
    }
}

/// The value that bytes stand for.
fn decode(layout: &Layout, ty: &Type, bytes: &[u8], order: ByteOrder) -> Option<Argument> {
    match (layout, ty) {
        (Layout::Limbs { .. }, _) => Some(Argument::Integer(BigUint::try_from(layout::bytes_to_integer(layout, bytes, order)?).ok()?)),
        (Layout::Array { element, stride_bytes, .. }, Type::Array { element: ty, .. }) => {
            let list = bytes.chunks(*stride_bytes as usize).map(|image| decode(element, ty, image, order)).collect::<Option<Vec<_>>>()?;
            Some(Argument::List(list))
        }
        (_, Type::Bits { width, lanes }) => {
            let size = width.div_ceil(8) as usize;
            let mut value = Bits::zero(width * lanes);
            for lane in 0..*lanes {
                let mut image = bytes.get(lane as usize * size..(lane as usize + 1) * size)?.to_vec();
                if order == ByteOrder::Big {
                    image.reverse();
                }
                value.insert(lane * width, &Bits::from_bytes(&image).extract(0, *width));
            }
            Some(Argument::Bits(value))
        }
        (_, Type::Array { element, .. } | Type::Slice { element }) => {
            let size = type_bytes(element)?;
            let list = bytes.chunks(size.max(1)).map(|image| decode(layout, element, image, order)).collect::<Option<Vec<_>>>()?;
            Some(Argument::List(list))
        }
        _ => None,
    }
}

fn type_bytes(ty: &Type) -> Option<usize> {
    match ty {
        Type::Bits { width, lanes } => Some((width.div_ceil(8) * lanes) as usize),
        Type::Array { element, length } => Some(type_bytes(element)? * *length as usize),
        _ => None,
    }
}
