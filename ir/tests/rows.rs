//! Meanings of rows: what instruction tables write, elaborated.

use kgen_ir::body::{BinaryOp, Body, Effect, NaryOp, Op};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::meaning::{MeaningOperand, elaborate_meaning};
use kgen_ir::types::{ByteOrder, Type};

fn operand(name: &str, ty: Type, read: bool, written: bool) -> MeaningOperand {
    MeaningOperand { name: name.to_owned(), ty, read, written }
}

/// Operands as in a target file: `d` written, `a b c` read vectors; `rd` written, `ra rb` read words; `CA` both; `imm` a 5-bit immediate.
fn operands(names: &[&str]) -> Vec<MeaningOperand> {
    names
        .iter()
        .map(|name| match *name {
            "d" => operand(name, Type::vector(8, 16), false, true),
            "a" | "b" | "c" => operand(name, Type::vector(8, 16), true, false),
            "rd" => operand(name, Type::bits(32), false, true),
            "CA" => operand(name, Type::bits(1), true, true),
            "imm" => operand(name, Type::bits(5), true, false),
            _ => operand(name, Type::bits(32), true, false),
        })
        .collect()
}

fn row(names: &[&str], text: &str) -> Body {
    elaborate_meaning(text, 0, &operands(names), ByteOrder::Big).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn errors(names: &[&str], text: &str) -> Vec<Diagnostic> {
    elaborate_meaning(text, 0, &operands(names), ByteOrder::Big).expect_err("this row is wrong")
}

fn rules(names: &[&str], text: &str) -> Vec<&'static str> {
    errors(names, text).iter().map(|error| error.rule).collect()
}

fn output(body: &Body, index: usize) -> &Op {
    &body.nodes[body.outputs[index].1].op
}

#[test]
fn multiply_sum_is_one_sum_per_lane() {
    let body =
        row(&["d", "a", "b", "c"], "d.u32x4 = [i in 0..4: c.u32x4[i] + sum(j in 0..2: wide(a.u16x8[2*i+j]) * wide(b.u16x8[2*i+j]))]");
    let Op::Reinterpret(words, ByteOrder::Big) = output(&body, 0) else { panic!("{body:#?}") };
    let Op::Lanes(lanes) = &body.nodes[*words].op else { panic!("{body:#?}") };
    assert_eq!(lanes.len(), 4);
    for lane in lanes {
        let Op::Nary(NaryOp::Add, terms) = &body.nodes[*lane].op else { panic!("{body:#?}") };
        assert_eq!(terms.len(), 3, "addend and two products in one sum");
        assert_eq!(body.nodes[*lane].ty, Type::bits(32));
    }
    // One view of each operand, however often it is written.
    let views = body.nodes.iter().filter(|(_, node)| matches!(node.op, Op::Reinterpret(..))).count();
    assert_eq!(views, 4);
}

#[test]
fn carries_are_scalars() {
    let body = row(&["rd", "ra", "rb", "CA"], "t = zext(ra, 33) + zext(rb, 33) + zext(CA, 33)\nrd = trunc(t, 32); CA = t[32]");
    assert_eq!(body.outputs.iter().map(|(port, _)| port.name.as_str()).collect::<Vec<_>>(), ["rd", "CA"]);
    assert_eq!(body.inputs.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["ra", "rb", "CA"]);
    let Op::Lane { vector, .. } = output(&body, 1) else { panic!("{body:#?}") };
    assert_eq!(body.nodes[*vector].ty, Type::bits(33));
    assert_eq!(body.nodes[*vector].name, "t");
}

#[test]
fn permute_indexes_a_concatenation() {
    let body = row(&["d", "a", "b", "c"], "d = [i in 0..16: (a ++ b)[c[i] & 31]]");
    let Op::Lanes(lanes) = output(&body, 0) else { panic!("{body:#?}") };
    assert!(lanes.iter().all(|lane| matches!(body.nodes[*lane].op, Op::Lane { .. })));
}

#[test]
fn untyped_numbers_fill_every_lane() {
    let body = row(&["d", "a"], "d.u32x4 = a.u32x4 + 1");
    let constant = body.nodes.iter().find(|(_, node)| matches!(node.op, Op::Constant(_))).expect("a constant");
    assert_eq!(constant.1.ty, Type::vector(32, 4));
}

#[test]
fn memory_and_control() {
    let body = row(&["ra", "rb", "a"], "address = (ra + rb) & ~15\nstore(address, a)");
    assert!(matches!(body.effects[0], Effect::Store { condition: None, .. }));
    let body = row(&["d", "ra", "rb"], "d = load((ra + rb) & 0xfffffff0, 16)");
    assert!(matches!(output(&body, 0), Op::Load { .. }));
    let body = row(&["ra", "rb"], "branch if ra == rb");
    assert!(matches!(body.effects[0], Effect::Branch { condition: Some(_), target: None }));
    let body = row(&["ra"], "branch to ra & ~3");
    assert!(matches!(body.effects[0], Effect::Branch { condition: None, target: Some(_) }));
    let body = row(&["ra"], "branch");
    assert!(matches!(body.effects[0], Effect::Branch { condition: None, target: None }));
    let body = row(&["ra"], "store(ra, bytes_be(ra)) if ra != 0\nforbidden if ra == 3");
    assert_eq!(body.effects.len(), 2);
}

#[test]
fn immediates_shift_and_rotate() {
    let body = row(&["rd", "ra", "imm"], "rd = rotl(ra, imm) & (0xffff >> imm)");
    assert!(body.nodes.iter().any(|(_, node)| matches!(node.op, Op::Binary(BinaryOp::RotateLeft, ..))));
    let body = row(&["rd", "ra"], "rd = rotr(ra, 8)");
    assert!(matches!(output(&body, 0), Op::Binary(BinaryOp::RotateLeft, ..)));
    let body = row(&["rd", "ra", "rb"], "rd = sar(ra, rb & 63)");
    assert!(matches!(output(&body, 0), Op::Binary(BinaryOp::ShiftRightSigned, ..)));
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let text = "x = a.u32x4 + b.u16x8\ny = q\nd = a.u32x3\nrd = 0x1_0000_0000 = 3\nCA = zext(CA)";
    let found = rules(&["d", "rd", "a", "b", "CA"], text);
    for rule in ["type-mismatch", "unknown-name", "view-size", "syntax", "wrong-argument-count"] {
        assert!(found.contains(&rule), "{rule} in {found:?}");
    }
    let offset = elaborate_meaning("d = q", 100, &operands(&["d"]), ByteOrder::Big).expect_err("q is unknown");
    assert_eq!(offset[0].span.range(), 104..105);
}

#[test]
fn outputs_must_be_assigned_and_not_read_before() {
    assert_eq!(rules(&["d", "a"], "t = a"), ["never-assigned"]);
    assert_eq!(rules(&["d", "a"], "d = d ^ a"), ["read-before-assignment"]);
    assert_eq!(rules(&["rd", "ra"], "rd = ra[32]"), ["index-out-of-range"]);
}

#[test]
fn nesting_is_an_error_not_an_overflow() {
    for text in [format!("rd = {}ra{}", "(".repeat(100_000), ")".repeat(100_000)), format!("rd = {}ra", "~".repeat(100_000))] {
        assert!(rules(&["rd", "ra"], &text).contains(&"limit"));
    }
    let deep = format!("rd = {}ra{}", "(".repeat(199), ")".repeat(199));
    row(&["rd", "ra"], &deep);
    let long = format!("rd = ra{}", " + ra".repeat(20_000));
    row(&["rd", "ra"], &long);
}
