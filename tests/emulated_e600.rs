//! Emitted assembly assembled, linked with C by its own headers, and run on an emulated processor: every result against big integers, every call with
//! all saved registers poisoned and nothing but its result writable.

use kgen::compile::{self, CompileOptions};
use kgen_emitters::TextOptions;
use kgen_ir::source::Source;
use kgen_schedulers::program::MontgomeryForm;
use num_bigint::BigUint;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

#[path = "../schedulers/tests/tools/mod.rs"]
mod tools;

const POISONED_CALL: &str = include_str!("emulated/poisoned_call.S");
const DRIVER: &str = include_str!("emulated/driver.c");

/// Places of regions in the driver.
const BYTES: usize = 0;
const SETUP: usize = 1;
const A: usize = 2;
const B: usize = 3;
const RESULT: usize = 4;
const OUT: usize = 5;
const LEAVING: usize = 6;

/// Numbers from a fixed sequence (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: &BigUint) -> BigUint {
        let words: Vec<u8> = (0..limit.bits() / 8 + 16).map(|_| self.next() as u8).collect();
        BigUint::from_bytes_be(&words) % limit
    }
}

fn power_of_two(bits: u32) -> BigUint {
    BigUint::from(1u32) << bits
}

/// A number as a C string of so many bytes, most significant first.
fn literal(value: &BigUint, bytes: usize) -> String {
    let digits = value.to_bytes_be();
    let digits = if *value == BigUint::ZERO { &[][..] } else { &digits };
    assert!(digits.len() <= bytes, "{value} has more than {bytes} bytes");
    let padded = std::iter::repeat_n(0, bytes - digits.len()).chain(digits.iter().copied());
    padded.fold(String::from("\""), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02x}");
        text
    }) + "\""
}

/// The body of the driver's `cases`.
#[derive(Default)]
struct Script {
    text: String,
    includes: String,
    cases: usize,
}

impl Script {
    /// A region of the size that the header gives for a parameter.
    fn place(&mut self, slot: usize, function: &str, parameter: &str, align: u32, contents: Option<&str>) {
        let size = format!("{function}_{parameter}_BYTES").to_uppercase();
        let _ = writeln!(self.text, "    place({slot}, {size}, {align}, {});", contents.unwrap_or("0"));
    }

    fn call(&mut self, function: &str, written: usize, arguments: &[String]) {
        let list = arguments.join(", ");
        let _ = writeln!(self.text, "    call(\"{function}\", (void *){function}, {written}, (const uint32_t[8]){{{list}}});");
    }

    /// Bytes to a natural in the layout of `slot`.
    fn import(&mut self, function: &str, slot: usize, value: &BigUint, bytes: usize) {
        self.place(BYTES, function, "bytes", 1, Some(&literal(value, bytes)));
        self.place(slot, function, "natural", 16, None);
        self.call(function, slot, &[at(slot), at(BYTES)]);
    }

    /// A natural to bytes, which must be `value` or `other`.
    fn export(&mut self, what: &str, function: &str, slot: usize, value: &BigUint, other: &BigUint, bytes: usize) {
        self.place(OUT, function, "bytes", 1, None);
        self.call(function, OUT, &[at(OUT), at(slot)]);
        self.cases += 1;
        let _ = writeln!(self.text, "    expect(\"{what}\", {OUT}, {}, {});", literal(value, bytes), literal(other, bytes));
    }

    fn setup(&mut self, kernel: &str, slot: usize, modulus: &BigUint, bytes: usize) {
        self.import(&format!("{kernel}_import"), A, modulus, bytes);
        let function = format!("{kernel}_setup");
        self.place(slot, &function, "setup", 16, None);
        self.call(&function, slot, &[at(slot), at(A)]);
    }
}

fn at(slot: usize) -> String {
    format!("at({slot})")
}

/// Writes the kernels of a spec as assembly and headers; the form of Montgomery products of the first that has one.
fn emit(
    spec: &str,
    parameters: Vec<(String, u64)>,
    position_independent: bool,
    folder: &Path,
    script: &mut Script,
) -> (Vec<String>, Option<MontgomeryForm>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("specs").join(spec);
    let text = std::fs::read_to_string(&path).expect("the spec is there");
    let source = Arc::new(Source { name: spec.to_owned(), text });
    let machine = kgen::names::target("e600").expect("an embedded target");
    let options =
        CompileOptions { parameters, kernels: Vec::new(), effort: 0, interleave: 1, position_independent, text: TextOptions::default() };
    let (unit, _) = compile::unit(&source, &options.parameters).expect("the spec is valid");
    let finished = compile::kernels(&unit, &machine, &options).expect("the kernels pass");
    let form = compile::form(&machine, Some("gas")).expect("the target has it");
    for artifact in compile::artifacts(&unit, &machine, &finished, form, &options).expect("it can be printed").into_iter().flatten() {
        std::fs::write(folder.join(&artifact.file_name), form.whole(&artifact.text)).expect("written");
        if artifact.file_name.ends_with(".h") {
            let _ = writeln!(script.includes, "#include \"{}\"", artifact.file_name);
        }
    }
    let montgomery = finished.iter().find_map(|kernel| kernel.functions[0].program.montgomery);
    (finished.iter().map(|kernel| kernel.kernel.name.clone()).collect(), montgomery)
}

fn products(script: &mut Script, random: &mut Random) {
    let limit = power_of_two(128);
    let alternating = BigUint::parse_bytes(b"ffff0000ffff0000ffff0000ffff0000", 16).expect("a number");
    let edges = [BigUint::ZERO, BigUint::from(1u32), &limit - 1u32, power_of_two(127), &alternating >> 16u32, alternating];
    let mut pairs: Vec<(BigUint, BigUint)> = edges.iter().flat_map(|a| edges.iter().map(move |b| (a.clone(), b.clone()))).collect();
    pairs.extend((0..24).map(|_| (random.below(&limit), random.below(&limit))));
    for (a, b) in pairs {
        script.import("mul_128_import_128", A, &a, 16);
        script.import("mul_128_import_128", B, &b, 16);
        script.place(RESULT, "mul_128", "result", 16, None);
        script.call("mul_128", RESULT, &[at(A), at(B), at(RESULT)]);
        let product = &a * &b;
        script.export("mul_128", "mul_128_export_256", RESULT, &product, &product, 32);
    }
}

/// Multiplies the residue in `RESULT` by one, which leaves the Montgomery domain, and compares it.
fn leave(script: &mut Script, what: &str, multiply: &str, modulus: &BigUint, value: &BigUint, bytes: usize) {
    script.import(&format!("{multiply}_import"), B, &BigUint::from(1u32), bytes);
    script.place(A, multiply, "result", 16, None);
    script.call(multiply, A, &[at(LEAVING), at(RESULT), at(B), at(A)]);
    // A residue is below twice the modulus, and its export holds as many bits as it has bytes.
    let other = (value + modulus) % power_of_two(8 * bytes as u32);
    script.export(what, &format!("{multiply}_export"), A, value, &other, bytes);
}

/// All four kernels under one modulus.
fn montgomery(script: &mut Script, random: &mut Random, modulus: &BigUint, bits: u32, form: MontgomeryForm) {
    let bytes = bits as usize / 8;
    let name = |kernel: &str| format!("{kernel}_{bits}");
    let (multiply, square, squares, select) = (name("mont_mul"), name("mont_sqr"), name("mont_sqr_n"), name("mont_select"));
    let inverse = (power_of_two(form.radix_bits) % modulus).modinv(modulus).expect("R and an odd modulus have no common factor");
    // Residues may be as large as the bound says, as far as bytes can say it.
    let limit = (modulus * form.bound).min(power_of_two(bits));
    script.setup(&multiply, LEAVING, modulus, bytes);

    let edges = [BigUint::ZERO, BigUint::from(1u32), modulus - 1u32, &limit - 1u32];
    let mut pairs: Vec<(BigUint, BigUint)> = edges.iter().map(|a| (a.clone(), modulus - 1u32)).collect();
    pairs.push((&limit - 1u32, &limit - 1u32));
    pairs.extend((0..3).map(|_| (random.below(&limit), random.below(&limit))));
    script.setup(&multiply, SETUP, modulus, bytes);
    for (a, b) in &pairs {
        script.import(&format!("{multiply}_import"), A, a, bytes);
        script.import(&format!("{multiply}_import"), B, b, bytes);
        script.place(RESULT, &multiply, "result", 16, None);
        script.call(&multiply, RESULT, &[at(SETUP), at(A), at(B), at(RESULT)]);
        leave(script, &multiply, &multiply, modulus, &(a * b * &inverse * &inverse % modulus), bytes);
    }
    script.setup(&square, SETUP, modulus, bytes);
    for (a, _) in &pairs {
        script.import(&format!("{square}_import"), A, a, bytes);
        script.place(RESULT, &square, "result", 16, None);
        script.call(&square, RESULT, &[at(SETUP), at(A), at(RESULT)]);
        leave(script, &square, &multiply, modulus, &(a * a * &inverse * &inverse % modulus), bytes);
    }
    script.setup(&squares, SETUP, modulus, bytes);
    for (a, count) in pairs.iter().map(|(a, _)| a).zip([0u32, 1, 2, 3, 5, 16, 1, 4]) {
        script.import(&format!("{squares}_import"), A, a, bytes);
        script.place(RESULT, &squares, "result", 16, None);
        script.call(&squares, RESULT, &[at(SETUP), at(A), count.to_string(), at(RESULT)]);
        let power = (0..count).fold(a % modulus, |power, _| &power * &power * &inverse % modulus);
        leave(script, &squares, &multiply, modulus, &(power * &inverse % modulus), bytes);
    }
    // The bytes of an entry come back as they went in, so the modulus plays no part but its own.
    script.setup(&select, SETUP, modulus, bytes);
    let entries: Vec<BigUint> = (0..32).map(|entry| if entry == 7 { &limit - 1u32 } else { random.below(&limit) }).collect();
    for index in [0usize, 1, 7, 30, 31] {
        script.place(B, &select, "table", 16, None);
        for (number, entry) in entries.iter().enumerate() {
            script.import(&format!("{select}_import"), A, entry, bytes);
            let _ = writeln!(script.text, "    copy({B}, {number} * slots[{A}].bytes, {A});");
        }
        script.place(RESULT, &select, "result", 16, None);
        script.call(&select, RESULT, &[at(SETUP), at(B), index.to_string(), at(RESULT)]);
        script.export(&select, &format!("{select}_export"), RESULT, &entries[index], &entries[index], bytes);
    }
}

/// Emits kernels and writes a driver that calls them; the kernels' names, and how many results the driver compares. `longer` are further sizes of moduli.
fn prepare(folder: &Path, position_independent: bool, longer: &[u32]) -> (Vec<String>, usize) {
    let mut random = Random(0x5eed);
    let mut script = Script::default();
    let (mut kernels, _) = emit("mul_128.ir", Vec::new(), position_independent, folder, &mut script);
    products(&mut script, &mut random);
    let bits = 512;
    let (more, form) = emit("mont_mul_512.ir", Vec::new(), position_independent, folder, &mut script);
    let form = form.expect("it holds Montgomery products");
    kernels.extend(more);
    let odd = |number: BigUint| number | BigUint::from(1u32);
    let moduli = [
        odd(random.below(&power_of_two(bits)) | power_of_two(bits - 1)),
        power_of_two(bits) - 1u32,
        power_of_two(bits - 1) + 1u32,
        odd(random.below(&power_of_two(256))),
        BigUint::from(3u32),
    ];
    for modulus in &moduli {
        montgomery(&mut script, &mut random, modulus, bits, form);
    }
    for bits in longer.iter().copied() {
        let parameters = vec![("BITS".to_owned(), u64::from(bits))];
        let (more, form) = emit("mont_mul_512.ir", parameters, position_independent, folder, &mut script);
        let form = form.expect("it holds Montgomery products");
        kernels.extend(more);
        for modulus in [power_of_two(bits) - 1u32, odd(random.below(&power_of_two(bits)) | power_of_two(bits - 1))] {
            montgomery(&mut script, &mut random, &modulus, bits, form);
        }
    }
    std::fs::write(folder.join("poisoned_call.S"), POISONED_CALL).expect("written");
    let driver = format!("{}\n{DRIVER}\nstatic void cases(void) {{\n{}}}\n", script.includes, script.text);
    std::fs::write(folder.join("driver.c"), driver).expect("written");
    (kernels.iter().map(|kernel| format!("{kernel}.e600.s")).collect(), script.cases)
}

/// The output of a program that must succeed.
fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {:?}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    said
}

fn compiler(folder: &Path) -> Command {
    let mut compiler = Command::new("powerpc-linux-gnu-gcc");
    compiler.current_dir(folder).args(["-mcpu=7450", "-maltivec", "-O1", "-Wall", "-Werror"]);
    compiler
}

/// The script must have run to its end.
fn finished(said: &str, cases: usize) {
    assert!(said.contains(&format!(", {cases} comparisons, 0 failures\n")), "{said}");
    println!("{said}");
}

#[test]
fn emitted_assembly_computes_what_the_spec_says_and_keeps_what_it_must() {
    if !tools::available(&["powerpc-linux-gnu-gcc", "qemu-ppc"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (files, cases) = prepare(folder.path(), false, &[1024, 2048]);
    succeed(compiler(folder.path()).args(["-static", "-o", "driver", "driver.c", "poisoned_call.S"]).args(&files));
    finished(&succeed(Command::new("qemu-ppc").args(["-cpu", "7448"]).arg(folder.path().join("driver"))), cases);
}

#[test]
fn position_independent_assembly_makes_a_shared_object_without_text_relocations() {
    if !tools::available(&["powerpc-linux-gnu-gcc", "powerpc-linux-gnu-readelf", "qemu-ppc"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (files, cases) = prepare(folder.path(), true, &[]);
    let sections = |library: &str| succeed(Command::new("powerpc-linux-gnu-readelf").current_dir(folder.path()).args(["-d", library]));
    succeed(compiler(folder.path()).args(["-fPIC", "-shared", "-Wl,-z,text", "-o", "libkernels.so"]).args(&files));
    let dynamic = sections("libkernels.so");
    assert!(dynamic.contains("SYMTAB") && !dynamic.contains("TEXTREL"), "{dynamic}");
    // The driver itself may be anywhere it likes; its wrapper is not position-independent.
    succeed(compiler(folder.path()).args([
        "-no-pie",
        "-o",
        "driver",
        "driver.c",
        "poisoned_call.S",
        "-L.",
        "-lkernels",
        "-Wl,-rpath,$ORIGIN",
        "-Wl,-z,now",
    ]));
    let sysroot = ["-cpu", "7448", "-L", "/usr/powerpc-linux-gnu"];
    finished(&succeed(Command::new("qemu-ppc").args(sysroot).arg(folder.path().join("driver"))), cases);
    // Absolute addresses would have been seen.
    let other = tempfile::tempdir().expect("a folder");
    let (files, _) = prepare(other.path(), false, &[]);
    let refused = compiler(other.path()).args(["-fPIC", "-shared", "-Wl,-z,text", "-o", "libkernels.so"]).args(&files).output();
    assert!(!refused.expect("gcc runs").status.success());
}
