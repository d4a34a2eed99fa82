//! Random kernels over the whole language that machines lower: what is emitted for them computes what the interpreter says.

use kgen_ir::random_kernels::random_kernel;
use kgen_ir::source::Source;
use kgen_schedulers::finish::{FinishOptions, finish};
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::replay::ReplayOptions;
use kgen_schedulers::scheduling::Effort;
use kgen_schedulers::target_file::embedded_machine;
use std::sync::Arc;

/// Kernels for each target, beside those that are compiled and run elsewhere (`tests/random_kernels_e600.rs`, the emitters' tests); `KGEN_RANDOM_KERNELS=FIRST..END` runs others.
const SEEDS: std::ops::Range<u64> = 1000..1040;

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("KGEN_RANDOM_KERNELS") else { return SEEDS };
    let (first, end) = text.split_once("..").expect("FIRST..END");
    first.parse().expect("a number")..end.parse().expect("a number")
}

fn all_replay(target: &str, effort: Effort, interleave: u32) {
    let machine = embedded_machine(target).expect("the target");
    let options = FinishOptions { effort, pool: PoolAddressing::Absolute, interleave, replay: ReplayOptions { setups: 1, inputs: 6 } };
    let mut failures = Vec::new();
    for seed in seeds() {
        let text = random_kernel(seed);
        let source = Arc::new(Source { name: format!("random_{seed}.ir"), text: text.clone() });
        let unit = match kgen_ir::parse_unit(source, &[]) {
            Ok((unit, _)) => unit,
            Err(errors) => {
                failures.push(format!("{seed}: the generator wrote no valid spec: {} at {:?}\n{text}", errors[0].message, errors[0].span));
                continue;
            }
        };
        if let Err(error) = finish(&machine, &unit.kernels[0], options) {
            failures.push(format!("{seed}: {error}\n{text}"));
        }
    }
    assert!(failures.is_empty(), "{} of {} on {target}:\n{}", failures.len(), seeds().count(), failures.join("\n"));
}

#[test]
fn random_kernels_replay_on_e600() {
    all_replay("e600", Effort::List, 1);
}

#[test]
fn random_kernels_replay_on_portable() {
    all_replay("portable", Effort::List, 1);
}
