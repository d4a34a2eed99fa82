//! The form of naturals on a machine: radix, limbs and layout, from the multiply-accumulate row that the machine has. A function of (machine, bits) only.

use super::digits::{Digits, MONTGOMERY_SLACK_BITS};
use super::scalar::Numbers;
use crate::lowering::builder::ProgramBuilder;
use crate::lowering::selection::RowMatch;
use crate::machine::FileId;
use crate::program::RegionId;

/// A natural as limbs in the lanes of registers.
///
/// Limb i has weight 2^(radix·i) and is the i-th of `limb_bits` bits in address order. A row of the product multiplies a *group* of `products` limbs, repeated in
/// every lane, by a table whose lane for column c holds the limbs that meet them there, and adds to the accumulator lane of column c.
#[derive(Clone, Debug)]
pub(crate) struct NaturalForm {
    /// Bits of the integer.
    pub bits: u32,
    /// The row `acc + Σ a·b`.
    pub row: RowMatch,
    /// Register file of lanes.
    pub file: FileId,
    /// Bits of a limb's place.
    pub limb_bits: u32,
    /// Limbs multiplied and summed in one lane.
    pub products: u32,
    /// Accumulator lanes of a register.
    pub lanes: u32,
    /// Weight step.
    pub radix_bits: u32,
    /// Limbs, a multiple of `lanes`.
    pub limbs: u32,
    /// Greatest limb that functions take and leave: a little above the radix, since carries are moved twice only.
    pub digit_limit: u64,
}

/// Products that a column holds before parts of it must be moved to its neighbour. All sizes share the radix, so that the product of two naturals is in the layout of its own
/// size.
const SHARED_RADIX_PRODUCTS: u32 = 60;

impl NaturalForm {
    /// The cheapest form: of the rows, the one with the fewest multiply-accumulates for a product; of its radices, the greatest whose columns stay inside their lanes.
    pub fn choose(builder: &ProgramBuilder<'_>, bits: u32) -> Option<Self> {
        let file = builder.lane_file()?;
        let register_bits = builder.machine()[file].width_bits;
        let forms = builder.multiply_accumulate_rows(file).into_iter().filter_map(|(row, limb_bits, products)| {
            let lane_bits = limb_bits * products;
            let lanes = register_bits / lane_bits;
            (4..=limb_bits).rev().find_map(|radix_bits| {
                let registers = builder.machine()[file].count.unwrap_or(u32::MAX);
                let limbs = (bits + MONTGOMERY_SLACK_BITS).div_ceil(radix_bits).next_multiple_of(lanes);
                // Blocks of columns end with whole registers of limbs.
                let limbs = if columns_fit(limbs / lanes, registers) { limbs } else { limbs.next_multiple_of(lanes * products) };
                let digit_limit = digit_limit(lane_bits, radix_bits);
                // A digit fits its place also when doubled (squares), and a column its lane; of a longer natural parts of columns are moved out in time.
                let column = u128::from(SHARED_RADIX_PRODUCTS) * u128::from(digit_limit).pow(2);
                let fits = 2 * digit_limit < 1 << limb_bits && column < 1 << lane_bits;
                // The carry that is taken from two columns rounds half a unit of a column over the lanes.
                let rounds = lanes >= 2 && 1 << (radix_bits - 1) >= 4 * lanes && lanes.is_multiple_of(products);
                (fits && rounds).then(|| Self { bits, row: row.clone(), file, limb_bits, products, lanes, radix_bits, limbs, digit_limit })
            })
        });
        forms.min_by_key(|form| u64::from(form.limbs).pow(2) / u64::from(form.lanes * form.products))
    }

    /// Whether the columns of a product stay in registers: rows are written out then, else they are loops over blocks of columns.
    pub fn fits_registers(&self, registers: u32) -> bool {
        columns_fit(self.column_vectors(), registers)
    }

    /// Bits of an accumulator lane.
    pub fn lane_bits(&self) -> u32 {
        self.limb_bits * self.products
    }

    /// Accumulator registers for as many columns as there are limbs.
    pub fn column_vectors(&self) -> u32 {
        self.limbs / self.lanes
    }

    /// Limbs in a register.
    pub fn packed_limbs(&self) -> u32 {
        self.lanes * self.products
    }

    /// Registers that hold the limbs.
    pub fn packed_vectors(&self) -> u32 {
        self.limbs.div_ceil(self.packed_limbs())
    }

    /// Bytes of a register.
    pub fn register_bytes(&self) -> u32 {
        self.packed_limbs() * self.limb_bits / 8
    }

    /// Bytes of a natural in memory.
    pub fn bytes(&self) -> u32 {
        self.packed_vectors() * self.register_bytes()
    }

    /// The places of a natural in memory, those past the last limb included.
    pub fn numbers(&self, region: RegionId) -> Numbers {
        Numbers { region, offset: 0, number_bytes: self.limb_bits / 8, count: self.packed_vectors() * self.packed_limbs() }
    }

    /// Whether naturals of the other form are naturals of this one as they lie in memory.
    pub fn same_layout(&self, other: &Self) -> bool {
        (self.radix_bits, self.limb_bits, self.limbs) == (other.radix_bits, other.limb_bits, other.limbs)
    }

    /// The form in which a product of two naturals comes: the same digits, twice as many.
    pub fn of_products(&self) -> Self {
        Self { bits: 2 * self.bits, limbs: 2 * self.limbs, ..self.clone() }
    }

    /// Rows of a product: groups of limbs.
    pub fn rows(&self) -> u32 {
        self.limbs.div_ceil(self.products)
    }

    /// Tables differ by how a row's first column lies in a register: row i uses table i mod this.
    pub fn table_classes(&self) -> u32 {
        self.lanes / self.products
    }

    /// Mask of a canonical digit.
    pub fn digit_mask(&self) -> u64 {
        (1 << self.radix_bits) - 1
    }

    /// In memory.
    pub fn digits(&self) -> Digits {
        Digits {
            bits: self.bits,
            radix_bits: self.radix_bits,
            limbs: self.limbs,
            places: self.packed_vectors() * self.packed_limbs(),
            limb_bytes: self.limb_bits / 8,
            align_bytes: self.register_bytes(),
            digit_limit: self.digit_limit,
        }
    }
}

/// Columns, table and the rest of a phase fit the registers.
fn columns_fit(column_vectors: u32, registers: u32) -> bool {
    /// Splats, constants and temporaries beside columns and table.
    const REST: u32 = 8;
    2 * column_vectors + 1 + REST <= registers
}

/// What two carry passes leave of full lanes: a digit plus the second pass's carry.
fn digit_limit(lane_bits: u32, radix_bits: u32) -> u64 {
    let mask = (1u64 << radix_bits) - 1;
    let first_carry = (u64::MAX >> (64 - lane_bits)) >> radix_bits;
    mask + ((mask + first_carry) >> radix_bits)
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_after_two_passes_of_32_bit_lanes() {
        // acc < 2^32, carry < 2^19, digit + carry < 2^19 + 2^13, second carry ≤ 64.
        assert_eq!(super::digit_limit(32, 13), 8191 + 64);
    }
}
