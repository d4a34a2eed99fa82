//! The command `kgen`.

mod messages;
mod options;
mod output;

use clap::Parser;

fn main() {
    let cli = options::Cli::parse();
    let messages = messages::Messages::new(cli.message_format, cli.color);
    messages.plain("unfinished", "not yet", None);
}
