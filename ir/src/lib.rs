//! kgen-ir: the kernel language, its meaning and its analyses. It knows no target.
//!
//! # The language
//!
//! A file is one *unit*: parameters, constants, functions, kernels and known answers. There are no imports. Line comments start with `//`.
//! A newline ends a statement unless the line ends, or the next one starts, with a binary operator, or a bracket is open; `;` also ends a statement.
//!
//! ```text
//! unit      = { item }
//! item      = "param" NAME "=" constant-expression
//!           | "const" NAME [ ":" type ] "=" expression          constant or table, listed or computed
//!           | "fn" NAME "(" { NAME ":" type [","] } ")" "->" type block
//!           | "kernel" KERNEL-NAME "(" { NAME ":" attributes type attributes [","] } ")" [ "->" type attributes ] block
//!           | "test" KERNEL-NAME STRING "{" { NAME "=" value [","] } "->" ( value | { NAME "=" value [","] } ) "}"
//! attributes= { "in" | "out" | "inout" | "setup" | "secret" | "public" | "align" NUMBER | "alias" ( "any" | NAME ) }
//! KERNEL-NAME = NAME that may hold `{PARAM}`: mont_mul_{BITS}
//! type      = uW | uWxN | nat<expr> | modulus<expr> | residue<NAME> | "[" type ";" expr "]" | "[" type "]"
//! block     = "{" { statement } [ expression ] "}"
//! statement = NAME "=" expression                               binds; an outer name of a for/loop body is rebound; a parameter out/inout is assigned
//!           | NAME "[" expression "]" "=" expression            the array with that element replaced
//!           | "for" NAME "in" range block                       constant range, unrolled
//!           | "loop" NAME "in" "0" ".." expression block         run-time public count; rebinding an outer name carries it
//!           | "map" NAME "in" NAME { "," NAME "in" NAME } block  over slices of one length; assigning the element name writes it
//! range     = expression ".." expression                        half open, constant
//! expression, from loosest: "|"  "^"  "&"  "== != < <= > >="  "++" (concatenate lanes)  "<< >>"  "+ -"  "* / %"  "~x"  postfix
//! postfix   = "[" expression "]" lane, bit of a scalar, or element | "[" range "]" slice | ".uWxN" ".beWxN" ".leWxN" view of bytes | call "(" ")"
//! primary   = NUMBER | hex"…" | NAME | "(" expression ")" | "[" expr { "," expr } "]" | "[" NAME "in" range ":" expression "]"
//!           | fold "(" NAME "in" range ":" expression ")"       fold = sum | xor | and | or
//! ```
//!
//! Untyped numbers take the type that their place asks for (every lane of a vector). Lane i of a vector is the i-th in address order.
//!
//! Built-in functions: `wide(x)` (zero extension to twice the lane width), `zext(x, W)`, `sext(x, W)`, `trunc(x, W)`, `select(c, a, b)`, `rotl(x, n)`, `rotr(x, n)`,
//! `sar(x, n)`, `min max smin smax slt(a, b)`, `clz(x)`, `popcount(x)`, `clmul(a, b)`, `gfmul(a, b, POLYNOMIAL)`, `affine(x, [rows], c)`, `undefined(type)`,
//! `be16 be32 be64 le16 le32 le64 (bytes)` (bytes to words and back where the operand is a word vector: `bytes_be(x)`, `bytes_le(x)`),
//! `mont(a, b)`, `canonical(x)`, on naturals `+ - *`, `low(x, W)`, `high(x, W)` (bits W and up). Rows besides: `load(address, BYTES)`,
//! statements `store(address, bytes)`, `store(address, bytes) if c`, `branch`, `branch if c`, `branch to address if c`, `forbidden if c`.
//!
//! Out-of-range rules: shifts by the width or more give zero (sign for `sar`); rotations count modulo the width; a run-time lane index out of range is undefined;
//! an array index out of range is forbidden.
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
pub mod secrecy;
pub mod source;
pub mod syntax;
pub mod types;

pub use elaborate::parse_unit;
