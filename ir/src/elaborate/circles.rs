//! Functions and kernels are inlined, so none may call itself, not even through others.

use super::Elaborator;
use super::globals::{Globals, Progress};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Block, Expression, ExpressionKind, StatementKind, StepKind};
// Iterative, unlike Tarjan's: chains of calls may be as long as a file.
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// Calls in a block: the function's name and the place.
fn calls_of_block<'a>(block: &'a Block, found: &mut Vec<(&'a str, Span)>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Assign { index, value, .. } => {
                index.iter().for_each(|index| calls_of(index, found));
                calls_of(value, found);
            }
            StatementKind::For { range, body, .. } | StatementKind::Loop { range, body, .. } => {
                calls_of(&range.start, found);
                calls_of(&range.end, found);
                calls_of_block(body, found);
            }
            StatementKind::Map { body, .. } => calls_of_block(body, found),
            StatementKind::Store { address, value, condition } => {
                calls_of(address, found);
                calls_of(value, found);
                condition.iter().for_each(|condition| calls_of(condition, found));
            }
            StatementKind::Branch { target, condition } => {
                target.iter().chain(condition).for_each(|expression| calls_of(expression, found));
            }
            StatementKind::Forbidden { condition } => calls_of(condition, found),
            StatementKind::Expression(expression) => calls_of(expression, found),
            StatementKind::Error => {}
        }
    }
}

fn calls_of<'a>(expression: &'a Expression, found: &mut Vec<(&'a str, Span)>) {
    match &expression.kind {
        ExpressionKind::Number(_) | ExpressionKind::Hex(_) | ExpressionKind::Name(_) | ExpressionKind::Error => {}
        ExpressionKind::List(items) => items.iter().for_each(|item| calls_of(item, found)),
        ExpressionKind::Comprehension { range, body, .. } | ExpressionKind::Fold { range, body, .. } => {
            [&range.start, &range.end, body].into_iter().for_each(|part| calls_of(part, found));
        }
        ExpressionKind::Call { function, arguments } => {
            found.push((&function.text, function.span));
            arguments.iter().for_each(|argument| calls_of(argument, found));
        }
        ExpressionKind::Not(operand) => calls_of(operand, found),
        ExpressionKind::Chain { first, rest } => {
            calls_of(first, found);
            rest.iter().for_each(|(_, operand)| calls_of(operand, found));
        }
        ExpressionKind::Postfix { base, steps } => {
            calls_of(base, found);
            for step in steps {
                match &step.kind {
                    StepKind::Index(index) => calls_of(index, found),
                    StepKind::Slice(range) => [&range.start, &range.end].into_iter().for_each(|part| calls_of(part, found)),
                    StepKind::View(_) => {}
                }
            }
        }
    }
}

/// Who calls whom, where: functions first, then kernels.
fn call_graph(globals: &Globals) -> DiGraph<String, Span> {
    let mut graph = DiGraph::new();
    let names = globals.functions.keys().chain(globals.kernels.keys());
    let nodes: indexmap::IndexMap<&String, NodeIndex> = names.map(|name| (name, graph.add_node(name.clone()))).collect();
    let functions = globals.functions.iter().map(|(name, (item, _))| (name, &item.body));
    let kernels = globals.kernels.iter().map(|(name, (item, _))| (name, &item.body));
    for (caller, body) in functions.chain(kernels) {
        let mut found = Vec::new();
        calls_of_block(body, &mut found);
        for (callee, span) in found {
            if let (Some(from), Some(to)) = (nodes.get(caller), globals.filled(callee).and_then(|name| nodes.get(&name).copied())) {
                graph.add_edge(*from, to, span);
            }
        }
    }
    graph
}

impl Elaborator {
    /// Reports every circle of calls once and marks its members as failed.
    pub fn report_circles(&mut self) {
        let graph = call_graph(&self.globals);
        let mut circles: Vec<Vec<NodeIndex>> =
            kosaraju_scc(&graph).into_iter().filter(|members| members.len() > 1 || graph.contains_edge(members[0], members[0])).collect();
        for members in &mut circles {
            members.sort();
        }
        circles.sort();
        for members in circles {
            let start = members[0];
            let path = shortest_circle(&graph, start, &members);
            let names: Vec<&str> = path.iter().map(|node| graph[*node].as_str()).collect();
            let span = self.globals.declared(names[0]).unwrap_or_default();
            let mut diagnostic =
                Diagnostic::error("circular-call", span, format!("these call each other in a circle: {}", names.join(" → ")))
                    .help("functions and kernels are inlined, so calls must come to an end");
            for step in path.windows(2) {
                if let Some(edge) = graph.find_edge(step[0], step[1]) {
                    diagnostic = diagnostic.label(graph[edge], format!("`{}` calls `{}` here", graph[step[0]], graph[step[1]]));
                }
            }
            self.report(diagnostic);
            for member in &members {
                let name = &graph[*member];
                if let Some((_, progress)) = self.globals.functions.get_mut(name) {
                    *progress = Progress::Failed;
                }
                if let Some((_, progress)) = self.globals.kernels.get_mut(name) {
                    *progress = Progress::Failed;
                }
            }
        }
    }
}

/// The shortest way from a member of a circle back to itself, both ends included.
fn shortest_circle(graph: &DiGraph<String, Span>, start: NodeIndex, members: &[NodeIndex]) -> Vec<NodeIndex> {
    let mut before: indexmap::IndexMap<NodeIndex, NodeIndex> = indexmap::IndexMap::new();
    let mut position = 0;
    let mut queue = vec![start];
    while let Some(node) = queue.get(position).copied() {
        position += 1;
        let mut next: Vec<NodeIndex> = graph.neighbors(node).filter(|next| members.contains(next)).collect();
        next.sort();
        for next in next {
            if !before.contains_key(&next) {
                before.insert(next, node);
                queue.push(next);
            }
        }
        if before.contains_key(&start) {
            break;
        }
    }
    let mut path = vec![start];
    let mut node = start;
    while let Some(previous) = before.get(&node) {
        path.push(*previous);
        node = *previous;
        if node == start {
            break;
        }
    }
    path.reverse();
    path
}
