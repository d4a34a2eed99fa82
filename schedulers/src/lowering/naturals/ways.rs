//! How a machine calculates with naturals: in lanes that multiply and accumulate, or in words whose product is twice as wide.

use super::digits::Digits;
use super::form::NaturalForm;
use super::large_montgomery::{self, LargeScratch};
use super::montgomery::{self, Scratch};
use super::setup::{self, SetupBlock};
use super::words::{self, WordForm, WordSetup};
use super::{conversion, product, select};
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::program::{RegionId, ValueId};

/// Naturals of one size on a machine. A function of (machine, bits) only.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Lanes.
    Lanes(NaturalForm),
    /// Words.
    Words(WordForm),
}

/// Whether products are loops over blocks of columns.
fn has_row_loops(builder: &ProgramBuilder<'_>, form: &NaturalForm) -> bool {
    !form.fits_registers(builder.machine()[form.file].count.unwrap_or(u32::MAX))
}

impl Way {
    /// Lanes where the machine has rows for them, else words.
    ///
    /// # Errors
    /// It has neither.
    pub fn choose(builder: &ProgramBuilder<'_>, bits: u32) -> Lowering<Self> {
        let lanes = NaturalForm::choose(builder, bits).map(Self::Lanes);
        lanes.or_else(|| WordForm::choose(builder, bits).map(Self::Words)).ok_or_else(|| {
            builder
                .missing(&format!("products of naturals of {bits} bits: a multiply-accumulate of lanes, or a product of two integers in a register twice as wide"))
        })
    }

    /// Naturals in memory.
    pub fn digits(&self) -> Digits {
        match self {
            Self::Lanes(form) => form.digits(),
            Self::Words(form) => form.digits,
        }
    }

    /// Whether products have loops of their own.
    pub fn has_loops(&self, builder: &ProgramBuilder<'_>) -> bool {
        matches!(self, Self::Lanes(form) if has_row_loops(builder, form))
    }

    /// Bytes of a modulus's setup block.
    pub fn setup_bytes(&self) -> u64 {
        match self {
            Self::Lanes(form) => SetupBlock::new(form, RegionId(0)).bytes,
            Self::Words(form) => WordSetup::new(form).bytes,
        }
    }

    /// Radix, limbs and why, for the report.
    pub fn note(&self, builder: &ProgramBuilder<'_>) -> String {
        let digits = self.digits();
        let limbs = format!("2^{}, {} limbs of {} bits", digits.radix_bits, digits.limbs, 8 * digits.limb_bytes);
        match self {
            Self::Lanes(form) if has_row_loops(builder, form) => format!(
                "{limbs}: `{}` adds {} products a lane, columns are moved on before they reach 2^{}",
                builder.machine()[form.row.row].name,
                form.products,
                form.lane_bits()
            ),
            Self::Lanes(form) => format!(
                "{limbs}: `{}` adds {} products a lane, a column of {} products stays below 2^{}",
                builder.machine()[form.row.row].name,
                form.products,
                form.limbs,
                form.lane_bits()
            ),
            Self::Words(form) => {
                format!("{limbs}: `{}` and two digits stay below 2^{}", builder.machine()[form.product.row].name, 2 * digits.radix_bits)
            }
        }
    }

    /// Scratch that Montgomery products share, where they need any.
    pub fn montgomery_scratch(&self, builder: &mut ProgramBuilder<'_>) -> Option<RegionId> {
        match self {
            Self::Lanes(form) if has_row_loops(builder, form) => {
                let bytes = LargeScratch::new(form, RegionId(0)).bytes;
                Some(builder.frame_region("product", bytes, form.register_bytes(), true))
            }
            Self::Lanes(form) => Some(Scratch::new(builder, form).region),
            Self::Words(_) => None,
        }
    }

    /// result = a·b/R modulo the modulus whose setup block is `block`.
    ///
    /// # Errors
    /// A row is missing.
    pub fn montgomery(
        &self,
        builder: &mut ProgramBuilder<'_>,
        block: RegionId,
        scratch: Option<RegionId>,
        factors: (RegionId, RegionId),
        result: RegionId,
    ) -> Lowering<()> {
        match self {
            Self::Lanes(form) => {
                let region = scratch.ok_or_else(|| builder.missing("scratch of a Montgomery product"))?;
                let setup = SetupBlock::new(form, block);
                if has_row_loops(builder, form) {
                    let scratch = LargeScratch::new(form, region);
                    large_montgomery::product(builder, form, &setup, &scratch, factors.0, factors.1, result)
                } else {
                    montgomery::product(builder, form, &setup, &Scratch { region }, factors.0, factors.1, result)
                }
            }
            Self::Words(form) => words::montgomery(builder, form, block, factors.0, factors.1, result),
        }
    }

    /// result = a·b, for a result of the same radix; `None` where the result has another one.
    pub fn product(
        &self,
        builder: &mut ProgramBuilder<'_>,
        result_form: &Self,
        factors: (RegionId, RegionId),
        result: RegionId,
    ) -> Option<Lowering<()>> {
        match (self, result_form) {
            _ if self.digits().radix_bits != result_form.digits().radix_bits => None,
            (Self::Lanes(form), Self::Lanes(result_form)) => Some(product::plain(builder, form, result_form, factors.0, factors.1, result)),
            (Self::Words(form), Self::Words(result_form)) => {
                Some(words::product(builder, form, &result_form.digits, factors.0, factors.1, result))
            }
            _ => None,
        }
    }

    /// result = table\[index\], the whole table read.
    ///
    /// # Errors
    /// A row is missing.
    pub fn scan(&self, builder: &mut ProgramBuilder<'_>, table: RegionId, entries: u32, index: ValueId, result: RegionId) -> Lowering<()> {
        match self {
            Self::Lanes(form) => select::scan(builder, form, table, entries, index, result),
            Self::Words(form) => words::scan(builder, form, table, entries, index, result),
        }
    }

    /// Copies a natural.
    ///
    /// # Errors
    /// A row is missing.
    pub fn copy(&self, builder: &mut ProgramBuilder<'_>, from: RegionId, to: RegionId) -> Lowering<()> {
        match self {
            Self::Lanes(form) => {
                builder.set_name("copied");
                for vector in 0..form.packed_vectors() {
                    let offset = u64::from(vector * form.register_bytes());
                    let value = builder.load_lanes(from, offset)?;
                    builder.store_lanes(value, to, offset)?;
                }
                Ok(())
            }
            Self::Words(form) => words::copy(builder, form, from, to),
        }
    }

    /// Builds the program `NAME_setup(block, modulus)`.
    ///
    /// # Errors
    /// A row is missing.
    pub fn setup(&self, builder: &mut ProgramBuilder<'_>) -> Lowering<()> {
        match self {
            Self::Lanes(form) => setup::build(builder, form),
            Self::Words(form) => words::setup(builder, form),
        }
    }

    /// Builds `NAME_import(natural, bytes)`.
    ///
    /// # Errors
    /// A row is missing.
    pub fn import(&self, builder: &mut ProgramBuilder<'_>) -> Lowering<()> {
        match self {
            Self::Lanes(form) => conversion::import(builder, form),
            Self::Words(form) => words::import(builder, form),
        }
    }

    /// Builds `NAME_export(bytes, natural)`.
    ///
    /// # Errors
    /// A row is missing.
    pub fn export(&self, builder: &mut ProgramBuilder<'_>) -> Lowering<()> {
        match self {
            Self::Lanes(form) => conversion::export(builder, form),
            Self::Words(form) => words::export(builder, form),
        }
    }
}
