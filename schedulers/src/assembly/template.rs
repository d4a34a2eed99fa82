//! Templates of assembly text: literal characters and holes, matched against a line from left to right.

use super::expression::{Definitions, expression};
use crate::code::CodeOperand;
use crate::machine::{AliasValue, FileId, Machine, OperandKind, Row, RowId, UnitId};

/// A piece of a template behind the mnemonic.
#[derive(Clone, Debug)]
enum Piece {
    /// These characters; white space in the line does not matter.
    Literal(String),
    /// Operand number n of the row.
    Operand(usize),
    /// The name of a unit of the row.
    Unit,
}

/// A template of a row, ready to be matched.
#[derive(Clone, Debug)]
pub struct Template {
    /// The row.
    pub row: RowId,
    /// First word of the template.
    pub mnemonic: String,
    pieces: Vec<Piece>,
    given: Vec<(u32, AliasValue)>,
}

/// What a line matched.
#[derive(Clone, Debug)]
pub struct Match {
    /// The row.
    pub row: RowId,
    /// Explicit operands.
    pub operands: Vec<CodeOperand>,
    /// The unit, where the text names it.
    pub unit: Option<UnitId>,
}

/// Why a line did not match, and how far it did.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Byte of the line's operand part.
    pub at: usize,
    /// What was expected there.
    pub expected: String,
}

/// Spellings of a file's registers as (before, after) the number.
fn spellings(machine: &Machine, file: FileId) -> impl Iterator<Item = (&str, &str)> {
    let file = &machine[file];
    std::iter::once(&file.text).chain(&file.spellings).map(|text| text.split_once("{n}").unwrap_or((text, "")))
}

impl Template {
    /// The templates of a row: its text, then its aliases.
    pub fn of_row(row_id: RowId, row: &Row) -> Vec<Template> {
        let own = row.assembly.iter().map(|text| (text.as_str(), Vec::new()));
        let aliases = row.aliases.iter().map(|alias| (alias.template.as_str(), alias.given.clone()));
        own.chain(aliases).map(|(text, given)| Template::new(row_id, row, text, given)).collect()
    }

    fn new(row_id: RowId, row: &Row, text: &str, given: Vec<(u32, AliasValue)>) -> Self {
        let (mnemonic, mut rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut pieces = Vec::new();
        while let Some((literal, (name, after))) = rest.split_once('{').and_then(|(before, from)| Some((before, from.split_once('}')?))) {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
            // The target reader has refused names that are no operands.
            pieces.push(match row.operands.iter().position(|operand| operand.name == name) {
                Some(index) => Piece::Operand(index),
                None => Piece::Unit,
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.to_owned()));
        }
        Self { row: row_id, mnemonic: mnemonic.to_owned(), pieces, given }
    }

    /// Matches what stands behind the mnemonic.
    pub fn matches(&self, machine: &Machine, definitions: &Definitions, text: &str) -> Result<Match, Mismatch> {
        let row = &machine[self.row];
        let mut found: Vec<Option<CodeOperand>> = vec![None; row.operands.len()];
        let mut unit = None;
        let mut at = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => at = literal_at(text, at, literal)?,
                Piece::Operand(index) => {
                    at = skip_space(text, at);
                    let (operand, length) = hole(machine, &row.operands[*index].kind, definitions, &text[at..])
                        .map_err(|expected| Mismatch { at, expected })?;
                    // One operand may stand twice in a text (a modified base); both must be the same.
                    match &found[*index] {
                        Some(before) if *before != operand => {
                            return Err(Mismatch { at, expected: format!("the same as operand `{}` before", row.operands[*index].name) });
                        }
                        _ => found[*index] = Some(operand),
                    }
                    at += length;
                }
                Piece::Unit => {
                    at = skip_space(text, at);
                    // The longest, since one unit's name may begin another's.
                    let fitting = row.timing.units.iter().filter(|unit| text[at..].starts_with(machine[**unit].name.as_str()));
                    let Some(named) = fitting.max_by_key(|unit| machine[**unit].name.len()) else {
                        return Err(Mismatch { at, expected: "a unit of this instruction".to_owned() });
                    };
                    unit = Some(*named);
                    at += machine[*named].name.len();
                }
            }
        }
        at = skip_space(text, at);
        if at < text.len() {
            return Err(Mismatch { at, expected: "the end of the instruction".to_owned() });
        }
        self.complete(machine, &mut found, text.len())?;
        let operands = row.explicit_operands().filter_map(|(index, _)| found[index].take()).collect();
        Ok(Match { row: self.row, operands, unit })
    }

    /// Fills in what an alias leaves out.
    fn complete(&self, machine: &Machine, found: &mut [Option<CodeOperand>], at: usize) -> Result<(), Mismatch> {
        let row = &machine[self.row];
        for (index, value) in &self.given {
            let kind = &row.operands[*index as usize].kind;
            found[*index as usize] = match value {
                AliasValue::Operand(other) => found[*other as usize].clone(),
                AliasValue::Number(number) => match kind {
                    OperandKind::Register(file) => u32::try_from(*number).ok().map(|number| CodeOperand::Register(*file, number)),
                    OperandKind::RegisterOrZero(file) => u32::try_from(*number).ok().map(|number| register_or_zero(machine, *file, number)),
                    _ => Some(CodeOperand::Immediate(*number)),
                },
            };
        }
        for (index, operand) in row.explicit_operands() {
            if found[index].is_none() {
                return Err(Mismatch { at, expected: format!("operand `{}`", operand.name) });
            }
        }
        Ok(())
    }

    /// Appends the text of an instruction: operands of the row, `None` for implicit ones.
    pub fn write(&self, machine: &Machine, operands: &[Option<&CodeOperand>], unit: Option<UnitId>, text: &mut String) {
        text.push_str(&self.mnemonic);
        for (number, piece) in self.pieces.iter().enumerate() {
            if number == 0 {
                text.push(' ');
            }
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Operand(index) => {
                    if let Some(operand) = operands.get(*index).copied().flatten() {
                        write_operand(machine, &machine[self.row].operands[*index].kind, operand, text);
                    }
                }
                Piece::Unit => {
                    let unit = unit.or_else(|| machine[self.row].timing.units.first().copied());
                    text.push_str(unit.map_or("", |unit| &machine[unit].name));
                }
            }
        }
    }
}

fn write_operand(machine: &Machine, kind: &OperandKind, operand: &CodeOperand, text: &mut String) {
    match (operand, kind) {
        (CodeOperand::Register(file, number), _) => text.push_str(&machine[*file].text.replace("{n}", &number.to_string())),
        (CodeOperand::Zero, OperandKind::Register(file) | OperandKind::RegisterOrZero(file)) => {
            let zero = machine[*file].zero_in_base.unwrap_or(0);
            text.push_str(&machine[*file].text.replace("{n}", &zero.to_string()));
        }
        (CodeOperand::Zero, _) => text.push('0'),
        (CodeOperand::Immediate(value), _) => text.push_str(&value.to_string()),
        (CodeOperand::Label(name), _) => text.push_str(name),
        (CodeOperand::Symbol(name, 0), _) => text.push_str(name),
        (CodeOperand::Symbol(name, offset), _) => text.push_str(&format!("{name}+{offset}")),
    }
}

fn register_or_zero(machine: &Machine, file: FileId, number: u32) -> CodeOperand {
    if machine[file].zero_in_base == Some(number) { CodeOperand::Zero } else { CodeOperand::Register(file, number) }
}

fn skip_space(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}

fn literal_at(text: &str, mut at: usize, literal: &str) -> Result<usize, Mismatch> {
    for character in literal.chars().filter(|character| !character.is_whitespace()) {
        at = skip_space(text, at);
        if !text[at..].starts_with(character) {
            return Err(Mismatch { at, expected: format!("`{}`", literal.trim()) });
        }
        at += character.len_utf8();
    }
    Ok(at)
}

/// Length of the identifier that the text starts with.
pub fn identifier_length(text: &str) -> usize {
    text.find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '.' | '$'))).unwrap_or(text.len())
}

/// Reads one operand and says how long it is, or what was expected.
fn hole(machine: &Machine, kind: &OperandKind, definitions: &Definitions, text: &str) -> Result<(CodeOperand, usize), String> {
    match kind {
        OperandKind::Register(file) => {
            let (number, length) = register(machine, *file, text)?;
            Ok((CodeOperand::Register(*file, number), length))
        }
        OperandKind::RegisterOrZero(file) => {
            let (number, length) = register(machine, *file, text)?;
            Ok((register_or_zero(machine, *file, number), length))
        }
        OperandKind::Immediate { low, high, step } => {
            let (value, length) = expression(definitions, text).ok_or("a constant")?;
            let fits = (*low..*high).contains(&i128::from(value)) && i128::from(value) % step == 0;
            if !fits {
                let steps = if *step == 1 { String::new() } else { format!(" in steps of {step}") };
                return Err(format!("a constant in {low} … {}{steps}, not {value}", high - 1));
            }
            Ok((CodeOperand::Immediate(value), length))
        }
        OperandKind::Label => {
            let length = identifier_length(text);
            if length == 0 {
                return Err("a label".to_owned());
            }
            Ok((CodeOperand::Label(text[..length].to_owned()), length))
        }
        OperandKind::Symbol => {
            let length = identifier_length(text);
            if length == 0 || text.starts_with(|character: char| character.is_ascii_digit()) {
                return Err("a symbol".to_owned());
            }
            // `+8` belongs to the symbol; `-label` is the template's affair.
            let (offset, more) = match text[length..].strip_prefix('+') {
                Some(rest) => {
                    let (value, more) = expression(definitions, rest).ok_or("an offset")?;
                    (u64::try_from(value).map_err(|_| "an offset that is not negative")?, more + 1)
                }
                None => (0, 0),
            };
            Ok((CodeOperand::Symbol(text[..length].to_owned(), offset), length + more))
        }
    }
}

fn register(machine: &Machine, file: FileId, text: &str) -> Result<(u32, usize), String> {
    let name = &machine[file].name;
    for (before, after) in spellings(machine, file) {
        let Some(rest) = text.strip_prefix(before) else { continue };
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let Some(end) = rest[digits..].strip_prefix(after) else { continue };
        if digits == 0 || identifier_length(end) > 0 {
            continue;
        }
        let Ok(number) = rest[..digits].parse::<u32>() else { continue };
        if machine[file].count.is_some_and(|count| number >= count) {
            return Err(format!("a register of file `{name}`, of which {number} is none"));
        }
        return Ok((number, before.len() + digits + after.len()));
    }
    Err(format!("a register of file `{name}`"))
}
