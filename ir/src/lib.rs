//! kgen-ir: the kernel language, its meaning and its analyses. It knows no target.
//!
//! # The language
//!
//! A file is one *unit*: parameters, constants, functions, kernels and known answers, in any order. There are no imports. Line comments start with `//`.
//! A newline ends a statement unless the line ends, or the next one starts, with a binary operator, or a round or square bracket is open; `;` also ends a statement.
//!
//! ```text
//! unit      = { item }
//! item      = "param" NAME "=" constant-expression
//!           | "const" NAME [ ":" type ] "=" expression          constant or table, listed or computed
//!           | "fn" NAME "(" { NAME ":" type [","] } ")" "->" type block
//!           | "kernel" KERNEL-NAME "(" { NAME ":" attributes type attributes [","] } ")" [ "->" type attributes ] block
//!           | "test" KERNEL-NAME STRING "{" { NAME "=" value [","] } "->" ( value | { NAME "=" value [","] } ) "}"
//! attributes= { "in" | "out" | "inout" | "setup" | "secret" | "public" | "align" NUMBER | "alias" ( "any" | NAME ) }
//! KERNEL-NAME = NAME that may hold `{PARAM}` after an underscore: mont_mul_{BITS}
//! type      = uW | uWxN | nat<expr> | modulus<expr> | residue<NAME> | "[" type ";" expr "]" | "[" type "]"
//! block     = "{" { statement } [ expression ] "}"
//! statement = NAME "=" expression                               binds; an outer name of a for/loop body is rebound; a parameter out/inout is assigned
//!           | NAME view "=" expression                          the bytes of an output, or of what the name was bound to, through a view
//!           | NAME "[" expression "]" "=" expression            the array (or vector) with that element (or lane) replaced
//!           | "for" NAME "in" range block                       constant range, unrolled
//!           | "loop" NAME "in" "0" ".." expression block        run-time public count; rebinding an outer name carries it
//!           | "map" NAME "in" NAME { "," NAME "in" NAME } block  over slices of one length; assigning the element name writes it
//!           | "forbidden" "if" expression                       may never be 1
//!           | call                                              of a kernel without result
//! range     = expression ".." expression                        half open, ascending, constant
//! expression, from loosest: "|"  "^"  "&"  "== != < <= > >="  "++" (concatenate lanes, elements)  "<< >>"  "+ -"  "* / %"  "~x"  postfix
//! postfix   = "[" expression "]" lane, bit of a scalar, or element | "[" range "]" slice of lanes, bits or elements | view
//! view      = ".uWxN" | ".beWxN" | ".leWxN"                     the same bytes in other lanes, which are groups of bytes in that order
//! primary   = NUMBER | hex"…" | NAME | "(" expression ")" | "[" expr { "," expr } "]" | "[" NAME "in" range ":" expression "]"
//!           | fold "(" NAME "in" range ":" expression ")"       fold = sum | xor | and | or
//!           | call                                              NAME "(" { expression [","] } ")", of a built-in function, a function or a kernel
//!           | uWxN "(" expression ")"                           an untyped value with this type; it converts nothing
//! ```
//!
//! Numbers are written `42`, `0x2a`, `0b101010`, with `_` anywhere after the first digit. Operators of one level associate to the left. Inside `nat<…>` and
//! `modulus<…>` an expression binds as tightly as sums, since `>` closes. A type may be slice `[T]` only as a parameter of a kernel.
//!
//! **Names.** Parameters, constants, functions and kernels share one space of names; built-in functions, types and the words that start statements are reserved.
//! A kernel's name may hold parameters of the unit. Binding a name again shadows it. In the body of `for` and `loop`, assigning a name that was bound outside rebinds it outside;
//! other names end with the body. In a `map` no outer name may be rebound: its rounds know nothing of each other. Carried values, outputs and elements keep their types.
//!
//! **Untyped values.** Numbers, `hex"…"` and lists `[…]` take the type that their place asks for: the other operand's, the parameter's, the output's. A number fills every lane of a
//! vector. A list is a vector or an array; where nothing asks, a list of scalars is a vector, lane 0 first (for u1 and a scalar: bit 0 first), a list of anything else an array. `hex"…"`
//! is bytes in address order: u8xN, an array of u8, or an array of vectors of u8 of one size. Arithmetic on numbers alone is exact. Where nothing gives a number a type, write it around: `u32(0)`.
//!
//! **Types.** Everything is unsigned; signed operations are named. Lane i of a vector is the i-th in address order. Operators and built-in functions on `uWxN` work lane by lane on two operands
//! of one type; comparisons give u1 per lane; counts of shifts and rotations are scalars of any width or one per lane. An index of a lane, bit or element is a scalar of any width;
//! a table (array of scalars) indexed by a vector gives a vector. Naturals grow as they need: `a + b` has one bit more than the wider, `a * b` the sum of both widths, `a - b` the
//! width of a and is forbidden where negative; a narrower natural is taken where a wider one is wanted. `residue<m>` names a `modulus` parameter of the same signature; residues are added and subtracted modulo it.
//!
//! **Functions and kernels** are inlined where they are called, so no call may come back to itself. A kernel called by another one assigns its `out` and `inout` arguments, which must be names.
//! The last statement of a block with a result is the result. The result of a kernel is an output called `result`.
//!
//! **Attributes** of kernel parameters: `in` (default), `out`, `inout`; `setup` serves many calls; `secret`, else public; `align N` is what the caller guarantees (default: 16 for naturals, moduli,
//! residues and setup, else the size of a lane, a power of two up to 16); `alias NAME` for the very same region or a disjoint one, `alias any`; disjoint by default.
//!
//! **Known answers** give and expect values by parameter name, as constant expressions, or the only output's value. A residue stands for the number that it represents, so that tests hold for every R:
//! x is passed as x·R mod m and an output r is read as r·R⁻¹ mod m (see [`natural`]).
//!
//! Built-in functions: `wide(x)` (zero extension to twice the lane width), `zext(x, W)`, `sext(x, W)`, `trunc(x, W)`, `select(c, a, b)`, `rotl(x, n)`, `rotr(x, n)`,
//! `sar(x, n)`, `min max smin smax slt(a, b)`, `clz(x)`, `popcount(x)`, `clmul(a, b)`, `gfmul(a, b, POLYNOMIAL)` (its top bit may be left out),
//! `affine(x, [rows], c)` (row i gives bit i), `undefined(type)`,
//! `be16 be32 be64 le16 le32 le64 (bytes)` (bytes to words, and back: `bytes_be(x)`, `bytes_le(x)`),
//! `mont(a, b)` (one operand at least is a residue; the other may be a natural no wider than the modulus, or a number), `canonical(x)` (a residue below its modulus, as a `nat<BITS>`), on naturals `low(x, W)`, `high(x, W)` (bits W and up).
//!
//! **Rows** of a machine use the same statements and expressions over their operands, and besides: `load(address, BYTES)`, the statements `store(address, bytes)`, `store(address, bytes) if c`,
//! `branch`, `branch if c`, `branch to address if c`. Views without byte order (`.u32x4`) mean the target's order and exist in rows only, unless no lane changes its width. Rows have no `loop` and no `map`.
//!
//! Out-of-range rules: shifts by the width or more give zero (sign for `sar`); rotations count modulo the width; a run-time lane index out of range is undefined;
//! an array index out of range is forbidden; division by zero is undefined. What is constant and out of range is an error.
//!
//! Limits stand in [`limits`], rules of messages in the golden text beside the tests.
//!
//! # From text to bodies
//!
//! [`syntax`] makes a tree (`token.rs` balances brackets and decides where statements end, so that the parser recovers from each mistake on its own), [`parse_unit`] and
//! [`meaning::elaborate_meaning`] make typed [`body::Body`]s of it: functions inlined, constant ranges unrolled, constants folded by the same evaluator that interprets kernels,
//! identical nodes shared, associative operators flat, dead nodes dropped. Nodes are called what they were bound to first.

pub mod answers;
pub mod arena;
pub mod bits;
pub mod body;
pub mod builder;
pub mod dependence;
pub mod diagnostic;
pub mod domains;
mod elaborate;
pub mod evaluate;
pub mod interpret;
pub mod kernel;
pub mod limits;
pub mod meaning;
pub mod natural;
#[cfg(feature = "random-kernels")]
pub mod random_kernels;
pub mod secrecy;
pub mod source;
pub mod syntax;
pub mod types;

pub use elaborate::parse_unit;
