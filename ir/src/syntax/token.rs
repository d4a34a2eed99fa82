//! Text to tokens: the lexer, the nesting of brackets, and which newlines end a statement. What leaves here is balanced, so that the parser can recover by brackets.

use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use logos::Logos;
use std::fmt;

/// A token; what holds text borrows it from the source.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r]+")]
pub enum Token<'src> {
    /// `// …` up to the end of the line.
    #[regex(r"//[^\n]*", |lexer| lexer.slice(), allow_greedy = true)]
    Comment(&'src str),
    /// A newline that may end a statement.
    #[token("\n")]
    Newline,
    /// `;`
    #[token(";")]
    Semicolon,
    /// An identifier that is no keyword.
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*", |lexer| lexer.slice())]
    Name(&'src str),
    /// A kernel name that holds parameters: `mont_mul_{BITS}`.
    #[regex(r"[A-Za-z]([A-Za-z0-9_]*_\{[A-Za-z_][A-Za-z0-9_]*\})+[A-Za-z0-9_]*", |lexer| lexer.slice())]
    Template(&'src str),
    /// A number in any radix, not yet judged.
    #[regex(r"[0-9][0-9A-Za-z_]*", |lexer| lexer.slice())]
    Number(&'src str),
    /// `hex"…"`: the digits between the quotes.
    #[regex(r#"hex"([^"\n]*|[0-9a-fA-F_ \t\r\n]*)""#, |lexer| &lexer.slice()[4..lexer.slice().len() - 1])]
    Hex(&'src str),
    /// `"…"`: the text between the quotes.
    #[regex(r#""[^"\n]*""#, |lexer| &lexer.slice()[1..lexer.slice().len() - 1])]
    Text(&'src str),
    /// `param`
    #[token("param")]
    Param,
    /// `const`
    #[token("const")]
    Const,
    /// `fn`
    #[token("fn")]
    Function,
    /// `kernel`
    #[token("kernel")]
    Kernel,
    /// `test`
    #[token("test")]
    Test,
    /// `for`
    #[token("for")]
    For,
    /// `in`
    #[token("in")]
    In,
    /// `if`
    #[token("if")]
    If,
    /// `(`
    #[token("(")]
    LeftParenthesis,
    /// `)`
    #[token(")")]
    RightParenthesis,
    /// `[`
    #[token("[")]
    LeftBracket,
    /// `]`
    #[token("]")]
    RightBracket,
    /// `{`
    #[token("{")]
    LeftBrace,
    /// `}`
    #[token("}")]
    RightBrace,
    /// `,`
    #[token(",")]
    Comma,
    /// `:`
    #[token(":")]
    Colon,
    /// `.`
    #[token(".")]
    Dot,
    /// `..`
    #[token("..")]
    DotDot,
    /// `->`
    #[token("->")]
    Arrow,
    /// `=`
    #[token("=")]
    Assign,
    /// `|`
    #[token("|")]
    Or,
    /// `^`
    #[token("^")]
    Xor,
    /// `&`
    #[token("&")]
    And,
    /// `==`
    #[token("==")]
    Equal,
    /// `!=`
    #[token("!=")]
    NotEqual,
    /// `<`
    #[token("<")]
    Less,
    /// `<=`
    #[token("<=")]
    LessEqual,
    /// `>`
    #[token(">")]
    Greater,
    /// `>=`
    #[token(">=")]
    GreaterEqual,
    /// `++`
    #[token("++")]
    Concatenate,
    /// `<<`
    #[token("<<")]
    ShiftLeft,
    /// `>>`
    #[token(">>")]
    ShiftRight,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Times,
    /// `/`
    #[token("/")]
    Divide,
    /// `%`
    #[token("%")]
    Remainder,
    /// `~`
    #[token("~")]
    Not,
}

/// A comment and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// From `//` to the end of the line, without trailing blanks.
    pub text: String,
    /// Its place.
    pub span: Span,
    /// Something stands before it on its line.
    pub trailing: bool,
}

/// What the lexer gives.
#[derive(Clone, Debug, Default)]
pub struct Tokens<'src> {
    /// Balanced tokens without comments; [`Token::Newline`] only where it ends a statement.
    pub tokens: Vec<(Token<'src>, Span)>,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// What is wrong so far.
    pub diagnostics: Vec<Diagnostic>,
}

impl Token<'_> {
    fn closer(self) -> Option<Token<'static>> {
        match self {
            Token::LeftParenthesis => Some(Token::RightParenthesis),
            Token::LeftBracket => Some(Token::RightBracket),
            Token::LeftBrace => Some(Token::RightBrace),
            _ => None,
        }
    }

    fn is_closer(self) -> bool {
        matches!(self, Token::RightParenthesis | Token::RightBracket | Token::RightBrace)
    }

    fn starts_item(self) -> bool {
        matches!(self, Token::Param | Token::Const | Token::Function | Token::Kernel | Token::Test)
    }

    /// A binary operator or a sign that never stands at the end or start of a statement.
    fn joins(self) -> bool {
        matches!(
            self,
            Token::Arrow
                | Token::Assign
                | Token::DotDot
                | Token::Or
                | Token::Xor
                | Token::And
                | Token::Equal
                | Token::NotEqual
                | Token::Less
                | Token::LessEqual
                | Token::Greater
                | Token::GreaterEqual
                | Token::Concatenate
                | Token::ShiftLeft
                | Token::ShiftRight
                | Token::Plus
                | Token::Minus
                | Token::Times
                | Token::Divide
                | Token::Remainder
        )
    }

    fn continues_after(self) -> bool {
        self.joins() || matches!(self, Token::LeftBrace | Token::Comma | Token::Colon | Token::Dot | Token::Not | Token::If | Token::In)
    }

    fn continues_before(self) -> bool {
        self.joins() || matches!(self, Token::LeftBrace | Token::If | Token::Comma)
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Token::Comment(text) | Token::Name(text) | Token::Template(text) | Token::Number(text) => return write!(formatter, "`{text}`"),
            Token::Hex(text) => return write!(formatter, "`hex\"{text}\"`"),
            Token::Text(text) => return write!(formatter, "`\"{text}\"`"),
            Token::Newline => return formatter.write_str("the end of the line"),
            Token::Semicolon => ";",
            Token::Param => "param",
            Token::Const => "const",
            Token::Function => "fn",
            Token::Kernel => "kernel",
            Token::Test => "test",
            Token::For => "for",
            Token::In => "in",
            Token::If => "if",
            Token::LeftParenthesis => "(",
            Token::RightParenthesis => ")",
            Token::LeftBracket => "[",
            Token::RightBracket => "]",
            Token::LeftBrace => "{",
            Token::RightBrace => "}",
            Token::Comma => ",",
            Token::Colon => ":",
            Token::Dot => ".",
            Token::DotDot => "..",
            Token::Arrow => "->",
            Token::Assign => "=",
            Token::Or => "|",
            Token::Xor => "^",
            Token::And => "&",
            Token::Equal => "==",
            Token::NotEqual => "!=",
            Token::Less => "<",
            Token::LessEqual => "<=",
            Token::Greater => ">",
            Token::GreaterEqual => ">=",
            Token::Concatenate => "++",
            Token::ShiftLeft => "<<",
            Token::ShiftRight => ">>",
            Token::Plus => "+",
            Token::Minus => "-",
            Token::Times => "*",
            Token::Divide => "/",
            Token::Remainder => "%",
            Token::Not => "~",
        };
        write!(formatter, "`{text}`")
    }
}

/// Splits a text, or a piece of one that starts at byte `offset`.
pub fn tokenize(text: &str, offset: usize) -> Tokens<'_> {
    let mut result = Tokens::default();
    if text.len() > limits::SOURCE_BYTES {
        result.diagnostics.push(
            Diagnostic::error(
                "limit",
                Span::new(offset..offset),
                format!("the text has {} bytes, more than {}", text.len(), limits::SOURCE_BYTES),
            )
            .help("split it into several specs: one file is one unit"),
        );
        return result;
    }
    let raw = scan(text, offset, &mut result);
    if deepest_within_limit(&raw, &mut result.diagnostics) {
        let balanced = balance(&raw, &mut result.diagnostics);
        result.diagnostics.truncate(limits::ERRORS);
        result.tokens = end_statements(&balanced);
    }
    result
}

fn scan<'src>(text: &'src str, offset: usize, result: &mut Tokens<'src>) -> Vec<(Token<'src>, Span)> {
    let mut raw: Vec<(Token<'src>, Span)> = Vec::new();
    let mut garbage: Option<Span> = None;
    let mut prefix_chain = 0;
    for (token, range) in Token::lexer(text).spanned() {
        let span = Span::new(offset + range.start..offset + range.end);
        let Ok(token) = token else {
            // Neighbouring characters of garbage are one mistake.
            match &mut garbage {
                Some(place) if place.end == span.start => place.end = span.end,
                _ => {
                    result.diagnostics.extend(garbage.map(|place| unknown_characters(text, offset, place)));
                    garbage = Some(span);
                }
            }
            continue;
        };
        prefix_chain = if token == Token::Not { prefix_chain + 1 } else { 0 };
        if prefix_chain == limits::PREFIX_CHAIN + 1 {
            result.diagnostics.push(
                Diagnostic::error("limit", span, format!("more than {} complements one after another", limits::PREFIX_CHAIN))
                    .help("two complements cancel each other"),
            );
        }
        match token {
            Token::Comment(comment) => {
                let trailing = raw.last().is_some_and(|(token, _)| *token != Token::Newline);
                result.comments.push(Comment { text: comment.trim_end().to_owned(), span, trailing });
                continue;
            }
            Token::Name(name) | Token::Template(name) if name.len() > limits::NAME_BYTES => {
                result.diagnostics.push(
                    Diagnostic::error("limit", span, format!("a name of {} bytes, more than {}", name.len(), limits::NAME_BYTES))
                        .help("shorten it: names become identifiers of every output form"),
                );
                // The rest is dropped, so that further messages stay readable.
                raw.push((Token::Name(&name[..limits::NAME_BYTES]), span));
                continue;
            }
            Token::Number(digits) if digits.len() > limits::NUMBER_DIGITS => {
                result.diagnostics.push(Diagnostic::error(
                    "limit",
                    span,
                    format!("a number of {} digits, more than {}", digits.len(), limits::NUMBER_DIGITS),
                ));
            }
            _ => {}
        }
        if prefix_chain <= limits::PREFIX_CHAIN {
            raw.push((token, span));
        }
    }
    result.diagnostics.extend(garbage.map(|place| unknown_characters(text, offset, place)));
    result.diagnostics.truncate(limits::ERRORS);
    raw
}

fn unknown_characters(text: &str, offset: usize, span: Span) -> Diagnostic {
    let piece = &text[span.start as usize - offset..span.end as usize - offset];
    let shown: String = piece.chars().take(8).flat_map(char::escape_default).collect();
    let more = if piece.chars().count() > 8 { "…" } else { "" };
    let diagnostic = Diagnostic::error("unknown-character", span, format!("`{shown}{more}` is no part of the language"));
    if piece.starts_with('"') {
        diagnostic.help("a text in quotes ends on the line where it starts")
    } else if piece.chars().any(|character| character.is_control()) {
        diagnostic.help("this looks like a binary file; specs are text")
    } else {
        diagnostic
    }
}

fn deepest_within_limit(raw: &[(Token<'_>, Span)], diagnostics: &mut Vec<Diagnostic>) -> bool {
    let mut depth = 0usize;
    for (token, span) in raw {
        if token.closer().is_some() {
            depth += 1;
            if depth > limits::BRACKET_NESTING {
                diagnostics.push(
                    Diagnostic::error("limit", *span, format!("more than {} brackets are open here", limits::BRACKET_NESTING))
                        .help("give inner expressions names: `t = …`"),
                );
                return false;
            }
        } else if token.is_closer() {
            depth = depth.saturating_sub(1);
        } else if token.starts_item() {
            depth = 0;
        }
    }
    true
}

/// Drops closers without opener and inserts missing closers, each an error. A keyword that starts an item closes everything: no bracket can be open there.
fn balance<'src>(raw: &[(Token<'src>, Span)], diagnostics: &mut Vec<Diagnostic>) -> Vec<(Token<'src>, Span)> {
    let mut open: Vec<(Token<'src>, Span)> = Vec::new();
    let mut balanced: Vec<(Token<'src>, Span)> = Vec::with_capacity(raw.len());
    let unclosed = |open: &mut Vec<(Token<'src>, Span)>,
                    keep: usize,
                    before: Span,
                    balanced: &mut Vec<(Token<'src>, Span)>,
                    diagnostics: &mut Vec<Diagnostic>| {
        while open.len() > keep {
            let Some((opener, span)) = open.pop() else { break };
            let Some(closer) = opener.closer() else { continue };
            let place = Span { start: before.start, end: before.start };
            diagnostics.push(
                Diagnostic::error("unbalanced-bracket", span, format!("{opener} is never closed"))
                    .label(before, format!("{closer} is missing before this"))
                    .help(format!("close it with {closer}")),
            );
            balanced.push((closer, place));
        }
    };
    for (token, span) in raw {
        if token.closer().is_some() {
            open.push((*token, *span));
        } else if token.is_closer() {
            match open.iter().rposition(|(opener, _)| opener.closer() == Some(*token)) {
                Some(position) => {
                    unclosed(&mut open, position + 1, *span, &mut balanced, diagnostics);
                    open.pop();
                }
                None => {
                    diagnostics.push(
                        Diagnostic::error("unbalanced-bracket", *span, format!("{token} closes nothing"))
                            .help("remove it, or open it before"),
                    );
                    continue;
                }
            }
        } else if token.starts_item() {
            unclosed(&mut open, 0, *span, &mut balanced, diagnostics);
        }
        balanced.push((*token, *span));
    }
    if let Some((_, last)) = raw.last() {
        let end = Span { start: last.end, end: last.end };
        unclosed(&mut open, 0, end, &mut balanced, diagnostics);
    }
    balanced
}

/// Keeps the newlines that end a statement. Inside round and square brackets none does.
fn end_statements<'src>(balanced: &[(Token<'src>, Span)]) -> Vec<(Token<'src>, Span)> {
    let mut result: Vec<(Token<'src>, Span)> = Vec::with_capacity(balanced.len());
    let mut open: Vec<Token<'src>> = Vec::new();
    for (index, (token, span)) in balanced.iter().enumerate() {
        if token.closer().is_some() {
            open.push(*token);
        } else if token.is_closer() {
            open.pop();
        } else if *token == Token::Newline {
            let inside = matches!(open.last(), Some(Token::LeftParenthesis | Token::LeftBracket));
            let previous = result.last().map(|(token, _)| *token);
            let next = balanced[index + 1..].iter().map(|(token, _)| *token).find(|token| *token != Token::Newline);
            if inside
                || previous.is_none_or(|token| token.continues_after() || token == Token::Newline)
                || next.is_none_or(Token::continues_before)
            {
                continue;
            }
        }
        result.push((*token, *span));
    }
    result
}
