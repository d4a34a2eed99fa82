//! Dependence graphs, longest chains, and the memory order that alias contracts leave.

use crate::common::*;
use crate::interpret::{kernel, parameter};
use kgen_ir::body::{Body, Effect, NaryOp, Op};
use kgen_ir::builder::BodyBuilder;
use kgen_ir::dependence::{Dependence, DependenceGraph, Overlap, Vertex, operation_weight, overlap, write_after_read};
use kgen_ir::kernel::{Alias, Direction};
use kgen_ir::types::Type;
use petgraph::visit::EdgeRef;
use proptest::prelude::*;

/// The longest chain by plain recursion over operands.
fn longest(body: &Body) -> u64 {
    let mut lengths: Vec<u64> = Vec::new();
    for (_, node) in body.nodes.iter() {
        let before = node.op.operands().iter().map(|operand| lengths[operand.index()]).max().unwrap_or(0);
        lengths.push(before + operation_weight(node));
    }
    lengths.into_iter().max().unwrap_or(0)
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn critical_paths_are_longest_chains_of_dependences(list in choices(), size in 1usize..10) {
        let body = random_body(&list, size);
        let graph = DependenceGraph::new(&body);
        let path = graph.critical_path(&body, operation_weight);
        prop_assert_eq!(path.length, longest(&body));
        let weight = |vertex: &Vertex| if let Vertex::Node(handle) = vertex { operation_weight(&body.nodes[*handle]) } else { 0 };
        prop_assert_eq!(path.vertices.iter().map(weight).sum::<u64>(), path.length);
        for pair in path.vertices.windows(2) {
            let (Vertex::Node(first), Vertex::Node(second)) = (pair[0], pair[1]) else { panic!("nodes only") };
            prop_assert!(body.nodes[second].op.operands().contains(&first));
        }
    }
}

#[test]
fn loads_come_before_stores_and_effects_keep_their_order() {
    let mut builder = BodyBuilder::new();
    let address = builder.input("a", Type::bits(32));
    let loaded = builder.push(Op::Load { address }, Type::vector(8, 4));
    let doubled = builder.nary(NaryOp::Add, &[loaded, loaded]);
    builder.effect(Effect::Store { address, value: doubled, condition: None });
    builder.effect(Effect::Store { address, value: loaded, condition: None });
    let graph = DependenceGraph::new(&builder.finish()).graph;
    let orders: Vec<_> = graph
        .edge_references()
        .filter(|edge| *edge.weight() == Dependence::Order)
        .map(|edge| (graph[edge.source()], graph[edge.target()]))
        .collect();
    assert_eq!(orders, [(Vertex::Node(loaded), Vertex::Effect(0)), (Vertex::Effect(0), Vertex::Effect(1))]);
    assert!(!petgraph::algo::is_cyclic_directed(&graph));
}

#[test]
fn alias_contracts_decide_what_may_overlap() {
    let vector = Type::vector(8, 16);
    let mut parameters = vec![
        parameter("a", vector.clone(), Direction::In, false),
        parameter("b", vector.clone(), Direction::In, false),
        parameter("d", vector.clone(), Direction::Out, false),
        parameter("n", Type::bits(32), Direction::In, false),
    ];
    parameters[2].alias = Alias::Same(0);
    let same = kernel("k", parameters.clone(), Body::default());
    assert_eq!(write_after_read(&same), [(0, 2, Overlap::SameOrDisjoint)]);
    assert_eq!(overlap(&same, 0, 2), overlap(&same, 2, 0));
    parameters[2].alias = Alias::Any;
    assert_eq!(write_after_read(&kernel("k", parameters.clone(), Body::default())), [(0, 2, Overlap::Any), (1, 2, Overlap::Any)]);
    parameters[2].alias = Alias::Disjoint;
    assert_eq!(write_after_read(&kernel("k", parameters.clone(), Body::default())), []);
    parameters[0].direction = Direction::InOut;
    assert_eq!(write_after_read(&kernel("k", parameters, Body::default())), [(0, 0, Overlap::SameOrDisjoint)]);
}
