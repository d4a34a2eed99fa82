//! The syntax tree: what was written, with places. Operator chains and postfix steps are flat lists, so depth is bounded by brackets alone.

use crate::source::Span;
use crate::types::ByteOrder;

/// A name as written; kernel names may hold `{PARAM}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitSyntax {
    /// The items in order.
    pub items: Vec<Item>,
}

/// Something at the top of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Which.
    pub kind: ItemKind,
    /// The whole item.
    pub span: Span,
}

/// The kinds of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// `param NAME = value`
    Parameter {
        /// Its name.
        name: Name,
        /// Its default.
        value: Expression,
    },
    /// `const NAME: type = value`
    Constant {
        /// Its name.
        name: Name,
        /// Its type where written.
        ty: Option<TypeExpression>,
        /// Its value.
        value: Expression,
    },
    /// `fn NAME(parameters) -> type block`
    Function {
        /// Its name.
        name: Name,
        /// Names and types.
        parameters: Vec<(Name, TypeExpression)>,
        /// Type of the result.
        result: TypeExpression,
        /// What it computes.
        body: Block,
    },
    /// `kernel NAME(parameters) -> type attributes block`
    Kernel {
        /// Its name.
        name: Name,
        /// Names, types and attributes.
        parameters: Vec<KernelParameter>,
        /// Type and attributes of the result, where there is one.
        result: Option<(TypeExpression, Vec<Attribute>)>,
        /// What it computes.
        body: Block,
    },
    /// `test NAME "title" { given -> expected }`
    Test {
        /// The kernel.
        kernel: Name,
        /// What the test calls itself.
        title: String,
        /// Values of the parameters read.
        given: Vec<(Name, Expression)>,
        /// The values expected.
        expected: Expected,
    },
    /// What could not be parsed; an error was reported.
    Error,
}

/// What a test expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The value of the only output.
    Only(Expression),
    /// Values by name.
    Named(Vec<(Name, Expression)>),
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelParameter {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeExpression,
    /// What stands before and after the type.
    pub attributes: Vec<Attribute>,
}

/// A word that says how a parameter is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Which.
    pub kind: AttributeKind,
    /// Its place.
    pub span: Span,
}

/// The attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
    /// `setup`
    Setup,
    /// `secret`
    Secret,
    /// `public`
    Public,
    /// `align N`
    Align(String),
    /// `alias any`
    AliasAny,
    /// `alias NAME`
    AliasSame(Name),
}

/// A type as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeExpression {
    /// Which.
    pub kind: TypeKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// `uW`, `uWxN`, or a name that is no type.
    Named(String),
    /// `nat<expression>`
    Natural(Box<Expression>),
    /// `modulus<expression>`
    Modulus(Box<Expression>),
    /// `residue<NAME>`
    Residue(Name),
    /// `[type; expression]`
    Array(Box<TypeExpression>, Box<Expression>),
    /// `[type]`
    Slice(Box<TypeExpression>),
}

/// Statements in braces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// In order; the last one is the result where it is an expression.
    pub statements: Vec<Statement>,
    /// With the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Which.
    pub kind: StatementKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `NAME = value`, `NAME.view = value`, `NAME[index] = value`
    Assign {
        /// What is bound.
        target: Name,
        /// The view it is bound through.
        view: Option<View>,
        /// The element replaced.
        index: Option<Expression>,
        /// The value.
        value: Expression,
    },
    /// `for NAME in range block`
    For {
        /// The counter.
        variable: Name,
        /// Constant.
        range: Range,
        /// One round.
        body: Block,
    },
    /// `loop NAME in 0..count block`
    Loop {
        /// The counter.
        variable: Name,
        /// From 0 to a run-time count.
        range: Range,
        /// One round.
        body: Block,
    },
    /// `map NAME in NAME, … block`
    Map {
        /// Element names and slices.
        bindings: Vec<(Name, Name)>,
        /// One element.
        body: Block,
    },
    /// `store(address, value) if condition`
    Store {
        /// Byte address.
        address: Expression,
        /// Bytes.
        value: Expression,
        /// When.
        condition: Option<Expression>,
    },
    /// `branch to target if condition`
    Branch {
        /// Where to, where it is a value.
        target: Option<Expression>,
        /// When.
        condition: Option<Expression>,
    },
    /// `forbidden if condition`
    Forbidden {
        /// What may not hold.
        condition: Expression,
    },
    /// A result, or the call of a kernel.
    Expression(Expression),
    /// What could not be parsed; an error was reported.
    Error,
}

/// `start..end`, half open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// First value.
    pub start: Box<Expression>,
    /// One past the last value.
    pub end: Box<Expression>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Which.
    pub kind: ExpressionKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionKind {
    /// A number as written.
    Number(String),
    /// The digits of `hex"…"` as written.
    Hex(String),
    /// A name.
    Name(String),
    /// `[a, b, …]`
    List(Vec<Expression>),
    /// `[NAME in range: body]`
    Comprehension {
        /// The counter.
        variable: Name,
        /// Constant.
        range: Range,
        /// One element.
        body: Box<Expression>,
    },
    /// `sum(NAME in range: body)`
    Fold {
        /// What joins the values.
        fold: Fold,
        /// The counter.
        variable: Name,
        /// Constant.
        range: Range,
        /// One value.
        body: Box<Expression>,
    },
    /// `NAME(arguments)`
    Call {
        /// Function, kernel or built-in function.
        function: Name,
        /// In order.
        arguments: Vec<Expression>,
    },
    /// `~operand`
    Not(Box<Expression>),
    /// Operators of one precedence, from left to right.
    Chain {
        /// The leftmost operand.
        first: Box<Expression>,
        /// At least one.
        rest: Vec<(Operator, Expression)>,
    },
    /// Indices, slices and views after a value.
    Postfix {
        /// The value.
        base: Box<Expression>,
        /// At least one.
        steps: Vec<Step>,
    },
    /// What could not be parsed; an error was reported.
    Error,
}

/// How a fold joins values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// `sum`
    Sum,
    /// `xor`
    Xor,
    /// `and`
    And,
    /// `or`
    Or,
}

/// Something after a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub kind: StepKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// `[index]`
    Index(Expression),
    /// `[range]`
    Slice(Range),
    /// `.u32x4`
    View(View),
}

/// `.uWxN`, `.beWxN`, `.leWxN`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The byte order where the view says it.
    pub order: Option<ByteOrder>,
    /// Bits of a lane.
    pub width: u32,
    /// Lanes.
    pub lanes: u32,
    /// Its place.
    pub span: Span,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `++`
    Concatenate,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Fold {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            Fold::Sum => "sum",
            Fold::Xor => "xor",
            Fold::And => "and",
            Fold::Or => "or",
        }
    }
}

impl Operator {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            Operator::Or => "|",
            Operator::Xor => "^",
            Operator::And => "&",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterEqual => ">=",
            Operator::Concatenate => "++",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }

    /// How tightly it binds: 0 is the loosest. Operators of one level stand in one chain.
    pub fn precedence(self) -> u8 {
        match self {
            Operator::Or => 0,
            Operator::Xor => 1,
            Operator::And => 2,
            Operator::Equal | Operator::NotEqual | Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => 3,
            Operator::Concatenate => 4,
            Operator::ShiftLeft | Operator::ShiftRight => 5,
            Operator::Add | Operator::Subtract => 6,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 7,
        }
    }
}
