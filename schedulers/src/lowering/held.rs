//! How values of the language are held while a kernel is lowered: in registers of many lanes, in scalars, or still in memory.

use super::builder::{Lowering, ProgramBuilder};
use super::shapes::LaneOp;
use crate::machine::{FileId, Machine};
use crate::program::{RegionId, ValueId};
use kgen_ir::types::Type;
use std::rc::Rc;

/// A number in scalar registers: words of one file, least significant first; bits past `width` are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Bits of the number.
    pub width: u32,
    /// The words.
    pub words: Vec<ValueId>,
}

/// A place in memory where a value of the language stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The region.
    pub region: RegionId,
    /// A pointer into it, where it is not the region's own.
    pub base: Option<ValueId>,
    /// Bytes from there.
    pub offset: u64,
    /// Bytes of the region that may be touched, where `base` makes them unknown.
    pub window: Option<(u64, u64)>,
    /// Alignment in bytes of that place.
    pub align_bytes: u32,
}

/// A value of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Lanes in registers of the lane file, in address order; past the last lane anything.
    Registers(Vec<ValueId>),
    /// u1 lanes: all ones or all zeros in each lane of `lane_bits` of the registers.
    Mask {
        /// Width of the lanes.
        lane_bits: u32,
        /// The registers.
        registers: Vec<ValueId>,
    },
    /// Lane by lane in scalars.
    Lanes(Vec<Scalar>),
    /// An array of its elements.
    Array(Rc<Vec<Held>>),
    /// An array, or another value, still in memory.
    Memory(Stored),
}

/// Which of a machine's files serve for what in general dataflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Registers of many lanes that have arithmetic, where the machine has them.
    pub lanes: Option<FileId>,
    /// Files for scalars with arithmetic, by width.
    pub scalars: Vec<(u32, FileId)>,
    /// A file of single bits that comparisons write and selections read.
    pub flags: Option<FileId>,
}

impl Files {
    /// Looks at what the machine has rows for.
    pub fn of(builder: &ProgramBuilder<'_>) -> Self {
        let machine = builder.machine();
        let lanes = builder.lane_file().filter(|file| [8, 16, 32, 64].iter().any(|width| builder.has_lane_row(*file, LaneOp::Add, *width)));
        let is_scalar = |file: FileId| !machine[file].is_singleton() && matches!(machine[file].value_type(1), Type::Bits { lanes: 1, .. });
        let files = || (0..machine.register_files.len()).map(|index| FileId(index as u16)).filter(|file| is_scalar(*file));
        let mut scalars: Vec<(u32, FileId)> = files()
            .map(|file| (machine[file].width_bits, file))
            .filter(|(width, file)| {
                *width >= 8 && builder.has_lane_row(*file, LaneOp::Add, *width) && builder.has_lane_row(*file, LaneOp::Xor, *width)
            })
            .collect();
        scalars.sort_unstable();
        let flags = files().find(|file| machine[*file].width_bits == 1);
        Self { lanes, scalars, flags }
    }

    /// The file for words of a scalar of `width` bits: the narrowest that holds it, else the widest of at most 64 bits.
    pub fn scalar(&self, machine: &Machine, width: u32) -> Option<FileId> {
        if width == 1
            && let Some(flags) = self.flags
        {
            return Some(flags);
        }
        let fits = self.scalars.iter().find(|(bits, _)| *bits >= width);
        let widest = self.scalars.iter().rev().find(|(_, file)| machine[*file].width_bits <= 64);
        fits.or(widest).map(|(_, file)| *file)
    }

    /// Whether a value of this type goes into registers of many lanes: vectors of whole bytes, and scalars of a whole register.
    pub fn in_registers(&self, machine: &Machine, width: u32, lanes: u32) -> bool {
        let Some(file) = self.lanes else { return false };
        let whole_bytes = width.is_multiple_of(8) && width / 8 <= machine[file].width_bits / 8;
        whole_bytes && width.is_power_of_two() && (lanes > 1 || width == machine[file].width_bits)
    }
}

/// Lane width and lanes of a `Bits` type.
pub(crate) fn bits_shape(builder: &ProgramBuilder<'_>, ty: &Type) -> Lowering<(u32, u32)> {
    match ty {
        Type::Bits { width, lanes } => Ok((*width, *lanes)),
        other => Err(builder.missing(&format!("a value of type {other} in registers"))),
    }
}

impl Held {
    /// All registers of the value, in a fixed order.
    pub fn values(&self) -> Vec<ValueId> {
        match self {
            Held::Registers(registers) | Held::Mask { registers, .. } => registers.clone(),
            Held::Lanes(scalars) => scalars.iter().flat_map(|scalar| scalar.words.clone()).collect(),
            Held::Array(elements) => elements.iter().flat_map(Held::values).collect(),
            Held::Memory(_) => Vec::new(),
        }
    }

    /// The same form with other registers, taken in the order of [`Held::values`].
    pub fn with_values(&self, values: &mut impl Iterator<Item = ValueId>) -> Self {
        let mut take = |count: usize| -> Vec<ValueId> { values.by_ref().take(count).collect() };
        match self {
            Held::Registers(registers) => Held::Registers(take(registers.len())),
            Held::Mask { lane_bits, registers } => Held::Mask { lane_bits: *lane_bits, registers: take(registers.len()) },
            Held::Lanes(scalars) => {
                Held::Lanes(scalars.iter().map(|scalar| Scalar { width: scalar.width, words: take(scalar.words.len()) }).collect())
            }
            Held::Array(elements) => Held::Array(Rc::new(elements.iter().map(|element| element.with_values(values)).collect())),
            Held::Memory(stored) => Held::Memory(stored.clone()),
        }
    }
}
