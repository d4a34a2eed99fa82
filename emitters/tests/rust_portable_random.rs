//! Random kernels in form `rust-portable`, compiled by one run of the compiler and run on this machine: every written parameter is what the interpreter says.

use kgen_emitters::forms::form_of;
use kgen_emitters::{CodeOptions, FinishedKernel, Request, TextOptions};
use kgen_ir::interpret::{Argument, Interpretation, interpret};
use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::random_kernels::{Random, argument_bytes, random_arguments, random_kernel};
use kgen_ir::source::Source;
use kgen_ir::types::ByteOrder;
use kgen_schedulers::finish::{FinishOptions, finish};
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::ProgramParameterKind;
use kgen_schedulers::replay::ReplayOptions;
use kgen_schedulers::scheduling::Effort;
use kgen_schedulers::target_file::embedded_machine;
use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;

/// How many kernels.
const KERNELS: u64 = 200;
/// Inputs for each.
const INPUTS: u64 = 4;

/// Statements that call the function on one input and compare what it writes.
fn call(kernel: &Kernel, function: &FinishedFunction, order: ByteOrder, random: &mut Random) -> String {
    let arguments = random_arguments(kernel, random).expect("random kernels take bits");
    let expected = interpret(kernel, &arguments, &Interpretation::default()).unwrap_or_else(|fault| panic!("{}: {fault}", kernel.name));
    let (mut given, mut results) = (arguments.iter(), expected.iter());
    let values: Vec<(Option<&Argument>, Option<&Argument>)> = kernel
        .parameters
        .iter()
        .map(|parameter| {
            let value = if parameter.is_input() { given.next() } else { None };
            (value, if parameter.direction == Direction::In { None } else { results.next() })
        })
        .collect();
    let (mut text, mut passed, mut checks) = (String::from("{\n"), Vec::new(), String::new());
    for (place, declared) in function.program.parameters.iter().enumerate() {
        let index = kernel.parameters.iter().position(|parameter| parameter.name == declared.name);
        let bytes = |argument: &Argument| {
            argument_bytes(&kernel.parameters[index.unwrap_or(0)].ty, argument, order).expect("an argument of its type")
        };
        match (&declared.kind, index) {
            (ProgramParameterKind::Scalar { bits, .. }, Some(index)) => {
                let Some(Argument::Bits(value)) = values[index].0 else { panic!("{} is a scalar", declared.name) };
                passed.push(format!("{}_u{}", value.to_u64().expect("a scalar"), bits.next_power_of_two().max(8)));
            }
            (ProgramParameterKind::Scalar { .. }, None) => {
                let slice = declared.name.strip_suffix("_count").expect("the count of a slice");
                let of = kernel.parameters.iter().position(|parameter| parameter.name == slice).expect("the slice");
                let Some(Argument::List(list)) = values[of].0 else { panic!("{slice} is a slice") };
                passed.push(list.len().to_string());
            }
            (ProgramParameterKind::Pointer { region, .. }, Some(index)) => {
                let region = &function.program.regions[region.0 as usize];
                let contents = values[index].0.map_or_else(|| vec![0x77; region.bytes.unwrap_or(0) as usize], bytes);
                // Aligned regions are types of their module.
                let length = contents.len();
                let literal = format!("{contents:?} as [u8; {length}]");
                let (literal, inner) = match region.bytes {
                    Some(size) if region.align_bytes > 1 => {
                        (format!("{}::Bytes{size}Align{}({literal})", kernel.name, region.align_bytes), ".0")
                    }
                    _ => (literal, ""),
                };
                let slice = if region.bytes.is_none() { "[..]" } else { "" };
                let is_written = values[index].1.is_some();
                let (mutable, reference) = if is_written { ("mut ", "&mut ") } else { ("", "&") };
                let _ = writeln!(text, "let {mutable}v{place} = {literal};");
                passed.push(format!("{reference}v{place}{slice}"));
                if let Some(result) = values[index].1 {
                    let wanted = bytes(result);
                    let _ = writeln!(checks, "check(\"{} of {}\", &v{place}{inner}, &{wanted:?});", declared.name, kernel.name);
                }
            }
            (ProgramParameterKind::Pointer { .. }, None) => panic!("{} is no parameter of the kernel", declared.name),
        }
    }
    let _ = writeln!(text, "{0}::{0}({1});", kernel.name, passed.join(", "));
    text + &checks + "}\n"
}

/// The module of a seed, and calls of it.
fn emitted(seed: u64, machine: &Machine) -> (String, String) {
    let text = random_kernel(seed);
    let (unit, _) = kgen_ir::parse_unit(Arc::new(Source { name: format!("random_{seed}.ir"), text: text.clone() }), &[])
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0].message));
    let options = FinishOptions {
        effort: Effort::List,
        pool: PoolAddressing::Absolute,
        interleave: 1,
        replay: ReplayOptions { setups: 1, inputs: 4 },
    };
    let kernel = &unit.kernels[0];
    let functions = finish(machine, kernel, options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut random = Random::new(!seed);
    let calls = (0..INPUTS).map(|_| call(kernel, &functions[0], machine.byte_order, &mut random)).collect();
    let finished = FinishedKernel { kernel: kernel.clone(), functions };
    let code = CodeOptions { parameters: Vec::new(), interleave: 1, effort: 0, position_independent: false };
    let request = Request { machine, unit: &unit, finished: &finished, code: &code, text: &TextOptions::default() };
    let form = form_of(machine, Some("rust-portable")).expect("the form");
    let module = form.emit(&request).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0).text;
    (module, calls)
}

const CHECK: &str = "fn check(what: &str, found: &[u8], wanted: &[u8]) {
    assert_eq!(found, wanted, \"{what}\");
    COMPARISONS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}
static COMPARISONS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
";

#[test]
fn random_kernels_do_here_what_the_interpreter_says() {
    let machine = embedded_machine("portable").expect("the target");
    let folder = tempfile::tempdir().expect("a folder");
    // Random loops carry values that they never read, or never change.
    let mut source = format!("#![deny(warnings)]\n#![allow(unused_assignments, unused_mut)]\n{CHECK}");
    let (mut functions, mut body, mut comparisons) = (String::new(), String::new(), 0);
    for seed in 0..KERNELS {
        let (module, calls) = emitted(seed, &machine);
        std::fs::write(folder.path().join(format!("random_{seed}.rs")), module).expect("written");
        let _ = writeln!(source, "#[deny(unsafe_code)]\npub mod random_{seed};");
        comparisons += calls.matches("check(").count();
        let _ = writeln!(functions, "#[rustfmt::skip]\nfn case_{seed}() {{\n{calls}}}");
        let _ = writeln!(body, "case_{seed}();");
    }
    let _ = write!(
        source,
        "{functions}fn main() {{\n{body}println!(\"{{}} comparisons\", COMPARISONS.load(std::sync::atomic::Ordering::Relaxed));\n}}\n"
    );
    std::fs::write(folder.path().join("main.rs"), source).expect("written");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "-C",
            "opt-level=0",
            "-C",
            "overflow-checks=on",
            "-C",
            "debug-assertions=on",
            "--out-dir",
            ".",
            "main.rs",
        ])
        .current_dir(folder.path())
        .output()
        .expect("the compiler runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(folder.path().join("main")).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{comparisons} comparisons\n"));
}
