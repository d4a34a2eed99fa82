//! The road of one kernel: lower, build, assemble, print and read back, check, replay, time. Nothing leaves here that `check` or `replay` refused.

use crate::allocation::Allocation;
use crate::assemble::{AssembleError, assemble};
use crate::assembly;
use crate::check::{self, Products, SecretAddresses, Violation};
use crate::code::{Code, CodeInstruction};
use crate::driver::{self, BuildReport, DriverError, DriverOptions};
use crate::execute::Step;
use crate::finished::{Cycles, Evidence, FinishedFunction, FunctionRole, Performance};
use crate::interleave::{Arrangement, interleave};
use crate::lowering::builder::PoolAddressing;
use crate::lowering::memory_rows::MemoryRows;
use crate::lowering::selection::Selector;
use crate::lowering::{self, Options};
use crate::machine::Machine;
use crate::program::{Program, RegionKind};
use crate::replay::{ReplayError, ReplayFunction, ReplayOptions, Replayed, SetupCache, replay};
use crate::schedule::Schedule;
use crate::scheduling::Effort;
use crate::timing::{TimingModel, TimingReport, simulate};
use crate::timing_of_machine::{instruction_timings, trace_event};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::Kernel;
use kgen_ir::source::Source;

/// What shapes the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishOptions {
    /// How hard to look for a good order.
    pub effort: Effort,
    /// How constants are addressed.
    pub pool: PoolAddressing,
    /// Copies of the kernel in its function.
    pub interleave: u32,
    /// How much to replay.
    pub replay: ReplayOptions,
}

/// Why a kernel cannot be finished.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FinishError {
    /// The machine cannot do what the kernel asks for.
    #[error("{}", .0.first().map_or("refused", |diagnostic| diagnostic.message.as_str()))]
    Refused(Vec<Diagnostic>),
    /// It does not fit the registers.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The products do not fit together.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// The printed text is not what was meant: a defect of kgen or of the target file.
    #[error("`{function}`: the assembly text reads back differently: {reason}")]
    ReadBack {
        /// The function.
        function: String,
        /// How.
        reason: String,
    },
    /// A rule is broken: a defect of kgen.
    #[error("`{function}` was refused by the checker: {}", first_violations(violations))]
    Check {
        /// The function.
        function: String,
        /// What.
        violations: Vec<Violation>,
    },
    /// The code computes something else: a defect of kgen or of the target file.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The target's timing parameters cannot be used.
    #[error("timing model of `{target}`: {}", reasons.join("; "))]
    Timing {
        /// The target.
        target: String,
        /// Why.
        reasons: Vec<String>,
    },
}

/// One mistake breaks many rules: the first few say where to look.
fn first_violations(violations: &[Violation]) -> String {
    const SHOWN: usize = 3;
    let mut texts: Vec<String> = violations.iter().take(SHOWN).map(ToString::to_string).collect();
    if violations.len() > SHOWN {
        texts.push(format!("and {} more", violations.len() - SHOWN));
    }
    texts.join("; ")
}

struct Stage {
    role: FunctionRole,
    program: Program,
    schedule: Schedule,
    /// What machines with assembly have besides.
    built: Option<BuiltCode>,
    copies: u32,
}

struct BuiltCode {
    allocation: Allocation,
    report: BuildReport,
    code: Code,
}

/// Finishes a kernel: its own function first.
///
/// # Errors
/// See [`FinishError`].
pub fn finish(
    machine: &Machine,
    kernel: &Kernel,
    options: FinishOptions,
    cache: &mut SetupCache,
) -> Result<Vec<FinishedFunction>, FinishError> {
    let selector = Selector::new(machine);
    let memory_rows = MemoryRows::of(&selector);
    let lowering_options = Options { pool_addressing: options.pool };
    let programs = lowering::lower_selected(kernel, &selector, &memory_rows, &lowering_options)
        .map_err(|diagnostic| FinishError::Refused(vec![*diagnostic]))?;
    let mut stages = Vec::with_capacity(programs.len());
    for (role, program) in programs {
        // Only the kernel itself is worth a search.
        let (effort, copies) = if role == FunctionRole::Kernel { (options.effort, options.interleave) } else { (Effort::List, 1) };
        stages.push(if machine.has_assembly() {
            stage(machine, role, &program, effort, copies)?
        } else {
            written_order(machine, role, &program, copies)?
        });
    }
    let functions: Vec<ReplayFunction<'_>> = stages
        .iter()
        .map(|stage| ReplayFunction {
            role: stage.role,
            program: &stage.program,
            code: stage.built.as_ref().map(|built| &built.code),
            copies: stage.copies,
        })
        .collect();
    let replayed = replay(machine, kernel, &functions, options.replay, cache)?;
    let model = if machine.parameters.is_empty() {
        None
    } else {
        Some(TimingModel::from_machine(machine).map_err(|reasons| FinishError::Timing { target: machine.name.clone(), reasons })?)
    };
    stages.into_iter().enumerate().map(|(index, stage)| finished(machine, model.as_ref(), stage, &replayed, index)).collect()
}

fn stage(machine: &Machine, role: FunctionRole, program: &Program, effort: Effort, copies: u32) -> Result<Stage, FinishError> {
    let built = driver::build_copies(program, machine, copies, DriverOptions { effort, ..DriverOptions::default() })?;
    let code = assemble(&built.program, machine, &built.schedule, &built.allocation, &read_frame_line)?;
    let code = read_back(machine, &built.program.name, code)?;
    let products = Products {
        machine,
        program: &built.program,
        schedule: &built.schedule,
        allocation: &built.allocation,
        code: &code,
        secret_addresses: SecretAddresses::Refused,
    };
    check::check(products).map_err(|violations| FinishError::Check { function: built.program.name.clone(), violations })?;
    let driver::Built { program, schedule, allocation, report } = built;
    Ok(Stage { role, program, schedule, built: Some(BuiltCode { allocation, report, code }), copies })
}

/// A stage of a machine without assembly: its compiler schedules and allocates, so the program stays as it was written.
fn written_order(machine: &Machine, role: FunctionRole, program: &Program, copies: u32) -> Result<Stage, FinishError> {
    // The order of the copies is the compiler's affair.
    let program = match copies {
        1 => program.clone(),
        copies => interleave(program, machine, copies, Arrangement::AfterEachOther).map_err(DriverError::from)?,
    };
    let schedule = Schedule::in_program_order(&program);
    check::check_program(machine, &program, &schedule, SecretAddresses::Refused)
        .map_err(|violations| FinishError::Check { function: program.name.clone(), violations })?;
    Ok(Stage { role, program, schedule, built: None, copies })
}

fn read_frame_line(machine: &Machine, line: &str) -> Result<Vec<CodeInstruction>, String> {
    let source = Source { name: "frame".to_owned(), text: line.to_owned() };
    assembly::parse(machine, &source)
        .map(|code| code.instructions)
        .map_err(|errors| errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; "))
}

/// The code as its text says it: what is checked and replayed is what a user's assembler will read.
fn read_back(machine: &Machine, function: &str, code: Code) -> Result<Code, FinishError> {
    let wrong = |reason: String| FinishError::ReadBack { function: function.to_owned(), reason };
    let text = assembly::print(machine, &code).map_err(|misfit| wrong(misfit.to_string()))?;
    let source = Source { name: format!("{function}.s"), text };
    let mut read = assembly::parse(machine, &source).map_err(|errors| {
        wrong(
            errors
                .into_iter()
                .map(|error| format!("{} in `{}`", error.message, &source.text[error.span.range()]))
                .collect::<Vec<_>>()
                .join("; "),
        )
    })?;
    if read.instructions.len() != code.instructions.len() {
        return Err(wrong(format!("{} instructions instead of {}", read.instructions.len(), code.instructions.len())));
    }
    for (index, (meant, read)) in code.instructions.iter().zip(&mut read.instructions).enumerate() {
        if meant.row != read.row || meant.operands != read.operands {
            return Err(wrong(format!("instruction {index}: {read:?} instead of {meant:?}")));
        }
        read.comment.clone_from(&meant.comment);
        read.span = meant.span;
    }
    Ok(read)
}

fn finished(
    machine: &Machine,
    model: Option<&TimingModel>,
    stage: Stage,
    replayed: &Replayed,
    index: usize,
) -> Result<FinishedFunction, FinishError> {
    let Stage { role, program, schedule, built, .. } = stage;
    let evidence = Evidence { replayed_inputs: replayed.inputs };
    let pool_bytes = program.regions.iter().filter(|region| region.kind == RegionKind::Pool).filter_map(|region| region.bytes).sum();
    let Some(BuiltCode { allocation, report: build, code }) = built else {
        let performance = Performance { pool_bytes, guesses: machine.guesses.clone(), ..Performance::default() };
        return Ok(FinishedFunction { role, program, schedule, allocation: None, code: None, performance, evidence });
    };
    let runs = &replayed.runs[index];
    let begin = label(&code, &format!(".Lbody_{}", program.name));
    let end = label(&code, &format!(".Lend_{}", program.name));
    let time = |steps: &[Step], body_only: bool| -> Result<Option<TimingReport>, FinishError> {
        let Some(model) = model else { return Ok(None) };
        let fail = |reasons: Vec<String>| FinishError::Timing { target: machine.name.clone(), reasons };
        let timings = instruction_timings(machine, model, &code).map_err(|misfit| fail(vec![misfit.to_string()]))?;
        let inside = |step: &&Step| !body_only || (begin..end).contains(&(step.instruction as usize));
        let trace: Vec<_> = steps.iter().filter(inside).map(trace_event).collect();
        simulate(model, &timings, &trace, &mut ()).map(Some).map_err(fail)
    };
    // Setup and conversions run for long and have no cycle requirement: only kernels are simulated whole.
    let timed = |steps: &[Step]| role == FunctionRole::Kernel || steps.len() < TIMED_STEPS;
    let mut performance = Performance::default();
    if let Some(steps) = runs.first().filter(|steps| timed(steps)) {
        let body = time(steps, true)?;
        let call = time(steps, false)?;
        let second = match runs.get(1) {
            Some(steps) if program.loops.iter().any(|lap| lap.rounds.is_none()) => time(steps, true)?,
            _ => None,
        };
        performance.cycles = Cycles {
            body: body.as_ref().map(|report| report.cycles),
            call: call.as_ref().map(|report| report.cycles),
            per_iteration: second.zip(body.as_ref()).map(|(two, one)| two.cycles as f64 - one.cycles as f64),
        };
        if let Some(report) = body {
            performance.unit_operations =
                report.units.iter().filter(|unit| unit.instructions > 0).map(|unit| (unit.name.clone(), unit.instructions)).collect();
            performance.stalls = report.stalls.iter().map(|(reason, count)| (format!("{reason:?}"), count)).collect();
        }
    }
    performance.bounds.clone_from(&schedule.bounds);
    performance.binding = schedule.bounds.first().map(|bound| bound.name.clone());
    performance.registers = build.pressure.iter().map(|pressure| (pressure.file.clone(), pressure.most_live, pressure.available)).collect();
    performance.spills = build.spills;
    performance.rematerialized = build.rematerialized;
    performance.frame_bytes = allocation.frame_bytes;
    performance.code_bytes = code.instructions.iter().map(|instruction| u64::from(machine[instruction.row].code_bytes)).sum();
    performance.pool_bytes = pool_bytes;
    performance.guesses = guesses(machine, &code);
    Ok(FinishedFunction { role, program, schedule, allocation: Some(allocation), code: Some(code), performance, evidence })
}

/// Runs longer than this are not simulated.
const TIMED_STEPS: usize = 100_000;

fn label(code: &Code, name: &str) -> usize {
    code.labels.iter().find(|(label, _)| label == name).map_or(code.instructions.len(), |(_, place)| *place)
}

/// The guessed parameters of the machine's model, and the guessed rows that the code uses: the only source of what reports rest on.
fn guesses(machine: &Machine, code: &Code) -> Vec<String> {
    let mut list = machine.guesses.clone();
    let rows: std::collections::BTreeSet<_> = code.instructions.iter().map(|instruction| instruction.row).collect();
    list.extend(rows.into_iter().map(|row| &machine[row]).filter(|row| row.timing.guess).map(|row| format!("latency of {}", row.name)));
    list
}
