//! Random kernels for tests and fuzzing: texts of the language, typed by construction, one from each seed.
//!
//! What a seed gives is a spec as a user would write it, so that a failure is reproduced from its text alone. Expressions are made towards a wanted type; what
//! has no meaning for some input (an index out of range, an undefined result) is never written. Products of secrets in scalars are left out, since machines
//! may have no row of constant time for them.

use crate::bits::Bits;
use crate::interpret::{Argument, read_parameters};
use crate::kernel::Kernel;
use crate::types::{ByteOrder, Type};
use std::fmt::Write;

/// Numbers from a fixed sequence (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed; neighbouring seeds have nothing in common.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd129_0d3a_6f5b_1c87));
        random.word();
        random
    }

    /// The next number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `limit`, 0 where that is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (self.word() >> 32).checked_rem(u64::from(limit)).unwrap_or(0) as u32
    }

    fn one_in(&mut self, chances: u32) -> bool {
        self.below(chances) == 0
    }

    fn choose<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        list.get(self.below(list.len() as u32) as usize).cloned()
    }

    /// Bits of which now and then all are zeros or ones, or only the sign or a small number is set.
    pub fn bits(&mut self, width: u32) -> Bits {
        match self.below(10) {
            0 => Bits::zero(width),
            1 => Bits::ones(width),
            2 => {
                let mut sign = Bits::zero(width);
                sign.insert(width - 1, &Bits::ones(1));
                sign
            }
            3 => Bits::from_u64(width, u64::from(self.below(2 * width + 2))),
            _ => Bits::from_words(width, (0..width.div_ceil(64)).map(|_| self.word()).collect::<Vec<_>>()),
        }
    }
}

/// A value of the type, lane by lane; slices get so many elements.
pub fn random_argument(ty: &Type, slice_length: u32, random: &mut Random) -> Option<Argument> {
    let list = |element: &Type, length: u32, random: &mut Random| {
        (0..length).map(|_| random_argument(element, slice_length, random)).collect::<Option<Vec<_>>>().map(Argument::List)
    };
    match ty {
        Type::Bits { width, lanes } => {
            let mut all = Bits::zero(width * lanes);
            for lane in 0..*lanes {
                all.insert(lane * width, &random.bits(*width));
            }
            Some(Argument::Bits(all))
        }
        Type::Array { element, length } => list(element, *length, random),
        Type::Slice { element } => list(element, slice_length, random),
        Type::Natural { .. } | Type::Modulus { .. } | Type::Residue { .. } => None,
    }
}

/// A value's bytes as parameters hold it: lanes and elements in address order, each lane in whole bytes of this order.
pub fn argument_bytes(ty: &Type, argument: &Argument, order: ByteOrder) -> Option<Vec<u8>> {
    match (ty, argument) {
        (Type::Bits { width, lanes }, Argument::Bits(bits)) => {
            let mut bytes = Vec::new();
            for lane in 0..*lanes {
                let mut padded = Bits::zero(width.next_multiple_of(8));
                padded.insert(0, &bits.extract(lane * width, *width));
                let mut image = padded.to_bytes();
                if order == ByteOrder::Big {
                    image.reverse();
                }
                bytes.extend(image);
            }
            Some(bytes)
        }
        (Type::Array { element, .. } | Type::Slice { element }, Argument::List(list)) => {
            let parts: Option<Vec<Vec<u8>>> = list.iter().map(|item| argument_bytes(element, item, order)).collect();
            parts.map(|parts| parts.concat())
        }
        _ => None,
    }
}

/// Arguments for what a random kernel reads: parameters called as counts of rounds are small.
pub fn random_arguments(kernel: &Kernel, random: &mut Random) -> Option<Vec<Argument>> {
    let slice_length = random.below(4);
    read_parameters(kernel)
        .map(|parameter| {
            if parameter.name.starts_with(ROUNDS) {
                return Some(Argument::Bits(Bits::from_u64(parameter.ty.total_bits()?, u64::from(random.below(4)))));
            }
            random_argument(&parameter.ty, slice_length, random)
        })
        .collect()
}

/// Parameters whose name starts so are counts of rounds.
const ROUNDS: &str = "rounds";
/// Depth of expressions.
const DEPTH: u32 = 3;
/// Entries of tables and arrays.
const ENTRIES: u32 = 8;

const SCALARS: [u32; 4] = [8, 16, 32, 64];
/// Widths of values that never stand in memory.
const ODD: [u32; 6] = [1, 5, 13, 24, 33, 40];
const VECTORS: [(u32, u32); 12] =
    [(8, 16), (16, 8), (32, 4), (64, 2), (8, 16), (16, 8), (32, 4), (8, 32), (32, 8), (8, 8), (16, 4), (32, 2)];

/// The spec of this seed, one kernel called `random_SEED`.
pub fn random_kernel(seed: u64) -> String {
    let mut writer = Writer { random: Random::new(seed), tables: Vec::new(), names: Vec::new(), body: String::new(), next: 0 };
    writer.kernel(&format!("random_{seed}"))
}

#[derive(Clone)]
struct Name {
    text: String,
    ty: Type,
    /// A parameter, whose value nobody knows before the run.
    parameter: bool,
    public: bool,
}

struct Writer {
    random: Random,
    /// Width and text of the constant tables.
    tables: Vec<(u32, String)>,
    names: Vec<Name>,
    body: String,
    next: u32,
}

impl Writer {
    fn kernel(&mut self, name: &str) -> String {
        for index in 0..self.random.below(2) + 1 {
            let width = self.random.choose(&SCALARS).unwrap_or(8);
            let entries: Vec<String> = (0..ENTRIES).map(|_| self.random.bits(width).to_u64().unwrap_or(0).to_string()).collect();
            self.tables.push((width, format!("const TABLE_{index}: [u{width}; {ENTRIES}] = [{}]\n", entries.join(", "))));
        }
        let mapped = self.random.one_in(5);
        let mut parameters = Vec::new();
        let mut written = Vec::new();
        for index in 0..self.random.below(3) + 2 {
            let mut ty = self.memory_type();
            // Scalars wider than a register have no place among the arguments of 32-bit machines.
            if mapped && ty == Type::bits(64) {
                ty = Type::vector(64, 2);
            }
            let name = format!("p{index}");
            let public = self.random.one_in(5);
            let direction = if !mapped && (self.random.one_in(4) || ty == Type::bits(64)) { "inout " } else { "" };
            let align = if self.random.one_in(3) && ty.total_bits() != Some(8) { " align 16" } else { "" };
            let aligned = matches!(ty, Type::Bits { lanes: 2.., .. }) || direction == "inout ";
            let secret = if public { "" } else { " secret" };
            parameters.push(format!("{name}: {direction}{ty}{secret}{}", if aligned { align } else { "" }));
            if !direction.is_empty() {
                written.push((name.clone(), ty.clone()));
            }
            self.names.push(Name { text: name, ty, parameter: true, public: public && direction.is_empty() });
        }
        if self.random.one_in(3) {
            let width = self.random.choose(&[8, 16, 32]).unwrap_or(8);
            let public = self.random.one_in(2);
            parameters.push(format!("list: [u{width}; {ENTRIES}]{}", if public { "" } else { " secret" }));
            self.tables.push((width, String::new()));
        }
        if mapped {
            self.mapped(&mut parameters);
        } else {
            if self.random.one_in(3) {
                let width = self.random.choose(&[8, 32]).unwrap_or(8);
                parameters.push(format!("{ROUNDS}: u{width}"));
            }
            for _ in 0..self.random.below(4) + 1 {
                self.statement(parameters.iter().any(|parameter| parameter.starts_with(ROUNDS)));
            }
        }
        let mut result = String::new();
        if !mapped {
            for (name, ty) in written {
                let value = self.expression(&ty, DEPTH);
                let _ = writeln!(self.body, "    {name} = {value}");
            }
            let ty = self.memory_type();
            let value = self.expression(&ty, DEPTH);
            let _ = writeln!(self.body, "    {value}");
            result = format!(" -> {ty} secret{}", if self.random.one_in(3) { " align 16" } else { "" });
        }
        let tables: String = self.tables.iter().map(|(_, text)| text.as_str()).collect();
        format!("{tables}kernel {name}({}){result} {{\n{}}}\n", parameters.join(", "), self.body)
    }

    /// A loop over slices of one length; the first one is written.
    fn mapped(&mut self, parameters: &mut Vec<String>) {
        let first = self.vector_type();
        parameters.push(format!("blocks: inout [{first}] secret"));
        let mut heads = vec!["block in blocks".to_owned()];
        let outer = self.names.clone();
        // What is written through stays as it was for the map.
        self.names.push(Name { text: "block".to_owned(), ty: first.clone(), parameter: true, public: false });
        if self.random.one_in(2) {
            let second = self.memory_type();
            parameters.push(format!("others: [{second}] secret"));
            heads.push("other in others".to_owned());
            self.names.push(Name { text: "other".to_owned(), ty: second, parameter: true, public: false });
        }
        let _ = writeln!(self.body, "    map {} {{", heads.join(", "));
        for _ in 0..self.random.below(2) {
            let ty = self.any_type();
            self.bind(&ty);
        }
        let value = self.expression(&first, DEPTH);
        let _ = writeln!(self.body, "    block = {value}\n    }}");
        self.names = outer;
    }

    fn bind(&mut self, ty: &Type) -> String {
        let value = self.expression(ty, DEPTH);
        let text = format!("t{}", self.next);
        self.next += 1;
        let _ = writeln!(self.body, "    {text} = {value}");
        self.names.push(Name { text: text.clone(), ty: ty.clone(), parameter: false, public: false });
        text
    }

    fn statement(&mut self, has_rounds: bool) {
        let ty = self.any_type();
        let name = self.bind(&ty);
        match self.random.below(8) {
            0 | 1 => {
                let count = if has_rounds { ROUNDS.to_owned() } else { (self.random.below(4) + 1).to_string() };
                let head = if self.random.one_in(3) { "for r in 0..3".to_owned() } else { format!("loop r in 0..{count}") };
                let outer = self.names.clone();
                let value = self.expression(&ty, DEPTH - 1);
                let _ = writeln!(self.body, "    {head} {{ {name} = {value} }}");
                self.names = outer;
            }
            2 if matches!(ty, Type::Bits { width: 8.., lanes: 2.. }) => {
                let Type::Bits { width, lanes } = ty else { return };
                let (lane, value) = (self.random.below(lanes), self.expression(&Type::bits(width), 1));
                let _ = writeln!(self.body, "    {name}[{lane}] = {value}");
            }
            _ => {}
        }
    }

    fn vector_type(&mut self) -> Type {
        let (width, lanes) = self.random.choose(&VECTORS).unwrap_or((8, 16));
        Type::vector(width, lanes)
    }

    fn memory_type(&mut self) -> Type {
        if self.random.one_in(3) { Type::bits(self.random.choose(&SCALARS).unwrap_or(8)) } else { self.vector_type() }
    }

    fn any_type(&mut self) -> Type {
        match self.random.below(5) {
            0 => Type::bits(self.random.choose(&ODD).unwrap_or(8)),
            _ => self.memory_type(),
        }
    }

    // ---- expressions

    fn expression(&mut self, ty: &Type, depth: u32) -> String {
        let Type::Bits { width, lanes } = *ty else { return String::new() };
        if depth == 0 || self.random.one_in(6) {
            return self.leaf(width, lanes);
        }
        for _ in 0..4 {
            let made = match (width, lanes) {
                (1, _) => Some(self.truth(lanes, depth - 1)),
                (_, 1) => self.scalar(width, depth - 1),
                _ => self.vector(width, lanes, depth - 1),
            };
            if let Some(text) = made {
                return text;
            }
        }
        self.leaf(width, lanes)
    }

    fn leaf(&mut self, width: u32, lanes: u32) -> String {
        let ty = if lanes == 1 { Type::bits(width) } else { Type::vector(width, lanes) };
        let known: Vec<String> = self.names.iter().filter(|name| name.ty == ty).map(|name| name.text.clone()).collect();
        if let Some(name) = self.random.choose(&known) {
            return name;
        }
        // A lane of a vector, a number of another width, lanes of another vector, before constants.
        let others: Vec<Name> = self.names.iter().filter(|name| matches!(name.ty, Type::Bits { .. })).cloned().collect();
        let other = self.random.choose(&others).map(|name| (name.text, name.ty));
        match other {
            Some((text, Type::Bits { width: from, lanes: 1 })) if lanes == 1 => resized(&text, from, width),
            Some((text, Type::Bits { width: from, lanes: of })) if lanes == 1 => {
                let lane = self.random.below(of);
                resized(&format!("{text}[{lane}]"), from, width)
            }
            Some((text, Type::Bits { width: from, lanes: of })) if of == lanes => resized(&text, from, width),
            _ => self.constant(width, lanes),
        }
    }

    fn constant(&mut self, width: u32, lanes: u32) -> String {
        let ty = if lanes == 1 { Type::bits(width) } else { Type::vector(width, lanes) };
        let number = |random: &mut Random| random.bits(width).to_u64().unwrap_or(1).to_string();
        if lanes == 1 || self.random.one_in(2) {
            return format!("{ty}({})", number(&mut self.random));
        }
        let list: Vec<String> = (0..lanes).map(|_| number(&mut self.random)).collect();
        format!("{ty}([{}])", list.join(", "))
    }

    /// A parameter, or a lane of one, as a count of shifts that is not known before the run.
    fn count(&mut self) -> Option<String> {
        let known: Vec<Name> = self.names.iter().filter(|name| name.parameter).cloned().collect();
        let name = self.random.choose(&known)?;
        let Type::Bits { lanes, .. } = name.ty else { return None };
        let text = if lanes == 1 { name.text } else { format!("{}[{}]", name.text, self.random.below(lanes)) };
        // Mostly counts that are in range somewhere.
        Some(if self.random.one_in(2) { text } else { format!("({text} & 31)") })
    }

    fn index(&mut self, limit: u32) -> String {
        let width = self.random.choose(&[8, 16, 32]).unwrap_or(8);
        format!("({} & {})", self.expression(&Type::bits(width), 1), limit - 1)
    }

    fn truth(&mut self, lanes: u32, depth: u32) -> String {
        let ty = if lanes == 1 { Type::bits(1) } else { Type::vector(1, lanes) };
        if self.random.one_in(4) {
            let (a, b) = (self.expression(&ty, depth), self.expression(&ty, depth));
            let op = self.random.choose(&["&", "|", "^"]).unwrap_or("&");
            return if self.random.one_in(3) { format!("~{a}") } else { format!("({a} {op} {b})") };
        }
        let width = match lanes {
            1 => self.random.choose(&[8, 16, 32, 64, 13, 33]),
            2 => self.random.choose(&[32, 64]),
            4 => self.random.choose(&[16, 32]),
            8 => self.random.choose(&[8, 16, 32]),
            _ => Some(8),
        };
        let of = Type::vector(width.unwrap_or(8), lanes);
        if lanes == 1 && self.random.one_in(4) {
            let Type::Bits { width, .. } = of else { return String::new() };
            let bit = self.random.below(width);
            let bound = self.expression(&of, depth);
            return format!("trunc({bound} >> {bit}, 1)");
        }
        let (a, b) = (self.expression(&of, depth), self.expression(&of, depth));
        if self.random.one_in(4) {
            return format!("slt({a}, {b})");
        }
        let op = self.random.choose(&["==", "!=", "<", "<=", ">", ">="]).unwrap_or("<");
        format!("({a} {op} {b})")
    }

    /// What works lane by lane for every width.
    fn common(&mut self, ty: &Type, depth: u32) -> Option<String> {
        let Type::Bits { width, lanes } = *ty else { return None };
        let a = self.expression(ty, depth);
        match self.random.below(12) {
            0..=3 => {
                let op = self.random.choose(&["+", "-", "&", "|", "^", "+", "^"])?;
                Some(format!("({a} {op} {})", self.expression(ty, depth)))
            }
            4 => Some(format!("~{a}")),
            5 => {
                let (op, count) = (self.random.choose(&["<<", ">>"])?, self.random.below(width));
                Some(format!("({a} {op} {count})"))
            }
            6 => {
                let (function, count) = (self.random.choose(&["rotl", "rotr", "sar"])?, self.random.below(width));
                Some(format!("{function}({a}, {count})"))
            }
            7 => {
                let count = self.count()?;
                Some(match self.random.choose(&["<<", ">>", "rotl", "sar"])? {
                    op @ ("<<" | ">>") => format!("({a} {op} {count})"),
                    function => format!("{function}({a}, {count})"),
                })
            }
            8 | 9 => {
                let condition = if lanes > 1 && !self.random.one_in(4) { Type::vector(1, lanes) } else { Type::bits(1) };
                let condition = self.expression(&condition, depth);
                Some(format!("select({condition}, {a}, {})", self.expression(ty, depth)))
            }
            10 => {
                let function = self.random.choose(&["min", "max", "smin", "smax"])?;
                Some(format!("{function}({a}, {})", self.expression(ty, depth)))
            }
            _ => {
                let from =
                    if lanes == 1 { self.random.choose(&[1, 8, 13, 16, 32, 33, 64])? } else { self.random.choose(&[8, 16, 32, 64])? };
                let value = self.expression(&Type::vector(from, lanes), depth);
                Some(if from < width && self.random.one_in(2) { format!("sext({value}, {width})") } else { resized(&value, from, width) })
            }
        }
    }

    fn scalar(&mut self, width: u32, depth: u32) -> Option<String> {
        let ty = Type::bits(width);
        match self.random.below(12) {
            0 => {
                let tables: Vec<usize> = (0..self.tables.len()).filter(|table| self.tables[*table].0 == width).collect();
                let table = self.random.choose(&tables)?;
                let index = self.index(ENTRIES);
                Some(if self.tables[table].1.is_empty() { format!("list[{index}]") } else { format!("TABLE_{table}[{index}]") })
            }
            1 => {
                let lanes: Vec<u32> = VECTORS.iter().filter(|(of, _)| *of == width).map(|(_, lanes)| *lanes).collect();
                let lanes = self.random.choose(&lanes)?;
                let index = if self.random.one_in(3) { self.index(lanes) } else { self.random.below(lanes).to_string() };
                Some(format!("{}[{index}]", self.expression(&Type::vector(width, lanes), depth)))
            }
            2 if [16, 32, 64].contains(&width) => {
                let order = self.random.choose(&["be", "le"])?;
                let bytes = self.expression(&Type::vector(8, width / 8), 0);
                Some(format!("{order}{width}({bytes})"))
            }
            3 => {
                let lanes: Vec<u32> = VECTORS.iter().filter(|(of, _)| *of == width).map(|(_, lanes)| *lanes).collect();
                let lanes = self.random.choose(&lanes)?;
                let ty = Type::vector(width, lanes);
                let name = self.names.iter().find(|name| name.ty == ty)?.text.clone();
                let fold = self.random.choose(&["sum", "xor", "and", "or"])?;
                Some(format!("{fold}(i in 0..{lanes}: {name}[i])"))
            }
            4 => {
                let public: Vec<String> =
                    self.names.iter().filter(|name| name.public && name.ty == ty && width <= 32).map(|name| name.text.clone()).collect();
                let (a, b) = (self.random.choose(&public)?, self.random.choose(&public)?);
                Some(format!("({a} * ({b} ^ {}))", self.random.below(9)))
            }
            5 => {
                // A carry as a number.
                let (a, b) = (self.expression(&ty, depth), self.expression(&ty, depth));
                let wide = width + 1;
                Some(resized(&format!("((zext({a}, {wide}) + zext({b}, {wide})) >> {width})"), wide, width))
            }
            6 if width > 8 => {
                let from = self.random.choose(&[64, 40, 33].map(|from: u32| from.max(width + 3)))?;
                let start = self.random.below(from - width + 1);
                let value = self.expression(&Type::bits(from), 0);
                Some(format!("{value}[{start}..{}]", start + width))
            }
            _ => self.common(&ty, depth),
        }
    }

    fn vector(&mut self, width: u32, lanes: u32, depth: u32) -> Option<String> {
        let ty = Type::vector(width, lanes);
        match self.random.below(14) {
            0 => {
                let names: Vec<String> = self.names.iter().filter(|name| name.ty == ty).map(|name| name.text.clone()).collect();
                let name = self.random.choose(&names)?;
                let (step, start) = (self.random.choose(&[1, 3, 5, 7])?, self.random.below(lanes));
                Some(format!("{ty}([i in 0..{lanes}: {name}[(i * {step} + {start}) % {lanes}]])"))
            }
            1 => {
                let names: Vec<Name> = self
                    .names
                    .iter()
                    .filter(|name| matches!(name.ty, Type::Bits { width: of, lanes: 2.. } if of == width))
                    .cloned()
                    .collect();
                let mut list = Vec::new();
                for _ in 0..lanes {
                    let name = self.random.choose(&names)?;
                    let Type::Bits { lanes: of, .. } = name.ty else { return None };
                    list.push(format!("{}[{}]", name.text, self.random.below(of)));
                }
                Some(format!("{ty}([{}])", list.join(", ")))
            }
            2 if lanes > 2 => {
                let half = Type::vector(width, lanes / 2);
                Some(format!("({} ++ {})", self.expression(&half, depth), self.expression(&half, depth)))
            }
            3 if lanes <= 16 => {
                let start = self.random.below(lanes + 1);
                Some(format!("({})[{start}..{}]", self.expression(&Type::vector(width, 2 * lanes), depth), start + lanes))
            }
            4 => {
                let bytes = width / 8 * lanes;
                let from = self.random.choose(&[8, 16, 32, 64])?;
                let order = self.random.choose(&["be", "le"])?;
                if from == width || bytes < from / 4 {
                    return None;
                }
                let value = self.expression(&Type::vector(from, bytes * 8 / from), depth);
                Some(if width == 8 && self.random.one_in(2) {
                    format!("bytes_{order}({value})")
                } else if width == 8 || from == 8 {
                    format!("({value}).{order}{width}x{lanes}")
                } else {
                    return None;
                })
            }
            5 => {
                let tables: Vec<usize> =
                    (0..self.tables.len()).filter(|table| self.tables[*table].0 == width && !self.tables[*table].1.is_empty()).collect();
                let table = self.random.choose(&tables)?;
                Some(format!("TABLE_{table}[{} & {}]", self.expression(&ty, depth), ENTRIES - 1))
            }
            6 if [16, 32].contains(&width) => Some(format!("({} * {})", self.expression(&ty, depth), self.expression(&ty, depth))),
            7 if [16, 32].contains(&width) => {
                let half = Type::vector(width / 2, lanes);
                Some(format!("(wide({}) * wide({}))", self.expression(&half, depth), self.expression(&half, depth)))
            }
            8 => {
                let function = self.random.choose(&["<<", ">>", "sar", "rotl"])?;
                let (a, b) = (self.expression(&ty, depth), self.leaf_parameter(&ty)?);
                let b = if self.random.one_in(2) { format!("({b} & {})", width - 1) } else { b };
                Some(if function.len() == 2 { format!("({a} {function} {b})") } else { format!("{function}({a}, {b})") })
            }
            9 if lanes <= 8 => {
                let list: Vec<String> = (0..lanes).map(|_| self.expression(&Type::bits(width), 1)).collect();
                Some(format!("{ty}([{}])", list.join(", ")))
            }
            _ => self.common(&ty, depth),
        }
    }

    fn leaf_parameter(&mut self, ty: &Type) -> Option<String> {
        let known: Vec<String> = self.names.iter().filter(|name| name.parameter && name.ty == *ty).map(|name| name.text.clone()).collect();
        self.random.choose(&known)
    }
}

/// A value of lanes of `from` bits with lanes of `to` bits, zero filled or cut.
fn resized(value: &str, from: u32, to: u32) -> String {
    match from.cmp(&to) {
        std::cmp::Ordering::Less => format!("zext({value}, {to})"),
        std::cmp::Ordering::Equal => value.to_owned(),
        std::cmp::Ordering::Greater => format!("trunc({value}, {to})"),
    }
}
