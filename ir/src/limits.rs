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
/// Rounds of `for`, comprehensions and folds in one kernel, function or constant, inlined ones included.
pub const UNROLLED_ROUNDS: usize = 1 << 19;
/// Functions inlined in one another.
pub const CALL_DEPTH: usize = 64;
/// Errors reported for one text; the rest would be noise.
pub const ERRORS: usize = 500;
