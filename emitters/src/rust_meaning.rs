//! A row's meaning as a Rust expression over integers: how rows are printed that no intrinsic stands for. Only scalars, and bytes on their way from and to memory.
//!
//! A value of W bits is the smallest unsigned integer that holds it, its upper bits zero; one bit is a `bool` inside of the expression and a `u8` outside. What
//! chooses between values or shifts by a distance that is no constant is written so that the compiler cannot make a branch of it ([`HELPERS`]).

use kgen_ir::body::{BinaryOp, Body, Effect, NaryOp, Node, NodeHandle, Op, UnaryOp};
use kgen_ir::types::{ByteOrder, Type};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Names that expressions of meanings of up to so many nodes use for their own variables; no other variable may have them.
pub(crate) fn reserved_names(nodes: usize) -> impl Iterator<Item = String> {
    (0..nodes).map(node_name)
}

fn node_name(index: usize) -> String {
    format!("node_{index}")
}

/// The smallest unsigned integer of Rust with so many bits.
pub(crate) fn storage_bits(width: u32) -> Option<u32> {
    match width {
        0 => None,
        1..=128 => Some(width.next_power_of_two().max(8)),
        _ => None,
    }
}

/// The expression of a meaning: its `results` (numbers of outputs) as a tuple, then whether a branch is taken where there is one. `inputs` are the texts of the inputs.
/// `None` where the meaning is more than scalars. `secret`: some input is, so nothing may become a branch.
pub(crate) fn expression(body: &Body, inputs: &[String], results: &[usize], secret: bool) -> Option<String> {
    let mut printer = Printer { body, inputs, secret, uses: BTreeMap::new(), texts: BTreeMap::new(), statements: String::new() };
    let mut roots: Vec<NodeHandle> =
        results.iter().map(|number| body.outputs.get(*number).map(|(_, node)| *node)).collect::<Option<_>>()?;
    let outputs = roots.len();
    let mut store = None;
    let mut branch = None;
    for effect in &body.effects {
        match effect {
            Effect::Store { address, value, condition: None } => {
                roots.extend([*address, *value]);
                store = Some((*address, *value));
            }
            Effect::Branch { condition, target: None } => {
                roots.extend(*condition);
                branch = Some(*condition);
            }
            _ => return None,
        }
    }
    printer.count(&roots);
    let mut values = Vec::new();
    for root in &roots[..outputs] {
        let text = printer.node(*root)?;
        let one_bit = printer.width(*root) == Some(1);
        values.push(if one_bit { format!("u8::from({text})") } else { text });
    }
    if let Some(condition) = branch {
        values.push(match condition {
            Some(condition) => printer.node(condition)?,
            None => "true".to_owned(),
        });
    }
    if let Some((address, value)) = store {
        let (address, text) = (printer.node(address)?, printer.node(value)?);
        let ty = printer.ty(value)?;
        let _ = write!(printer.statements, "({address} as *mut {ty}).write({text});");
    }
    let value = match &values[..] {
        [one] => one.clone(),
        [] => String::new(),
        several => format!("({})", several.join(", ")),
    };
    Some(if printer.statements.is_empty() { value } else { format!("{{ {} {value} }}", printer.statements) })
}

struct Printer<'a> {
    body: &'a Body,
    inputs: &'a [String],
    secret: bool,
    uses: BTreeMap<NodeHandle, u32>,
    texts: BTreeMap<NodeHandle, String>,
    statements: String,
}

impl Printer<'_> {
    fn count(&mut self, roots: &[NodeHandle]) {
        for root in roots {
            let uses = self.uses.entry(*root).or_default();
            *uses += 1;
            if *uses == 1 {
                let operands = self.body.nodes[*root].op.operands();
                self.count(&operands);
            }
        }
    }

    fn shape(&self, node: NodeHandle) -> Option<(u32, u32)> {
        match self.body.nodes[node].ty {
            Type::Bits { width, lanes } => Some((width, lanes)),
            _ => None,
        }
    }

    /// Bits of a scalar.
    fn width(&self, node: NodeHandle) -> Option<u32> {
        self.shape(node).filter(|(_, lanes)| *lanes == 1).map(|(width, _)| width)
    }

    /// The type of a node's text.
    fn ty(&self, node: NodeHandle) -> Option<String> {
        match self.shape(node)? {
            (1, 1) => Some("bool".to_owned()),
            (width, 1) => Some(format!("u{}", storage_bits(width)?)),
            (8, lanes) => Some(format!("[u8; {lanes}]")),
            _ => None,
        }
    }

    /// The text of a node, a variable's name where it is used more than once.
    fn node(&mut self, handle: NodeHandle) -> Option<String> {
        if let Some(text) = self.texts.get(&handle) {
            return Some(text.clone());
        }
        let body = self.body;
        let node = &body.nodes[handle];
        let mut text = self.op(handle, node)?;
        let plain = matches!(node.op, Op::Input(_) | Op::Constant(_) | Op::Undefined);
        if self.uses.get(&handle).is_some_and(|uses| *uses > 1) && !plain {
            let (name, ty) = (node_name(handle.index()), self.ty(handle)?);
            let _ = write!(self.statements, "let {name}: {ty} = {text};");
            text = name;
        }
        self.texts.insert(handle, text.clone());
        Some(text)
    }

    /// Cuts a text of the storage's width down to the node's.
    fn cut(&self, handle: NodeHandle, text: String) -> Option<String> {
        let width = self.width(handle)?;
        Some(match storage_bits(width)? {
            storage if storage == width => text,
            _ => format!("({text} & 0x{:x})", (1u128 << width) - 1),
        })
    }

    fn op(&mut self, handle: NodeHandle, node: &Node) -> Option<String> {
        let ty = self.ty(handle)?;
        let bit = ty == "bool";
        Some(match &node.op {
            Op::Input(index) => {
                let input = self.inputs.get(*index as usize)?;
                if bit { format!("({input} != 0)") } else { input.clone() }
            }
            Op::Constant(bits) => {
                self.width(handle)?;
                if bit { (bits.to_u64()? != 0).to_string() } else { format!("0x{:x}{ty}", bits.to_integer()) }
            }
            // Whatever is in a register is good enough.
            Op::Undefined => {
                self.width(handle)?;
                if bit { "false".to_owned() } else { format!("0{ty}") }
            }
            Op::Unary(UnaryOp::Not, a) => {
                self.width(handle)?;
                let a = self.node(*a)?;
                if bit { format!("(!{a})") } else { self.cut(handle, format!("(!{a})"))? }
            }
            Op::Unary(UnaryOp::LeadingZeros, a) => {
                let (width, a) = (self.width(handle)?, self.node(*a)?);
                let spare = storage_bits(width)? - width;
                format!("(({a}.leading_zeros() - {spare}) as {ty})")
            }
            Op::Unary(UnaryOp::PopulationCount, a) => format!("({}.count_ones() as {ty})", self.node(*a)?),
            Op::Binary(op, a, b) => self.binary(handle, *op, *a, *b)?,
            Op::Nary(op, list) => self.nary(handle, *op, list)?,
            Op::Select { condition, then, otherwise } => {
                let (condition, then, otherwise) = (self.node(*condition)?, self.node(*then)?, self.node(*otherwise)?);
                if !self.secret {
                    return Some(format!("(if {condition} {{ {then} }} else {{ {otherwise} }})"));
                }
                if bit || self.width(handle)? > 64 {
                    return None;
                }
                format!("(choose(u8::from({condition}), {then} as u64, {otherwise} as u64) as {ty})")
            }
            Op::Resize(a) => {
                let (from, to) = (self.width(*a)?, self.width(handle)?);
                let text = self.node(*a)?;
                match (from, to) {
                    (1, 1) => text,
                    (1, _) => format!("{ty}::from({text})"),
                    (_, 1) => format!("({text} & 1 != 0)"),
                    _ if to >= from => format!("({text} as {ty})"),
                    _ => self.cut(handle, format!("({text} as {ty})"))?,
                }
            }
            Op::ResizeSigned(a) => {
                let (from, _) = (self.width(*a)?, self.width(handle)?);
                let text = self.node(*a)?;
                if from == 1 || bit {
                    return None;
                }
                let signed = self.signed(*a, &text)?;
                self.cut(handle, format!("({signed} as {ty})"))?
            }
            Op::Reinterpret(a, order) => {
                let (from, to) = (self.shape(*a)?, self.shape(handle)?);
                let text = self.node(*a)?;
                let end = if *order == ByteOrder::Big { "be" } else { "le" };
                match (from, to) {
                    _ if from == to => text,
                    ((8, _), (width, 1)) if storage_bits(width)? == width => format!("{ty}::from_{end}_bytes({text})"),
                    ((width, 1), (8, _)) if storage_bits(width)? == width => format!("({text}).to_{end}_bytes()"),
                    _ => return None,
                }
            }
            Op::Load { address } => format!("({} as *const {ty}).read()", self.node(*address)?),
            _ => return None,
        })
    }

    /// The node's value as a signed integer of its storage's width.
    fn signed(&self, handle: NodeHandle, text: &str) -> Option<String> {
        let width = self.width(handle)?;
        let storage = storage_bits(width)?;
        let spare = storage - width;
        Some(if spare == 0 { format!("({text} as i{storage})") } else { format!("((({text} << {spare}) as i{storage}) >> {spare})") })
    }

    fn binary(&mut self, handle: NodeHandle, op: BinaryOp, a: NodeHandle, b: NodeHandle) -> Option<String> {
        let ty = self.ty(handle)?;
        let (a_width, b_width) = (self.width(a)?, self.width(b)?);
        let (left, right) = (self.node(a)?, self.node(b)?);
        if a_width == 1 && op != BinaryOp::Equal {
            return None;
        }
        Some(match op {
            BinaryOp::Equal => format!("({left} == {right})"),
            BinaryOp::Less => format!("({left} < {right})"),
            BinaryOp::LessSigned => format!("({} < {})", self.signed(a, &left)?, self.signed(b, &right)?),
            BinaryOp::Subtract => self.cut(handle, format!("{left}.wrapping_sub({right})"))?,
            BinaryOp::Multiply => self.cut(handle, format!("{left}.wrapping_mul({right})"))?,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::ShiftRightSigned | BinaryOp::RotateLeft => {
                let storage = storage_bits(a_width)?;
                let constant = match &self.body.nodes[b].op {
                    Op::Constant(bits) => bits.to_u64(),
                    _ => right.strip_suffix("u32").and_then(|digits| digits.parse().ok()),
                };
                match (op, constant) {
                    (BinaryOp::ShiftLeft, Some(count)) if count < u64::from(a_width) => self.cut(handle, format!("({left} << {count})"))?,
                    (BinaryOp::ShiftRight, Some(count)) if count < u64::from(a_width) => format!("({left} >> {count})"),
                    (BinaryOp::ShiftLeft | BinaryOp::ShiftRight, Some(_)) => format!("0{ty}"),
                    (BinaryOp::ShiftRightSigned, Some(count)) => {
                        let signed = self.signed(a, &left)?;
                        self.cut(handle, format!("(({signed} >> {}) as {ty})", count.min(u64::from(a_width) - 1)))?
                    }
                    (BinaryOp::RotateLeft, _) if storage == a_width && b_width <= 32 => format!("{left}.rotate_left({right} as u32)"),
                    // A distance below 64 fits a wider integer's shift, where nothing depends on its size.
                    (BinaryOp::ShiftLeft, None) if a_width <= 64 => {
                        self.cut(handle, format!("(wide_shift_left({left} as u64, {right} as u64) as {ty})"))?
                    }
                    (BinaryOp::ShiftRight, None) if a_width <= 64 => format!("(wide_shift_right({left} as u64, {right} as u64) as {ty})"),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    fn nary(&mut self, handle: NodeHandle, op: NaryOp, list: &[NodeHandle]) -> Option<String> {
        let bit = self.width(handle)? == 1;
        let texts: Vec<String> = list.iter().map(|operand| self.node(*operand)).collect::<Option<_>>()?;
        let joined = |sign: &str| format!("({})", texts.join(&format!(" {sign} ")));
        Some(match op {
            NaryOp::Add if bit => joined("^"),
            NaryOp::Add => {
                let (first, rest) = texts.split_first()?;
                let sum = rest.iter().fold(first.clone(), |sum, term| format!("{sum}.wrapping_add({term})"));
                self.cut(handle, sum)?
            }
            NaryOp::Xor => joined("^"),
            NaryOp::And => joined("&"),
            NaryOp::Or => joined("|"),
        })
    }
}

/// Functions that expressions call, for a file that holds such expressions: (name, text).
pub(crate) const HELPERS: [(&str, &str); 3] = [
    (
        "choose",
        "/// `then` where the condition is 1, `otherwise` where it is 0, without a branch.
        #[inline(always)]
        fn choose(condition: u8, then: u64, otherwise: u64) -> u64 {
            let mask = u64::from(core::hint::black_box(condition)).wrapping_neg();
            (then & mask) | (otherwise & !mask)
        }",
    ),
    (
        "wide_shift_left",
        "/// Zero where the distance is the width or more, without a branch.
        #[inline(always)]
        fn wide_shift_left(value: u64, distance: u64) -> u64 {
            let inside = core::hint::black_box(u8::from(distance < 64));
            (value << (distance & 63)) & u64::from(inside).wrapping_neg()
        }",
    ),
    (
        "wide_shift_right",
        "/// Zero where the distance is the width or more, without a branch.
        #[inline(always)]
        fn wide_shift_right(value: u64, distance: u64) -> u64 {
            let inside = core::hint::black_box(u8::from(distance < 64));
            (value >> (distance & 63)) & u64::from(inside).wrapping_neg()
        }",
    ),
];
