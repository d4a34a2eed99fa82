//! A Program: the target's instructions over values; no registers, and no order but that of dependences.
//!
//! Values are in single assignment. Control is a list of straight-line blocks in textual order, with counted loops over contiguous ranges of blocks.
//! A loop-carried value has a name at loop entry (`current`), which `initial` becomes on entry and `next` on each back edge; after the loop `current`'s
//! last assignment is called `last`. All four live in one register; where their lifetimes overlap the driver adds a copy.

use crate::machine::{FileId, Machine, RowId, RowOperand};
use kgen_ir::kernel::Direction;
use kgen_ir::source::Span;

/// Index in [`Program::values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);
/// Index in [`Program::regions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);
/// Index in [`Program::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A value that lives in a register (or a tuple of them).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// File.
    pub file: FileId,
    /// Registers, 1 for most.
    pub tuple: u32,
    /// Name from the source with a small stable suffix, unique in the program: `column_3_b`.
    pub name: String,
    /// Depends on a secret.
    pub secret: bool,
    /// May be recomputed anywhere by its defining instruction (constants), instead of being spilled.
    pub rematerializable: bool,
}

/// What a region is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Parameter number n of the emitted function, a pointer.
    Parameter {
        /// Index in [`Program::parameters`].
        index: u32,
    },
    /// Scratch in the function's frame.
    Frame,
    /// The constant pool.
    Pool,
}

/// Memory that instructions of the program touch. Regions are disjoint unless `may_alias` says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Name from the source.
    pub name: String,
    /// Kind.
    pub kind: RegionKind,
    /// Size in bytes; `None` where it is known at run time only.
    pub bytes: Option<u64>,
    /// Alignment in bytes that may be relied on.
    pub align_bytes: u32,
    /// The program writes it.
    pub written: bool,
    /// Contents depend on a secret.
    pub secret: bool,
    /// Regions it may overlap.
    pub may_alias: Vec<RegionId>,
    /// Contents, of a pool.
    pub contents: Option<Vec<u8>>,
}

/// Bytes that an instruction touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Which region.
    pub region: RegionId,
    /// First byte that may be touched, from the region's start.
    pub low: u64,
    /// One past the last byte that may be touched. `high − low` is the access's size when the address is constant; more when it is only known to lie inside.
    pub high: u64,
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
}

/// An operand, parallel to the row's operands (implicit ones included, results included).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A value read or written, as the row says.
    Value(ValueId),
    /// The constant zero in a register-or-zero operand.
    Zero,
    /// A constant.
    Immediate(i64),
    /// Start of a block (loop head or exit).
    Block(BlockId),
    /// Address of a region of kind `Pool` plus an offset in bytes, for symbol operands.
    Symbol(RegionId, u64),
    /// Offset of a frame region plus an offset in bytes, known after allocation; for immediates.
    FrameOffset(RegionId, u64),
    /// A result that nothing reads.
    Unused,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The row.
    pub row: RowId,
    /// Operands, one per operand of the row.
    pub operands: Vec<Operand>,
    /// Memory it touches, where the row touches memory.
    pub memory: Option<MemoryAccess>,
    /// Place in the spec, where there is one.
    pub span: Option<Span>,
}

/// Instructions without a branch but at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In program order, which respects all dependences.
    pub instructions: Vec<Instruction>,
}

/// A value carried around a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// Before the loop.
    pub initial: ValueId,
    /// In the body, at its head.
    pub current: ValueId,
    /// In the body, at its end.
    pub next: ValueId,
    /// After the loop.
    pub last: ValueId,
}

/// A counted loop over the blocks `first ..= last`; the last instruction of `last` jumps back to `first`. With a run-time count that may be zero,
/// the block before `first` ends in a jump to the block after `last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// First block of the body.
    pub first: BlockId,
    /// Last block of the body.
    pub last: BlockId,
    /// Carried values.
    pub carried: Vec<Carried>,
    /// Rounds, where constant.
    pub rounds: Option<u64>,
}

/// How a parameter of the emitted function is passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramParameter {
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: ProgramParameterKind,
    /// Use.
    pub direction: Direction,
    /// Secret.
    pub secret: bool,
}

/// Pointer or scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramParameterKind {
    /// Pointer to a region; `value` holds the address.
    Pointer {
        /// The region.
        region: RegionId,
        /// The value in which the address arrives.
        value: ValueId,
    },
    /// A scalar of this many bits in `value`.
    Scalar {
        /// Bits.
        bits: u32,
        /// The value in which it arrives.
        value: ValueId,
    },
}

/// How bytes of a region represent a value of the language, so that checker, replay, import/export and headers agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// The bytes of a `Bits` type in address order, words in the given order of the type's use.
    Bytes,
    /// An integer as limbs: limb i has weight 2^(radix_bits·i) and lies, in the machine's byte order, at byte offset `limb_order[i] * limb_bytes`.
    /// Limbs may exceed the radix: the integer is the sum.
    Limbs {
        /// Weight step in bits.
        radix_bits: u32,
        /// Bytes of one limb.
        limb_bytes: u32,
        /// Limbs are two's complement.
        signed: bool,
        /// Position of each limb.
        limb_order: Vec<u32>,
        /// Total bytes (positions without a limb are zero).
        bytes: u32,
        /// Least and greatest value of each limb that functions accept.
        limb_limits: Vec<(i64, i64)>,
    },
    /// Elements of one layout, one after another.
    Array {
        /// Each.
        element: Box<Layout>,
        /// Bytes from one to the next.
        stride_bytes: u32,
        /// How many.
        count: u32,
    },
    /// Opaque: made by the setup function.
    SetupBlock {
        /// Bytes.
        bytes: u32,
    },
}

/// The form of `mont` that a lowering chose; an argument of interpretation in replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MontgomeryForm {
    /// R = 2^this.
    pub radix_bits: u32,
    /// Residues are below this many times the modulus, 1 or 2.
    pub bound: u32,
}

/// A kernel lowered for a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name of the emitted function.
    pub name: String,
    /// Parameters in order.
    pub parameters: Vec<ProgramParameter>,
    /// Regions.
    pub regions: Vec<Region>,
    /// Layout of each region's contents, parallel to `regions`.
    pub layouts: Vec<Layout>,
    /// Values.
    pub values: Vec<Value>,
    /// The value that stands for the stack pointer at entry, where the program addresses its frame; no instruction writes it.
    pub stack_pointer: Option<ValueId>,
    /// Blocks in textual order.
    pub blocks: Vec<Block>,
    /// Loops, outer before inner.
    pub loops: Vec<Loop>,
    /// Where the kernel holds Montgomery products.
    pub montgomery: Option<MontgomeryForm>,
    /// Decisions of lowering worth reporting: (name, text), such as the radix and why.
    pub notes: Vec<(String, String)>,
}

impl Instruction {
    /// Values that the instruction reads, with the operand's number.
    pub fn reads<'a>(&'a self, machine: &'a Machine) -> impl Iterator<Item = (usize, ValueId)> + 'a {
        self.values_where(machine, |operand| operand.read)
    }

    /// Values that the instruction writes, with the operand's number.
    pub fn writes<'a>(&'a self, machine: &'a Machine) -> impl Iterator<Item = (usize, ValueId)> + 'a {
        self.values_where(machine, |operand| operand.written)
    }

    fn values_where<'a>(&'a self, machine: &'a Machine, wanted: fn(&RowOperand) -> bool) -> impl Iterator<Item = (usize, ValueId)> + 'a {
        let declared = &machine[self.row].operands;
        self.operands.iter().zip(declared).enumerate().filter_map(move |(number, (operand, declared))| match operand {
            Operand::Value(value) if wanted(declared) => Some((number, *value)),
            _ => None,
        })
    }
}

impl Loop {
    /// Whether the block lies in the loop's body.
    pub fn contains(&self, block: BlockId) -> bool {
        self.first <= block && block <= self.last
    }
}

impl Program {
    /// Values that hold something before the first instruction: arguments and the stack pointer.
    pub fn entry_values(&self) -> impl Iterator<Item = ValueId> + '_ {
        let arguments = self.parameters.iter().map(|parameter| match parameter.kind {
            ProgramParameterKind::Pointer { value, .. } | ProgramParameterKind::Scalar { value, .. } => value,
        });
        arguments.chain(self.stack_pointer)
    }
}

impl std::ops::Index<ValueId> for Program {
    type Output = Value;
    fn index(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }
}
impl std::ops::Index<RegionId> for Program {
    type Output = Region;
    fn index(&self, id: RegionId) -> &Region {
        &self.regions[id.0 as usize]
    }
}
impl std::ops::Index<BlockId> for Program {
    type Output = Block;
    fn index(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }
}
