//! The road of one kernel: lower, build, assemble, print and read back, check, replay, time. Nothing leaves here that `check` or `replay` refused.

use crate::allocation::Allocation;
use crate::assemble::{AssembleError, assemble};
use crate::assembly::{self, AssemblyReader};
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
use crate::replay::{ReplayError, ReplayFunction, ReplayOptions, Replayed, SetupCache, replay, replay_conversion};
use crate::schedule::Schedule;
use crate::scheduling::Effort;
use crate::timing::{TimingModel, TimingReport, simulate};
use crate::timing_of_machine::{instruction_timings, trace_event};
use crate::twins;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::Kernel;
use rayon::prelude::*;
use std::sync::Arc;

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

/// A function scheduled and allocated. It passed `check`.
#[derive(Clone)]
struct Stage {
    role: FunctionRole,
    program: Program,
    schedule: Schedule,
    /// What machines with assembly have besides.
    built: Option<BuiltCode>,
    copies: u32,
}

#[derive(Clone)]
struct BuiltCode {
    allocation: Allocation,
    report: BuildReport,
    code: Code,
}

/// A function to build: once for all kernels that have it.
struct Job {
    role: FunctionRole,
    program: Program,
    /// The first kernel that has it.
    kernel: usize,
}

/// Finishes a kernel: its own function first.
///
/// # Errors
/// See [`FinishError`].
pub fn finish(machine: &Machine, kernel: &Kernel, options: FinishOptions) -> Result<Vec<FinishedFunction>, FinishError> {
    finish_all(machine, &[kernel], options).pop().unwrap_or_else(|| Err(FinishError::Refused(Vec::new())))
}

/// Finishes several kernels, on all cores; functions that they have in common but for the name are built, checked and replayed once. Results are in the order of the kernels.
pub fn finish_all(machine: &Machine, kernels: &[&Kernel], options: FinishOptions) -> Vec<Result<Vec<FinishedFunction>, FinishError>> {
    let (jobs, wanted) = jobs(machine, kernels, options);
    let reader = AssemblyReader::new(machine);
    let stages: Vec<Result<Stage, FinishError>> = jobs
        .par_iter()
        .map(|job| {
            // Only the kernel itself is worth much time.
            // Setup runs once for many calls; conversions run once for an operation.
            let (effort, copies) = match job.role {
                FunctionRole::Kernel => (options.effort, options.interleave),
                FunctionRole::Setup => (Effort::Draft, 1),
                _ => (Effort::List, 1),
            };
            if machine.has_assembly() {
                stage(machine, &reader, job.role, &job.program, effort, copies)
            } else {
                written_order(machine, job.role, &job.program, copies)
            }
        })
        .collect();
    let model = if machine.parameters.is_empty() {
        Ok(None)
    } else {
        let fail = |reasons| FinishError::Timing { target: machine.name.clone(), reasons };
        TimingModel::from_machine(machine).map(Some).map_err(fail)
    };
    let cache = SetupCache::default();
    let conversions: Vec<Result<Runs, FinishError>> = jobs
        .par_iter()
        .zip(&stages)
        .map(|(job, stage)| match (job.role, stage) {
            (FunctionRole::Import | FunctionRole::Export, Ok(stage)) => {
                Ok(replay_conversion(machine, replay_function(stage), options.replay.inputs)?)
            }
            _ => Ok(Runs::new()),
        })
        .collect();
    let replays: Vec<Result<Replayed, FinishError>> = kernels
        .par_iter()
        .zip(&wanted)
        .map(|(kernel, wanted)| {
            let functions = wanted.as_ref().map_err(Clone::clone)?.iter().map(|function| function.job);
            let functions = functions.map(|job| Ok(replay_function(stages[job].as_ref()?))).collect::<Result<Vec<_>, &FinishError>>();
            Ok(replay(machine, kernel, &functions.map_err(Clone::clone)?, options.replay, &cache)?)
        })
        .collect();
    let performances: Vec<Result<Performance, FinishError>> = jobs
        .par_iter()
        .enumerate()
        .map(|(index, job)| {
            let stage = stages[index].as_ref().map_err(Clone::clone)?;
            let model = model.as_ref().map_err(Clone::clone)?;
            let runs = match job.role {
                FunctionRole::Import | FunctionRole::Export => conversions[index].as_ref().map_err(Clone::clone)?,
                FunctionRole::Kernel | FunctionRole::Setup => {
                    let replayed = replays[job.kernel].as_ref().map_err(Clone::clone)?;
                    let place = wanted[job.kernel].as_ref().ok().and_then(|functions| functions.iter().position(|f| f.job == index));
                    match place.and_then(|place| replayed.runs.get(place)) {
                        Some(runs) => runs,
                        None => &Runs::new(),
                    }
                }
            };
            performance(machine, model.as_ref(), stage, runs, options.effort)
        })
        .collect();
    let finished = |function: &Wanted, inputs: u32| -> Result<FinishedFunction, FinishError> {
        let Stage { role, program, schedule, built, .. } = stages[function.job].clone()?;
        let performance = performances[function.job].clone()?;
        let evidence = Evidence { replayed_inputs: inputs };
        let (program, built) = match &function.twin {
            Some(twin) => under_name_of(machine, &reader, program, &schedule, built, twin)?,
            None => (program, built),
        };
        let (allocation, code) = built.map(|built| (built.allocation, built.code)).unzip();
        Ok(FinishedFunction { role, program, schedule, allocation, code, performance, evidence })
    };
    wanted
        .par_iter()
        .zip(replays.par_iter())
        .map(|(wanted, replayed)| {
            let functions = wanted.as_ref().map_err(Clone::clone)?;
            // A function that was refused says more than what could not be replayed for it.
            for function in functions {
                stages[function.job].as_ref().map_err(Clone::clone)?;
                conversions[function.job].as_ref().map_err(Clone::clone)?;
            }
            let inputs = replayed.as_ref().map_err(Clone::clone)?.inputs;
            functions.iter().map(|function| finished(function, inputs)).collect()
        })
        .collect()
}

/// Steps of runs of a function.
type Runs = Vec<Arc<[Step]>>;

/// A function of a kernel.
struct Wanted {
    job: usize,
    /// The kernel's own program, where the job has an equal one of another name.
    twin: Option<Program>,
}

/// Lowers the kernels: the functions to build, and for each kernel which of them it has.
fn jobs(machine: &Machine, kernels: &[&Kernel], options: FinishOptions) -> (Vec<Job>, Vec<Result<Vec<Wanted>, FinishError>>) {
    let selector = Selector::new(machine);
    let memory_rows = MemoryRows::of(&selector);
    let lowering_options = Options { pool_addressing: options.pool };
    let mut jobs: Vec<Job> = Vec::new();
    let mut wanted = Vec::with_capacity(kernels.len());
    for (number, kernel) in kernels.iter().enumerate() {
        let programs = lowering::lower_selected(kernel, &selector, &memory_rows, &lowering_options);
        wanted.push(programs.map_err(|diagnostic| FinishError::Refused(vec![*diagnostic])).map(|programs| {
            let mut functions = Vec::with_capacity(programs.len());
            for (role, program) in programs {
                let serves = role != FunctionRole::Kernel;
                match jobs.iter().position(|job| serves && job.role == role && twins::are_twins(&job.program, &program)) {
                    Some(job) => functions.push(Wanted { job, twin: Some(program) }),
                    None => {
                        functions.push(Wanted { job: jobs.len(), twin: None });
                        jobs.push(Job { role, program, kernel: number });
                    }
                }
            }
            functions
        }));
    }
    (jobs, wanted)
}

fn replay_function(stage: &Stage) -> ReplayFunction<'_> {
    ReplayFunction { role: stage.role, program: &stage.program, code: stage.built.as_ref().map(|built| &built.code), copies: stage.copies }
}

fn stage(
    machine: &Machine,
    reader: &AssemblyReader<'_>,
    role: FunctionRole,
    program: &Program,
    effort: Effort,
    copies: u32,
) -> Result<Stage, FinishError> {
    let built = driver::build_copies(program, machine, copies, DriverOptions { effort, ..DriverOptions::default() })?;
    let code = assemble(&built.program, machine, &built.schedule, &built.allocation, &|_, line| read_frame_line(reader, line))?;
    let code = read_back(machine, reader, &built.program.name, code)?;
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

/// A checked and replayed function under the name of its twin: assembled again, and equal but for the name.
fn under_name_of(
    machine: &Machine,
    reader: &AssemblyReader<'_>,
    program: Program,
    schedule: &Schedule,
    built: Option<BuiltCode>,
    twin: &Program,
) -> Result<(Program, Option<BuiltCode>), FinishError> {
    let named = twins::renamed(&program, twin);
    let Some(mut built) = built else { return Ok((named, None)) };
    let code = assemble(&named, machine, schedule, &built.allocation, &|_, line| read_frame_line(reader, line))?;
    let code = read_back(machine, reader, &named.name, code)?;
    if !twins::same_code((&built.code, &program.name), (&code, &named.name)) {
        let reason = format!("it is not that of `{}` under another name", program.name);
        return Err(FinishError::ReadBack { function: named.name, reason });
    }
    built.code = code;
    Ok((named, Some(built)))
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

fn read_frame_line(reader: &AssemblyReader<'_>, line: &str) -> Result<Vec<CodeInstruction>, String> {
    let code = reader.code(line).map(|code| code.instructions);
    code.map_err(|errors| errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; "))
}

/// The code as its text says it: what is checked and replayed is what a user's assembler will read.
fn read_back(machine: &Machine, reader: &AssemblyReader<'_>, function: &str, code: Code) -> Result<Code, FinishError> {
    let wrong = |reason: String| FinishError::ReadBack { function: function.to_owned(), reason };
    let text = assembly::print(machine, &code).map_err(|misfit| wrong(misfit.to_string()))?;
    let mut read = reader.code(&text).map_err(|errors| {
        wrong(
            errors
                .into_iter()
                .map(|error| format!("{} in `{}`", error.message, text.get(error.span.range()).unwrap_or_default()))
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

fn performance(
    machine: &Machine,
    model: Option<&TimingModel>,
    stage: &Stage,
    runs: &[Arc<[Step]>],
    effort: Effort,
) -> Result<Performance, FinishError> {
    let Stage { role, program, schedule, built, .. } = stage;
    let pool_bytes = program.regions.iter().filter(|region| region.kind == RegionKind::Pool).filter_map(|region| region.bytes).sum();
    let Some(BuiltCode { allocation, report: build, code }) = built else {
        return Ok(Performance { pool_bytes, guesses: machine.guesses.clone(), ..Performance::default() });
    };
    let begin = label(code, &format!(".Lbody_{}", program.name));
    let end = label(code, &format!(".Lend_{}", program.name));
    let time = |steps: &[Step], body_only: bool| -> Result<Option<TimingReport>, FinishError> {
        let Some(model) = model else { return Ok(None) };
        let fail = |reasons: Vec<String>| FinishError::Timing { target: machine.name.clone(), reasons };
        let timings = instruction_timings(machine, model, code).map_err(|misfit| fail(vec![misfit.to_string()]))?;
        let inside = |step: &&Step| !body_only || (begin..end).contains(&(step.instruction as usize));
        let trace: Vec<_> = steps.iter().filter(inside).map(trace_event).collect();
        simulate(model, &timings, &trace, &mut ()).map(Some).map_err(fail)
    };
    // Setup and conversions run for long and have no cycle requirement: only kernels are simulated whole whatever it takes.
    let most_steps = if effort > Effort::List { MOST_TIMED_STEPS } else { MOST_TIMED_STEPS_IN_HASTE };
    let timed = |steps: &[Step]| *role == FunctionRole::Kernel || steps.len() < most_steps;
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
    performance.guesses = guesses(machine, code);
    Ok(performance)
}

/// Runs of setup functions and conversions longer than this are not simulated.
const MOST_TIMED_STEPS: usize = 1_000_000;
/// … where the effort is the least.
const MOST_TIMED_STEPS_IN_HASTE: usize = 20_000;

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
