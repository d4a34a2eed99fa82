//! Form `rust-portable`: emitted code is compiled without a warning, run on this machine, and compared with big integers.

use kgen_emitters::forms::form_of;
use kgen_emitters::{CodeOptions, FinishedKernel, Request, TextOptions};
use kgen_ir::source::Source;
use kgen_schedulers::finish::{FinishError, FinishOptions, finish_all};
use kgen_schedulers::finished::FinishedFunction;
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::random::Words;
use kgen_schedulers::replay::ReplayOptions;
use kgen_schedulers::scheduling::Effort;
use kgen_schedulers::target_file::embedded_machine;
use num_bigint::BigUint;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// The form's text for the first kernels of a spec.
fn emitted(spec: &str, kernels: usize) -> Vec<String> {
    let machine = embedded_machine("portable").expect("the target");
    let path = format!("{}/../specs/{spec}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the spec");
    let (unit, _) = kgen_ir::parse_unit(Arc::new(Source { name: spec.to_owned(), text }), &[]).expect("a valid spec");
    let options = FinishOptions {
        effort: Effort::List,
        pool: PoolAddressing::Absolute,
        interleave: 1,
        replay: ReplayOptions { setups: 1, inputs: 3 },
    };
    let code = CodeOptions { parameters: Vec::new(), interleave: 1, effort: 0, position_independent: false };
    let chosen: Vec<&kgen_ir::kernel::Kernel> = unit.kernels.iter().take(kernels).collect();
    let finished = finish_all(&machine, &chosen, options);
    let print = |(kernel, functions): (&kgen_ir::kernel::Kernel, Result<Vec<FinishedFunction>, FinishError>)| {
        let functions = functions.unwrap_or_else(|error| panic!("{}: {error:#?}", kernel.name));
        assert!(functions.iter().all(|function| function.performance.cycles.body.is_none()), "cycles of a target without units");
        let finished = FinishedKernel { kernel: kernel.clone(), functions };
        let request = Request { machine: &machine, unit: &unit, finished: &finished, code: &code, text: &TextOptions::default() };
        let form = form_of(&machine, None).expect("a form");
        form.emit(&request).unwrap_or_else(|error| panic!("{error}")).remove(0).text
    };
    chosen.into_iter().zip(finished).map(print).collect()
}

/// Compiles the modules with a main function, every warning an error, and runs it.
fn run(modules: &[(&str, &str)], main: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut source = String::from("#![deny(warnings)]\n");
    for (name, text) in modules {
        std::fs::write(folder.path().join(format!("{name}.rs")), text).expect("written");
        let _ = writeln!(source, "#[deny(unsafe_code)]\npub mod {name};");
    }
    source.push_str(main);
    std::fs::write(folder.path().join("main.rs"), source).expect("written");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let build = |compiler: &std::ffi::OsStr, more: &[&str]| {
        let built = Command::new(compiler)
            .args(["--edition", "2024", "-C", "opt-level=1", "--out-dir", "."])
            .args(more)
            .arg("main.rs")
            .current_dir(folder.path())
            .output()
            .expect("the compiler runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    };
    build(&compiler, &[]);
    // Where the lints are installed they must be quiet too.
    if Command::new("clippy-driver").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        build("clippy-driver".as_ref(), &["--emit=metadata"]);
    }
    let ran = Command::new(folder.path().join("main")).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn bytes(value: &BigUint, length: usize) -> String {
    let digits = value.to_bytes_be();
    let padded: Vec<u8> = std::iter::repeat_n(0, length - digits.len()).chain(digits).collect();
    format!("{padded:?}")
}

fn number(hex: &str) -> BigUint {
    BigUint::parse_bytes(hex.as_bytes(), 16).expect("hexadecimal digits")
}

fn random(bits: u32, words: &mut Words) -> BigUint {
    BigUint::new((0..bits / 32).map(|_| words.word() as u32).collect())
}

const PRINT: &str = "fn print(bytes: &[u8]) { for byte in bytes { print!(\"{byte:02x}\"); } println!(); }\n";

#[test]
fn plain_products_are_exact() {
    let module = emitted("mul_128.ir", 1).remove(0);
    let mut words = Words(7);
    let top = (BigUint::from(1u32) << 128u32) - 1u32;
    let mut pairs = vec![(top.clone(), top.clone()), (BigUint::ZERO, top.clone()), (BigUint::from(1u32) << 127u32, top)];
    pairs.extend((0..40).map(|_| (random(128, &mut words), random(128, &mut words))));
    let mut main = format!("use mul_128::*;\n{PRINT}fn product(a: [u8; 16], b: [u8; 16]) {{\n");
    main.push_str("let (mut x, mut y, mut z) = (Limbs3x62([0; 24]), Limbs3x62([0; 24]), Limbs5x62([0; 40]));\n");
    main.push_str("mul_128_import_128(&mut x, &a); mul_128_import_128(&mut y, &b); mul_128(&x, &y, &mut z);\n");
    main.push_str("let mut out = [0; 32]; mul_128_export_256(&mut out, &z); print(&out);\n");
    main.push_str("let mut wide = Limbs5x62([1; 40]); mul_128_import_256(&mut wide, &out); print(&wide.0); print(&z.0);\n");
    main.push_str("let mut back = [0; 16]; mul_128_export_128(&mut back, &x); print(&back); }\nfn main() {\n");
    for (a, b) in &pairs {
        let _ = writeln!(main, "product({}, {});", bytes(a, 16), bytes(b, 16));
    }
    main.push_str("}\n");
    let lines = run(&[("mul_128", &module)], &main);
    assert_eq!(lines.len(), 4 * pairs.len());
    for ((a, b), lines) in pairs.iter().zip(lines.chunks(4)) {
        assert_eq!(number(&lines[0]), a * b, "{a} · {b}");
        assert_eq!(lines[1], lines[2], "import after export");
        assert_eq!(number(&lines[3]), *a, "export after import");
    }
}

#[test]
fn montgomery_products_keep_the_contract() {
    let modules = emitted("mont_mul_512.ir", 1);
    let mut words = Words(512);
    let top = BigUint::from(1u32) << 512u32;
    let one = BigUint::from(1u32);
    let mut moduli = vec![&top - &one, BigUint::from(3u32), (&top >> 1u32) + &one];
    moduli.extend((0..3).map(|_| random(512, &mut words) | &one));
    let mut main = format!("use mont_mul_512::*;\n{PRINT}");
    main.push_str("fn natural(bytes: &[u8; 64]) -> Limbs9x62 { let mut x = Limbs9x62([0; 72]); mont_mul_512_import(&mut x, bytes); x }\n");
    main.push_str("fn product(m: [u8; 64], a: [u8; 64], b: [u8; 64]) {\n");
    main.push_str("assert_eq!(MODULUS_512_R_BITS, 9 * 62);\n");
    main.push_str("let mut setup = Modulus512Setup([0; 152]); mont_mul_512_setup(&mut setup, &natural(&m));\n");
    main.push_str("let mut r2 = Limbs9x62([0; 72]); r2.0.copy_from_slice(&setup.0[..72]);\n");
    main.push_str("let mont = |x: &Limbs9x62, y: &Limbs9x62| { let mut z = Limbs9x62([0; 72]); mont_mul_512(&setup, x, y, &mut z); z };\n");
    main.push_str("let mut one = [0; 64]; one[63] = 1;\n");
    main.push_str("let z = mont(&mont(&mont(&natural(&a), &r2), &mont(&natural(&b), &r2)), &natural(&one));\n");
    main.push_str("let mut out = [0; 64]; mont_mul_512_export(&mut out, &z); print(&out); }\nfn main() {\n");
    let mut cases = Vec::new();
    for modulus in &moduli {
        let mut factors = vec![(modulus - &one, modulus - &one), (BigUint::ZERO, modulus - &one)];
        factors.extend((0..3).map(|_| (random(512, &mut words) % modulus, random(512, &mut words) % modulus)));
        cases.extend(factors.into_iter().map(|(a, b)| (modulus.clone(), a, b)));
    }
    for (m, a, b) in &cases {
        let _ = writeln!(main, "product({}, {}, {});", bytes(m, 64), bytes(a, 64), bytes(b, 64));
    }
    main.push_str("}\n");
    let lines = run(&[("mont_mul_512", &modules[0])], &main);
    assert_eq!(lines.len(), cases.len());
    for ((m, a, b), line) in cases.iter().zip(&lines) {
        // Leaving the domain gives at most the modulus, which stands for zero.
        assert!(number(line) <= *m, "{line} modulo {m}");
        assert_eq!(number(line) % m, a * b % m, "{a} · {b} modulo {m}");
    }
}
