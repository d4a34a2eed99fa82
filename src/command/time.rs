//! `time`: assembly, ours or anybody's, executed by the meanings of its instructions and timed in the target's model.

use super::{REFUSED, USAGE, machine, print, read_source};
use crate::messages::Messages;
use crate::options::TimeArgs;
use kgen::call_text::{self, ArgumentText, BufferAccess};
use kgen::names;
use kgen_ir::bits::Bits;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::domains::memory::RegionMemory;
use kgen_ir::source::Source;
use kgen_schedulers::assembly;
use kgen_schedulers::call::widest_access_bytes;
use kgen_schedulers::code::Code;
use kgen_schedulers::execute::{Executor, Placement, Registers};
use kgen_schedulers::machine::Machine;
use kgen_schedulers::random::Words;
use kgen_schedulers::timing::{Occupancy, TimingModel, TimingReport, simulate};
use kgen_schedulers::timing_of_machine::{instruction_timings, trace_event};
use std::fmt::Write as _;
use std::ops::Range;

/// Buffers lie this far apart, so that code that runs past one meets nothing.
const BUFFER_STRIDE: u64 = 0x100_0000;
const FIRST_BUFFER: u64 = 0x4000_0000;
const STACK: u64 = 0x3800_0000;
const STACK_BYTES: u64 = 0x10_0000;
/// Above the stack pointer at entry: the caller's frame, whose header the callee may use.
const CALLER_BYTES: u64 = 64;
/// Buffers are filled from this.
const SEED: u64 = 1;

/// Why there is no time: a message about the text, or one about the command line.
enum Refusal {
    Text(Vec<Diagnostic>),
    Plain(u8, &'static str, String, Option<String>),
}

/// Executes and times one call.
pub fn time(messages: Messages, arguments: &TimeArgs) -> u8 {
    let machine = match machine(messages, &arguments.target) {
        Ok(machine) => machine,
        Err(code) => return code,
    };
    let Some(source) = read_source(messages, &arguments.file) else { return REFUSED };
    match timed(&machine, &source, arguments) {
        Ok((executed, report)) => print(&if arguments.json {
            json(&machine, &source, arguments, executed, &report)
        } else {
            human(&machine, &source, arguments, executed, &report)
        }),
        Err(Refusal::Text(errors)) => {
            messages.diagnostics(&source, &errors);
            REFUSED
        }
        Err(Refusal::Plain(code, rule, message, help)) => {
            messages.plain(rule, &message, help.as_deref());
            code
        }
    }
}

/// Instructions executed between the labels, and their time.
fn timed(machine: &Machine, source: &Source, arguments: &TimeArgs) -> Result<(u64, TimingReport), Refusal> {
    let call = call_text::parse(&arguments.call).map_err(|reason| Refusal::Plain(USAGE, "arguments", format!("--call: {reason}"), None))?;
    if machine.parameters.is_empty() {
        return Err(Refusal::Plain(USAGE, "no-timing", format!("target `{}` has no timing model", machine.name), None));
    }
    let model = TimingModel::from_machine(machine).map_err(|reasons| refused(machine, &reasons))?;
    let code = assembly::parse(machine, source).map_err(Refusal::Text)?;
    let mut labels = vec![call.function.as_str()];
    labels.extend(arguments.between.iter().flatten().map(String::as_str));
    if let Some(missing) = labels.iter().find(|label| code.label(label).is_none()) {
        let near = names::suggestion(missing, code.labels.iter().map(|(name, _)| name.as_str()));
        let help = near.map(|near| format!("did you mean `{near}`?"));
        return Err(Refusal::Plain(USAGE, "unknown-label", format!("`{}` has no label `{missing}`", source.name), help));
    }
    let (mut registers, mut memory) = set_up(machine, &call.arguments)?;
    let between = range(&code, arguments.between.as_deref())?;
    let placement = Placement { step_budget: arguments.steps, ..Placement::default() };
    let fault = |fault: kgen_schedulers::execute::Fault| {
        let message = format!("`{}` cannot be executed: {}", call.function, fault.reason);
        let diagnostic = Diagnostic::error("execution", fault.span.unwrap_or_default(), message);
        Refusal::Text(vec![if fault.span.is_some() { diagnostic.at("here") } else { diagnostic }])
    };
    let executor = Executor::new(machine, &code, placement).map_err(fault)?;
    let mut trace = Vec::new();
    let record = |step: kgen_schedulers::execute::Step| {
        if between.contains(&(step.instruction as usize)) {
            trace.push(trace_event(&step));
        }
    };
    executor.run(&call.function, &mut registers, &mut memory, record).map_err(fault)?;
    let timings = instruction_timings(machine, &model, &code).map_err(|misfit| refused(machine, &[misfit.to_string()]))?;
    let report = simulate(&model, &timings, &trace, &mut ()).map_err(|reasons| refused(machine, &reasons))?;
    Ok((trace.len() as u64, report))
}

fn refused(machine: &Machine, reasons: &[String]) -> Refusal {
    Refusal::Plain(REFUSED, "refused", format!("timing model of `{}`: {}", machine.name, reasons.join("; ")), None)
}

/// The instructions that stand between two labels; all without labels.
fn range(code: &Code, between: Option<&[String]>) -> Result<Range<usize>, Refusal> {
    let all = 0..code.instructions.len();
    let Some([from, to]) = between else { return Ok(all) };
    let range = code.label(from).unwrap_or(all.start)..code.label(to).unwrap_or(all.end);
    if range.is_empty() {
        let message = format!("no instruction stands between `{from}` and `{to}`");
        return Err(Refusal::Plain(USAGE, "unknown-label", message, Some("give the label that comes first in the text first".to_owned())));
    }
    Ok(range)
}

/// Registers and memory at the entry of the call.
fn set_up(machine: &Machine, arguments: &[ArgumentText]) -> Result<(Registers, RegionMemory), Refusal> {
    let usage = |message: String| Refusal::Plain(USAGE, "arguments", message, None);
    let abi = machine.abi.as_ref().ok_or_else(|| usage(format!("target `{}` has no calling convention", machine.name)))?;
    if arguments.len() > abi.arguments.len() {
        return Err(usage(format!("{} arguments, and {} argument registers", arguments.len(), abi.arguments.len())));
    }
    let width = machine[abi.integer_file].width_bits;
    let mut registers = Registers::new(machine);
    let mut memory = RegionMemory::default();
    memory.map_undefined(STACK, (STACK_BYTES + CALLER_BYTES) as usize);
    registers.set(abi.integer_file, abi.stack_pointer, Bits::from_u64(width, STACK + STACK_BYTES));
    let mut words = Words(SEED);
    for (index, (argument, register)) in arguments.iter().zip(&abi.arguments).enumerate() {
        let value = match *argument {
            ArgumentText::Number(value) => {
                let limit = 1i128 << width;
                if value >= limit || value < -(limit >> 1) {
                    return Err(usage(format!("{value} does not fit a register of {width} bits")));
                }
                value as u64
            }
            ArgumentText::Buffer { access, bytes, align_bytes } => {
                let address = FIRST_BUFFER + BUFFER_STRIDE * index as u64 + u64::from(align_bytes);
                // With the first and last aligned block: instructions that drop low address bits read them whole.
                let block = widest_access_bytes(machine);
                let first = address / block * block;
                let whole = (address - first + u64::from(bytes)).next_multiple_of(block) as usize;
                let mut filled = || words.by_ref().flat_map(u64::to_be_bytes).take(whole).collect::<Vec<u8>>();
                let mapped = match access {
                    BufferAccess::Out => memory.map_undefined(first, whole),
                    BufferAccess::In => memory.map(first, filled(), false),
                    BufferAccess::InOut => memory.map(first, filled(), true),
                };
                if !mapped {
                    return Err(usage(format!("argument {} cannot be placed in memory", index + 1)));
                }
                address
            }
        };
        registers.set(abi.integer_file, *register, Bits::from_u64(width, value));
    }
    Ok((registers, memory))
}

fn human(machine: &Machine, source: &Source, arguments: &TimeArgs, executed: u64, report: &TimingReport) -> String {
    let mut text = String::new();
    let mut line = |name: &str, said: String| {
        let _ = writeln!(text, "{name:<24}{said}");
    };
    line("call", format!("{} of {} on {}", arguments.call, source.name, machine.name));
    if let Some([from, to]) = arguments.between.as_deref() {
        line("between", format!("{from} and {to}"));
    }
    line("cycles (model)", report.cycles.to_string());
    line("instructions", format!("{executed} executed, {} retired, {} branches folded", report.retired, report.folded));
    line("mispredicted", report.mispredicted.to_string());
    for unit in report.units.iter().filter(|unit| unit.instructions > 0) {
        let share = share(unit.busy_cycles, report.cycles * u64::from(unit.copies));
        line(
            &format!("unit {}", unit.name),
            format!("{:>8} instructions, busy {:>8} cycles, {share}", unit.instructions, unit.busy_cycles),
        );
    }
    for (reason, count) in report.stalls.iter() {
        line("cycles lost", format!("{count:>8}  {reason:?}"));
    }
    for occupancy in report.queues.iter().chain(&report.renames) {
        let average = occupancy.average(report.cycles);
        line(&format!("in use {}", occupancy.name), format!("{average:>8.1} of {}, {} at most", occupancy.capacity, occupancy.peak));
    }
    text
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "no time".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}

fn json(machine: &Machine, source: &Source, arguments: &TimeArgs, executed: u64, report: &TimingReport) -> String {
    let occupancy = |list: &[Occupancy]| {
        let entry = |occupancy: &Occupancy| {
            serde_json::json!({
                "name": occupancy.name,
                "capacity": occupancy.capacity,
                "average": occupancy.average(report.cycles),
                "peak": occupancy.peak,
            })
        };
        list.iter().map(entry).collect::<Vec<_>>()
    };
    let stalls: Vec<_> =
        report.stalls.iter().map(|(reason, count)| serde_json::json!({ "reason": format!("{reason:?}"), "cycles": count })).collect();
    let value = serde_json::json!({
        "file": source.name,
        "target": machine.name,
        "call": arguments.call,
        "between": arguments.between,
        "cycles": report.cycles,
        "instructions": executed,
        "retired": report.retired,
        "folded": report.folded,
        "mispredicted": report.mispredicted,
        "units": report.units,
        "stalls": stalls,
        "queues": occupancy(&report.queues),
        "renames": occupancy(&report.renames),
    });
    format!("{value:#}\n")
}
