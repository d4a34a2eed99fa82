//! What must come before what: dependences of a body's nodes and effects, longest chains, and which parameters of a kernel may overlap in memory.

use crate::body::{Body, Effect, Node, NodeHandle, Op};
use crate::kernel::{Alias, Direction, Kernel};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// A vertex of the dependence graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vertex {
    /// A node of the body.
    Node(NodeHandle),
    /// An effect, by its index.
    Effect(u32),
}

/// Why one vertex comes after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependence {
    /// It uses the value.
    Value,
    /// Memory or control: loads before the body's effects, effects in order.
    Order,
}

/// The dependence graph of one body; loops and maps are single vertices.
#[derive(Clone, Debug)]
pub struct DependenceGraph {
    /// Nodes of the body first, at their handles' indices, then effects. Edges go from what must be first.
    pub graph: DiGraph<Vertex, Dependence, u32>,
}

/// A longest chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// Sum of the weights along it.
    pub length: u64,
    /// Its vertices in order.
    pub vertices: Vec<Vertex>,
}

fn effect_operands(effect: &Effect) -> impl Iterator<Item = NodeHandle> {
    match effect {
        Effect::Store { address, value, condition } => [Some(*address), Some(*value), *condition],
        Effect::Branch { condition, target } => [*condition, *target, None],
        Effect::Forbidden { condition, .. } => [Some(*condition), None, None],
    }
    .into_iter()
    .flatten()
}

impl DependenceGraph {
    /// The graph of a body.
    pub fn new(body: &Body) -> Self {
        let mut graph = DiGraph::with_capacity(body.nodes.len() + body.effects.len(), body.nodes.len() * 2);
        for (handle, _) in body.nodes.iter() {
            graph.add_node(Vertex::Node(handle));
        }
        let place = |handle: NodeHandle| NodeIndex::new(handle.index());
        for (handle, node) in body.nodes.iter() {
            for operand in node.op.operands() {
                graph.add_edge(place(operand), place(handle), Dependence::Value);
            }
        }
        let loads: Vec<NodeHandle> =
            body.nodes.iter().filter(|(_, node)| matches!(node.op, Op::Load { .. })).map(|(handle, _)| handle).collect();
        let mut previous = None;
        for (index, effect) in body.effects.iter().enumerate() {
            let vertex = graph.add_node(Vertex::Effect(index as u32));
            for operand in effect_operands(effect) {
                graph.add_edge(place(operand), vertex, Dependence::Value);
            }
            match previous {
                // Loads see memory as it was before the body.
                None => loads.iter().for_each(|load| {
                    graph.add_edge(place(*load), vertex, Dependence::Order);
                }),
                Some(previous) => {
                    graph.add_edge(previous, vertex, Dependence::Order);
                }
            }
            previous = Some(vertex);
        }
        Self { graph }
    }

    /// A longest chain by the weights of nodes; effects weigh nothing. Among equally long ones the one that ends, and goes, earliest in the body.
    pub fn critical_path(&self, body: &Body, weight: impl Fn(&Node) -> u64) -> CriticalPath {
        // Vertices stand in topological order: operands come before users, effects last and in order.
        let mut length = vec![0u64; self.graph.node_count()];
        let mut before: Vec<Option<NodeIndex<u32>>> = vec![None; self.graph.node_count()];
        for vertex in self.graph.node_indices() {
            let mut incoming: Vec<_> = self.graph.edges_directed(vertex, petgraph::Direction::Incoming).map(|edge| edge.source()).collect();
            incoming.sort();
            for source in incoming {
                if before[vertex.index()].is_none() || length[source.index()] > length[vertex.index()] {
                    length[vertex.index()] = length[source.index()];
                    before[vertex.index()] = Some(source);
                }
            }
            if let Vertex::Node(handle) = self.graph[vertex] {
                length[vertex.index()] += weight(&body.nodes[handle]);
            }
        }
        let mut last: Option<NodeIndex<u32>> = None;
        for vertex in self.graph.node_indices() {
            if last.is_none_or(|last| length[vertex.index()] > length[last.index()]) {
                last = Some(vertex);
            }
        }
        let total = last.map_or(0, |last| length[last.index()]);
        let mut vertices = Vec::new();
        let mut next = last;
        while let Some(vertex) = next {
            vertices.push(self.graph[vertex]);
            next = before[vertex.index()];
        }
        vertices.reverse();
        CriticalPath { length: total, vertices }
    }
}

/// One for each operation, nothing for inputs, constants, views and names of results.
pub fn operation_weight(node: &Node) -> u64 {
    match node.op {
        Op::Input(_) | Op::Constant(_) | Op::Integer(_) | Op::Undefined | Op::Reinterpret(..) | Op::Result(..) | Op::Array(_) => 0,
        _ => 1,
    }
}

/// How the memory of two parameters may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overlap {
    /// No byte in common.
    Disjoint,
    /// The very same region, or no byte in common.
    SameOrDisjoint,
    /// Any bytes in common.
    Any,
}

/// What the alias contracts say about two different parameters. A contract on either side allows the overlap.
pub fn overlap(kernel: &Kernel, first: usize, second: usize) -> Overlap {
    let (a, b) = (&kernel.parameters[first].alias, &kernel.parameters[second].alias);
    let names = |alias: &Alias, other: usize| matches!(alias, Alias::Same(parameter) if *parameter as usize == other);
    if *a == Alias::Any || *b == Alias::Any {
        Overlap::Any
    } else if names(a, second) || names(b, first) {
        Overlap::SameOrDisjoint
    } else {
        Overlap::Disjoint
    }
}

/// Pairs (read, written) of parameters for which a store to the second must come after every load of the first that it may hit, with how they overlap:
/// the derived memory order. A parameter that is read and written stands against itself as `SameOrDisjoint`.
pub fn write_after_read(kernel: &Kernel) -> Vec<(usize, usize, Overlap)> {
    let mut pairs = Vec::new();
    for (read, from) in kernel.parameters.iter().enumerate().filter(|(_, parameter)| parameter.direction != Direction::Out) {
        for (written, to) in kernel.parameters.iter().enumerate().filter(|(_, parameter)| parameter.direction != Direction::In) {
            // Values passed in registers have no memory.
            if passes_by_value(&from.ty) && from.direction == Direction::In || passes_by_value(&to.ty) && to.name == "result" {
                continue;
            }
            let how = if read == written { Overlap::SameOrDisjoint } else { overlap(kernel, read, written) };
            if how != Overlap::Disjoint {
                pairs.push((read, written, how));
            }
        }
    }
    pairs
}

/// Scalars up to 64 bits pass by value, everything else is a region.
pub fn passes_by_value(ty: &crate::types::Type) -> bool {
    matches!(ty, crate::types::Type::Bits { width, lanes: 1 } if *width <= 64)
}
