//! Speed of the timing simulation: what a search asks for thousands of times.

use criterion::{Criterion, criterion_group, criterion_main};
use kgen_schedulers::timing::{
    ExecutionTime, InstructionTiming, MemoryKind, MemoryTiming, ParameterValue, Read, Register, StraightLine, StraightLineOperand,
    TimingModel, TraceEvent, Write, simulate,
};

/// As many instructions as a 512-bit modular multiplication on a vector unit.
const INSTRUCTIONS: u32 = 1138;

fn model() -> TimingModel {
    let machine = kgen_schedulers::target_file::embedded_machine("e600").expect("an embedded target");
    TimingModel::from_machine(&machine).expect("a superscalar machine")
}

/// Vector instructions in the mix of a modular multiplication: products, sums, permutes, loads, stores.
fn instructions(model: &TimingModel) -> (Vec<InstructionTiming>, Vec<StraightLineOperand>) {
    let unit = |name: &str| model.unit(name).expect("a unit") as u8;
    let file = |name: &str| model.register_file(name).expect("a register file") as u8;
    let latency = |name: &str| match model.row_parameters.get(name) {
        Some(ParameterValue::Number(cycles)) => *cycles,
        other => panic!("{name} is {other:?}"),
    };
    // A fixed sequence of pseudo-random numbers.
    let mut state = 1u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % bound) as u32
    };
    let (vector, general) = (file("v"), file("r"));
    (0..INSTRUCTIONS)
        .map(|position| {
            let kind = below(u64::from(INSTRUCTIONS));
            let (written, read) = (below(29), below(29));
            let (unit, latency, memory) = match kind {
                0..460 => (unit("VIU2"), latency("lat_viu2"), None),
                460..683 => (unit("VIU1"), latency("lat_viu1"), None),
                683..861 => (unit("VPU"), latency("lat_vpu"), None),
                861..1118 => (unit("LSU"), latency("lat_load"), Some(MemoryKind::Load)),
                _ => (unit("LSU"), latency("lat_load"), Some(MemoryKind::Store { queue_cycles: 1 })),
            };
            let stores = matches!(memory, Some(MemoryKind::Store { .. }));
            let base = Read { register: Register { file: general, number: 3 }, store_data: false };
            let data = Read { register: Register { file: vector, number: read }, store_data: stores };
            let result = Write { register: Register { file: vector, number: written }, latency: None };
            let instruction = InstructionTiming {
                units: vec![unit],
                time: ExecutionTime { latency, busy: 1 },
                short_time: None,
                reads: if memory.is_some() { vec![base, data] } else { vec![data] },
                writes: if stores { Vec::new() } else { vec![result] },
                memory: memory.map(|kind| MemoryTiming { kind, bytes: 16 }),
                serialized: false,
                retires_oldest: false,
                branch: None,
            };
            (instruction, StraightLineOperand { data_address: 0x1000 + 16 * u64::from(position), short_operand: false })
        })
        .unzip()
}

fn timing(criterion: &mut Criterion) {
    let model = model();
    let (instructions, operands) = instructions(&model);
    let mut straight_line = StraightLine::new(&model, &instructions, &operands, 0, 4).expect("straight-line code");
    let order: Vec<u32> = (0..INSTRUCTIONS).collect();
    straight_line.cycles(&order);
    criterion.bench_function("one order of 1138 instructions", |bencher| {
        bencher.iter(|| straight_line.probe(&order, 0, u32::MAX));
    });
    criterion.bench_function("one order that changes in the middle", |bencher| {
        bencher.iter(|| straight_line.probe(&order, 569, u32::MAX));
    });
    let trace: Vec<TraceEvent> = (0..INSTRUCTIONS)
        .map(|index| TraceEvent {
            instruction: index,
            code_address: 4 * u64::from(index),
            data_address: operands[index as usize].data_address,
            taken: false,
            short_operand: false,
        })
        .collect();
    criterion.bench_function("cycle-by-cycle simulation", |bencher| {
        bencher.iter(|| simulate(&model, &instructions, &trace, &mut ()));
    });
}

criterion_group!(benches, timing);
criterion_main!(benches);
