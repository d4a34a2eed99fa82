//! Vectors made lane by lane of like operations become operations on vectors: `[i in 0..4: a[i] + b[3 − i]]` is one addition of a permuted `b`.

use kgen_ir::arena::Arena;
use kgen_ir::bits::Bits;
use kgen_ir::body::{Body, NodeHandle, Op};
use kgen_ir::types::Type;

/// Operations between a vector and its leaves that are followed at most; comprehensions are shallow.
const DEPTH_LIMIT: u32 = 32;

/// The body with such vectors rewritten; `wanted` says for which (lane width, lanes) that pays. Nodes that nothing uses any more stay.
pub fn vectorize(body: &Body, wanted: impl Fn(u32, u32) -> bool) -> Body {
    let mut rewriter = Rewriter { nodes: Arena::default() };
    let mut places: Vec<NodeHandle> = Vec::with_capacity(body.nodes.len());
    for (_, node) in body.nodes.iter() {
        let mut node = node.clone();
        node.op = renumbered(&node.op, &places);
        let vector = match (&node.op, &node.ty) {
            (Op::Lanes(list), Type::Bits { width, lanes }) if *lanes > 1 && wanted(*width, *lanes) => {
                rewriter.vector(&list.clone(), DEPTH_LIMIT, &wanted)
            }
            _ => None,
        };
        places.push(match vector {
            Some(vector) => {
                if rewriter.nodes[vector].name.is_empty() {
                    rewriter.nodes[vector].name.clone_from(&node.name);
                }
                vector
            }
            None => rewriter.nodes.push(node),
        });
    }
    Body {
        inputs: body.inputs.clone(),
        nodes: rewriter.nodes,
        effects: Vec::new(),
        outputs: body.outputs.iter().map(|(port, handle)| (port.clone(), places[handle.index()])).collect(),
    }
}

fn renumbered(op: &Op, places: &[NodeHandle]) -> Op {
    let mut op = op.clone();
    op.for_each_operand_mut(|handle| *handle = places[handle.index()]);
    op
}

struct Rewriter {
    nodes: Arena<kgen_ir::body::Node>,
}

impl Rewriter {
    /// A vector node of these scalars, where they are alike; `None` where the scalars are best left as they are.
    fn vector(&mut self, list: &[NodeHandle], depth: u32, wanted: &impl Fn(u32, u32) -> bool) -> Option<NodeHandle> {
        let first = self.nodes[list[0]].clone();
        let Type::Bits { width, lanes: 1 } = first.ty else { return None };
        let lanes = list.len() as u32;
        if depth == 0 || !wanted(width, lanes) || list.iter().any(|item| self.nodes[*item].ty != first.ty) {
            return None;
        }
        let ops: Vec<Op> = list.iter().map(|item| self.nodes[*item].op.clone()).collect();
        let op = match &ops[0] {
            Op::Constant(_) => {
                let mut all = Bits::zero(width * lanes);
                for (lane, op) in ops.iter().enumerate() {
                    let Op::Constant(bits) = op else { return None };
                    all.insert(lane as u32 * width, bits);
                }
                Op::Constant(all)
            }
            // Lanes of vectors are a permute: as they are.
            Op::Lane { .. } => {
                let is_constant = |index: NodeHandle| matches!(self.nodes[index].op, Op::Constant(_));
                let picked =
                    ops.iter().all(|op| matches!(op, Op::Lane { vector, index } if is_constant(*index) && self.is_vector(*vector, width)));
                picked.then(|| Op::Lanes(list.to_vec()))?
            }
            Op::Unary(kind, _) => {
                let column = column(&ops, |op| if let Op::Unary(other, a) = op { (other == kind).then_some(vec![*a]) } else { None })?;
                Op::Unary(*kind, self.vector(&column[0], depth - 1, wanted)?)
            }
            Op::Nary(kind, operands) => {
                let length = operands.len();
                let columns = column(&ops, |op| match op {
                    Op::Nary(other, list) if other == kind && list.len() == length => Some(list.clone()),
                    _ => None,
                })?;
                let vectors: Option<Vec<NodeHandle>> = columns.iter().map(|column| self.vector(column, depth - 1, wanted)).collect();
                Op::Nary(*kind, vectors?)
            }
            Op::Binary(kind, ..) if self.is_same_type_result(list[0]) => {
                let columns =
                    column(&ops, |op| if let Op::Binary(other, a, b) = op { (other == kind).then(|| vec![*a, *b]) } else { None })?;
                let a = self.vector(&columns[0], depth - 1, wanted)?;
                let same_count = columns[1].iter().all(|count| self.nodes[*count].op == self.nodes[columns[1][0]].op);
                let is_constant = matches!(self.nodes[columns[1][0]].op, Op::Constant(_));
                // A constant count of another width stays a scalar.
                let b = match self.vector(&columns[1], depth - 1, wanted) {
                    Some(b) if self.nodes[b].ty == self.nodes[a].ty => b,
                    _ if same_count && is_constant => columns[1][0],
                    _ => return None,
                };
                Op::Binary(*kind, a, b)
            }
            Op::Resize(_) => {
                let columns = column(&ops, |op| if let Op::Resize(a) = op { Some(vec![*a]) } else { None })?;
                Op::Resize(self.vector(&columns[0], depth - 1, wanted)?)
            }
            _ => return None,
        };
        let node = kgen_ir::body::Node { op, ty: Type::vector(width, lanes), span: first.span, name: first.name };
        Some(self.nodes.push(node))
    }

    fn is_vector(&self, handle: NodeHandle, lane_width: u32) -> bool {
        matches!(self.nodes[handle].ty, Type::Bits { width, lanes: 2.. } if width == lane_width)
    }

    /// Shifts, products and sums, but no comparisons.
    fn is_same_type_result(&self, handle: NodeHandle) -> bool {
        matches!(&self.nodes[handle].op, Op::Binary(_, a, _) if self.nodes[*a].ty == self.nodes[handle].ty)
    }
}

/// Operand n of every operation, for each n; `None` where one is unlike the others.
fn column(ops: &[Op], operands: impl Fn(&Op) -> Option<Vec<NodeHandle>>) -> Option<Vec<Vec<NodeHandle>>> {
    let rows: Vec<Vec<NodeHandle>> = ops.iter().map(operands).collect::<Option<_>>()?;
    Some((0..rows[0].len()).map(|index| rows.iter().map(|row| row[index]).collect()).collect())
}
