//! What it costs to finish a kernel at effort 0 (lower, schedule, allocate, check, replay, time) against its size. Elements are emitted instructions, those of setup, import and
//! export included: near-linear cost is a throughput that hardly falls.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kgen_ir::kernel::{Kernel, Unit};
use kgen_ir::source::Source;
use kgen_schedulers::finish::{FinishOptions, finish_all};
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::replay::ReplayOptions;
use kgen_schedulers::scheduling::Effort;
use kgen_schedulers::target_file::embedded_machine;
use std::sync::Arc;

const OPTIONS: FinishOptions =
    FinishOptions { effort: Effort::List, pool: PoolAddressing::Absolute, interleave: 1, replay: ReplayOptions { setups: 1, inputs: 4 } };

/// Rounds of sums, exclusive ors and rotations on four vectors, as in stream ciphers: twelve operations a round.
const MIXING: &str = "
    param ROUNDS = 1
    kernel mix_{ROUNDS}(x: inout [u32x4; 4] secret) {
        a = x[0]
        b = x[1]
        c = x[2]
        d = x[3]
        for r in 0..ROUNDS {
            a = a + b
            d = rotl(d ^ a, 16)
            c = c + d
            b = rotl(b ^ c, 12)
            a = a + b
            d = rotl(d ^ a, 8)
            c = c + d
            b = rotl(b ^ c, 7)
        }
        x = [a, b, c, d]
    }
";

fn parsed(text: &str, parameter: (&str, u64)) -> Unit {
    let source = Arc::new(Source { name: "benchmark".to_owned(), text: text.to_owned() });
    kgen_ir::parse_unit(source, &[(parameter.0.to_owned(), parameter.1)]).expect("a valid spec").0
}

/// Finishes all kernels; their instructions.
fn finished(machine: &Machine, unit: &Unit) -> u64 {
    let kernels: Vec<&Kernel> = unit.kernels.iter().collect();
    let finished = finish_all(machine, &kernels, OPTIONS);
    let functions = finished.into_iter().flat_map(|functions| functions.expect("a kernel for this machine"));
    functions.map(|function| function.code.map_or(0, |code| code.instructions.len()) as u64).sum()
}

fn emit_cost(criterion: &mut Criterion) {
    let machine = embedded_machine("e600").expect("an embedded target");
    let montgomery = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs/mont_mul_512.ir");
    let montgomery = std::fs::read_to_string(montgomery).expect("the spec");
    for (group, text, parameter, sizes) in [
        ("mixing rounds", MIXING, "ROUNDS", &[20, 80, 420, 1680][..]),
        ("Montgomery bits", &montgomery, "BITS", &[256, 384, 512, 1024, 2048, 4096][..]),
    ] {
        let mut group = criterion.benchmark_group(group);
        group.sample_size(10);
        for &size in sizes {
            let unit = parsed(text, (parameter, size));
            group.throughput(Throughput::Elements(finished(&machine, &unit)));
            group.bench_with_input(BenchmarkId::from_parameter(size), &unit, |bencher, unit| bencher.iter(|| finished(&machine, unit)));
        }
        group.finish();
    }
}

criterion_group!(benches, emit_cost);
criterion_main!(benches);
