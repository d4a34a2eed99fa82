//! A machine as plain data: what a target file says. Read by `target_file`, interpreted by lowering, schedulers, checker, replay and timing.
//! No code compares a name of a target or an instruction.

use kgen_ir::body::{Body, Effect, Op};
use kgen_ir::source::Span;
use kgen_ir::types::{ByteOrder, Type};
use serde::Serialize;

/// Index of a register file in [`Machine::register_files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct FileId(pub u16);
/// Index of a unit in [`Machine::units`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct UnitId(pub u16);
/// Index of a row in [`Machine::rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RowId(pub u32);

/// How a machine's memory leaks addresses (DESIGN: secrecy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Secret addresses are refused unless asked for by name.
    Cached,
    /// Tables by default; conflicts are reported.
    Banked,
    /// Addresses do not show.
    Flat,
}

/// Registers of one kind. Files of one register are singletons: CA, CTR, LR, flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterFile {
    /// Short name used in operand declarations: `v`, `r`, `cr`, `CA`.
    pub name: String,
    /// Bits of one register.
    pub width_bits: u32,
    /// How many registers; `None` is unlimited (a target printed as Rust variables).
    pub count: Option<u32>,
    /// Registers of more than 64 bits are seen as bytes in address order unless the file is `scalar`: see [`RegisterFile::value_type`].
    pub scalar: bool,
    /// Writes are or-ed into the register and never wait for each other (a saturation flag that many rows set).
    pub sticky: bool,
    /// How register n is written in assembly: `{n}` is replaced, `v{n}`.
    pub text: String,
    /// Other spellings that are read: `%v{n}`.
    pub spellings: Vec<String>,
    /// Never allocated (stack pointer, thread pointer…).
    pub reserved: Vec<u32>,
    /// Must hold their values at return.
    pub saved: Vec<u32>,
    /// May not stand in a register-or-zero operand, since their number there means the constant zero.
    pub zero_in_base: Option<u32>,
    /// Registers allowed in inline assembly of Rust, when fewer.
    pub inline_reserved: Vec<u32>,
    /// How register n is named as a clobber of Rust's inline assembly: `v{n}`; where absent the file needs no mention.
    pub inline_name: Option<String>,
    /// The class of Rust's inline assembly from which a register of this file is asked for: `vreg`.
    pub inline_class: Option<String>,
    /// The same for a register-or-zero operand, where the class differs.
    pub inline_base_class: Option<String>,
    /// Alignment of tuples allowed in this file, by length (empty: no tuples).
    pub tuples: Vec<(u32, u32)>,
    /// Rename registers for results of this file, where they are limited.
    pub renames: Option<u32>,
    /// Cycles from a result in this file to a branch that uses it.
    pub branch_delay_cycles: u32,
    /// Which side of a clustered machine it lies on, where the machine has sides.
    pub side: Option<u8>,
    /// Source of the figures.
    pub cite: String,
}

impl RegisterFile {
    /// A file of exactly one register is named implicitly by rows.
    pub fn is_singleton(&self) -> bool {
        self.count == Some(1)
    }

    /// The type that a meaning gives to `tuple` registers of this file: bytes in address order where a register has more than 64 bits
    /// and the file is not `scalar`, else one lane per register.
    pub fn value_type(&self, tuple: u32) -> Type {
        if self.width_bits > 64 && !self.scalar {
            Type::vector(8, self.width_bits / 8 * tuple)
        } else {
            Type::vector(self.width_bits, tuple)
        }
    }
}

/// An issue queue of a superscalar machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Entries.
    pub entries: u32,
    /// Instructions accepted per cycle.
    pub dispatch: u32,
    /// Instructions issued per cycle.
    pub issue: u32,
    /// Oldest entries that may issue.
    pub window: u32,
    /// Whether the entries of the window issue in any order.
    pub out_of_order: bool,
    /// Source.
    pub cite: String,
}

/// A functional unit, port, path: anything of which a row takes one for some cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Name.
    pub name: String,
    /// Identical copies.
    pub copies: u32,
    /// Issue queue it is fed from, by name, where the machine has queues.
    pub queue: Option<String>,
    /// Reservation stations of each copy, where the machine has them.
    pub stations: u32,
    /// Extra finish cycles before completion.
    pub finish_cycles: u32,
    /// Most instructions for it dispatched per cycle, where limited.
    pub dispatch: Option<u32>,
    /// Most instructions between its first stage and retirement, where limited.
    pub in_flight: Option<u32>,
    /// Its instructions retire only as the oldest of their completion group.
    pub retires_oldest: bool,
    /// Which side of a clustered machine, where it has sides.
    pub side: Option<u8>,
    /// Source.
    pub cite: String,
}

/// Whether a hazard must be kept by the schedule or only costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enforcement {
    /// The hardware does not interlock it: the checker refuses.
    Must,
    /// The hardware waits: the timing simulation counts it.
    Cost,
}

/// The closed list of hazards (DESIGN: "A machine, in one file").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HazardKind {
    /// One operation per unit copy and cycle.
    UnitPerCycle,
    /// A unit stays busy for the row's throughput.
    UnitBusy,
    /// A result may not be read before its latency is over (exposed) or the reader waits (interlocked).
    Latency,
    /// Two results may not land in one file's port in the same cycle.
    ResultPort,
    /// Reads of one register or file per cycle are limited.
    ReadPort,
    /// Operands from the other side are limited per cycle.
    CrossPath,
    /// Which rows may share a bundle, how many, in which slots.
    BundleShape,
    /// Memory accesses per cycle.
    MemoryPort,
    /// Two accesses to one bank in one cycle.
    Bank,
    /// A tied operand names its result's register.
    Tied,
    /// A result that is written before the operands are read.
    EarlyClobber,
    /// Tuples start at multiples and do not overlap sources unless equal.
    Tuple,
    /// A row needs machine state (vector length, mode) set before.
    StateRequired,
    /// Branches take effect after delay slots.
    BranchDelay,
    /// Interrupts may come between packets: no value may sit in an exposed pipeline then.
    Interrupts,
}

/// How one machine treats one hazard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// Which.
    pub kind: HazardKind,
    /// Must or cost.
    pub enforcement: Enforcement,
    /// Its number where it has one (paths per cycle, delay slots, bundle width).
    pub limit: Option<u32>,
    /// Source.
    pub cite: String,
}

/// How an operand of a row is written and chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// A register of a file.
    Register(FileId),
    /// A register of a file, or the constant zero written as the file's `zero_in_base` number.
    RegisterOrZero(FileId),
    /// A constant in a half-open range, in steps; written in decimal.
    /// The bounds are wider than the value so that all 64 bits can be a range.
    Immediate {
        /// Least value.
        low: i128,
        /// One past the greatest.
        high: i128,
        /// Multiple of.
        step: i128,
    },
    /// A code label (branch targets). Written as its name.
    Label,
    /// A data symbol; the meaning sees its address, the asm template says which part of it is written.
    Symbol,
}

/// One operand of a row, in the order of the declaration. Implicit ones (carry, flags, the old value of a tied result) are operands too,
/// with `implicit` set. No operand is both read and written: a row that modifies a register reads it through a second, tied operand,
/// so that values stay in single assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowOperand {
    /// Name in meaning and templates.
    pub name: String,
    /// Kind.
    pub kind: OperandKind,
    /// The instruction reads it.
    pub read: bool,
    /// The instruction writes it.
    pub written: bool,
    /// Operand number whose register it must share (tied).
    pub tied: Option<u32>,
    /// Written before the others are read.
    pub early_clobber: bool,
    /// Not written in the text: its register is that of `tied`, or `fixed_register`, or the only one of its file.
    pub implicit: bool,
    /// The one register that it can be (a record form's condition field).
    pub fixed_register: Option<u32>,
    /// Registers in the tuple, 1 for most.
    pub tuple: u32,
}

/// Whether the row's time depends on data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingClass {
    /// Never.
    Constant,
    /// On operand values: secrets are refused.
    Operands,
}

/// What a row does to control, closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlKind {
    /// Unconditional jump to a label.
    Jump,
    /// Jump to a label on a condition.
    ConditionalJump,
    /// Counts down a register and jumps while it is not zero.
    CountedJump,
    /// Return to the caller.
    Return,
    /// Jump to the next instruction that stores its address (position-independent code).
    CallNext,
}

/// Timing and reservation of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTiming {
    /// Alternatives; the machine takes one.
    pub units: Vec<UnitId>,
    /// Cycles from start to result, per written operand where they differ (operand number, cycles); the first entry without operand is the default.
    pub latency_cycles: u32,
    /// Results with another latency: (operand number, cycles).
    pub latency_of: Vec<(u32, u32)>,
    /// Cycles the unit stays busy.
    pub throughput_cycles: u32,
    /// Latency and throughput when the operand of this number fits 16 bits.
    pub short: Option<(u32, u32, u32)>,
    /// Starts only as the oldest instruction in the machine.
    pub serialized: bool,
    /// Retires only as the oldest of its completion group.
    pub retires_oldest: bool,
    /// Whether secrets may flow into it.
    pub class: TimingClass,
    /// Source of the figures.
    pub cite: String,
    /// The figures are a guess; reports name them.
    pub guess: bool,
}

/// Another way to write a row that is read but never printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyAlias {
    /// Template: `cmpwi {a},{i}`.
    pub template: String,
    /// Operands that the template leaves out: (operand number, what it is).
    pub given: Vec<(u32, AliasValue)>,
}

/// What an alias says about an operand it does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasValue {
    /// This number: a register's or a constant.
    Number(i64),
    /// The same as operand number n.
    Operand(u32),
}

/// One instruction: meaning, timing, text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Mnemonic or mnemonic with a variant suffix where one mnemonic has several rows; unique in the machine.
    pub name: String,
    /// Operands.
    pub operands: Vec<RowOperand>,
    /// Meaning; inputs are the operands read (immediates and labels included), outputs those written, both in operand order.
    /// A register of more than 64 bits is `u8xN` in address order; others are scalars.
    pub meaning: Body,
    /// Meaning's text, for `explain`.
    pub meaning_text: String,
    /// Timing.
    pub timing: RowTiming,
    /// Assembly template: `vmsumuhm {d},{a},{b},{c}`.
    pub assembly: Option<String>,
    /// Other texts that mean it.
    pub aliases: Vec<AssemblyAlias>,
    /// Rust expression template (intrinsic or portable): `vec_msum({a.u16x8}, {b.u16x8}, {c.u32x4})`, where `.u16x8` asks for the
    /// operand as that vector type of [`Intrinsics::types`]; several results are a tuple in operand order, flags that the text cannot give left out.
    /// Of a conditional jump: its results, then whether it is taken.
    pub rust: Option<String>,
    /// Control.
    pub control: Option<ControlKind>,
    /// Bytes of code.
    pub code_bytes: u32,
    /// Where the row stands in the target file.
    pub span: Span,
}

/// A named figure of the machine, as the target file (or the variant) gives it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// A number or a word.
    pub value: String,
    /// What it is.
    pub meaning: String,
    /// Source.
    pub cite: String,
}

/// How the compiler of Rust knows the machine's instructions as functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intrinsics {
    /// The module that holds them: `core::arch::powerpc`.
    pub module: String,
    /// What `target_arch` says where they exist.
    pub arch: String,
    /// Target features that functions which call them enable.
    pub features: Vec<String>,
    /// Gates of unstable Rust that a crate which holds such functions opens.
    pub gates: Vec<String>,
    /// Views of registers and the types of Rust that they are: (`u16x8`, `vector_unsigned_short`).
    pub types: Vec<(String, String)>,
    /// Source.
    pub cite: String,
}

impl Intrinsics {
    /// The type of Rust for a view.
    pub fn type_of(&self, view: &str) -> Option<&str> {
        self.types.iter().find(|(known, _)| known == view).map(|(_, name)| name.as_str())
    }
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Name as the user asked for it: target or variant.
    pub name: String,
    /// One line for `kgen targets`.
    pub summary: String,
    /// Byte order of registers' views and of memory.
    pub byte_order: ByteOrder,
    /// Memory.
    pub memory: MemoryKind,
    /// Bytes of the instruction cache, where there is one; past it a warning.
    pub instruction_cache_bytes: Option<u32>,
    /// Bytes of an instruction, unless its row says another number.
    pub instruction_bytes: u32,
    /// Bits of an address, and of immediates, labels and symbols as meanings see them (negative immediates in two's complement).
    pub word_bits: u32,
    /// What a line of assembly starts a comment with.
    pub comment: String,
    /// What stands before an instruction in the same bundle as the one before, on machines with bundles.
    pub parallel: Option<String>,
    /// A scalar access that crosses a multiple of this many bytes takes longer, where it does.
    pub misalign_boundary_bytes: Option<u32>,
    /// Register files.
    pub register_files: Vec<RegisterFile>,
    /// Issue queues.
    pub queues: Vec<Queue>,
    /// Units.
    pub units: Vec<Unit>,
    /// Hazards.
    pub hazards: Vec<Hazard>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Figures by name. Empty where the machine needs none.
    pub parameters: Vec<Parameter>,
    /// Calling convention.
    pub abi: Option<Abi>,
    /// Its instructions as functions of Rust, where the compiler has them.
    pub intrinsics: Option<Intrinsics>,
    /// Output forms; the first is the default.
    pub forms: Vec<String>,
    /// Parameters that are guesses, by name; guessed rows say so themselves ([`RowTiming::guess`]).
    pub guesses: Vec<String>,
}

/// A step of a function's entry or exit: a line of the target's own assembly with holes, parsed like any other text of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameStep {
    /// Once, when the function has a frame: `stwu 1,-{frame}(1)`.
    Once(String),
    /// Always, even without a frame: `blr`.
    Always(String),
    /// For each saved register that the function writes: `li 0,{offset}` / `stvx {register},1,0`; `{register}` is its number, `{offset}` the place of its save.
    EachSaved {
        /// File of the registers.
        file: FileId,
        /// Lines with holes.
        lines: Vec<String>,
    },
}

/// The calling convention, as far as kernels need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abi {
    /// File of pointers and integers.
    pub integer_file: FileId,
    /// Registers of the first integer arguments.
    pub arguments: Vec<u32>,
    /// Stack pointer.
    pub stack_pointer: u32,
    /// Stack alignment in bytes.
    pub stack_align_bytes: u32,
    /// Least frame size in bytes (back chain, link save).
    pub frame_header_bytes: u32,
    /// What a function does on entry, in order.
    pub prologue: Vec<FrameStep>,
    /// What a function does before it returns, in order, the return included.
    pub epilogue: Vec<FrameStep>,
    /// Directives at the head of an assembly file (`.machine`, `.abiversion`…).
    pub directives: Vec<String>,
    /// Source.
    pub cite: String,
}

/// What a row does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMemory {
    /// Reads this many bytes.
    Load {
        /// Bytes.
        bytes: u32,
    },
    /// Writes this many bytes.
    Store {
        /// Bytes.
        bytes: u32,
    },
}

impl RowMemory {
    /// Whether it writes.
    pub fn is_store(self) -> bool {
        matches!(self, RowMemory::Store { .. })
    }
}

impl Row {
    /// What it does to memory; derived from its meaning. The target reader refuses rows with more than one access.
    pub fn memory(&self) -> Option<RowMemory> {
        let bytes = |handle: kgen_ir::body::NodeHandle| self.meaning.nodes[handle].ty.total_bits().unwrap_or(0) / 8;
        let store = self.meaning.effects.iter().find_map(|effect| match effect {
            Effect::Store { value, .. } => Some(RowMemory::Store { bytes: bytes(*value) }),
            _ => None,
        });
        store.or_else(|| {
            self.meaning.nodes.iter().find_map(|(handle, node)| match node.op {
                Op::Load { .. } => Some(RowMemory::Load { bytes: bytes(handle) }),
                _ => None,
            })
        })
    }

    /// Operands written in the text, with their numbers, in order: what [`crate::code::CodeInstruction::operands`] lists.
    pub fn explicit_operands(&self) -> impl Iterator<Item = (usize, &RowOperand)> {
        self.operands.iter().enumerate().filter(|(_, operand)| !operand.implicit)
    }
}

impl Machine {
    /// The row of this name.
    pub fn row_named(&self, name: &str) -> Option<RowId> {
        self.rows.iter().position(|row| row.name == name).map(|index| RowId(index as u32))
    }

    /// The register file of this name.
    pub fn file_named(&self, name: &str) -> Option<FileId> {
        self.register_files.iter().position(|file| file.name == name).map(|index| FileId(index as u16))
    }

    /// Whether functions are made of its instructions. Without a calling convention nothing could call them: rows are expressions of a language whose compiler
    /// schedules and allocates.
    pub fn has_assembly(&self) -> bool {
        self.abi.is_some()
    }

    /// The side of a clustered machine on which a register file lies.
    pub fn side_of(&self, file: FileId) -> Option<u8> {
        self[file].side
    }

    /// How the machine treats a hazard, where it has it.
    pub fn hazard(&self, kind: HazardKind) -> Option<&Hazard> {
        self.hazards.iter().find(|hazard| hazard.kind == kind)
    }
}

impl std::ops::Index<RowId> for Machine {
    type Output = Row;
    fn index(&self, id: RowId) -> &Row {
        &self.rows[id.0 as usize]
    }
}
impl std::ops::Index<FileId> for Machine {
    type Output = RegisterFile;
    fn index(&self, id: FileId) -> &RegisterFile {
        &self.register_files[id.0 as usize]
    }
}
impl std::ops::Index<UnitId> for Machine {
    type Output = Unit;
    fn index(&self, id: UnitId) -> &Unit {
        &self.units[id.0 as usize]
    }
}
