//! The known answers of the specs, run through the checked-in files on a processor (or its emulator) that has the instructions.
#![cfg(target_arch = "powerpc")]
#![allow(unsafe_code)]

mod rust_asm {
    use kgen_generated::e600 as kernels;
    include!("answers/mod.rs");
}

#[cfg(feature = "intrinsics")]
mod rust_intrinsics {
    use kgen_generated::e600_intrinsics as kernels;
    include!("answers/mod.rs");
}
