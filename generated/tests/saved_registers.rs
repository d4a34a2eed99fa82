//! Every register that the calling convention wants kept, poisoned before and compared after calls of the checked-in kernels in every form of Rust. The caller is
//! assembly, so that no compiler saves what a kernel forgets.
#![cfg(target_arch = "powerpc")]
#![allow(unsafe_code)]

use std::sync::Mutex;

core::arch::global_asm!(include_str!("../../tests/emulated/poisoned_call.S"), options(raw));

/// As `poisoned_call.S` lays it out.
#[repr(C, align(16))]
#[derive(Clone, PartialEq, Debug)]
struct Registers {
    vectors: [[u8; 16]; 12],
    floats: [u64; 18],
    general: [u32; 18],
    condition: u32,
    stack_pointer: u32,
    thread_pointer: u32,
    small_data: u32,
    vector_save: u32,
}

/// CR2, CR3, CR4.
const SAVED_CONDITION: u32 = 0x00ff_f000;

unsafe extern "C" {
    fn call_poisoned(function: *const (), arguments: &[u32; 8], poison: &mut Registers, found: &mut Registers);
    fn breaks_general();
    fn breaks_vector();
    fn breaks_float();
    fn breaks_condition();
    fn breaks_vector_save();
    fn keeps_all();
}

/// The wrapper keeps what it needs in memory that all calls share.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What a function does not keep.
fn broken(function: *const (), arguments: &[u32; 8]) -> Option<&'static str> {
    let _guard = ONE_AT_A_TIME.lock().expect("no call panics");
    let mut state = 0x1234_5678_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut poison = Registers {
        vectors: core::array::from_fn(|_| core::array::from_fn(|_| (next() >> 11) as u8)),
        // Small numbers: a signalling one would change on its way through a register.
        floats: core::array::from_fn(|_| f64::from(next()).to_bits()),
        general: core::array::from_fn(|_| next()),
        condition: next(),
        stack_pointer: 0,
        thread_pointer: 0,
        small_data: 0,
        vector_save: next() | 1,
    };
    let mut found = poison.clone();
    // SAFETY: the functions below take their arguments in general registers.
    unsafe { call_poisoned(function, arguments, &mut poison, &mut found) };
    let changed = [
        (poison.vectors != found.vectors, "v20-v31"),
        (poison.floats != found.floats, "f14-f31"),
        (poison.general != found.general, "r14-r31"),
        ((poison.condition ^ found.condition) & SAVED_CONDITION != 0, "CR2-CR4"),
        (poison.stack_pointer != found.stack_pointer, "r1"),
        (poison.thread_pointer != found.thread_pointer, "r2"),
        (poison.small_data != found.small_data, "r13"),
        (poison.vector_save != found.vector_save, "VRSAVE"),
    ];
    changed.into_iter().find(|(changed, _)| *changed).map(|(_, what)| what)
}

#[test]
fn a_function_that_breaks_a_rule_is_seen() {
    let none = [0; 8];
    let cases: [(unsafe extern "C" fn(), Option<&str>); 6] = [
        (breaks_general, Some("r14-r31")),
        (breaks_vector, Some("v20-v31")),
        (breaks_float, Some("f14-f31")),
        (breaks_condition, Some("CR2-CR4")),
        (breaks_vector_save, Some("VRSAVE")),
        (keeps_all, None),
    ];
    for (function, expected) in cases {
        assert_eq!(broken(function as *const (), &none), expected);
    }
}

/// Calls of every function of the kernels in one form. Pointers come as numbers, so that the wrapper can pass them on.
macro_rules! form {
    ($test:ident, $($kernels:ident)::+) => {
        #[test]
        fn $test() {
            use $($kernels)::+::{mont_mul_512 as mul, mont_select_512 as select, mont_sqr_512 as sqr, mont_sqr_n_512 as sqr_n, mul_128};
            fn address<T>(value: &T) -> u32 {
                core::ptr::from_ref(value).expose_provenance() as u32
            }
            /// A shim with the calling convention of C.
            macro_rules! shim {
                ($function:path, $a:ty, $b:ty) => {{
                    unsafe extern "C" fn shim(a: $a, b: $b) {
                        // SAFETY: the processor has these instructions.
                        unsafe { $function(a, b) }
                    }
                    shim as *const ()
                }};
                ($function:path, $a:ty, $b:ty, $c:ty) => {{
                    unsafe extern "C" fn shim(a: $a, b: $b, c: $c) {
                        // SAFETY: the processor has these instructions.
                        unsafe { $function(a, b, c) }
                    }
                    shim as *const ()
                }};
                ($function:path, $a:ty, $b:ty, $c:ty, $d:ty) => {{
                    unsafe extern "C" fn shim(a: $a, b: $b, c: $c, d: $d) {
                        // SAFETY: the processor has these instructions.
                        unsafe { $function(a, b, c, d) }
                    }
                    shim as *const ()
                }};
            }
            // Written through their addresses.
            let bytes = [0x5au8; 64];
            let natural = mul::Limbs40x13([0; 80]);
            let setup = mul::Modulus512Setup([0; 992]);
            let (other, result) = (natural, natural);
            let table = select::Limbs40x13Table32([0; 2560]);
            let short = [mul_128::Limbs12x13([0; 32]); 2];
            let product = mul_128::Limbs20x13([0; 48]);
            let wide = [0u8; 32];
            let (n, s, o, r, b) = (address(&natural), address(&setup), address(&other), address(&result), address(&bytes));
            let calls: &[(&str, *const (), [u32; 4])] = &[
                ("import", shim!(mul::mont_mul_512_import, &mut mul::Limbs40x13, &[u8; 64]), [n, b, 0, 0]),
                ("setup", shim!(mul::mont_mul_512_setup, &mut mul::Modulus512Setup, &mul::Limbs40x13), [s, n, 0, 0]),
                ("mul", shim!(mul::mont_mul_512, &mul::Modulus512Setup, &mul::Limbs40x13, &mul::Limbs40x13, &mut mul::Limbs40x13), [s, n, o, r]),
                ("sqr", shim!(sqr::mont_sqr_512, &sqr::Modulus512Setup, &sqr::Limbs40x13, &mut sqr::Limbs40x13), [s, n, r, 0]),
                ("sqr_n", shim!(sqr_n::mont_sqr_n_512, &sqr_n::Modulus512Setup, &sqr_n::Limbs40x13, u32, &mut sqr_n::Limbs40x13), [s, n, 3, r]),
                (
                    "select",
                    shim!(select::mont_select_512, &select::Modulus512Setup, &select::Limbs40x13Table32, u32, &mut select::Limbs40x13),
                    [s, address(&table), 5, r],
                ),
                ("export", shim!(mul::mont_mul_512_export, &mut [u8; 64], &mul::Limbs40x13), [b, n, 0, 0]),
                ("mul_128 import", shim!(mul_128::mul_128_import_128, &mut mul_128::Limbs12x13, &[u8; 16]), [address(&short[0]), b, 0, 0]),
                (
                    "mul_128",
                    shim!(mul_128::mul_128, &mul_128::Limbs12x13, &mul_128::Limbs12x13, &mut mul_128::Limbs20x13),
                    [address(&short[0]), address(&short[1]), address(&product), 0],
                ),
                ("mul_128 export", shim!(mul_128::mul_128_export_256, &mut [u8; 32], &mul_128::Limbs20x13), [address(&wide), address(&product), 0, 0]),
            ];
            for (name, function, arguments) in calls {
                let mut registers = [0; 8];
                registers[..4].copy_from_slice(arguments);
                assert_eq!(broken(*function, &registers), None, "{name}");
            }
        }
    };
}

form!(rust_asm_keeps_what_it_must, kgen_generated::e600);
#[cfg(feature = "intrinsics")]
form!(rust_intrinsics_keep_what_they_must, kgen_generated::e600_intrinsics);
