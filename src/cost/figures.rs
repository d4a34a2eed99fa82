//! The sum: every function that is called is compiled, and its model cycles, register saves included, are multiplied by its calls.

use super::description::{self, Description, Name};
use crate::compile::{self, CompileOptions};
use crate::names;
use crate::refusal::{self, Refusal};
use kgen_emitters::FinishedKernel;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::Unit;
use kgen_ir::source::Source;
use kgen_schedulers::machine::Machine;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What an operation costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Costs {
    /// Heading.
    pub title: String,
    /// What is counted, in the singular.
    pub operation: String,
    /// 0, 1 or 2.
    pub effort: u8,
    /// What the figures are: of a model, not measured.
    pub basis: &'static str,
    /// For each target.
    pub targets: Vec<TargetCosts>,
    /// Figures to compare with.
    pub published: Vec<PublishedFigure>,
    /// For each processor whose target is among them.
    pub processors: Vec<ProcessorFigures>,
}

/// The sum for one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetCosts {
    /// The target.
    pub target: String,
    /// The operation, all tasks on one core after each other.
    pub cycles: u64,
    /// The longest of the tasks that go on at the same time on so many cores, and what is outside of tasks.
    pub latency: Vec<Latency>,
    /// Each task.
    pub tasks: Vec<TaskCycles>,
    /// Before and after the tasks.
    pub cycles_outside_tasks: u64,
    /// What is counted.
    pub calls: Vec<CallCycles>,
    /// What is not.
    pub listed: Vec<ListedCycles>,
    /// Functions called.
    pub functions: Vec<FunctionCycles>,
    /// Model figures that are guesses.
    pub guesses: Vec<String>,
}

/// Cycles from the first instruction to the last on so many cores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Cores.
    pub cores: u32,
    /// Cycles.
    pub cycles: u64,
}

/// A task's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskCycles {
    /// Its name.
    pub task: String,
    /// Its cycles.
    pub cycles: u64,
}

/// A line of counted calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallCycles {
    /// The function.
    pub function: String,
    /// The count of its loop.
    pub rounds: Option<u64>,
    /// Tasks that make these calls.
    pub tasks: Vec<String>,
    /// Calls in all, of all tasks.
    pub calls: u64,
    /// Of one call.
    pub cycles_per_call: u64,
    /// Of all calls.
    pub cycles: u64,
    /// What for.
    pub purpose: String,
}

/// A line that is not counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedCycles {
    /// The emitted function, or other work.
    pub name: String,
    /// Whether it is an emitted function.
    pub emitted: bool,
    /// The count of its loop.
    pub rounds: Option<u64>,
    /// Calls.
    pub calls: u64,
    /// Of one call, where it is simulated.
    pub cycles_per_call: Option<u64>,
    /// At what time.
    pub when: String,
    /// What for.
    pub purpose: String,
}

/// A function's cycles in the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionCycles {
    /// Its name.
    pub function: String,
    /// Without register saves; of a loop, with one round. None where it is not simulated.
    pub cycles_body: Option<u64>,
    /// The whole call.
    pub cycles_call: Option<u64>,
    /// What each further round adds.
    pub cycles_per_further_round: Option<f64>,
    /// Code.
    pub code_bytes: u64,
    /// Inputs on which it was replayed in this run.
    pub replayed_inputs: u32,
}

/// A figure to compare with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedFigure {
    /// Whose.
    pub what: String,
    /// Cycles.
    pub cycles: u64,
    /// How many times the first target's cycles that is.
    pub ratio: f64,
    /// From where.
    pub source: String,
}

/// A processor's figures in the model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessorFigures {
    /// Its name.
    pub name: String,
    /// The target whose model it follows.
    pub target: String,
    /// Cores.
    pub cores: u32,
    /// Clock.
    pub megahertz: f64,
    /// Power.
    pub watts: f64,
    /// Operations a second, every core with its own.
    pub per_second: f64,
    /// And for each watt.
    pub per_second_per_watt: f64,
    /// Milliseconds of one operation, its tasks on as many cores as there are.
    pub latency_milliseconds: f64,
    /// Operations a second, one after the other, each on all cores.
    pub per_second_one_at_a_time: f64,
    /// Operations a second that somebody published.
    pub published_per_second: Option<f64>,
    /// And for each watt.
    pub published_per_second_per_watt: Option<f64>,
    /// From where power and clock are.
    pub source: String,
}

/// A spec's text and what was made of it.
struct Spec {
    source: Arc<Source>,
    unit: Unit,
    options: CompileOptions,
}

/// Compiles what is called and sums.
///
/// # Errors
/// Everything that is wrong: specs, names of functions, rounds, targets without a timing model.
pub fn figures(
    description: &Description,
    source: &Arc<Source>,
    folder: &Path,
    machines: &[Machine],
    effort: u8,
) -> Result<Costs, Vec<Refusal>> {
    let mut refusals: Vec<Refusal> = machines
        .iter()
        .filter(|machine| machine.parameters.is_empty())
        .map(|machine| Refusal::plain("no-timing", format!("target `{}` has no timing model", machine.name), None))
        .collect();
    let specs: Vec<Spec> = description
        .specs
        .iter()
        .filter_map(|spec| spec_of(source, spec, folder, effort).map_err(|refusal| refusals.push(refusal)).ok())
        .collect();
    let about_file = |diagnostics| Refusal { source: Some(source.clone()), diagnostics, usage: false };
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let kernels = needed_kernels(description, &specs).map_err(|diagnostics| vec![about_file(diagnostics)])?;
    // A spec's kernels together: functions that differ only in name are finished once.
    let jobs: Vec<(usize, usize)> = (0..machines.len()).flat_map(|machine| (0..specs.len()).map(move |spec| (machine, spec))).collect();
    let finished: Vec<Result<Vec<FinishedKernel>, Refusal>> = jobs
        .par_iter()
        .map(|(machine, number)| {
            let spec = &specs[*number];
            let named: Vec<String> = kernels.iter().filter(|(of, _)| of == number).map(|(_, kernel)| kernel.clone()).collect();
            if named.is_empty() {
                return Ok(Vec::new());
            }
            let options = CompileOptions { kernels: named, ..spec.options.clone() };
            compile::kernels(&spec.unit, &machines[*machine], &options).map_err(|error| Refusal::of_spec(&spec.source, error))
        })
        .collect();
    let mut functions: Vec<BTreeMap<String, FunctionCycles>> = vec![BTreeMap::new(); machines.len()];
    let mut guesses: Vec<Vec<String>> = vec![Vec::new(); machines.len()];
    for ((machine, _), outcome) in jobs.iter().zip(finished) {
        match outcome {
            Ok(list) => {
                for function in list.iter().flat_map(|kernel| &kernel.functions) {
                    for guess in &function.performance.guesses {
                        if !guesses[*machine].contains(guess) {
                            guesses[*machine].push(guess.clone());
                        }
                    }
                    let cycles = FunctionCycles {
                        function: function.program.name.clone(),
                        cycles_body: function.performance.cycles.body,
                        cycles_call: function.performance.cycles.call,
                        cycles_per_further_round: function.performance.cycles.per_iteration,
                        code_bytes: function.performance.code_bytes,
                        replayed_inputs: function.evidence.replayed_inputs,
                    };
                    functions[*machine].insert(cycles.function.clone(), cycles);
                }
            }
            Err(refusal) => refusals.push(refusal),
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let mut targets = Vec::new();
    let mut wrong: Vec<Diagnostic> = Vec::new();
    for ((machine, functions), guesses) in machines.iter().zip(&functions).zip(guesses) {
        let cores: BTreeSet<u32> = std::iter::once(1).chain(description.processors.iter().map(|processor| processor.cores)).collect();
        match sum(description, &machine.name, functions, guesses, &cores) {
            Ok(costs) => targets.push(costs),
            // The same for every target.
            Err(diagnostics) => wrong.extend(diagnostics.into_iter().filter(|new| !wrong.contains(new)).collect::<Vec<_>>()),
        }
    }
    if !wrong.is_empty() {
        return Err(vec![about_file(wrong)]);
    }
    Ok(compared(description, effort, targets))
}

fn spec_of(source: &Arc<Source>, spec: &description::Spec, folder: &Path, effort: u8) -> Result<Spec, Refusal> {
    let text = refusal::read(&folder.join(spec.file.get_ref())).map_err(|refusal| {
        let message = refusal.diagnostics.first().map_or(String::new(), |diagnostic| diagnostic.message.clone());
        let diagnostic = Diagnostic::error("cost-file", description::place(&spec.file), message);
        Refusal { source: Some(source.clone()), diagnostics: vec![diagnostic.help("paths are relative to this file")], usage: false }
    })?;
    let parameters: Vec<(String, u64)> = spec.parameters.iter().map(|(name, value)| (name.clone(), *value)).collect();
    let (unit, _) = compile::unit(&text, &parameters).map_err(|error| Refusal::of_spec(&text, error))?;
    let options = CompileOptions { parameters, effort, ..CompileOptions::default() };
    Ok(Spec { source: text, unit, options })
}

/// The functions named, each once.
fn named(description: &Description) -> impl Iterator<Item = &Name> {
    let listed = description.listed.iter().filter_map(|listed| listed.function.as_ref());
    description.calls.iter().map(|call| &call.function).chain(listed)
}

/// The kernels whose functions are called: number of the spec, and name.
fn needed_kernels(description: &Description, specs: &[Spec]) -> Result<BTreeSet<(usize, String)>, Vec<Diagnostic>> {
    let known: Vec<(usize, &str)> = specs
        .iter()
        .enumerate()
        .flat_map(|(number, spec)| spec.unit.kernels.iter().map(move |kernel| (number, kernel.name.as_str())))
        .collect();
    let mut needed = BTreeSet::new();
    let mut wrong = Vec::new();
    for name in named(description) {
        // A kernel's other functions are called by its name and what they do: the longest kernel's name is meant.
        let belongs = |kernel: &str| name.get_ref().strip_prefix(kernel).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        match known.iter().filter(|(_, kernel)| belongs(kernel)).max_by_key(|(_, kernel)| kernel.len()) {
            Some((number, kernel)) => {
                needed.insert((*number, (*kernel).to_owned()));
            }
            None => wrong.push(unknown(name, known.iter().map(|(_, kernel)| *kernel))),
        }
    }
    if wrong.is_empty() { Ok(needed) } else { Err(wrong) }
}

fn unknown<'a>(name: &Name, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    let message = format!("the specs' kernels have no function `{}`", name.get_ref());
    let help = match names::suggestion(name.get_ref(), known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("they have {}", known.join(", ")),
    };
    Diagnostic::error("unknown-function", description::place(name), message).help(help)
}

/// Cycles of one call with so many rounds; none where the function is not simulated.
fn cycles_of(function: &FunctionCycles, name: &Name, rounds: Option<u64>) -> Result<Option<u64>, Diagnostic> {
    let refuse = |message: String, help: &str| Err(Diagnostic::error("rounds", description::place(name), message).help(help));
    match (function.cycles_per_further_round, rounds) {
        (None, Some(_)) => refuse(format!("`{}` has no loop with a run-time count", function.function), "take `rounds` away"),
        (Some(_), None) => refuse(format!("`{}` has a loop with a run-time count", function.function), "give `rounds = …`"),
        (None, None) => Ok(function.cycles_call),
        // Differences of whole cycles.
        (Some(further), Some(rounds)) => {
            Ok(function.cycles_call.map(|first| first + (further * (rounds - 1) as f64).round().max(0.0) as u64))
        }
    }
}

fn sum(
    description: &Description,
    target: &str,
    functions: &BTreeMap<String, FunctionCycles>,
    guesses: Vec<String>,
    cores: &BTreeSet<u32>,
) -> Result<TargetCosts, Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    let mut cycles_of_call = |name: &Name, rounds: Option<u64>| match functions.get(name.get_ref()) {
        None => {
            wrong.push(unknown(name, functions.keys().map(String::as_str)));
            None
        }
        Some(function) => cycles_of(function, name, rounds).map_err(|diagnostic| wrong.push(diagnostic)).ok(),
    };
    let mut calls = Vec::new();
    let mut not_simulated = Vec::new();
    for call in &description.calls {
        let Some(each) = cycles_of_call(&call.function, call.rounds) else { continue };
        let Some(cycles_per_call) = each else {
            let message = format!("`{}` is not simulated: it runs for too long, and cannot be counted", call.function.get_ref());
            not_simulated.push(Diagnostic::error("no-timing", description::place(&call.function), message).help("list it"));
            continue;
        };
        let count = call.times * call.tasks.len().max(1) as u64;
        calls.push(CallCycles {
            function: call.function.get_ref().clone(),
            rounds: call.rounds,
            tasks: call.tasks.clone(),
            calls: count,
            cycles_per_call,
            cycles: cycles_per_call.saturating_mul(count),
            purpose: call.purpose.clone(),
        });
    }
    let listed = description
        .listed
        .iter()
        .map(|listed| ListedCycles {
            name: listed.function.as_ref().or(listed.work.as_ref()).map_or(String::new(), |name| name.get_ref().clone()),
            emitted: listed.function.is_some(),
            rounds: listed.rounds,
            calls: listed.times,
            cycles_per_call: listed.function.as_ref().and_then(|name| cycles_of_call(name, listed.rounds)).flatten(),
            when: listed.when.clone(),
            purpose: listed.purpose.clone(),
        })
        .collect();
    wrong.extend(not_simulated);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut tasks: Vec<TaskCycles> = Vec::new();
    let mut outside = 0u64;
    for call in &calls {
        for task in &call.tasks {
            let share = call.cycles / call.tasks.len() as u64;
            match tasks.iter_mut().find(|known| known.task == *task) {
                Some(known) => known.cycles += share,
                None => tasks.push(TaskCycles { task: task.clone(), cycles: share }),
            }
        }
        if call.tasks.is_empty() {
            outside += call.cycles;
        }
    }
    let called: BTreeSet<&String> = named(description).map(|name| name.get_ref()).collect();
    Ok(TargetCosts {
        target: target.to_owned(),
        cycles: calls.iter().map(|call| call.cycles).sum(),
        latency: cores.iter().map(|cores| Latency { cores: *cores, cycles: outside + longest_core(&tasks, *cores) }).collect(),
        tasks,
        cycles_outside_tasks: outside,
        calls,
        listed,
        functions: functions.values().filter(|function| called.contains(&function.function)).cloned().collect(),
        guesses,
    })
}

/// Cycles of the core that works longest, where the longest task that is left goes to the core with the least work: best for as many cores as tasks, and never worse
/// than 4/3 of the best (Graham 1969).
fn longest_core(tasks: &[TaskCycles], cores: u32) -> u64 {
    let mut left: Vec<u64> = tasks.iter().map(|task| task.cycles).collect();
    left.sort_unstable_by(|a, b| b.cmp(a));
    let mut work = vec![0u64; (cores as usize).min(left.len()).max(1)];
    for cycles in left {
        if let Some(least) = work.iter_mut().min() {
            *least += cycles;
        }
    }
    work.into_iter().max().unwrap_or(0)
}

/// Beside what is published, and on processors.
fn compared(description: &Description, effort: u8, targets: Vec<TargetCosts>) -> Costs {
    let first = targets.first().map_or(0, |target| target.cycles);
    let published = description
        .published
        .iter()
        .map(|published| PublishedFigure {
            what: published.what.clone(),
            cycles: published.cycles,
            ratio: published.cycles as f64 / first.max(1) as f64,
            source: published.source.clone(),
        })
        .collect();
    let processors = description
        .processors
        .iter()
        .filter_map(|processor| {
            let costs = targets.iter().find(|costs| costs.target == *processor.target.get_ref())?;
            let latency = costs.latency.iter().find(|latency| latency.cores == processor.cores)?;
            let hertz = processor.megahertz * 1e6;
            let per_second = f64::from(processor.cores) * hertz / costs.cycles.max(1) as f64;
            Some(ProcessorFigures {
                name: processor.name.clone(),
                target: costs.target.clone(),
                cores: processor.cores,
                megahertz: processor.megahertz,
                watts: processor.watts,
                per_second,
                per_second_per_watt: per_second / processor.watts,
                latency_milliseconds: latency.cycles as f64 / hertz * 1e3,
                per_second_one_at_a_time: hertz / latency.cycles.max(1) as f64,
                published_per_second: processor.published_per_second,
                published_per_second_per_watt: processor.published_per_second.map(|published| published / processor.watts),
                source: processor.source.clone(),
            })
        })
        .collect();
    Costs {
        title: description.title.clone(),
        operation: description.operation.clone(),
        effort,
        basis: BASIS,
        targets,
        published,
        processors,
    }
}

/// What the figures are.
const BASIS: &str =
    "cycles of the timing model, no silicon: whole calls with register saves, pipeline empty at entry, caches and branch predictors warm";

#[cfg(test)]
mod tests {
    use super::{TaskCycles, longest_core};

    #[test]
    fn tasks_go_to_the_core_with_the_least_work() {
        let tasks = |cycles: &[u64]| -> Vec<TaskCycles> {
            cycles.iter().enumerate().map(|(number, cycles)| TaskCycles { task: number.to_string(), cycles: *cycles }).collect()
        };
        assert_eq!(longest_core(&tasks(&[]), 2), 0);
        assert_eq!(longest_core(&tasks(&[5, 7]), 1), 12);
        assert_eq!(longest_core(&tasks(&[5, 7]), 2), 7);
        assert_eq!(longest_core(&tasks(&[5, 7]), 1000), 7);
        assert_eq!(longest_core(&tasks(&[2, 3, 4]), 2), 5);
    }
}
