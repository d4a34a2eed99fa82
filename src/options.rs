//! The command line, as clap sees it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use kgen::names;
use std::path::PathBuf;

/// Cryptographic kernels at the limit of a machine: one dataflow text, scheduled for a target, checked, and emitted.
#[derive(Parser, Debug)]
#[command(
    name = "kgen",
    version,
    propagate_version = true,
    after_help = "Examples:\n  \
        kgen emit --target e600 specs/mont_mul_512.ir          print every kernel as Rust inline assembly\n  \
        kgen emit --target e600 --form gas -o out/ specs/*.ir  one .s and one .h per kernel, in the folder out\n  \
        kgen schedule --target e600 --effort 2 specs/mont_mul_512.ir --kernel mont_mul_512\n  \
        cat kernel.ir | kgen check --target portable -\n  \
        kgen time loop.s --target e600 --call 'mul_1(out buf:64, in buf:72, 16, 7)'\n\n\
        Exit codes: 0 done, 1 the input was refused, 2 wrong usage."
)]
pub struct Cli {
    /// How messages are written to standard error.
    #[arg(long, global = true, value_enum, default_value_t = MessageFormat::Human)]
    pub message_format: MessageFormat,
    /// Colours of messages.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Form of messages.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// Source excerpts for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// When to colour.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Where standard error is a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Lower, schedule, check and print kernels in an output form.
    #[command(
        after_help = "Examples:\n  kgen emit --target e600 specs/mul_128.ir\n  kgen emit --target e600,portable -o out/ specs/*.ir\n  kgen emit --target e600 --form report --effort 2 specs/mont_mul_512.ir"
    )]
    Emit(EmitArgs),
    /// Emit as a report: cycles, bounds, what binds (`--form json` for programs).
    #[command(after_help = "Example:\n  kgen schedule --target e600 --effort 2 --form json specs/mont_mul_512.ir")]
    Schedule(EmitArgs),
    /// Parse, validate, lower, schedule, allocate, check and replay; write nothing.
    #[command(after_help = "Example:\n  kgen check --target e600,portable specs/*.ir")]
    Check(KernelArgs),
    /// Write specs in their canonical layout, in place; standard input to standard output.
    #[command(name = "fmt", after_help = "Examples:\n  kgen fmt specs/*.ir\n  kgen fmt --check specs/*.ir\n  kgen fmt - <x.ir >y.ir")]
    Format(FormatArgs),
    /// Print the completion script of a shell.
    #[command(after_help = "Example:\n  kgen completions bash >~/.local/share/bash-completion/completions/kgen")]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Execute assembly, ours or anybody's, by its instructions' meanings, and time it in the target's model.
    #[command(after_help = TIME_HELP)]
    Time(TimeArgs),
    /// Sum what a whole operation costs, from a list of its calls: model cycles times calls, beside published figures and on processors.
    #[command(after_help = COST_HELP)]
    Cost(CostArgs),
    /// List the targets, or show one.
    Targets {
        /// Show this target's units, files, hazards and forms.
        target: Option<String>,
    },
    /// Explain a rule of messages, or an instruction of a target.
    #[command(after_help = "Examples:\n  kgen explain lane-overflow\n  kgen explain vmsumuhm --target e600")]
    Explain {
        /// A rule's name as messages show it, or an instruction's name.
        topic: String,
        /// The target of an instruction.
        #[arg(long, short)]
        target: Option<String>,
    },
}

const TIME_HELP: &str = "The call gives the function and its arguments: numbers go to the integer argument registers; `buf:BYTES` is a buffer of so many bytes, \
filled from a fixed seed, aligned to 16 and no better (`buf:BYTES@ALIGN`); `in buf:…` may not be written, `out buf:…` holds nothing until it is written.\n\n\
Cycles run from the first dispatch to the last retirement, caches and branch predictor warm.\n\n\
Examples:\n  kgen time mul_1.s --target mpc7447 --call 'mul_1(out buf:256, buf:264, 64, 0x12345)'\n  \
kgen time mul_128.e600.s --target e600 --call 'mul_128(buf:32, buf:32, out buf:48)' --between .Lbody_mul_128 .Lend_mul_128";

const COST_HELP: &str = "The list is a TOML file; paths of specs are relative to it:\n\n  \
title = \"Two products\"\n  \
operation = \"pair of products\"\n  \
specs = [{ file = \"mont_mul_512.ir\", parameters = { BITS = 512 } }]\n  \
[[calls]]                     # counted\n  \
function = \"mont_sqr_n_512\"\n  \
rounds = 4                    # where the function has a loop with a run-time count\n  \
times = 1                     # in each task\n  \
tasks = [\"left\", \"right\"]     # parts that may run on different cores; none: before or after them\n  \
purpose = \"squarings\"\n  \
[[listed]]                    # shown, not counted; `work = \"…\"` instead of `function` where it is not emitted\n  \
function = \"mont_mul_512_setup\"\n  \
times = 1\n  \
when = \"once for each modulus\"\n  \
purpose = \"its block\"\n  \
[[published]]\n  \
what = \"other code\"\n  \
cycles = 10_000\n  \
source = \"where it is published\"\n  \
[[processors]]\n  \
name = \"a processor\"\n  \
target = \"e600\"\n  \
cores = 2\n  \
megahertz = 1000.0\n  \
watts = 10.0\n  \
published_per_second = 500.0  # may be absent\n  \
source = \"where it is published\"\n\n\
Calls are counted whole: register saves included, pipeline empty at entry, caches and branch predictors warm.\n\n\
Examples:\n  kgen cost examples/rsa1024/cost.toml\n  \
kgen cost examples/rsa1024/cost.toml --target e600 --effort 2 --format json -o rsa1024.json";

/// What to compile and for which machine.
#[derive(Args, Debug, Clone)]
pub struct KernelArgs {
    /// Spec files; `-` reads standard input.
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<PathBuf>,
    /// Target machines, by name or as paths of target files.
    #[arg(long, short, required = true, value_delimiter = ',', value_name = "TARGET,…")]
    pub target: Vec<String>,
    /// Only these kernels (all where absent).
    #[arg(long, short, value_delimiter = ',', value_name = "KERNEL,…")]
    pub kernel: Vec<String>,
    /// Sets a `param` of the spec.
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub param: Vec<(String, u64)>,
    /// Copies of a kernel without `map` interleaved into one function NAME_xN.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub interleave: u32,
    /// 0: list scheduling; 1: short search; 2: search guided by the timing simulation.
    #[arg(long, default_value_t = 0, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub effort: u8,
}

impl KernelArgs {
    /// The files that the outputs are made of: specs, and target files from disk.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let specs = self.specs.iter().filter(|path| path.as_os_str() != "-").cloned();
        specs.chain(self.target.iter().filter(|name| names::is_path(name)).map(PathBuf::from)).collect()
    }
}

/// What to print and where.
#[derive(Args, Debug, Clone)]
pub struct EmitArgs {
    /// What to compile.
    #[command(flatten)]
    pub kernels: KernelArgs,
    /// Output form; each target's first is the default (see `kgen targets`).
    #[arg(long, short, value_name = "FORM")]
    pub form: Option<String>,
    /// A file, a folder (it exists or the name ends in a slash; it gets a file for each kernel, headers included), or `-` for standard output.
    #[arg(long, short, default_value = "-", value_name = "FILE|DIR|-")]
    pub output: String,
    /// Write nothing; refuse where a file on disk is not what would be written.
    #[arg(long)]
    pub verify: bool,
    /// Write a dependency file for Make or Ninja: the outputs and the files that they are made of.
    #[arg(long, value_name = "FILE")]
    pub depfile: Option<PathBuf>,
    /// Put the spec's known answers beside the artifact; refused by forms that print none.
    #[arg(long)]
    pub with_tests: bool,
    /// Position-independent addressing of constants.
    #[arg(long)]
    pub pic: bool,
    /// Symbol prefix of assembly forms.
    #[arg(long, default_value = "", value_name = "TEXT", value_parser = parse_prefix)]
    pub prefix: String,
    /// SPDX licence expression written into the header (what kgen writes belongs to its user).
    #[arg(long, value_name = "EXPRESSION", value_parser = parse_licence)]
    pub spdx: Option<String>,
    /// Header: `stable` leaves kgen's version out.
    #[arg(long, value_enum, default_value_t = HeaderStyle::Stable)]
    pub header: HeaderStyle,
}

/// What to sum.
#[derive(Args, Debug, Clone)]
pub struct CostArgs {
    /// The list of calls; `-` reads standard input.
    pub file: PathBuf,
    /// Targets, by name or as paths of target files; those of the file's processors where absent.
    #[arg(long, short, value_delimiter = ',', value_name = "TARGET,…")]
    pub target: Vec<String>,
    /// 0: list scheduling; 1: short search; 2: search guided by the timing simulation.
    #[arg(long, default_value_t = 0, value_name = "0|1|2", value_parser = clap::value_parser!(u8).range(0..=2))]
    pub effort: u8,
    /// How to print.
    #[arg(long, short, value_enum, default_value_t = CostFormat::Text)]
    pub format: CostFormat,
    /// A file, a folder (it exists or the name ends in a slash), or `-` for standard output.
    #[arg(long, short, default_value = "-", value_name = "FILE|DIR|-")]
    pub output: String,
}

/// How a sum is printed.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostFormat {
    /// Aligned tables.
    Text,
    /// Tables for documents.
    Markdown,
    /// One object for programs.
    Json,
}

/// How much the header says.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStyle {
    /// Nothing that changes between versions of kgen.
    Stable,
    /// With kgen's version.
    Full,
}

/// What to lay out.
#[derive(Args, Debug, Clone)]
pub struct FormatArgs {
    /// Spec files; `-` reads standard input and prints.
    #[arg(required = true, value_name = "SPEC")]
    pub specs: Vec<PathBuf>,
    /// Write nothing; refuse files that are not in their canonical layout.
    #[arg(long)]
    pub check: bool,
}

/// What to run and time.
#[derive(Args, Debug, Clone)]
pub struct TimeArgs {
    /// Assembly file; `-` reads standard input.
    pub file: PathBuf,
    /// The target whose model times it.
    #[arg(long, short)]
    pub target: String,
    /// Function and arguments.
    #[arg(long, value_name = "NAME(ARGUMENT,…)")]
    pub call: String,
    /// Time from this label to that one instead of the whole call.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"])]
    pub between: Option<Vec<String>>,
    /// Instructions executed at most.
    #[arg(long, default_value_t = 10_000_000, value_name = "N")]
    pub steps: u64,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

fn parse_parameter(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, as in BITS=1024")?;
    let digits = value.replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    };
    parsed.map(|value| (name.to_owned(), value)).map_err(|_| format!("`{value}` is not a number from 0 to {}", u64::MAX))
}

/// The start of a symbol, as C and assemblers take it.
fn parse_prefix(text: &str) -> Result<String, String> {
    let letters = text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    let digit_first = text.starts_with(|character: char| character.is_ascii_digit());
    if letters && !digit_first {
        Ok(text.to_owned())
    } else {
        Err("a symbol starts with a letter or `_` and holds letters, digits and `_`".to_owned())
    }
}

/// It stands in a comment of the artifact and must not end it.
fn parse_licence(text: &str) -> Result<String, String> {
    let known = |character: char| character.is_ascii_alphanumeric() || "-.+() :".contains(character);
    if text.chars().all(known) {
        Ok(text.to_owned())
    } else {
        Err("an SPDX expression holds letters, digits, blanks and `-.+():`".to_owned())
    }
}
