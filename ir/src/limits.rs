//! The limits of the language. Each is checked where it could be exceeded, and exceeding one is an error of the rule `limit`, never a panic or a hang.

/// Bytes of a source text. Spans are 32 bits; nobody writes a kernel family of 4 MiB by hand.
pub const SOURCE_BYTES: usize = 4 << 20;
/// Brackets open at one place. Checked on tokens, before anything recurses.
pub const BRACKET_NESTING: usize = 200;
/// Complement signs one after another: the only prefix operator, hence the only way to nest without brackets.
pub const PREFIX_CHAIN: usize = 64;
/// Bytes of a name.
pub const NAME_BYTES: usize = 64;
/// Digits of a number.
pub const NUMBER_DIGITS: usize = 10_000;
/// Bits of a lane: `u1` … `u512`.
pub const LANE_BITS: u32 = 512;
/// Lanes of a vector.
pub const LANES: u32 = 4096;
/// Bits of a vector: the widest register file with eightfold grouping known today has 8 × 65536 bits, tables of constants excluded.
pub const VECTOR_BITS: u32 = 1 << 19;
/// Bits of a natural, modulus or residue.
pub const NATURAL_BITS: u32 = 1 << 16;
/// Elements of an array.
pub const ARRAY_ELEMENTS: u32 = 1 << 16;
/// Nodes of one body while it is made, dead ones included.
pub const BODY_NODES: usize = 1 << 18;
/// Rounds of `for`, comprehensions and folds, and calls inlined, in one kernel, function or constant.
pub const UNROLLED_ROUNDS: usize = 1 << 19;
/// Bits of an array in all: 16 MiB, more than any first-level cache that a kernel's tables should live in.
pub const ARRAY_BITS: u64 = 1 << 27;
/// Constants, functions and kernels that are elaborated because others need them first.
pub const NEED_DEPTH: usize = 256;
/// Names that are looked through for a suggestion.
pub const SUGGESTION_CANDIDATES: usize = 2000;
/// Functions inlined in one another.
pub const CALL_DEPTH: usize = 64;
/// Errors reported for one text; the rest would be noise.
pub const ERRORS: usize = 500;
