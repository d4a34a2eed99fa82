//! Syntax tree to text: one canonical layout. Parsing what is printed gives the same tree, and printing that the same text.

use super::ast::*;
use super::parser::parse_unit;
use super::token::Comment;
use crate::diagnostic::Diagnostic;
use crate::types::ByteOrder;
use std::fmt::Write;

/// Lines are broken where they would be longer, as far as the layout knows how.
const LINE_CHARACTERS: usize = 120;
const INDENT_SPACES: usize = 4;

/// A text in the canonical layout, comments and single blank lines kept.
///
/// # Errors
/// The mistakes that keep the text from being parsed.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse_unit(text);
    if !parsed.diagnostics.is_empty() {
        return Err(parsed.diagnostics);
    }
    Ok(Printer { source: Some(text), comments: &parsed.comments, ..Printer::default() }.unit(&parsed.tree))
}

/// A tree in the canonical layout.
pub fn print(tree: &UnitSyntax) -> String {
    Printer::default().unit(tree)
}

/// The same with other values for parameters: what a unit's hash is computed from.
pub fn print_with_parameters(tree: &UnitSyntax, values: &[(&str, u64)]) -> String {
    Printer { values, ..Printer::default() }.unit(tree)
}

#[derive(Default)]
struct Printer<'a> {
    out: String,
    indent: usize,
    /// The text printed, where blank lines are kept.
    source: Option<&'a str>,
    /// Comments not printed yet.
    comments: &'a [Comment],
    /// Values that replace those of parameters.
    values: &'a [(&'a str, u64)],
    /// End of what was printed last, in the source.
    last_end: usize,
    /// Nothing was printed in this block yet.
    at_start: bool,
}

impl Printer<'_> {
    fn unit(mut self, tree: &UnitSyntax) -> String {
        self.at_start = true;
        for item in &tree.items {
            self.before(item.span.start as usize);
            self.item(item);
            self.after(item.span.end as usize);
        }
        self.before(usize::MAX);
        self.out
    }

    fn line_start(&mut self) {
        for _ in 0..self.indent * INDENT_SPACES {
            self.out.push(' ');
        }
    }

    fn after(&mut self, end: usize) {
        self.last_end = end;
        self.at_start = false;
        self.out.push('\n');
    }

    /// Comments and at most one blank line before what starts at byte `start`.
    fn before(&mut self, start: usize) {
        while let Some((comment, rest)) = self.comments.split_first().filter(|(comment, _)| (comment.span.start as usize) < start) {
            self.comments = rest;
            if comment.trailing && !self.at_start && self.out.ends_with('\n') && !self.last_line().trim_start().starts_with("//") {
                self.out.pop();
                let _ = writeln!(self.out, " {}", comment.text);
            } else {
                self.blank_line(comment.span.start as usize);
                self.line_start();
                let _ = writeln!(self.out, "{}", comment.text);
            }
            self.last_end = comment.span.end as usize;
            self.at_start = false;
        }
        if start != usize::MAX {
            self.blank_line(start);
        }
    }

    fn last_line(&self) -> &str {
        let text = self.out.trim_end_matches('\n');
        text.rsplit('\n').next().unwrap_or(text)
    }

    fn blank_line(&mut self, start: usize) {
        let gap = self.source.and_then(|source| source.get(self.last_end..start)).unwrap_or("");
        if !self.at_start && gap.matches('\n').count() > 1 {
            self.out.push('\n');
        }
    }

    fn item(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Parameter { name, value } => {
                let changed = self.values.iter().find(|(changed, _)| *changed == name.text);
                let value = changed.map_or_else(|| expression(value), |(_, value)| value.to_string());
                let _ = write!(self.out, "param {} = {value}", name.text);
            }
            ItemKind::Constant { name, ty, value } => {
                let ty = ty.as_ref().map(|ty| format!(": {}", type_text(ty))).unwrap_or_default();
                let head = format!("const {}{ty} = ", name.text);
                self.broken(&head, value);
            }
            ItemKind::Function { name, parameters, result, body } => {
                let list: Vec<String> = parameters.iter().map(|(name, ty)| format!("{}: {}", name.text, type_text(ty))).collect();
                self.signature(&format!("fn {}", name.text), &list, &format!(" -> {}", type_text(result)));
                self.block(body);
            }
            ItemKind::Kernel { name, parameters, result, body } => {
                let list: Vec<String> = parameters.iter().map(parameter_text).collect();
                let result = result.as_ref().map(|(ty, attributes)| format!(" -> {}{}", type_text(ty), attributes_text(attributes)));
                self.signature(&format!("kernel {}", name.text), &list, &result.unwrap_or_default());
                self.block(body);
            }
            ItemKind::Test { kernel, title, given, expected } => self.test(kernel, title, given, expected),
            ItemKind::Error => {}
        }
    }

    fn signature(&mut self, head: &str, list: &[String], result: &str) {
        let line = format!("{head}({}){result}", list.join(", "));
        if line.chars().count() + 2 <= LINE_CHARACTERS || list.is_empty() {
            self.out.push_str(&line);
            return;
        }
        let _ = writeln!(self.out, "{head}(");
        for parameter in list {
            let _ = writeln!(self.out, "{:INDENT_SPACES$}{parameter},", "");
        }
        let _ = write!(self.out, "){result}");
    }

    fn test(&mut self, kernel: &Name, title: &str, given: &[(Name, Expression)], expected: &Expected) {
        let entries = |entries: &[(Name, Expression)]| -> Vec<String> {
            entries.iter().map(|(name, value)| format!("{} = {}", name.text, expression(value))).collect()
        };
        let given = entries(given);
        let expected = match expected {
            Expected::Only(value) => vec![expression(value)],
            Expected::Named(list) => entries(list),
        };
        let head = format!("test {} \"{title}\" {{", kernel.text);
        let before = if given.is_empty() { String::new() } else { format!("{} ", given.join(", ")) };
        let line = format!("{head} {before}-> {} }}", expected.join(", "));
        if line.chars().count() <= LINE_CHARACTERS {
            self.out.push_str(&line);
            return;
        }
        let _ = writeln!(self.out, "{head}");
        for (index, entry) in given.iter().enumerate() {
            let comma = if index + 1 < given.len() { "," } else { "" };
            let _ = writeln!(self.out, "{:INDENT_SPACES$}{entry}{comma}", "");
        }
        let separator = format!(",\n{:width$}", "", width = INDENT_SPACES + 3);
        let _ = write!(self.out, "{:INDENT_SPACES$}-> {}\n}}", "", expected.join(&separator));
    }

    /// Statements in braces, on the line of what stands before where there is one short statement.
    fn block(&mut self, block: &Block) {
        let inside = |comment: &&Comment| comment.span.start >= block.span.start && comment.span.end <= block.span.end;
        let commented = self.source.is_some() && self.comments.iter().find(inside).is_some();
        let short = match block.statements.as_slice() {
            [] if !commented => Some(" {}".to_owned()),
            [only] if !commented => simple_statement(only).map(|text| format!(" {{ {text} }}")),
            _ => None,
        };
        if let Some(text) = short
            && self.last_line().chars().count() + text.chars().count() <= LINE_CHARACTERS
        {
            self.out.push_str(&text);
            return;
        }
        self.out.push_str(" {\n");
        self.indent += 1;
        self.at_start = true;
        self.last_end = block.span.start as usize;
        for statement in &block.statements {
            self.before(statement.span.start as usize);
            self.line_start();
            self.statement(statement);
            self.after(statement.span.end as usize);
        }
        if self.source.is_some() {
            let end = block.span.end as usize;
            if self.comments.first().is_some_and(|comment| (comment.span.start as usize) < end) {
                let last_end = self.last_end;
                self.before_closing(end);
                self.last_end = last_end;
            }
        }
        self.indent -= 1;
        self.line_start();
        self.out.push('}');
    }

    fn before_closing(&mut self, end: usize) {
        while self.comments.first().is_some_and(|comment| (comment.span.start as usize) < end) {
            let start = self.comments[0].span.end as usize;
            let source = self.source.take();
            self.before(start);
            self.source = source;
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Assign { target, view, index, value } => {
                let head = assign_head(target, view.as_ref(), index.as_ref());
                self.broken(&head, value);
            }
            StatementKind::For { variable, range, body } => {
                let _ = write!(self.out, "for {} in {}", variable.text, range_text(range));
                self.block(body);
            }
            StatementKind::Loop { variable, range, body } => {
                let _ = write!(self.out, "loop {} in {}", variable.text, range_text(range));
                self.block(body);
            }
            StatementKind::Map { bindings, body } => {
                let bindings: Vec<String> = bindings.iter().map(|(element, slice)| format!("{} in {}", element.text, slice.text)).collect();
                let _ = write!(self.out, "map {}", bindings.join(", "));
                self.block(body);
            }
            StatementKind::Expression(value) => self.broken("", value),
            _ => self.out.push_str(&simple_statement(statement).unwrap_or_default()),
        }
    }

    /// `head value`, broken at operators or items where it is too long for a line.
    fn broken(&mut self, head: &str, value: &Expression) {
        let line = format!("{head}{}", expression(value));
        let indent = self.indent * INDENT_SPACES;
        if indent + line.chars().count() <= LINE_CHARACTERS {
            self.out.push_str(&line);
            return;
        }
        let inner = indent + INDENT_SPACES;
        match &value.kind {
            ExpressionKind::List(items) if !items.is_empty() => {
                let _ = write!(self.out, "{head}[");
                let mut column = usize::MAX;
                for item in items {
                    let text = format!("{},", expression(item));
                    if column.saturating_add(1 + text.chars().count()) > LINE_CHARACTERS {
                        let _ = write!(self.out, "\n{:inner$}{text}", "");
                        column = inner + text.chars().count();
                    } else {
                        let _ = write!(self.out, " {text}");
                        column += 1 + text.chars().count();
                    }
                }
                let _ = write!(self.out, "\n{:indent$}]", "");
            }
            ExpressionKind::Chain { first, rest } => {
                let level = rest.first().map_or(0, |(operator, _)| operator.precedence());
                let _ = write!(self.out, "{head}{}", operand(first, level));
                for (operator, value) in rest {
                    let _ = write!(self.out, "\n{:inner$}{} {}", "", operator.text(), operand(value, level));
                }
            }
            _ => self.out.push_str(&line),
        }
    }
}

fn assign_head(target: &Name, view: Option<&View>, index: Option<&Expression>) -> String {
    let view = view.map(view_text).unwrap_or_default();
    let index = index.map(|index| format!("[{}]", expression(index))).unwrap_or_default();
    format!("{}{view}{index} = ", target.text)
}

/// A statement without a block, on one line.
fn simple_statement(statement: &Statement) -> Option<String> {
    let condition =
        |condition: &Option<Expression>| condition.as_ref().map(|condition| format!(" if {}", expression(condition))).unwrap_or_default();
    Some(match &statement.kind {
        StatementKind::Assign { target, view, index, value } => {
            format!("{}{}", assign_head(target, view.as_ref(), index.as_ref()), expression(value))
        }
        StatementKind::Store { address, value, condition: when } => {
            format!("store({}, {}){}", expression(address), expression(value), condition(when))
        }
        StatementKind::Branch { target, condition: when } => {
            let target = target.as_ref().map(|target| format!(" to {}", expression(target))).unwrap_or_default();
            format!("branch{target}{}", condition(when))
        }
        StatementKind::Forbidden { condition } => format!("forbidden if {}", expression(condition)),
        StatementKind::Expression(value) => expression(value),
        StatementKind::For { .. } | StatementKind::Loop { .. } | StatementKind::Map { .. } | StatementKind::Error => return None,
    })
}

fn parameter_text(parameter: &KernelParameter) -> String {
    // What says how a parameter is used stands before its type, what the caller promises after it.
    let leads = |attribute: &&Attribute| {
        matches!(attribute.kind, AttributeKind::In | AttributeKind::Out | AttributeKind::InOut | AttributeKind::Setup)
    };
    let (before, after): (Vec<&Attribute>, Vec<&Attribute>) = if parameter.attributes.is_sorted_by_key(|attribute| !leads(&attribute)) {
        parameter.attributes.iter().partition(leads)
    } else {
        // Another order is kept as it is.
        (parameter.attributes.iter().collect(), Vec::new())
    };
    let before: String = before.into_iter().map(|attribute| format!("{} ", attribute_text(attribute))).collect();
    let after: String = after.into_iter().map(|attribute| format!(" {}", attribute_text(attribute))).collect();
    format!("{}: {before}{}{after}", parameter.name.text, type_text(&parameter.ty))
}

fn attributes_text(attributes: &[Attribute]) -> String {
    attributes.iter().map(|attribute| format!(" {}", attribute_text(attribute))).collect()
}

fn attribute_text(attribute: &Attribute) -> String {
    match &attribute.kind {
        AttributeKind::In => "in".to_owned(),
        AttributeKind::Out => "out".to_owned(),
        AttributeKind::InOut => "inout".to_owned(),
        AttributeKind::Setup => "setup".to_owned(),
        AttributeKind::Secret => "secret".to_owned(),
        AttributeKind::Public => "public".to_owned(),
        AttributeKind::Align(bytes) => format!("align {bytes}"),
        AttributeKind::AliasAny => "alias any".to_owned(),
        AttributeKind::AliasSame(name) => format!("alias {}", name.text),
    }
}

fn type_text(ty: &TypeExpression) -> String {
    // Inside `<…>` the sign `>` closes, so what binds less than sums stands in parentheses.
    let size = |value: &Expression| operand(value, Operator::Add.precedence() - 1);
    match &ty.kind {
        TypeKind::Named(name) => name.clone(),
        TypeKind::Natural(bits) => format!("nat<{}>", size(bits)),
        TypeKind::Modulus(bits) => format!("modulus<{}>", size(bits)),
        TypeKind::Residue(modulus) => format!("residue<{}>", modulus.text),
        TypeKind::Array(element, length) => format!("[{}; {}]", type_text(element), expression(length)),
        TypeKind::Slice(element) => format!("[{}]", type_text(element)),
    }
}

fn range_text(range: &Range) -> String {
    format!("{}..{}", expression(&range.start), expression(&range.end))
}

fn view_text(view: &View) -> String {
    let order = match view.order {
        None => "u",
        Some(ByteOrder::Big) => "be",
        Some(ByteOrder::Little) => "le",
    };
    let lanes = if view.lanes == 1 { String::new() } else { format!("x{}", view.lanes) };
    format!(".{order}{}{lanes}", view.width)
}

fn list_text(items: &[Expression]) -> String {
    items.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn expression(value: &Expression) -> String {
    match &value.kind {
        ExpressionKind::Number(text) | ExpressionKind::Name(text) => text.clone(),
        ExpressionKind::Hex(text) => format!("hex\"{text}\""),
        ExpressionKind::List(items) => format!("[{}]", list_text(items)),
        ExpressionKind::Comprehension { variable, range, body } => {
            format!("[{} in {}: {}]", variable.text, range_text(range), expression(body))
        }
        ExpressionKind::Fold { fold, variable, range, body } => {
            format!("{}({} in {}: {})", fold.text(), variable.text, range_text(range), expression(body))
        }
        ExpressionKind::Call { function, arguments } => format!("{}({})", function.text, list_text(arguments)),
        ExpressionKind::Not(inner) => match inner.kind {
            ExpressionKind::Chain { .. } => format!("~({})", expression(inner)),
            _ => format!("~{}", expression(inner)),
        },
        ExpressionKind::Chain { first, rest } => {
            let level = rest.first().map_or(0, |(operator, _)| operator.precedence());
            let mut text = operand(first, level);
            for (operator, value) in rest {
                let _ = write!(text, " {} {}", operator.text(), operand(value, level));
            }
            text
        }
        ExpressionKind::Postfix { base, steps } => {
            let mut text = match base.kind {
                ExpressionKind::Chain { .. } | ExpressionKind::Not(_) | ExpressionKind::Postfix { .. } => format!("({})", expression(base)),
                _ => expression(base),
            };
            for step in steps {
                text.push_str(&match &step.kind {
                    StepKind::Index(index) => format!("[{}]", expression(index)),
                    StepKind::Slice(range) => format!("[{}]", range_text(range)),
                    StepKind::View(view) => view_text(view),
                });
            }
            text
        }
        ExpressionKind::Error => String::new(),
    }
}

/// An operand in a chain of this precedence.
fn operand(value: &Expression, level: u8) -> String {
    match &value.kind {
        ExpressionKind::Chain { rest, .. } if rest.first().is_none_or(|(operator, _)| operator.precedence() <= level) => {
            format!("({})", expression(value))
        }
        _ => expression(value),
    }
}
