//! The command `kgen`.

mod command;
mod messages;
mod options;

use clap::Parser;
use options::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = options::Cli::parse();
    let messages = messages::Messages::new(cli.message_format, cli.color);
    let code = match &cli.command {
        Command::Emit(arguments) => command::emit::emit(messages, arguments, None),
        Command::Schedule(arguments) => command::emit::emit(messages, arguments, Some("report")),
        Command::Check(arguments) => command::emit::check(messages, arguments),
        Command::Format(arguments) => command::format::format(messages, arguments),
        Command::Completions { shell } => command::completions::completions(*shell),
        Command::Targets { target } => command::targets::targets(messages, target.as_deref()),
        Command::Time(arguments) => command::time::time(messages, arguments),
        Command::Cost(arguments) => command::cost::cost(messages, arguments),
        Command::Explain { topic, target } => command::explain::explain(messages, topic, target.as_deref()),
    };
    ExitCode::from(code)
}
