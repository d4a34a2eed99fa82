//! Tables of what an operation costs: aligned text for terminals, Markdown for documents, JSON for programs.

use super::figures::{Costs, TargetCosts};
use std::fmt::Write;

/// A table's look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Aligned columns.
    Text,
    /// Markdown.
    Markdown,
}

struct Table {
    /// Heading, and whether figures stand in the column.
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(columns: &[(&str, bool)]) -> Self {
        Self { columns: columns.iter().map(|(name, figures)| ((*name).to_owned(), *figures)).collect(), rows: Vec::new() }
    }

    fn print(&self, style: Style, text: &mut String) {
        match style {
            Style::Text => self.text(text),
            Style::Markdown => self.markdown(text),
        }
    }

    fn text(&self, text: &mut String) {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let headings: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let cells = row
                .iter()
                .zip(&self.columns)
                .zip(&widths)
                .map(|((cell, (_, figures)), width)| if *figures { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    fn markdown(&self, text: &mut String) {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let _ = writeln!(text, "{}", line(self.columns.iter().map(|(name, _)| name.clone()).collect()));
        let rules = self.columns.iter().map(|(_, figures)| if *figures { "---:" } else { "---" }.to_owned());
        let _ = writeln!(text, "{}", line(rules.collect()));
        for row in &self.rows {
            let _ = writeln!(text, "{}", line(row.iter().map(|cell| cell.replace('|', "\\|")).collect()));
        }
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(first);
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let all: Vec<String> = Some(head.to_owned()).filter(|head| !head.is_empty()).into_iter().chain(groups).collect();
    all.join(" ")
}

fn optional(number: Option<u64>) -> String {
    number.map_or("-".to_owned(), grouped)
}

/// The tables.
pub fn tables(costs: &Costs, style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}\n\nModel: {}. Effort {}.", costs.title, costs.basis, costs.effort);
    for target in &costs.targets {
        let _ = writeln!(text, "\nOne {} on {}, cycles in the model:\n", costs.operation, target.target);
        calls(target, style, &mut text);
        if !target.listed.is_empty() {
            let _ = writeln!(text, "\nListed, not counted:\n");
            listed(target, style, &mut text);
        }
    }
    if let (Some(first), false) = (costs.targets.first(), costs.published.is_empty()) {
        let _ = writeln!(text, "\nBeside other code, cycles of one {}:\n", costs.operation);
        let mut table = Table::new(&[("code", false), ("cycles", true), ("times kgen's", true), ("source", false)]);
        table.rows.push(vec![
            format!("kgen on {}, model", first.target),
            grouped(first.cycles),
            "1.00".to_owned(),
            "this table".to_owned(),
        ]);
        for published in &costs.published {
            let ratio = format!("{:.2}", published.ratio);
            table.rows.push(vec![published.what.clone(), grouped(published.cycles), ratio, published.source.clone()]);
        }
        table.print(style, &mut text);
    }
    if !costs.processors.is_empty() {
        let _ = writeln!(
            text,
            "\nOn processors, model; throughput with every core at its own {}, latency with all cores at one:\n",
            costs.operation
        );
        processors(costs, style, &mut text);
    }
    text
}

fn calls(target: &TargetCosts, style: Style, text: &mut String) {
    let mut table =
        Table::new(&[("function", false), ("rounds", true), ("calls", true), ("each", true), ("cycles", true), ("what for", false)]);
    for call in &target.calls {
        let purpose = match call.tasks.as_slice() {
            [] => call.purpose.clone(),
            tasks => format!("{} ({})", call.purpose, tasks.join(", ")),
        };
        table.rows.push(vec![
            call.function.clone(),
            optional(call.rounds),
            grouped(call.calls),
            grouped(call.cycles_per_call),
            grouped(call.cycles),
            purpose,
        ]);
    }
    let empty = String::new;
    let calls = target.calls.iter().map(|call| call.calls).sum();
    table.rows.push(vec!["total".to_owned(), empty(), grouped(calls), empty(), grouped(target.cycles), "on one core".to_owned()]);
    for latency in target.latency.iter().filter(|latency| latency.cores > 1 && target.tasks.len() > 1) {
        let tasks: Vec<&str> = target.tasks.iter().map(|task| task.task.as_str()).collect();
        let what = format!("{} at the same time on {} cores", tasks.join(", "), latency.cores);
        table.rows.push(vec!["latency".to_owned(), empty(), empty(), empty(), grouped(latency.cycles), what]);
    }
    table.print(style, text);
}

fn listed(target: &TargetCosts, style: Style, text: &mut String) {
    let mut table =
        Table::new(&[("function", false), ("rounds", true), ("calls", true), ("each", true), ("when", false), ("what for", false)]);
    for listed in &target.listed {
        table.rows.push(vec![
            listed.name.clone(),
            optional(listed.rounds),
            grouped(listed.calls),
            optional(listed.cycles_per_call),
            listed.when.clone(),
            listed.purpose.clone(),
        ]);
    }
    table.print(style, text);
}

fn processors(costs: &Costs, style: Style, text: &mut String) {
    let mut table = Table::new(&[
        ("processor", false),
        ("target", false),
        ("cores", true),
        ("MHz", true),
        ("W", true),
        ("op/s", true),
        ("op/s/W", true),
        ("latency ms", true),
        ("op/s one at a time", true),
        ("published op/s", true),
        ("published op/s/W", true),
    ]);
    let published = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    for processor in &costs.processors {
        table.rows.push(vec![
            processor.name.clone(),
            processor.target.clone(),
            processor.cores.to_string(),
            processor.megahertz.to_string(),
            processor.watts.to_string(),
            format!("{:.0}", processor.per_second),
            format!("{:.1}", processor.per_second_per_watt),
            format!("{:.3}", processor.latency_milliseconds),
            format!("{:.0}", processor.per_second_one_at_a_time),
            published(processor.published_per_second),
            published(processor.published_per_second_per_watt),
        ]);
    }
    table.print(style, text);
    let mut sources: Vec<&str> = costs.processors.iter().map(|processor| processor.source.as_str()).collect();
    sources.dedup();
    let _ = writeln!(text, "\nClock, power and published figures: {}.", sources.join("; "));
}

#[cfg(test)]
mod tests {
    use super::{Style, Table, grouped};

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (767_109, "767 109"), (12_345_678, "12 345 678")] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_table_in_both_styles() {
        let mut table = Table::new(&[("a", false), ("n", true)]);
        table.rows.push(vec!["x|y".to_owned(), "12".to_owned()]);
        let mut text = String::new();
        table.print(Style::Text, &mut text);
        table.print(Style::Markdown, &mut text);
        assert_eq!(text, "a     n\nx|y  12\n| a | n |\n| --- | ---: |\n| x\\|y | 12 |\n");
    }
}
