//! Printing and parsing are inverse, and nothing that is read makes the parser panic.

use kgen_ir::source::Span;
use kgen_ir::syntax::ast::*;
use kgen_ir::syntax::{format, parse_statements, parse_unit, print};
use kgen_ir::types::ByteOrder;
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Name> {
    prop_oneof!["[a-eg-z][a-z]{0,3}1", Just("BITS".to_owned()), Just("_x".to_owned())].prop_map(|text| Name { text, span: Span::default() })
}

fn kernel_name() -> impl Strategy<Value = Name> {
    prop_oneof![name(), Just(Name { text: "mont_mul_{BITS}".to_owned(), span: Span::default() })]
}

fn expression_of(kind: ExpressionKind) -> Expression {
    Expression { kind, span: Span::default() }
}

fn operator(precedence: u8) -> impl Strategy<Value = Operator> {
    use Operator::*;
    let all = [
        Or,
        Xor,
        And,
        Equal,
        NotEqual,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        Concatenate,
        ShiftLeft,
        ShiftRight,
        Add,
        Subtract,
        Multiply,
        Divide,
        Remainder,
    ];
    prop::sample::select(all.into_iter().filter(|operator| operator.precedence() == precedence).collect::<Vec<_>>())
}

fn view() -> impl Strategy<Value = View> {
    let order = prop_oneof![Just(None), Just(Some(ByteOrder::Big)), Just(Some(ByteOrder::Little))];
    (order, 1u32..64, 1u32..20).prop_map(|(order, width, lanes)| View { order, width, lanes, span: Span::default() })
}

fn range_of(expression: BoxedStrategy<Expression>) -> impl Strategy<Value = Range> {
    (expression.clone(), expression).prop_map(|(start, end)| Range { start: Box::new(start), end: Box::new(end) })
}

fn expression() -> BoxedStrategy<Expression> {
    let leaf = prop_oneof![
        "[0-9]{1,6}|0x[0-9a-f]{1,8}|0b[01]{1,8}".prop_map(ExpressionKind::Number),
        "([0-9a-f]{2} ?){0,4}".prop_map(ExpressionKind::Hex),
        name().prop_map(|name| ExpressionKind::Name(name.text)),
    ]
    .prop_map(expression_of);
    leaf.prop_recursive(4, 40, 4, |inner| {
        let inner = inner.boxed();
        let chain = (0u8..8).prop_flat_map({
            let inner = inner.clone();
            move |level| {
                (inner.clone(), vec((operator(level), inner.clone()), 1..4))
                    .prop_map(|(first, rest)| ExpressionKind::Chain { first: Box::new(first), rest })
            }
        });
        let step = prop_oneof![
            inner.clone().prop_map(StepKind::Index),
            range_of(inner.clone()).prop_map(StepKind::Slice),
            view().prop_map(StepKind::View),
        ]
        .prop_map(|kind| Step { kind, span: Span::default() });
        let fold = prop_oneof![Just(Fold::Sum), Just(Fold::Xor), Just(Fold::And), Just(Fold::Or)];
        prop_oneof![
            chain,
            vec(inner.clone(), 0..4).prop_map(ExpressionKind::List),
            (name(), range_of(inner.clone()), inner.clone()).prop_map(|(variable, range, body)| ExpressionKind::Comprehension {
                variable,
                range,
                body: Box::new(body)
            }),
            (fold, name(), range_of(inner.clone()), inner.clone()).prop_map(|(fold, variable, range, body)| ExpressionKind::Fold {
                fold,
                variable,
                range,
                body: Box::new(body)
            }),
            (kernel_name(), vec(inner.clone(), 0..3)).prop_map(|(function, arguments)| ExpressionKind::Call { function, arguments }),
            inner.clone().prop_map(|operand| ExpressionKind::Not(Box::new(operand))),
            (inner.clone(), vec(step, 1..3)).prop_map(|(base, steps)| ExpressionKind::Postfix { base: Box::new(base), steps }),
        ]
        .prop_map(expression_of)
    })
    .boxed()
}

fn statement() -> BoxedStrategy<Statement> {
    let plain = prop_oneof![
        (name(), prop::option::of(view()), prop::option::of(expression()), expression())
            .prop_map(|(target, view, index, value)| StatementKind::Assign { target, view, index, value }),
        (expression(), expression(), prop::option::of(expression())).prop_map(|(address, value, condition)| StatementKind::Store {
            address,
            value,
            condition
        }),
        (prop::option::of(expression()), prop::option::of(expression()))
            .prop_map(|(target, condition)| StatementKind::Branch { target, condition }),
        expression().prop_map(|condition| StatementKind::Forbidden { condition }),
        expression().prop_map(StatementKind::Expression),
    ]
    .prop_map(|kind| Statement { kind, span: Span::default() });
    plain
        .prop_recursive(2, 12, 3, |inner| {
            let block = vec(inner, 0..3).prop_map(|statements| Block { statements, span: Span::default() }).boxed();
            prop_oneof![
                (name(), range_of(expression()), block.clone()).prop_map(|(variable, range, body)| StatementKind::For {
                    variable,
                    range,
                    body
                }),
                (name(), range_of(expression()), block.clone()).prop_map(|(variable, range, body)| StatementKind::Loop {
                    variable,
                    range,
                    body
                }),
                (vec((name(), name()), 1..3), block).prop_map(|(bindings, body)| StatementKind::Map { bindings, body }),
            ]
            .prop_map(|kind| Statement { kind, span: Span::default() })
        })
        .boxed()
}

fn type_expression() -> BoxedStrategy<TypeExpression> {
    let leaf = prop_oneof![
        "u[1-9][0-9]?(x[1-9])?".prop_map(TypeKind::Named),
        expression().prop_map(|bits| TypeKind::Natural(Box::new(bits))),
        expression().prop_map(|bits| TypeKind::Modulus(Box::new(bits))),
        name().prop_map(TypeKind::Residue),
    ]
    .prop_map(|kind| TypeExpression { kind, span: Span::default() });
    leaf.prop_recursive(2, 4, 1, |inner| {
        prop_oneof![
            (inner.clone(), expression()).prop_map(|(element, length)| TypeKind::Array(Box::new(element), Box::new(length))),
            inner.prop_map(|element| TypeKind::Slice(Box::new(element))),
        ]
        .prop_map(|kind| TypeExpression { kind, span: Span::default() })
    })
    .boxed()
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    let kind = prop_oneof![
        Just(AttributeKind::In),
        Just(AttributeKind::Out),
        Just(AttributeKind::InOut),
        Just(AttributeKind::Setup),
        Just(AttributeKind::Secret),
        Just(AttributeKind::Public),
        "[1-9][0-9]?".prop_map(AttributeKind::Align),
        Just(AttributeKind::AliasAny),
        name().prop_map(AttributeKind::AliasSame),
    ];
    vec(kind.prop_map(|kind| Attribute { kind, span: Span::default() }), 0..4)
}

fn unit() -> impl Strategy<Value = UnitSyntax> {
    let block = || vec(statement(), 0..4).prop_map(|statements| Block { statements, span: Span::default() });
    let parameter = (name(), type_expression(), attributes()).prop_map(|(name, ty, attributes)| KernelParameter { name, ty, attributes });
    let entries = |least: usize| vec((name(), expression()), least..3);
    let expected = prop_oneof![expression().prop_map(Expected::Only), entries(1).prop_map(Expected::Named)];
    let item = prop_oneof![
        (name(), expression()).prop_map(|(name, value)| ItemKind::Parameter { name, value }),
        (name(), prop::option::of(type_expression()), expression()).prop_map(|(name, ty, value)| ItemKind::Constant { name, ty, value }),
        (name(), vec((name(), type_expression()), 0..3), type_expression(), block())
            .prop_map(|(name, parameters, result, body)| ItemKind::Function { name, parameters, result, body }),
        (kernel_name(), vec(parameter, 0..3), prop::option::of((type_expression(), attributes())), block())
            .prop_map(|(name, parameters, result, body)| ItemKind::Kernel { name, parameters, result, body }),
        (kernel_name(), "[a-z ,/{}]{0,20}", entries(0), expected).prop_map(|(kernel, title, given, expected)| ItemKind::Test {
            kernel,
            title,
            given,
            expected
        }),
    ];
    vec(item.prop_map(|kind| Item { kind, span: Span::default() }), 0..4).prop_map(|items| UnitSyntax { items })
}

/// A tree without its places, as text: two trees are the same where these are.
fn shape(tree: &UnitSyntax) -> String {
    let text = std::format!("{tree:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("Span { start: ") {
        out.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    out + rest
}

const WORDS: &[&str] = &[
    "kernel ",
    "fn ",
    "const ",
    "param ",
    "test ",
    "for ",
    "in ",
    "if ",
    "loop ",
    "map ",
    "a",
    "f_{B}",
    "u32x4",
    "nat",
    "12",
    "0x1f",
    "hex\"00\"",
    "\"t\"",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ";",
    ".",
    "..",
    "->",
    "=",
    "|",
    "^",
    "&",
    "==",
    "<",
    ">",
    "++",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "~",
    "\n",
    " ",
    "// c\n",
    "sum(",
    "store(",
    "branch ",
    "forbidden ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn parsing_what_is_printed_gives_the_same_tree(tree in unit()) {
        let text = print(&tree);
        let parsed = parse_unit(&text);
        prop_assert!(parsed.diagnostics.is_empty(), "{text}\n{:#?}", parsed.diagnostics);
        prop_assert_eq!(shape(&parsed.tree), shape(&tree), "{}", text);
        let again = format(&text).expect("what was printed");
        prop_assert_eq!(shape(&parse_unit(&again).tree), shape(&tree));
        prop_assert_eq!(format(&again).expect("what was formatted"), again);
    }

    #[test]
    fn characters_do_not_make_it_panic(text in "\\PC{0,200}|[ -~\n]{0,200}") {
        let _ = parse_unit(&text);
        let _ = parse_statements(&text, 7);
    }

    #[test]
    fn tokens_do_not_make_it_panic(words in vec(prop::sample::select(WORDS), 0..80)) {
        let text = words.concat();
        let parsed = parse_unit(&text);
        if parsed.diagnostics.is_empty() {
            prop_assert_eq!(shape(&parse_unit(&print(&parsed.tree)).tree), shape(&parsed.tree));
        }
        let _ = parse_statements(&text, 0);
        let source = std::sync::Arc::new(kgen_ir::source::Source { name: String::new(), text });
        let _ = kgen_ir::parse_unit(source, &[]);
    }
}

#[test]
fn comments_and_blank_lines_are_kept() {
    let text =
        "// head\n\nparam  A=1 // one\nkernel k( a:u32 )->u32{\n// first\n  b=a+A; c = b ^ 1 // second\n\n\n  c\n // last\n}\n// end\n";
    let formatted = format(text).expect("valid");
    let wanted = "// head\n\nparam A = 1 // one\nkernel k(a: u32) -> u32 {\n    // first\n    b = a + A\n    c = b ^ 1 // second\n\n    c\n    // last\n}\n// end\n";
    assert_eq!(formatted, wanted);
    assert_eq!(format(&formatted).expect("valid"), formatted);
}

#[test]
fn specs_are_formatted_and_keep_their_comments() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../specs")).expect("specs") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let formatted = format(&text).expect("valid");
        assert_eq!(shape(&parse_unit(&formatted).tree), shape(&parse_unit(&text).tree), "{path:?}");
        assert_eq!(formatted.matches("//").count(), text.matches("//").count(), "{path:?}");
        assert_eq!(format(&formatted).expect("valid"), formatted, "{path:?}");
    }
}

#[test]
fn operators_bind_as_written() {
    let tree = |text: &str| shape(&parse_unit(&std::format!("const A = {text}")).tree);
    assert_eq!(tree("a | b ^ c & d == e ++ f << g + h * i"), tree("a | (b ^ (c & (d == (e ++ (f << (g + (h * i)))))))"));
    assert_ne!(tree("a - (b - c)"), tree("a - b - c"));
    assert_eq!(tree("~a[0]"), tree("~(a[0])"));
    assert_eq!(tree("a\n  + b"), tree("a +\n b"));
}
