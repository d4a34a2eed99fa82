//! Operands of rows: their declaration, and from the meaning's text which of them are read and written.

use super::cursor::{Cursor, Token};
use super::sections::file_id;
use crate::machine::{Machine, OperandKind, RowOperand};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::meaning::MeaningOperand;
use kgen_ir::types::Type;
use logos::Logos;

/// Reads `NAME:KIND` as often as it stands there.
pub fn operands(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<Vec<RowOperand>> {
    let mut list: Vec<RowOperand> = Vec::new();
    while matches!((cursor.peek(0), cursor.peek(1)), (Some(Token::Word(_)), Some(Token::Colon))) {
        let name = cursor.word("an operand")?;
        if list.iter().any(|operand| operand.name == name) {
            let span = cursor.last_span();
            cursor.errors.push(Diagnostic::error("duplicate-name", span, format!("there are two operands `{name}`")));
        }
        cursor.next();
        let operand = operand(cursor, machine, &list, name)?;
        list.push(operand);
    }
    Some(list)
}

fn operand(cursor: &mut Cursor<'_>, machine: &Machine, before: &[RowOperand], name: String) -> Option<RowOperand> {
    let mut operand = RowOperand {
        name,
        kind: OperandKind::Label,
        read: false,
        written: false,
        tied: None,
        early_clobber: false,
        implicit: false,
        fixed_register: None,
        tuple: 1,
    };
    if matches!(cursor.peek(0), Some(Token::Number(_))) {
        let span = cursor.span();
        let low = cursor.number("the least value")?;
        if !cursor.take(&Token::Range) {
            return cursor.expected("`..` and one past the greatest value");
        }
        let high = cursor.number("one past the greatest value")?;
        let step = if cursor.take(&Token::Slash) { cursor.number("a step")? } else { 1 };
        if low >= high || step < 1 || low % step != 0 {
            cursor.errors.push(Diagnostic::error("immediate-range", span.join(cursor.last_span()), "the range holds no value"));
        }
        operand.kind = OperandKind::Immediate { low, high, step };
        return Some(operand);
    }
    if cursor.take_word("label") {
        return Some(operand);
    }
    if cursor.take_word("symbol") {
        operand.kind = OperandKind::Symbol;
        return Some(operand);
    }
    let file = file_id(cursor, machine)?;
    operand.kind = OperandKind::Register(file);
    loop {
        let span = cursor.span();
        if cursor.take(&Token::Bar) {
            cursor.number("0")?;
            operand.kind = OperandKind::RegisterOrZero(file);
            if machine[file].zero_in_base.is_none() {
                let message = format!("register file `{}` does not say which register means zero", machine[file].name);
                cursor.errors.push(Diagnostic::error("register-zero", span, message).help("add `zero N` to the file"));
            }
        } else if cursor.take(&Token::Star) {
            operand.tuple = cursor.small("the tuple's length")?;
            if !machine[file].tuples.iter().any(|(length, _)| *length == operand.tuple) {
                let message = format!("register file `{}` has no tuples of {}", machine[file].name, operand.tuple);
                cursor.errors.push(Diagnostic::error("register-tuple", span, message).help("add `tuple LENGTH ALIGNMENT` to the file"));
            }
        } else if cursor.take(&Token::At) {
            let number = cursor.small("a register's number")?;
            if machine[file].count.is_some_and(|count| number >= count) {
                let message = format!("register file `{}` has no register {number}", machine[file].name);
                cursor.errors.push(Diagnostic::error("register-number", span, message));
            }
            operand.fixed_register = Some(number);
        } else if cursor.take(&Token::Equals) {
            let result = cursor.word("a result")?;
            match before.iter().position(|other| other.name == result) {
                Some(index) => operand.tied = Some(index as u32),
                None => {
                    let known: Vec<&str> = before.iter().map(|other| other.name.as_str()).collect();
                    cursor.unknown("operand before this one", &result, &known);
                }
            }
        } else if cursor.take(&Token::Bang) {
            operand.early_clobber = true;
        } else {
            return Some(operand);
        }
    }
}

/// Words of a meaning, just enough to see which names it uses.
#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t]+")]
enum Word {
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Name,
    // A view or a number says nothing of operands.
    #[regex(r"\.[A-Za-z_][A-Za-z0-9_]*")]
    View,
    #[regex(r"[0-9][A-Za-z0-9_]*")]
    Number,
    #[regex(r"[\n;]")]
    End,
    #[token("[")]
    Open,
    #[token("]")]
    Close,
    #[regex(r"==|!=|<=|>=|\.\.")]
    Relation,
    #[token("=")]
    Assign,
    #[regex(r#"[^\sA-Za-z0-9_=\[\];]"#, priority = 0)]
    Other,
}

/// Marks the operands that the meaning reads and writes: a name at the start of a statement, perhaps viewed, before `=` is written; any other is read.
pub fn directions(meaning: &str, operands: &mut [RowOperand]) {
    let words: Vec<(Word, &str)> = Word::lexer(meaning).spanned().filter_map(|(word, range)| Some((word.ok()?, &meaning[range]))).collect();
    let mut start = true;
    for (index, (word, text)) in words.iter().enumerate() {
        if *word == Word::Name
            && let Some(operand) = operands.iter_mut().find(|operand| operand.name == *text)
        {
            let viewed = words.get(index + 1).is_some_and(|(word, _)| *word == Word::View);
            let assigned = start && words.get(index + 1 + usize::from(viewed)).is_some_and(|(word, _)| *word == Word::Assign);
            if assigned {
                operand.written = true;
            } else {
                operand.read = true;
            }
        }
        start = *word == Word::End;
    }
}

/// The operands as the meaning sees them.
pub fn meaning_operands(machine: &Machine, operands: &[RowOperand]) -> Vec<MeaningOperand> {
    let list = operands.iter().map(|operand| MeaningOperand {
        name: operand.name.clone(),
        ty: operand_type(machine, operand),
        read: operand.read,
        written: operand.written,
    });
    list.collect()
}

/// The type of an operand in the meaning.
pub fn operand_type(machine: &Machine, operand: &RowOperand) -> Type {
    match operand.kind {
        OperandKind::Register(file) | OperandKind::RegisterOrZero(file) => machine[file].value_type(operand.tuple),
        OperandKind::Immediate { .. } | OperandKind::Label | OperandKind::Symbol => Type::bits(machine.word_bits),
    }
}
