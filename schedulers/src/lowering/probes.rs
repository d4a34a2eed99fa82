//! Probes: the fixed inputs on which meanings are compared, and running a meaning on them. They are computed, never random, so that selection is the same
//! every time.

use kgen_ir::bits::Bits;
use kgen_ir::body::Body;
use kgen_ir::domains::concrete::{Concrete, ShadowedBits, Value};
use kgen_ir::domains::memory::{Memory, NoMemory};
use kgen_ir::evaluate::{Outcome, evaluate};
use kgen_ir::natural::MontgomeryRadix;
use kgen_ir::types::Type;

/// Probes of mixed numbers, before the pairs of edges.
const MIXED: u32 = 24;

/// Numbers of a lane at which operations differ that agree nearly everywhere: zero, one, the greatest, and the numbers around the sign.
const EDGES: usize = 6;

/// How many probes there are. The last ones are every pair of edges: a result of one bit agrees by chance on half of all mixed probes, so that no number of them
/// tells signed order from unsigned order, or order from inequality, in every width.
pub const COUNT: u32 = MIXED + (EDGES * EDGES) as u32;

/// Constants of instructions, by probe: small ones often, since they must lie in the ranges of shift counts and offsets.
const IMMEDIATES: [i64; MIXED as usize] =
    [3, 1, 0, 7, 15, 5, 2, 12, 100, 255, 1000, -1, -5, 32767, -32768, 4096, 16, 31, 24, 8, 9, 14, 0x7ff0, 0xfffc];

/// The results of a meaning, parallel to its outputs.
pub type Results = Vec<ShadowedBits>;

/// A well-mixed number of three (SplitMix64's finalizer).
pub fn mix(probe: u32, input: u32, word: u32) -> u64 {
    let mut z = (u64::from(probe) << 40 | u64::from(input) << 20 | u64::from(word)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The content of a register for shape input `input`: random at first, then zeros, ones, one value in every byte, sparse bits, equal in part;
/// at last pairs of edges.
pub fn register(probe: u32, input: u32, ty: &Type) -> Value {
    let width = ty.total_bits().unwrap_or(0);
    if probe >= MIXED {
        return Value::from(edge(probe - MIXED, input, ty));
    }
    let random = |input: u32| Bits::from_words(width, (0..width.div_ceil(64)).map(|word| mix(probe, input, word)));
    let class = if probe < 8 { 0 } else { mix(probe, input, u32::MAX) % 6 };
    let bits = match class {
        1 => Bits::zero(width),
        2 => Bits::ones(width),
        3 => splat_byte(width, mix(probe, input, 1) as u8 & 31),
        // Equal to input 0 in most bytes, so that comparisons see equal lanes.
        4 => {
            let (common, own) = (random(0).words().to_vec(), random(input).words().to_vec());
            let mask = mix(probe, input, 2) & mix(probe, input, 3) & 0xffff_0000_ffff_0000;
            Bits::from_words(width, common.iter().zip(own).map(|(common, own)| common ^ (own & mask)))
        }
        5 => Bits::from_words(width, (0..width.div_ceil(64)).map(|word| 1 << (mix(probe, input, word) % 64))),
        _ => random(input),
    };
    Value::from(bits)
}

/// An edge in every lane, so that the probes hold each pair of edges for inputs 0 and 1; other inputs take any.
fn edge(pair: u32, input: u32, ty: &Type) -> Bits {
    let Type::Bits { width, lanes } = *ty else { return Bits::zero(0) };
    let without = |bits: &Bits| Bits::ones(width).and_not(bits);
    let mut top = Bits::zero(width);
    top.insert(width - 1, &Bits::from_u64(1, 1));
    let edges: [Bits; EDGES] =
        [Bits::zero(width), Bits::from_u64(width, 1), Bits::ones(width), top.clone(), without(&top), without(&Bits::from_u64(width, 1))];
    let number = match input {
        0 => pair as usize / EDGES,
        1 => pair as usize % EDGES,
        _ => mix(pair, input, 0) as usize % EDGES,
    };
    let mut all = Bits::zero(width * lanes);
    for lane in 0..lanes {
        all.insert(lane * width, &edges[number]);
    }
    all
}

fn splat_byte(width: u32, byte: u8) -> Bits {
    Bits::from_words(width, std::iter::repeat_n(u64::from_ne_bytes([byte; 8]), width.div_ceil(64) as usize))
}

/// The constant for shape input `input`.
pub fn immediate(probe: u32, input: u32) -> i64 {
    IMMEDIATES[((probe + input * 5) % MIXED) as usize]
}

/// A number in two's complement, cut to the type.
pub fn integer(ty: &Type, value: i64) -> Value {
    let width = ty.total_bits().unwrap_or(0);
    let filled = if value < 0 { u64::MAX } else { 0 };
    let words = std::iter::once(value as u64).chain(std::iter::repeat(filled)).take(width.div_ceil(64) as usize);
    Value::from(Bits::from_words(width, words))
}

/// Runs a meaning that touches no memory; `None` where it faults.
pub fn run(body: &Body, inputs: &[Value]) -> Option<Results> {
    run_with(body, inputs, &mut NoMemory).and_then(|outcome| results(&outcome))
}

/// Runs a meaning over a memory; `None` where it faults.
pub fn run_with<M: Memory>(body: &Body, inputs: &[Value], memory: &mut M) -> Option<Outcome<Value>> {
    let radix = MontgomeryRadix::one();
    evaluate(&mut Concrete::new(memory, &radix), body, inputs).ok()
}

/// The outputs, where all are bits.
pub fn results(outcome: &Outcome<Value>) -> Option<Results> {
    outcome
        .outputs
        .iter()
        .map(|value| match value {
            Value::Bits(bits) => Some(bits.clone()),
            Value::Integer(_) | Value::List(_) => None,
        })
        .collect()
}

/// Whether `got` is defined and equal wherever `wanted` is defined.
pub fn agrees(wanted: &ShadowedBits, got: &ShadowedBits) -> bool {
    if wanted.width() != got.width() {
        return false;
    }
    let zero = Bits::zero(wanted.width());
    let wanted_undefined = wanted.undefined().unwrap_or(&zero);
    let got_undefined = got.undefined().unwrap_or(&zero);
    got_undefined.and_not(wanted_undefined).is_zero() && got.bits().and_not(wanted_undefined) == wanted.bits().and_not(wanted_undefined)
}
