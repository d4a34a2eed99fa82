//! Tokens to syntax tree. Statements and items recover on their own, so that one mistake hides no other.

use super::ast::*;
use super::token::{Comment, Token, tokenize};
use crate::diagnostic::Diagnostic;
use crate::limits;
use crate::source::Span;
use crate::types::ByteOrder;
use chumsky::Boxed;
use chumsky::error::{RichPattern, RichReason};
use chumsky::input::{Input, MapExtra, MappedInput};
use chumsky::prelude::*;

type TokenInput<'a> = MappedInput<'a, Token<'a>, SimpleSpan, &'a [(Token<'a>, SimpleSpan)]>;
type Failure<'a> = extra::Err<Rich<'a, Token<'a>, SimpleSpan>>;
type Rule<'a, T> = Boxed<'a, 'a, TokenInput<'a>, T, Failure<'a>>;
type Extra<'a, 'b> = MapExtra<'a, 'b, TokenInput<'a>, Failure<'a>>;

/// A parsed text.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The tree; pieces that could not be parsed are error nodes.
    pub tree: T,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// Every mistake.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a whole file.
pub fn parse_unit(text: &str) -> Parsed<UnitSyntax> {
    run(text, 0, |tokens| unit_rule().parse(tokens).into_output_errors())
}

/// Parses the statements of a row, a piece of a text that starts there at byte `offset`.
pub fn parse_statements(text: &str, offset: usize) -> Parsed<Block> {
    run(text, offset, |tokens| {
        let whole =
            statements_rule(statement_rule()).then_ignore(end()).map_with(|statements, extra| Block { statements, span: place(extra) });
        whole.parse(tokens).into_output_errors()
    })
}

const STATEMENT_END: &str = "the end of the statement";
const TEXT_END: &str = "the end of the text";
/// Whatever continues an expression, for messages.
const CONTINUATION: &str = "an operator";

type Outcome<'a, T> = (Option<T>, Vec<Rich<'a, Token<'a>, SimpleSpan>>);

fn run<T: Default>(text: &str, offset: usize, parse: impl for<'a> Fn(TokenInput<'a>) -> Outcome<'a, T>) -> Parsed<T> {
    let lexed = tokenize(text, offset);
    let tokens: Vec<(Token<'_>, SimpleSpan)> = lexed.tokens.iter().map(|(token, span)| (*token, SimpleSpan::from(span.range()))).collect();
    let end = SimpleSpan::from(offset + text.len()..offset + text.len());
    let (tree, errors) = parse(tokens.as_slice().split_token_span(end));
    let mut diagnostics = lexed.diagnostics;
    // Where characters are missing from a line, what the parser says of it misleads.
    let line = |span: Span| text[..(span.start as usize - offset).min(text.len())].matches('\n').count();
    let broken: Vec<usize> =
        diagnostics.iter().filter(|diagnostic| diagnostic.rule == "unknown-character").map(|diagnostic| line(diagnostic.span)).collect();
    diagnostics.extend(
        errors
            .iter()
            .take(limits::ERRORS)
            .map(|error| syntax_error(text, offset, error))
            .filter(|error| !broken.contains(&line(error.span))),
    );
    Parsed { tree: tree.unwrap_or_default(), comments: lexed.comments, diagnostics }
}

fn place(extra: &mut Extra<'_, '_>) -> Span {
    Span::new(extra.span().into_range())
}

fn syntax_error(text: &str, offset: usize, error: &Rich<'_, Token<'_>, SimpleSpan>) -> Diagnostic {
    let mut span = Span::new(error.span().into_range());
    // The end of a statement has no text of its own; a newline's span would draw nothing.
    let at_end =
        matches!(error.reason(), RichReason::ExpectedFound { found, .. } if found.as_deref().is_none_or(|token| *token == Token::Newline));
    if at_end {
        let before = text[..(span.start as usize).saturating_sub(offset).min(text.len())].trim_end().len() + offset;
        span = Span { start: before as u32, end: before as u32 };
    }
    let message = match error.reason() {
        RichReason::Custom(message) => message.clone(),
        RichReason::ExpectedFound { expected, found } => {
            let mut names: Vec<String> = expected
                .iter()
                .filter_map(|pattern| match pattern {
                    RichPattern::Token(token) => Some(token.to_string()),
                    RichPattern::Label(label) => Some(label.to_string()),
                    RichPattern::EndOfInput => Some(TEXT_END.to_owned()),
                    _ => None,
                })
                .collect();
            names.sort();
            names.dedup();
            // What may follow a whole statement goes without saying where the statement may end.
            if names.iter().any(|name| name == STATEMENT_END) {
                names.retain(|name| !["`}`", TEXT_END].contains(&name.as_str()));
            }
            let found = found.as_ref().map_or(TEXT_END.to_owned(), |token| token.to_string());
            match names.as_slice() {
                [] => format!("{found} is not expected here"),
                [only] => format!("expected {only}, found {found}"),
                [first @ .., last] => format!("expected {} or {last}, found {found}", first.join(", ")),
            }
        }
    };
    Diagnostic::error("syntax", span, message)
}

fn token<'a>(wanted: Token<'a>) -> Rule<'a, ()> {
    just(wanted).ignored().boxed()
}

/// A word that is a keyword only at this place.
fn word<'a>(wanted: &'static str) -> Rule<'a, ()> {
    any().filter(move |token| matches!(token, Token::Name(text) if *text == wanted)).ignored().labelled(wanted).boxed()
}

fn name<'a>() -> Rule<'a, Name> {
    select! { Token::Name(text) => text }
        .map_with(|text: &str, extra| Name { text: text.to_owned(), span: place(extra) })
        .labelled("a name")
        .boxed()
}

fn kernel_name<'a>() -> Rule<'a, Name> {
    select! { Token::Name(text) => text, Token::Template(text) => text }
        .map_with(|text: &str, extra| Name { text: text.to_owned(), span: place(extra) })
        .labelled("a name")
        .boxed()
}

fn separator<'a>() -> Rule<'a, ()> {
    just(Token::Newline).or(just(Token::Semicolon)).ignored().labelled(STATEMENT_END).boxed()
}

/// `u32`, `u32x4`: width and lanes; what does not fit 32 bits saturates and is refused by the limits.
pub fn split_bits_type(text: &str) -> Option<(u32, u32)> {
    let (width, lanes) = match text.strip_prefix('u')?.split_once('x') {
        Some((width, lanes)) => (width, lanes),
        None => (text.strip_prefix('u')?, "1"),
    };
    let number = |digits: &str| {
        let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        valid.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    Some((number(width)?, number(lanes)?))
}

fn split_view(text: &str) -> Option<(Option<ByteOrder>, u32, u32)> {
    let (order, rest) = match text.get(..2) {
        Some("be") => (Some(ByteOrder::Big), text.get(2..)?),
        Some("le") => (Some(ByteOrder::Little), text.get(2..)?),
        _ => (None, text.strip_prefix('u')?),
    };
    let (width, lanes) = split_bits_type(&format!("u{rest}"))?;
    Some((order, width, lanes))
}

fn view<'a>() -> Rule<'a, View> {
    token(Token::Dot)
        .ignore_then(any())
        .try_map(|token, span: SimpleSpan| match token {
            Token::Name(text) => split_view(text)
                .map(|(order, width, lanes)| View { order, width, lanes, span: Span::new(span.into_range()) })
                .ok_or_else(|| Rich::custom(span, format!("`.{text}` is no view: views are written .u32x4, .be32x4 or .le32x4"))),
            other => Err(Rich::custom(span, format!("expected a view such as .u32x4, found {other}"))),
        })
        .boxed()
}

fn operator<'a>(precedence: u8) -> Rule<'a, Operator> {
    select! {
        Token::Or => Operator::Or,
        Token::Xor => Operator::Xor,
        Token::And => Operator::And,
        Token::Equal => Operator::Equal,
        Token::NotEqual => Operator::NotEqual,
        Token::Less => Operator::Less,
        Token::LessEqual => Operator::LessEqual,
        Token::Greater => Operator::Greater,
        Token::GreaterEqual => Operator::GreaterEqual,
        Token::Concatenate => Operator::Concatenate,
        Token::ShiftLeft => Operator::ShiftLeft,
        Token::ShiftRight => Operator::ShiftRight,
        Token::Plus => Operator::Add,
        Token::Minus => Operator::Subtract,
        Token::Times => Operator::Multiply,
        Token::Divide => Operator::Divide,
        Token::Remainder => Operator::Remainder,
    }
    .filter(move |operator: &Operator| operator.precedence() == precedence)
    .labelled(CONTINUATION)
    .boxed()
}

fn chain<'a>(operand: Rule<'a, Expression>, precedence: u8) -> Rule<'a, Expression> {
    operand
        .clone()
        .then(operator(precedence).then(operand).repeated().collect::<Vec<_>>())
        .map(|(first, rest)| match rest.last() {
            Some((_, last)) => {
                let span = first.span.join(last.span);
                Expression { kind: ExpressionKind::Chain { first: Box::new(first), rest }, span }
            }
            None => first,
        })
        .boxed()
}

fn range<'a>(expression: Rule<'a, Expression>) -> Rule<'a, Range> {
    expression
        .clone()
        .then_ignore(token(Token::DotDot))
        .then(expression)
        .map(|(start, end)| Range { start: Box::new(start), end: Box::new(end) })
        .boxed()
}

fn primary<'a>(expression: Rule<'a, Expression>) -> Rule<'a, Expression> {
    let literal = select! {
        Token::Number(text) => ExpressionKind::Number(text.to_owned()),
        Token::Hex(text) => ExpressionKind::Hex(text.to_owned()),
    };
    let counted = || {
        name()
            .then_ignore(token(Token::In))
            .then(range(expression.clone()))
            .then_ignore(token(Token::Colon))
            .then(expression.clone().map(Box::new))
    };
    let fold = select! {
        Token::Name("sum") => Fold::Sum,
        Token::Name("xor") => Fold::Xor,
        Token::Name("and") => Fold::And,
        Token::Name("or") => Fold::Or,
    }
    .then(counted().delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis)))
    .map(|(fold, ((variable, range), body))| ExpressionKind::Fold { fold, variable, range, body });
    let items = expression.clone().separated_by(token(Token::Comma)).allow_trailing().collect::<Vec<_>>();
    let arguments = items.clone().delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis)).labelled(CONTINUATION);
    let call = kernel_name().then(arguments).map(|(function, arguments)| ExpressionKind::Call { function, arguments });
    let comprehension = counted().map(|((variable, range), body)| ExpressionKind::Comprehension { variable, range, body });
    let list = comprehension.or(items.map(ExpressionKind::List)).delimited_by(token(Token::LeftBracket), token(Token::RightBracket));
    let plain = kernel_name().map(|name| ExpressionKind::Name(name.text));
    choice((literal, fold, call, plain, list))
        .map_with(|kind, extra| Expression { kind, span: place(extra) })
        .or(expression.delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis)))
        .labelled("an expression")
        .boxed()
}

fn postfix<'a>(expression: Rule<'a, Expression>) -> Rule<'a, Expression> {
    let index = expression
        .clone()
        .then(token(Token::DotDot).ignore_then(expression.clone()).or_not())
        .delimited_by(token(Token::LeftBracket), token(Token::RightBracket))
        .map(|(start, end)| match end {
            Some(end) => StepKind::Slice(Range { start: Box::new(start), end: Box::new(end) }),
            None => StepKind::Index(start),
        });
    let step = index.or(view().map(StepKind::View)).map_with(|kind, extra| Step { kind, span: place(extra) }).labelled(CONTINUATION);
    primary(expression)
        .then(step.repeated().collect::<Vec<_>>())
        .map(|(base, steps)| match steps.last() {
            Some(last) => {
                let span = base.span.join(last.span);
                Expression { kind: ExpressionKind::Postfix { base: Box::new(base), steps }, span }
            }
            None => base,
        })
        .boxed()
}

/// The expression of sums and what binds tighter (inside `nat<…>`, where `>` closes), and the whole expression.
fn levels<'a>(expression: Rule<'a, Expression>) -> (Rule<'a, Expression>, Rule<'a, Expression>) {
    let prefixed = just(Token::Not)
        .map_with(|_, extra| place(extra))
        .repeated()
        .collect::<Vec<Span>>()
        .then(postfix(expression))
        .map(|(signs, operand)| {
            signs.into_iter().rev().fold(operand, |operand, sign| {
                let span = sign.join(operand.span);
                Expression { kind: ExpressionKind::Not(Box::new(operand)), span }
            })
        })
        .labelled("an expression")
        .boxed();
    let sum = chain(chain(prefixed, Operator::Multiply.precedence()), Operator::Add.precedence());
    let whole = (0..Operator::Add.precedence()).rev().fold(sum.clone(), chain);
    (sum, whole)
}

fn expression_rule<'a>() -> Rule<'a, Expression> {
    recursive(|expression| levels(expression.boxed()).1).boxed()
}

fn type_rule<'a>(expression: Rule<'a, Expression>) -> Rule<'a, TypeExpression> {
    let size = levels(expression.clone()).0.delimited_by(token(Token::Less), token(Token::Greater)).map(Box::new).boxed();
    recursive(|ty| {
        let natural = word("nat").ignore_then(size.clone()).map(TypeKind::Natural);
        let modulus = word("modulus").ignore_then(size).map(TypeKind::Modulus);
        let residue = word("residue").ignore_then(name().delimited_by(token(Token::Less), token(Token::Greater))).map(TypeKind::Residue);
        let list = ty
            .map(Box::new)
            .then(token(Token::Semicolon).ignore_then(expression.map(Box::new)).or_not())
            .delimited_by(token(Token::LeftBracket), token(Token::RightBracket))
            .map(|(element, length)| match length {
                Some(length) => TypeKind::Array(element, length),
                None => TypeKind::Slice(element),
            });
        let named = select! { Token::Name(text) => TypeKind::Named(text.to_owned()) };
        choice((natural, modulus, residue, list, named))
            .map_with(|kind, extra| TypeExpression { kind, span: place(extra) })
            .labelled("a type")
            .boxed()
    })
    .boxed()
}

/// Anything up to the end of the statement, brackets and what they hold included; at least one token.
fn skipped_statement<'a>() -> Rule<'a, ()> {
    let group = recursive(|group| {
        let inside = group.or(separator()).repeated();
        let bracketed = |open, close| inside.clone().delimited_by(token(open), token(close));
        choice((
            bracketed(Token::LeftParenthesis, Token::RightParenthesis),
            bracketed(Token::LeftBracket, Token::RightBracket),
            bracketed(Token::LeftBrace, Token::RightBrace),
            none_of([
                Token::LeftParenthesis,
                Token::LeftBracket,
                Token::LeftBrace,
                Token::RightParenthesis,
                Token::RightBracket,
                Token::RightBrace,
                Token::Newline,
                Token::Semicolon,
            ])
            .ignored(),
        ))
        .boxed()
    });
    group.repeated().at_least(1).boxed()
}

fn statements_rule<'a>(statement: Rule<'a, Statement>) -> Rule<'a, Vec<Statement>> {
    let finished = choice((separator(), token(Token::RightBrace), end())).rewind();
    let recovered = statement
        .then_ignore(finished)
        .recover_with(via_parser(skipped_statement().map_with(|(), extra| Statement { kind: StatementKind::Error, span: place(extra) })));
    separator().repeated().ignore_then(recovered.then_ignore(separator().repeated()).repeated().collect()).boxed()
}

fn block_rule<'a>(statement: Rule<'a, Statement>) -> Rule<'a, Block> {
    statements_rule(statement)
        .delimited_by(token(Token::LeftBrace), token(Token::RightBrace))
        .map_with(|statements, extra| Block { statements, span: place(extra) })
        .labelled("a block in braces")
        .boxed()
}

fn statement_rule<'a>() -> Rule<'a, Statement> {
    let expression = expression_rule();
    recursive(|statement| {
        let block = block_rule(statement.boxed());
        let condition = || token(Token::If).ignore_then(expression.clone()).or_not();
        let index = expression.clone().delimited_by(token(Token::LeftBracket), token(Token::RightBracket));
        let assign = name()
            .then(view().or_not())
            .then(index.or_not())
            .then_ignore(token(Token::Assign))
            .then(expression.clone())
            .map(|(((target, view), index), value)| StatementKind::Assign { target, view, index, value });
        let counted = || name().then_ignore(token(Token::In)).then(range(expression.clone())).then(block.clone());
        let fixed = token(Token::For).ignore_then(counted()).map(|((variable, range), body)| StatementKind::For { variable, range, body });
        let counted_loop =
            word("loop").ignore_then(counted()).map(|((variable, range), body)| StatementKind::Loop { variable, range, body });
        let binding = name().then_ignore(token(Token::In)).then(name());
        let map = word("map")
            .ignore_then(binding.separated_by(token(Token::Comma)).at_least(1).collect::<Vec<_>>())
            .then(block.clone())
            .map(|(bindings, body)| StatementKind::Map { bindings, body });
        let store = word("store")
            .ignore_then(
                expression
                    .clone()
                    .then_ignore(token(Token::Comma))
                    .then(expression.clone())
                    .delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis)),
            )
            .then(condition())
            .map(|((address, value), condition)| StatementKind::Store { address, value, condition });
        let branch = word("branch")
            .ignore_then(word("to").ignore_then(expression.clone()).or_not())
            .then(condition())
            .map(|(target, condition)| StatementKind::Branch { target, condition });
        let forbidden = word("forbidden")
            .ignore_then(token(Token::If))
            .ignore_then(expression.clone())
            .map(|condition| StatementKind::Forbidden { condition });
        let plain = expression.clone().map(StatementKind::Expression);
        choice((assign, fixed, counted_loop, map, store, branch, forbidden, plain))
            .map_with(|kind, extra| Statement { kind, span: place(extra) })
            .labelled("a statement")
            .boxed()
    })
    .boxed()
}

fn attribute<'a>() -> Rule<'a, Attribute> {
    let align =
        word("align").ignore_then(select! { Token::Number(text) => AttributeKind::Align(text.to_owned()) }.labelled("a number of bytes"));
    let alias_any = word("alias").ignore_then(word("any")).to(AttributeKind::AliasAny);
    let alias_same = word("alias").ignore_then(name()).map(AttributeKind::AliasSame);
    let plain = select! {
        Token::In => AttributeKind::In,
        Token::Name("out") => AttributeKind::Out,
        Token::Name("inout") => AttributeKind::InOut,
        Token::Name("setup") => AttributeKind::Setup,
        Token::Name("secret") => AttributeKind::Secret,
        Token::Name("public") => AttributeKind::Public,
    };
    choice((align, alias_any, alias_same, plain))
        .map_with(|kind, extra| Attribute { kind, span: place(extra) })
        .labelled("an attribute")
        .boxed()
}

fn attributes<'a>() -> Rule<'a, Vec<Attribute>> {
    attribute().repeated().collect().boxed()
}

fn entries<'a>(expression: Rule<'a, Expression>) -> Rule<'a, Vec<(Name, Expression)>> {
    let between = token(Token::Comma).or(separator()).repeated();
    let entry = name().then_ignore(token(Token::Assign)).then(expression);
    between.clone().ignore_then(entry.then_ignore(between).repeated().collect()).boxed()
}

fn test_rule<'a>(expression: Rule<'a, Expression>) -> Rule<'a, ItemKind> {
    let named = entries(expression.clone()).filter(|entries| !entries.is_empty()).map(Expected::Named);
    let only = expression.clone().then_ignore(separator().repeated()).map(Expected::Only);
    token(Token::Test)
        .ignore_then(kernel_name())
        .then(select! { Token::Text(text) => text.to_owned() }.labelled("a title in quotes"))
        .then(
            entries(expression)
                .then_ignore(token(Token::Arrow))
                .then(named.or(only))
                .delimited_by(token(Token::LeftBrace), token(Token::RightBrace)),
        )
        .map(|((kernel, title), (given, expected))| ItemKind::Test { kernel, title, given, expected })
        .boxed()
}

fn item_rule<'a>() -> Rule<'a, Item> {
    let expression = expression_rule();
    let ty = type_rule(expression.clone());
    let block = block_rule(statement_rule());
    let typed = token(Token::Colon).ignore_then(ty.clone());
    let parameter = token(Token::Param)
        .ignore_then(name())
        .then_ignore(token(Token::Assign))
        .then(expression.clone())
        .map(|(name, value)| ItemKind::Parameter { name, value });
    let constant = token(Token::Const)
        .ignore_then(name())
        .then(typed.clone().or_not())
        .then_ignore(token(Token::Assign))
        .then(expression.clone())
        .map(|((name, ty), value)| ItemKind::Constant { name, ty, value });
    let listed = |separated: Rule<'a, (Name, TypeExpression)>| {
        separated
            .separated_by(token(Token::Comma))
            .allow_trailing()
            .collect::<Vec<_>>()
            .delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis))
    };
    let function = token(Token::Function)
        .ignore_then(name())
        .then(listed(name().then(typed).boxed()))
        .then_ignore(token(Token::Arrow))
        .then(ty.clone())
        .then(block.clone())
        .map(|(((name, parameters), result), body)| ItemKind::Function { name, parameters, result, body });
    let kernel_parameter = name()
        .then_ignore(token(Token::Colon))
        .then(attributes())
        .then(ty.clone())
        .then(attributes())
        .map(|(((name, before), ty), after)| KernelParameter { name, ty, attributes: [before, after].concat() });
    let kernel = token(Token::Kernel)
        .ignore_then(kernel_name())
        .then(
            kernel_parameter
                .separated_by(token(Token::Comma))
                .allow_trailing()
                .collect::<Vec<_>>()
                .delimited_by(token(Token::LeftParenthesis), token(Token::RightParenthesis)),
        )
        .then(token(Token::Arrow).ignore_then(ty.then(attributes())).or_not())
        .then(block)
        .map(|(((name, parameters), result), body)| ItemKind::Kernel { name, parameters, result, body });
    choice((parameter, constant, function, kernel, test_rule(expression))).map_with(|kind, extra| Item { kind, span: place(extra) }).boxed()
}

fn unit_rule<'a>() -> Rule<'a, UnitSyntax> {
    let keyword = any()
        .filter(|token| matches!(token, Token::Param | Token::Const | Token::Function | Token::Kernel | Token::Test))
        .ignored()
        .labelled("an item (`param`, `const`, `fn`, `kernel` or `test`)")
        .boxed();
    let skipped = any()
        .ignored()
        .then_ignore(any().and_is(keyword.clone().not()).repeated())
        .map_with(|(), extra| Item { kind: ItemKind::Error, span: place(extra) });
    let finished = choice((separator(), keyword.clone(), end())).rewind();
    let item = keyword.rewind().ignore_then(item_rule()).then_ignore(finished).recover_with(via_parser(skipped));
    separator()
        .repeated()
        .ignore_then(item.then_ignore(separator().repeated()).repeated().collect())
        .then_ignore(end())
        .map(|items| UnitSyntax { items })
        .boxed()
}
