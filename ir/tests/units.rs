//! Whole units: what validation makes of them.

use kgen_ir::answers::run_known_answer;
use kgen_ir::body::{NaryOp, Op};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::interpret::Interpretation;
use kgen_ir::kernel::{Kernel, Unit};
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::parse_unit;
use kgen_ir::source::Source;
use kgen_ir::types::Type;
use std::sync::Arc;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source { name: "test.ir".to_owned(), text: text.to_owned() })
}

fn unit(text: &str) -> Unit {
    parse_unit(source(text), &[]).unwrap_or_else(|errors| panic!("{errors:#?}")).0
}

fn kernel(text: &str) -> Kernel {
    unit(text).kernels.pop().expect("a kernel")
}

fn errors(text: &str) -> Vec<Diagnostic> {
    parse_unit(source(text), &[]).expect_err("this unit is wrong")
}

fn rules(text: &str) -> Vec<&'static str> {
    errors(text).iter().map(|error| error.rule).collect()
}

fn result(kernel: &Kernel) -> &Op {
    &kernel.body.nodes[kernel.body.outputs[0].1].op
}

#[test]
fn specs_are_valid() {
    // Those of the second folder are written as their standards write them; they are here for the language, since no lowering takes all of them yet.
    let folders = [concat!(env!("CARGO_MANIFEST_DIR"), "/../specs"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/standards")];
    let mut count = 0;
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("specs")) {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let (unit, warnings) = parse_unit(source(&text), &[]).unwrap_or_else(|errors| panic!("{path:?} {errors:#?}"));
        assert!(warnings.is_empty(), "{path:?} {warnings:#?}");
        assert!(!unit.kernels.is_empty());
        for kernel in &unit.kernels {
            assert!(unit.tests.iter().any(|test| test.kernel == kernel.name), "{path:?}: {} has no known answer", kernel.name);
        }
        for test in &unit.tests {
            let kernel = unit.kernels.iter().find(|kernel| kernel.name == test.kernel).expect("a kernel");
            for radix in [MontgomeryRadix::one(), MontgomeryRadix::default().with(512, 520), MontgomeryRadix::default().with(512, 528)] {
                let options = Interpretation { montgomery_radix: radix };
                let differences =
                    run_known_answer(kernel, test, &options).unwrap_or_else(|error| panic!("{path:?} {}: {error}", test.title));
                assert!(differences.is_empty(), "{path:?} {}: {differences:?}", test.title);
            }
        }
        count += 1;
    }
    assert!(count >= 12, "{count}");
}

#[test]
fn products_of_naturals_are_as_wide_as_they_need() {
    let kernel = kernel("kernel k(a: nat<128>, b: nat<128>) -> nat<256> { a * b }");
    assert!(matches!(result(&kernel), Op::NaturalMultiply(..)));
    assert_eq!(kernel.parameters[2].name, "result");
}

#[test]
fn parameters_fill_names_and_types() {
    let text = "param BITS = 512\nkernel f_{BITS}(m: modulus<BITS>, a: residue<m>) -> residue<m> { mont(a, a) }";
    let (unit, _) = parse_unit(source(text), &[("BITS".to_owned(), 1024)]).expect("valid");
    assert_eq!(unit.kernels[0].name, "f_1024");
    assert_eq!(unit.kernels[0].parameters[1].ty, Type::Residue { modulus: 0, bits: 1024 });
    assert_eq!(unit.parameters, [("BITS".to_owned(), 1024, true)]);
    let (default, _) = parse_unit(source(text), &[]).expect("valid");
    assert_ne!(default.hash, unit.hash);
    let wrong = parse_unit(source(text), &[("BITZ".to_owned(), 1)]).expect_err("no such parameter");
    assert_eq!(wrong[0].rule, "unknown-parameter");
    assert_eq!(wrong[0].help.as_deref(), Some("did you mean `BITS`?"));
}

#[test]
fn hash_ignores_layout_and_comments() {
    let a = unit("kernel k(a: u32) -> u32 { a + 1 }");
    let b = unit("// a comment\nkernel k(\n  a: u32\n) -> u32 {\n  a +\n  1 // more\n}\n");
    assert_eq!(a.hash, b.hash);
    assert_ne!(a.hash, unit("kernel k(a: u32) -> u32 { a + 2 }").hash);
    assert_eq!(a.hash.len(), 64);
}

#[test]
fn functions_are_inlined_and_constants_folded() {
    let text = "
        const TABLE: [u8; 256] = [i in 0..256: times_two(i) ^ 1]
        fn times_two(x: u8) -> u8 { gfmul(x, 2, 0x11b) }
        kernel k(a: u8) -> u8 { times_two(a) ^ TABLE[3] ^ TABLE[a] }";
    let kernel = kernel(text);
    let Op::Nary(NaryOp::Xor, terms) = result(&kernel) else { panic!("{kernel:#?}") };
    assert_eq!(terms.len(), 3);
    let constants: Vec<u64> = terms
        .iter()
        .filter_map(|term| match &kernel.body.nodes[*term].op {
            Op::Constant(bits) => bits.to_u64(),
            _ => None,
        })
        .collect();
    assert_eq!(constants, [7], "2·3 ^ 1 in GF(2^8)");
    assert!(terms.iter().any(|term| matches!(kernel.body.nodes[*term].op, Op::Element { .. })));
}

#[test]
fn for_carries_outer_names_and_loops_have_bodies() {
    let unrolled = kernel("kernel k(a: u32) -> u32 { s = a\n for i in 0..4 { t = s ^ i\n s = s + t }\n s }");
    assert!(matches!(result(&unrolled), Op::Nary(NaryOp::Add, _)));
    let looped = kernel("kernel k(a: u32, n: u32 public) -> u32 { s = a; b = a ^ 1\n loop i in 0..n { s = s + (b ^ i) }\n s }");
    let Op::Result(node, 0) = result(&looped) else { panic!("{looped:#?}") };
    let Op::Loop { carried, captured, body, .. } = &looped.body.nodes[*node].op else { panic!("{looped:#?}") };
    assert_eq!((carried.len(), captured.len(), body.inputs.len(), body.outputs.len()), (1, 1, 3, 1));
}

#[test]
fn maps_write_the_slices_whose_elements_are_assigned() {
    let text = "
        kernel one(block: inout u8x16, key: u8x16) { block = block ^ key }
        kernel many(blocks: inout [u8x16], key: u8x16) { map b in blocks { one(b, key) } }
        kernel other(from: [u8x16], to: out [u8x16]) { map a in from, b in to { b = ~a } }";
    let unit = unit(text);
    for (index, (slices, written, captured)) in [(1, vec![0], 1), (2, vec![1], 0)].into_iter().enumerate() {
        let kernel = &unit.kernels[index + 1];
        let Op::Result(node, 0) = result(kernel) else { panic!("{kernel:#?}") };
        let Op::Map { slices: found, written: indices, captured: outer, body } = &kernel.body.nodes[*node].op else {
            panic!("{kernel:#?}")
        };
        assert_eq!((found.len(), indices, outer.len()), (slices, &written, captured));
        assert_eq!(body.outputs.len(), 1);
    }
}

#[test]
fn tables_stay_tables_inside_loops() {
    let text = "const T: [u8; 4] = [9, 8, 7, 6]\nkernel k(a: u8, n: u32 public) -> u8 { s = a\n loop i in 0..n { s = T[s & 3] }\n s }";
    let kernel = kernel(text);
    let Op::Result(node, 0) = result(&kernel) else { panic!("{kernel:#?}") };
    let Op::Loop { captured, body, .. } = &kernel.body.nodes[*node].op else { panic!("{kernel:#?}") };
    assert!(captured.is_empty());
    assert!(body.nodes.iter().any(|(_, node)| matches!(&node.op, Op::Array(elements) if elements.len() == 4)));
}

#[test]
fn known_answers_are_typed() {
    let text = "
        kernel k(a: u8x4, b: nat<64>, c: out nat<65>) -> u32 { c = b + 1\n be32(a) }
        test k \"all\" { a = hex\"01 02 03 04\", b = 5 -> c = 6, result = 0x01020304 }
        kernel f(s: inout [u8x2]) { map x in s { x = ~x } }
        test f \"slice\" { s = hex\"00ff ff00\" -> hex\"ff00 00ff\" }";
    let unit = unit(text);
    assert_eq!(unit.tests.len(), 2);
    assert_eq!(unit.tests[0].expected.len(), 2);
    let kgen_ir::interpret::Argument::List(items) = &unit.tests[1].given[0].1 else { panic!("{:?}", unit.tests[1]) };
    assert_eq!(items.len(), 2);
}

#[test]
fn circles_are_named() {
    let found =
        errors("fn f(a: u8) -> u8 { g(a) }\nfn g(a: u8) -> u8 { h(a) }\nfn h(a: u8) -> u8 { f(a) }\nkernel k(a: u8) -> u8 { f(a) }");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].rule, "circular-call");
    assert!(found[0].message.contains("f → g → h → f"), "{}", found[0].message);
    assert_eq!(rules("kernel k(a: u8) -> u8 { k(a) }"), ["circular-call"]);
    assert_eq!(rules("const A = B\nconst B = A + 1\nkernel k(a: u8) -> u8 { a }"), ["circular-definition"]);
}

#[test]
fn nothing_and_no_kernel() {
    assert_eq!(rules(""), ["no-kernels"]);
    assert_eq!(rules("const A = 1"), ["no-kernels"]);
    assert_eq!(rules("// only words\n"), ["no-kernels"]);
}
