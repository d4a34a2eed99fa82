//! The words of one line of a target file, read from left to right; mistakes are collected, not returned.

use super::mapped::MappedText;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::Span;
use logos::Logos;
use std::ops::Range;

/// A word of a line.
#[derive(Logos, Clone, Debug, PartialEq)]
#[logos(skip r"[ \n]+")]
pub enum Token {
    /// A name; mnemonics may end in a full stop, forms hold hyphens.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*\.?", |lexer| lexer.slice().to_owned())]
    Word(String),
    /// A whole number.
    #[regex(r"-?[0-9][0-9_]*", |lexer| lexer.slice().replace('_', "").parse::<i128>().ok())]
    #[regex(r"-?0x[0-9a-fA-F_]+", hexadecimal)]
    Number(i128),
    /// A quoted text.
    #[regex(r#""([^"\\]|\\.)*""#, unquoted)]
    Text(String),
    /// `..`
    #[token("..")]
    Range,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `=`
    #[token("=")]
    Equals,
    /// `|`
    #[token("|")]
    Bar,
    /// `/`
    #[token("/")]
    Slash,
    /// `*`
    #[token("*")]
    Star,
    /// `@`
    #[token("@")]
    At,
    /// `!`
    #[token("!")]
    Bang,
}

fn hexadecimal(lexer: &mut logos::Lexer<'_, Token>) -> Option<i128> {
    let digits = lexer.slice().replace('_', "");
    match digits.strip_prefix('-') {
        Some(rest) => i128::from_str_radix(rest.trim_start_matches("0x"), 16).ok().map(|number| -number),
        None => i128::from_str_radix(digits.trim_start_matches("0x"), 16).ok(),
    }
}

fn unquoted(lexer: &mut logos::Lexer<'_, Token>) -> String {
    let slice = lexer.slice();
    let mut text = String::new();
    let mut characters = slice[1..slice.len() - 1].chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    text
}

/// The most numbers that a range in a list may stand for; register files are far smaller.
const NUMBERS_LIMIT: u32 = 4096;

/// A line under reading.
pub struct Cursor<'a> {
    line: &'a MappedText,
    tokens: Vec<(Token, Range<usize>)>,
    position: usize,
    /// Where mistakes go.
    pub errors: &'a mut Vec<Diagnostic>,
}

impl<'a> Cursor<'a> {
    /// The words of a line.
    pub fn new(line: &'a MappedText, errors: &'a mut Vec<Diagnostic>) -> Self {
        let mut tokens = Vec::new();
        for (token, range) in Token::lexer(&line.text).spanned() {
            match token {
                Ok(token) => tokens.push((token, range)),
                Err(()) => {
                    let message = format!("`{}` is no word, number or sign of target files", &line.text[range.clone()]);
                    errors.push(Diagnostic::error("target-token", line.span(range), message));
                }
            }
        }
        Self { line, tokens, position: 0, errors }
    }

    /// Whether everything is read.
    pub fn at_end(&self) -> bool {
        self.position >= self.tokens.len()
    }

    /// The token `ahead` places on.
    pub fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.position + ahead).map(|(token, _)| token)
    }

    /// The place of the next token, or the end of the line.
    pub fn span(&self) -> Span {
        match self.tokens.get(self.position) {
            Some((_, range)) => self.line.span(range.clone()),
            None => Span { start: self.line.whole().end, end: self.line.whole().end },
        }
    }

    /// The place of the token read last.
    pub fn last_span(&self) -> Span {
        match self.position.checked_sub(1).and_then(|index| self.tokens.get(index)) {
            Some((_, range)) => self.line.span(range.clone()),
            None => self.line.whole(),
        }
    }

    /// The next token, whatever it is.
    pub fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.position).map(|(token, _)| token.clone());
        self.position += usize::from(token.is_some());
        token
    }

    /// Reads this sign if it is next.
    pub fn take(&mut self, token: &Token) -> bool {
        let found = self.peek(0) == Some(token);
        self.position += usize::from(found);
        found
    }

    /// Reads this word if it is next.
    pub fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(0), Some(Token::Word(next)) if next == word);
        self.position += usize::from(found);
        found
    }

    /// A name.
    pub fn word(&mut self, what: &str) -> Option<String> {
        match self.peek(0) {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.position += 1;
                Some(word)
            }
            _ => self.expected(what),
        }
    }

    /// A number.
    pub fn number(&mut self, what: &str) -> Option<i128> {
        match self.peek(0) {
            Some(Token::Number(number)) => {
                let number = *number;
                self.position += 1;
                Some(number)
            }
            _ => self.expected(what),
        }
    }

    /// A number that fits 32 bits without sign.
    pub fn small(&mut self, what: &str) -> Option<u32> {
        let span = self.span();
        let number = self.number(what)?;
        match u32::try_from(number) {
            Ok(number) => Some(number),
            Err(_) => {
                self.errors.push(Diagnostic::error("target-number", span, format!("{what} must lie in 0 … 2^32−1, not {number}")));
                None
            }
        }
    }

    /// A quoted text.
    pub fn text(&mut self, what: &str) -> Option<String> {
        match self.peek(0) {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.position += 1;
                Some(text)
            }
            _ => self.expected(what),
        }
    }

    /// Numbers and half-open ranges, separated by commas.
    pub fn numbers(&mut self, what: &str) -> Option<Vec<u32>> {
        let mut list = Vec::new();
        loop {
            let first = self.small(what)?;
            if self.take(&Token::Range) {
                let span = self.span();
                let end = self.small(what)?;
                if end.saturating_sub(first) > NUMBERS_LIMIT {
                    let message = format!("a list of more than {NUMBERS_LIMIT} numbers");
                    self.errors.push(Diagnostic::error("target-number", span, message));
                    return None;
                }
                list.extend(first..end);
            } else {
                list.push(first);
            }
            if !self.take(&Token::Comma) {
                return Some(list);
            }
        }
    }

    /// Texts separated by commas or nothing, at least one.
    pub fn texts(&mut self, what: &str) -> Option<Vec<String>> {
        let mut list = vec![self.text(what)?];
        while self.take(&Token::Comma) || matches!(self.peek(0), Some(Token::Text(_))) {
            list.push(self.text(what)?);
        }
        Some(list)
    }

    /// Says what was expected here.
    pub fn expected<T>(&mut self, what: &str) -> Option<T> {
        let found = match self.tokens.get(self.position) {
            Some((_, range)) => format!("`{}`", &self.line.text[range.clone()]),
            None => "the end of the line".to_owned(),
        };
        let span = self.span();
        self.errors.push(Diagnostic::error("target-syntax", span, format!("expected {what}, found {found}")));
        None
    }

    /// Says that the word read last is unknown, with the nearest known one.
    pub fn unknown(&mut self, what: &str, word: &str, known: &[&str]) {
        let span = self.last_span();
        self.errors.push(unknown_name(span, what, word, known));
    }
}

/// An unknown name, with the nearest known one as the way out.
pub fn unknown_name(span: Span, what: &str, word: &str, known: &[&str]) -> Diagnostic {
    let error = Diagnostic::error("unknown-name", span, format!("there is no {what} `{word}`"));
    match nearest(word, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => error,
        None if known.len() > 40 => error,
        None => error.help(format!("known: {}", known.join(", "))),
    }
}

/// The known name that a misspelt one most likely means.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let scored = known.iter().map(|name| (strsim::damerau_levenshtein(word, name), *name));
    scored.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance <= 1 + word.len() / 4).map(|(_, name)| name)
}
