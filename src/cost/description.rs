//! The list of calls that make up an operation, a TOML file:
//!
//! ```toml
//! title = "Two products"
//! operation = "pair of products"
//!
//! [[specs]]                        # where the functions come from; paths are relative to this file
//! file = "mont_mul_512.ir"
//! parameters = { ENTRIES = 16 }
//!
//! [[calls]]                        # what is counted
//! function = "mont_mul_512"
//! times = 1                        # in each task
//! tasks = ["left", "right"]        # independent of each other: they may run on different cores; without tasks the calls come before or after them
//! purpose = "the product"
//!
//! [[listed]]                       # what is shown and not counted: `function`, or `work` where it is none of the specs'
//! function = "mont_mul_512_setup"
//! times = 1
//! when = "once for each modulus"
//! purpose = "its block"
//!
//! [[published]]                    # figures to compare with
//! what = "somebody's code"
//! cycles = 10_000
//! source = "where it is published"
//!
//! [[processors]]
//! name = "a processor"
//! target = "e600"
//! cores = 2
//! megahertz = 1000.0
//! watts = 10.0
//! published_per_second = 500.0     # operations, where published
//! source = "where the figures are from"
//! ```
//!
//! `rounds` of a call is the run-time count of a function's loop.

use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::{Source, Span};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A name with its place in the file.
pub type Name = Spanned<String>;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Heading.
    pub title: String,
    /// One of what is counted, in the singular: `private-key operation`.
    pub operation: String,
    /// Where functions come from.
    pub specs: Vec<Spec>,
    /// What is counted.
    pub calls: Vec<Call>,
    /// What is shown and not counted.
    #[serde(default)]
    pub listed: Vec<Listed>,
    /// Figures to compare with.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Processors for operations a second and for each watt.
    #[serde(default)]
    pub processors: Vec<Processor>,
}

/// A spec file with its parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Path, relative to the description.
    pub file: Name,
    /// Values of `param`s.
    #[serde(default)]
    pub parameters: BTreeMap<String, u64>,
}

/// Calls of one function.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The emitted function.
    pub function: Name,
    /// The count given to its run-time loop.
    pub rounds: Option<u64>,
    /// Calls, in each task where there are tasks.
    pub times: u64,
    /// Independent parts of the operation, each with so many calls.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// What for.
    pub purpose: String,
}

/// Calls, or other work, that are shown and not counted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// The emitted function.
    pub function: Option<Name>,
    /// What it is, where it is no emitted function.
    pub work: Option<Name>,
    /// The count given to its run-time loop.
    pub rounds: Option<u64>,
    /// Calls, each time.
    pub times: u64,
    /// At what time: once for each key, with each operation.
    pub when: String,
    /// What for.
    pub purpose: String,
}

/// A figure to compare with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Whose code.
    pub what: String,
    /// Cycles of one operation.
    pub cycles: u64,
    /// Where it is from.
    pub source: String,
}

/// A processor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// The target whose model it follows.
    pub target: Name,
    /// Cores.
    pub cores: u32,
    /// Clock.
    pub megahertz: f64,
    /// Power of all cores.
    pub watts: f64,
    /// Operations a second of all cores that somebody published.
    pub published_per_second: Option<f64>,
    /// Where the figures are from.
    pub source: String,
}

/// Calls of one line at most: sums of so many stay far from overflow, and nothing real has more.
const TIMES_LIMIT: u64 = 1_000_000_000;
/// Lines of calls at most.
const CALLS_LIMIT: usize = 10_000;
/// Rounds of a call at most.
const ROUNDS_LIMIT: u64 = 1_000_000;
/// Cores at most.
const CORES_LIMIT: u32 = 4096;

/// The rule of messages about these files.
const RULE: &str = "cost-file";

/// Reads a description.
///
/// # Errors
/// It is no TOML, lacks something, has something unknown, or a number makes no sense.
pub fn read(source: &Source) -> Result<Description, Vec<Diagnostic>> {
    let description: Description = toml::from_str(&source.text).map_err(|error| {
        let span = error.span().map(Span::new).unwrap_or_default();
        // The reader's message has several lines where it names what it expected.
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        vec![Diagnostic::error("cost-file", span, message).help("`kgen cost --help` shows a whole file")]
    })?;
    let wrong = mistakes(&description);
    if wrong.is_empty() { Ok(description) } else { Err(wrong) }
}

/// The place of a name.
pub fn place(name: &Name) -> Span {
    Span::new(name.span())
}

fn mistakes(description: &Description) -> Vec<Diagnostic> {
    let mut list = Vec::new();
    let mut wrong = |span: Span, message: String| list.push(Diagnostic::error(RULE, span, message));
    if description.specs.is_empty() || description.calls.is_empty() {
        wrong(Span::default(), "there are no specs or no calls: nothing costs anything".to_owned());
    }
    if description.calls.len() + description.listed.len() > CALLS_LIMIT {
        wrong(Span::default(), format!("more than {CALLS_LIMIT} lines of calls"));
    }
    let counted = description.calls.iter().map(|call| (Some(&call.function), call.times, call.rounds));
    let listed = description.listed.iter().map(|listed| (listed.function.as_ref().or(listed.work.as_ref()), listed.times, listed.rounds));
    for (function, times, rounds) in counted.chain(listed) {
        let span = function.map(place).unwrap_or_default();
        if !(1..=TIMES_LIMIT).contains(&times) {
            wrong(span, format!("`times` is {times}, and must be from 1 to {TIMES_LIMIT}"));
        }
        if rounds.is_some_and(|rounds| !(1..=ROUNDS_LIMIT).contains(&rounds)) {
            wrong(span, format!("`rounds` must be from 1 to {ROUNDS_LIMIT}"));
        }
    }
    for listed in &description.listed {
        match (&listed.function, &listed.work) {
            (Some(name), Some(_)) => wrong(place(name), "what is listed is either a `function` or other `work`".to_owned()),
            (None, None) => wrong(Span::default(), format!("neither a `function` nor `work` is listed for \"{}\"", listed.purpose)),
            (None, Some(work)) if listed.rounds.is_some() => wrong(place(work), "`rounds` belongs to a `function`".to_owned()),
            _ => {}
        }
    }
    for call in &description.calls {
        let mut names = call.tasks.clone();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            wrong(place(&call.function), format!("task `{}` is given twice", pair[0]));
        }
    }
    for processor in &description.processors {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let figures = [processor.megahertz, processor.watts].into_iter().chain(processor.published_per_second);
        if !figures.into_iter().all(positive) || !(1..=CORES_LIMIT).contains(&processor.cores) {
            let limits = format!("clock, power and operations must be positive, cores from 1 to {CORES_LIMIT}");
            wrong(place(&processor.target), format!("processor `{}`: {limits}", processor.name));
        }
    }
    if let Some(published) = description.published.iter().find(|published| published.cycles == 0) {
        wrong(Span::default(), format!("`{}` takes no cycles", published.what));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::read;
    use kgen_ir::source::Source;

    const WHOLE: &str = r#"
        title = "t"
        operation = "o"
        specs = [{ file = "a.ir" }]
        [[calls]]
        function = "f"
        times = 2
        tasks = ["p", "q"]
        purpose = "x"
        [[processors]]
        name = "n"
        target = "e600"
        cores = 1
        megahertz = 1000.0
        watts = 8.3
        source = "s"
    "#;

    fn messages(text: &str) -> String {
        let errors = read(&Source { name: "t".to_owned(), text: text.to_owned() }).expect_err("refused");
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(read(&Source { name: "t".to_owned(), text: WHOLE.to_owned() }).is_ok());
        let changed = |from: &str, to: &str| {
            assert!(WHOLE.contains(from));
            messages(&WHOLE.replace(from, to))
        };
        assert!(changed("times = 2", "times = 0").contains("`times` is 0"));
        assert!(changed("times = 2", "times = 18446744073709551615").contains("18446744073709551615"));
        assert!(changed("times = 2", "times = 2\nround = 3").contains("round"));
        assert!(changed("times = 2", "times = 2\nrounds = 0").contains("`rounds` must be"));
        assert!(changed("\"q\"", "\"p\"").contains("task `p` is given twice"));
        assert!(changed("watts = 8.3", "watts = -1.0").contains("processor `n`"));
        assert!(changed("megahertz = 1000.0", "megahertz = nan").contains("processor `n`"));
        assert!(changed("cores = 1", "cores = 0").contains("cores from 1"));
        assert!(changed("title = \"t\"", "").contains("title"));
        assert!(changed("specs = [{ file = \"a.ir\" }]", "specs = []").contains("nothing costs"));
        assert!(messages("\u{0}").len() > 5);
    }
}
