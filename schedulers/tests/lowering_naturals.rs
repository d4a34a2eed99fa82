//! Limb products: lowered programs against big integers.

#[path = "lowering_support/run.rs"]
mod run;

use kgen_ir::kernel::Kernel;
use kgen_ir::source::Source;
use kgen_schedulers::finished::FunctionRole;
use kgen_schedulers::layout;
use kgen_schedulers::lowering::builder::PoolAddressing;
use kgen_schedulers::lowering::memory_rows::MemoryRows;
use kgen_schedulers::lowering::naturals;
use kgen_schedulers::lowering::selection::Selector;
use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{Layout, Program};
use kgen_schedulers::target_file::embedded_machine;
use num_bigint::{BigInt, BigUint};
use num_traits::One;
use run::{Given, run};
use std::sync::Arc;

fn kernels(file: &str, parameters: &[(String, u64)]) -> Vec<Kernel> {
    let path = format!("{}/../specs/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the spec");
    kgen_ir::parse_unit(Arc::new(Source { name: file.to_owned(), text }), parameters).expect("a valid spec").0.kernels
}

fn lowered(machine: &Machine, kernel: &Kernel) -> Vec<(FunctionRole, Program)> {
    let selector = Selector::new(machine);
    let rows = MemoryRows::of(&selector);
    naturals::lower(kernel, &selector, &rows, PoolAddressing::Absolute).unwrap_or_else(|error| panic!("{}: {error:#?}", kernel.name))
}

fn function(functions: &[(FunctionRole, Program)], role: FunctionRole) -> &Program {
    functions.iter().find(|(known, _)| *known == role).map(|(_, program)| program).expect("a function of this role")
}

/// A fixed sequence of words that looks random (SplitMix64).
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, limit: &BigUint) -> BigUint {
        let digits: Vec<u32> = (0..limit.bits() / 32 + 2).map(|_| self.next() as u32).collect();
        BigUint::new(digits) % limit
    }
}

fn image(machine: &Machine, layout: &Layout, value: &BigUint, words: &mut Words) -> Vec<u8> {
    let limbs = layout::canonical_limbs(layout, value).expect("fits");
    let limbs = layout::perturbed_limbs(layout, &limbs, || words.next());
    layout::limbs_to_bytes(layout, &limbs, machine.byte_order)
}

fn bytes(given: &Given) -> &[u8] {
    match given {
        Given::Region(bytes) => bytes,
        Given::Scalar(_) => panic!("a scalar"),
    }
}

/// Odd numbers below 2^bits, the extreme ones first.
fn moduli(bits: u32, words: &mut Words) -> Vec<BigUint> {
    let top = BigUint::one() << bits;
    let mut list = vec![&top - 1u32, (&top >> 1u32) + 1u32, BigUint::from(3u32), BigUint::one()];
    list.extend((0..3).map(|_| words.below(&(&top >> 1u32)) * 2u32 + 1u32));
    list
}

#[test]
fn setup_and_products_keep_the_contract() {
    let machine = embedded_machine("e600").expect("the target");
    for bits in [256, 512, 569, 1024] {
        let mut words = Words(u64::from(bits));
        let kernels = kernels("mont_mul_512.ir", &[("BITS".to_owned(), u64::from(bits))]);
        let [multiply, square] = [0, 1].map(|index: usize| lowered(&machine, &kernels[index]));
        let program = function(&multiply, FunctionRole::Kernel);
        let form = program.montgomery.expect("R");
        let radix = BigUint::one() << form.radix_bits;
        let layout = program.layouts[1].clone();
        // Setup goes bit by bit: a few hundred thousand instructions.
        for modulus in moduli(bits, &mut words).into_iter().take(if bits > 256 { 2 } else { 7 }) {
            let setup = function(&multiply, FunctionRole::Setup);
            let block_bytes = setup.regions[0].bytes.expect("a size") as usize;
            let mut given = vec![Given::Region(vec![0xaa; block_bytes]), Given::Region(image(&machine, &layout, &modulus, &mut words))];
            run(&machine, setup, &mut given, 0);
            let block = bytes(&given[0]).to_vec();
            let square_of_radix = layout::bytes_to_integer(&layout, &block, machine.byte_order).expect("limbs");
            // A residue: below 2m, which for m = 1 leaves two ways to write zero.
            let square_of_radix = BigUint::try_from(square_of_radix).expect("not negative");
            assert!(square_of_radix < &modulus * 2u32, "{bits} bits: {square_of_radix} modulo {modulus}");
            assert_eq!(&square_of_radix % &modulus, &radix * &radix % &modulus, "{bits} bits: R² mod {modulus}");
            let limit = &modulus * 2u32;
            let mut pairs = vec![(&limit - 1u32, &limit - 1u32), (BigUint::ZERO, &limit - 1u32)];
            pairs.extend((0..3).map(|_| (words.below(&limit), words.below(&limit))));
            for (a, b) in pairs {
                for (functions, factors) in [(&multiply, vec![&a, &b]), (&square, vec![&a])] {
                    let program = function(functions, FunctionRole::Kernel);
                    let mut given = vec![Given::Region(block.clone())];
                    given.extend(factors.iter().map(|factor| Given::Region(image(&machine, &layout, factor, &mut words))));
                    given.push(Given::Region(vec![0xaa; bytes(&given[1]).len()]));
                    run(&machine, program, &mut given, 0);
                    let result =
                        layout::bytes_to_integer(&layout, bytes(given.last().expect("a result")), machine.byte_order).expect("limbs");
                    let result = BigUint::try_from(result).expect("not negative");
                    let product = factors[0] * *factors.last().expect("a factor");
                    assert!(result < limit, "{} of {bits} bits modulo {modulus}: {result}", program.name);
                    assert_eq!((&result * &radix) % &modulus, product % &modulus, "{} modulo {modulus}", program.name);
                }
            }
        }
    }
}

#[test]
fn plain_products_are_exact() {
    let machine = embedded_machine("e600").expect("the target");
    let kernel = kernels("mul_128.ir", &[]).remove(0);
    let functions = lowered(&machine, &kernel);
    let program = function(&functions, FunctionRole::Kernel);
    let mut words = Words(1);
    let limit = BigUint::one() << 128u32;
    let mut pairs = vec![(&limit - 1u32, &limit - 1u32), (BigUint::ZERO, &limit - 1u32)];
    pairs.extend((0..20).map(|_| (words.below(&limit), words.below(&limit))));
    for (a, b) in pairs {
        let mut given: Vec<Given> = [&a, &b]
            .iter()
            .zip(&program.layouts)
            .map(|(value, layout)| Given::Region(image(&machine, layout, value, &mut words)))
            .collect();
        given.push(Given::Region(vec![0xaa; program.regions[2].bytes.expect("a size") as usize]));
        run(&machine, program, &mut given, 0);
        assert_eq!(layout::bytes_to_integer(&program.layouts[2], bytes(&given[2]), machine.byte_order), Some(BigInt::from(a * b)));
    }
}

#[test]
fn import_and_export_are_inverse() {
    let machine = embedded_machine("e600").expect("the target");
    for bits in [256, 512, 569, 1000, 1023] {
        let kernel = kernels("mont_mul_512.ir", &[("BITS".to_owned(), bits)]).remove(0);
        let functions = lowered(&machine, &kernel);
        let (import, export) = (function(&functions, FunctionRole::Import), function(&functions, FunctionRole::Export));
        let mut words = Words(bits);
        let layout = import.layouts[0].clone();
        for number in 0..4 {
            let value = if number == 0 { (BigUint::one() << bits) - 1u32 } else { words.below(&(BigUint::one() << bits)) };
            let mut outside = value.to_bytes_be();
            while outside.len() < (bits as usize).div_ceil(8) {
                outside.insert(0, 0);
            }
            let mut given =
                vec![Given::Region(vec![0xaa; import.regions[0].bytes.expect("a size") as usize]), Given::Region(outside.clone())];
            run(&machine, import, &mut given, 1);
            assert_eq!(layout::bytes_to_integer(&layout, bytes(&given[0]), machine.byte_order), Some(BigInt::from(value.clone())));
            let mut given = vec![Given::Region(vec![0xaa; outside.len()]), Given::Region(image(&machine, &layout, &value, &mut words))];
            run(&machine, export, &mut given, 1);
            assert_eq!(bytes(&given[0]), outside);
        }
    }
}

/// Row loops keep the code of long naturals short: every function of every size is written out, and none is larger than the cache.
#[test]
fn code_of_every_size_fits_the_instruction_cache() {
    let machine = embedded_machine("e600").expect("the target");
    let cache = u64::from(machine.instruction_cache_bytes.expect("a size"));
    for bits in [256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096] {
        for kernel in kernels("mont_mul_512.ir", &[("BITS".to_owned(), bits)]) {
            for (_, program) in lowered(&machine, &kernel) {
                let instructions = program.blocks.iter().flat_map(|block| &block.instructions);
                let bytes: u64 = instructions.map(|instruction| u64::from(machine[instruction.row].code_bytes)).sum();
                assert!(bytes <= cache, "{} has {bytes} bytes", program.name);
            }
        }
    }
}

#[test]
fn selection_reads_the_entry_asked_for() {
    // Five registers of limbs, and more than the machine has.
    for bits in [512, 4096] {
        selection_of(bits);
    }
}

fn selection_of(bits: u64) {
    let machine = embedded_machine("e600").expect("the target");
    let parameters = [("BITS".to_owned(), bits), ("ENTRIES".to_owned(), 5)];
    let kernel = kernels("mont_mul_512.ir", &parameters).remove(3);
    let functions = lowered(&machine, &kernel);
    let program = function(&functions, FunctionRole::Kernel);
    let table: Vec<u8> = (0..program.regions[1].bytes.expect("a size")).map(|byte| byte as u8).collect();
    let entry = table.len() / 5;
    for index in 0..5 {
        let block = vec![0; program.regions[0].bytes.expect("a size") as usize];
        let mut given =
            vec![Given::Region(block), Given::Region(table.clone()), Given::Scalar(index as u64), Given::Region(vec![0xaa; entry])];
        run(&machine, program, &mut given, 0);
        assert_eq!(bytes(&given[3]), &table[index * entry..(index + 1) * entry]);
    }
}
