//! The emitted kernels as safe functions, every call counted.

use crate::calls::Calls;
use kgen_generated::e600::rsa1024;
pub use kgen_generated::e600::rsa1024::{Limbs40x13 as Half, Limbs40x13Table16 as Table, Limbs80x13 as Whole, Modulus512Setup as Block};

/// log2(R) of the Montgomery form modulo a prime.
pub const RADIX_BITS: u32 = rsa1024::MODULUS_512_R_BITS;

const NO_HALF: Half = Half([0; size_of::<Half>()]);
const NO_WHOLE: Whole = Whole([0; size_of::<Whole>()]);

/// The kernels, with a count of their calls. This crate is compiled with them for processors that have their instructions only.
#[derive(Debug, Default)]
pub struct Kernels {
    /// Calls since they were last taken.
    pub calls: Calls,
}

/// Calls an emitted function and counts it: its last argument is the place of the result, given by its initial value.
macro_rules! call {
    ($self:ident, $function:ident, $rounds:expr, ($($before:expr),*), $result:expr, ($($after:expr),*)) => {{
        $self.calls.record(stringify!($function), $rounds);
        let mut result = $result;
        // SAFETY: the processor has the instructions (see [`Kernels`]); sizes and alignment are those of the types, and the result lies apart from the operands.
        unsafe { rsa1024::$function($($before,)* &mut result $(, $after)*) };
        result
    }};
}

impl Kernels {
    /// What depends on a modulus only.
    pub fn setup(&mut self, modulus: &Half) -> Block {
        call!(self, mont_mul_512_setup, None, (), Block([0; size_of::<Block>()]), (modulus))
    }

    /// A number of 512 bits from big-endian bytes.
    pub fn import_half(&mut self, bytes: &[u8; 64]) -> Half {
        call!(self, mont_mul_512_import, None, (), NO_HALF, (bytes))
    }

    /// A number of 1024 bits from big-endian bytes.
    pub fn import_whole(&mut self, bytes: &[u8; 128]) -> Whole {
        call!(self, rsa_enter_512_import_1024, None, (), NO_WHOLE, (bytes))
    }

    /// Big-endian bytes of a number of 1024 bits.
    pub fn export_whole(&mut self, number: &Whole) -> [u8; 128] {
        call!(self, rsa_recombine_512_export_1024, None, (), [0; 128], (number))
    }

    /// a·b/R.
    pub fn multiply(&mut self, block: &Block, a: &Half, b: &Half) -> Half {
        call!(self, mont_mul_512, None, (block, a, b), NO_HALF, ())
    }

    /// a²/R.
    pub fn square(&mut self, block: &Block, a: &Half) -> Half {
        call!(self, mont_sqr_512, None, (block, a), NO_HALF, ())
    }

    /// So many squarings.
    pub fn square_often(&mut self, block: &Block, a: &Half, rounds: u32) -> Half {
        call!(self, mont_sqr_n_512, Some(rounds), (block, a, rounds), NO_HALF, ())
    }

    /// An entry of the table; all of it is read.
    pub fn select(&mut self, block: &Block, table: &Table, index: u32) -> Half {
        call!(self, mont_select_512, None, (block, table, index), NO_HALF, ())
    }

    /// x times an entry of the table, then so many squarings.
    pub fn window(&mut self, block: &Block, table: &Table, index: u32, x: &Half, rounds: u32) -> Half {
        call!(self, rsa_window_512, Some(rounds), (block, table, index, x, rounds), NO_HALF, ())
    }

    /// The residue that stands for a number of 1024 bits.
    pub fn enter(&mut self, block: &Block, number: &Whole, enter: &Half, enter_high: &Half) -> Half {
        call!(self, rsa_enter_512, None, (block, number, enter, enter_high), NO_HALF, ())
    }

    /// The number that a residue stands for.
    pub fn leave(&mut self, block: &Block, residue: &Half) -> Half {
        call!(self, rsa_leave_512, None, (block, residue), NO_HALF, ())
    }

    /// The number below p·q that is the residue x modulo p and the number y modulo q.
    pub fn recombine(&mut self, p: &Block, x: &Half, y: &Half, q: &Half, q_inverse: &Half, q_inverse_residue: &Half) -> Whole {
        call!(self, rsa_recombine_512, None, (p, x, y, q, q_inverse, q_inverse_residue), NO_WHOLE, ())
    }
}
