//! Random kernels over the whole language as assembly, all in one process of the emulated processor: every written parameter is what the interpreter says, on
//! inputs with edges, with all saved registers poisoned and nothing beside the results written.

use kgen::compile::{self, CompileOptions};
use kgen_ir::interpret::{Argument, Interpretation, interpret};
use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::random_kernels::{Random, argument_bytes, random_arguments, random_kernel};
use kgen_ir::source::Source;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{Program, ProgramParameterKind};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[path = "../schedulers/tests/tools/mod.rs"]
mod tools;

const POISONED_CALL: &str = include_str!("emulated/poisoned_call.S");
const DRIVER: &str = include_str!("emulated/driver.c");

/// How many kernels.
const KERNELS: u64 = 200;
/// Inputs for each.
const INPUTS: u64 = 4;

/// A kernel's assembly and the C function that calls it.
struct Case {
    seed: u64,
    assembly: String,
    calls: String,
}

fn literal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("\""), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02x}");
        text
    }) + "\""
}

/// The C statements that call the function on one input and compare what it writes.
fn call(kernel: &Kernel, machine: &Machine, program: &Program, random: &mut Random) -> String {
    let arguments = random_arguments(kernel, random).expect("random kernels take bits");
    let expected = interpret(kernel, &arguments, &Interpretation::default()).unwrap_or_else(|fault| panic!("{}: {fault}", kernel.name));
    let mut given = arguments.iter();
    let values: Vec<Option<&Argument>> =
        kernel.parameters.iter().map(|parameter| if parameter.is_input() { given.next() } else { None }).collect();
    let mut results = expected.iter();
    let results: Vec<Option<&Argument>> =
        kernel.parameters.iter().map(|parameter| if parameter.direction == Direction::In { None } else { results.next() }).collect();
    let bytes = |index: usize, argument: &Argument| {
        argument_bytes(&kernel.parameters[index].ty, argument, machine.byte_order).expect("an argument of its type")
    };
    let (mut text, mut passed, mut written, mut checks) = (String::new(), Vec::new(), 0u32, String::new());
    for (slot, declared) in program.parameters.iter().enumerate() {
        let index = kernel.parameters.iter().position(|parameter| parameter.name == declared.name);
        match (&declared.kind, index) {
            (ProgramParameterKind::Scalar { .. }, Some(index)) => {
                let Some(Argument::Bits(bits)) = values[index] else { panic!("{} is a scalar", declared.name) };
                passed.push(format!("{}u", bits.to_u64().expect("a scalar in a register")));
            }
            (ProgramParameterKind::Scalar { .. }, None) => {
                let slice = declared.name.strip_suffix("_count").expect("the count of a slice");
                let place = kernel.parameters.iter().position(|parameter| parameter.name == slice).expect("the slice");
                let Some(Argument::List(list)) = values[place] else { panic!("{slice} is a slice") };
                passed.push(list.len().to_string());
            }
            (ProgramParameterKind::Pointer { region, .. }, Some(index)) => {
                let contents = values[index].map(|value| bytes(index, value));
                let size = contents.as_ref().map_or(program.regions[region.0 as usize].bytes.unwrap_or(0), |bytes| bytes.len() as u64);
                let align = kernel.parameters[index].align_bytes;
                let contents = contents.map_or("0".to_owned(), |bytes| literal(&bytes));
                let _ = writeln!(text, "    place({slot}, {size}, {align}, {contents});");
                passed.push(format!("at({slot})"));
                if let Some(result) = results[index] {
                    written |= 1 << slot;
                    let value = literal(&bytes(index, result));
                    let _ = writeln!(checks, "    expect(\"{} of {}\", {slot}, {value}, {value});", declared.name, kernel.name);
                }
            }
            (ProgramParameterKind::Pointer { .. }, None) => panic!("{} is no parameter of the kernel", declared.name),
        }
    }
    let list = passed.join(", ");
    let _ = writeln!(text, "    call_writing(\"{0}\", (void *){0}, {written}u, (const uint32_t[8]){{{list}}});", kernel.name);
    text + &checks
}

fn case(seed: u64, machine: &Machine) -> Result<Case, String> {
    let text = random_kernel(seed);
    let refused = |reason: String| format!("seed {seed}: {reason}\n{text}");
    let source = Arc::new(Source { name: format!("random_{seed}.ir"), text: text.clone() });
    let options = CompileOptions::default();
    let (unit, _) = compile::unit(&source, &[]).map_err(|error| refused(format!("{error:?}")))?;
    let finished = compile::kernels(&unit, machine, &options).map_err(|error| refused(format!("{error:?}")))?;
    let form = compile::form(machine, Some("gas")).map_err(|error| refused(format!("{error:?}")))?;
    let artifacts = compile::artifacts(&unit, machine, &finished, form, &options).map_err(|error| refused(format!("{error:?}")))?;
    let assembly = artifacts.into_iter().flatten().find(|artifact| artifact.file_name.ends_with(".s"));
    let assembly = assembly.ok_or_else(|| refused("no assembly".to_owned()))?.text;
    let mut random = Random::new(!seed);
    let calls = (0..INPUTS).map(|_| call(&unit.kernels[0], machine, &finished[0].functions[0].program, &mut random)).collect();
    Ok(Case { seed, assembly, calls })
}

#[test]
fn random_kernels_do_on_the_processor_what_the_interpreter_says() {
    if !tools::available(&["powerpc-linux-gnu-gcc", "qemu-ppc"]) {
        return;
    }
    let machine = kgen::names::target("e600").expect("an embedded target");
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let cases: Vec<Result<Case, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let machine = &machine;
                scope.spawn(move || (first..KERNELS).step_by(threads as usize).map(|seed| case(seed, machine)).collect::<Vec<_>>())
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let refused: Vec<&str> = cases.iter().filter_map(|case| case.as_ref().err().map(String::as_str)).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    let mut cases: Vec<Case> = cases.into_iter().flatten().collect();
    cases.sort_by_key(|case| case.seed);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (mut assembly, mut declared, mut functions, mut body) = (String::new(), String::new(), String::new(), String::new());
    for case in &cases {
        assembly.push_str(&case.assembly);
        let _ = writeln!(declared, "extern void random_{}();", case.seed);
        let _ = writeln!(functions, "static void case_{}(void) {{\n{}}}", case.seed, case.calls);
        let _ = writeln!(body, "    case_{}();", case.seed);
    }
    let comparisons: usize = cases.iter().map(|case| case.calls.matches("    expect(").count()).sum();
    let driver = format!("{DRIVER}\n{declared}\n{functions}\nstatic void cases(void) {{\n{body}}}\n");
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("written");
    write(&path("poisoned_call.S"), POISONED_CALL);
    write(&path("kernels.s"), &assembly);
    write(&path("driver.c"), &driver);
    let built = Command::new("powerpc-linux-gnu-gcc")
        .current_dir(folder.path())
        .args(["-mcpu=7450", "-maltivec", "-static", "-O0", "-o", "driver", "driver.c", "poisoned_call.S", "kernels.s"])
        .output()
        .expect("gcc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new("qemu-ppc").args(["-cpu", "7448"]).arg(path("driver")).output().expect("qemu runs");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{:?}\n{said}{}", run.status, String::from_utf8_lossy(&run.stderr));
    // The script ran to its end.
    assert!(said.contains(&format!("{} calls, {comparisons} comparisons, 0 failures\n", KERNELS * INPUTS)), "{said}");
    println!("{said}");
}
