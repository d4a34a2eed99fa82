//! The walk over a kernel's dataflow: naturals live in memory in their form's layout, every operation reads and writes whole naturals ([`super::integers`] has those that
//! meet several forms).

use super::arithmetic::Join;
use super::form::NaturalForm;
use super::integers::has_limb_loops;
use super::natural_bits;
use super::ways::Way;
use crate::lowering::builder::{Lowering, ProgramBuilder};
use crate::lowering::loops::Rounds;
use crate::program::{Layout, Program, RegionId, ValueId};
use kgen_ir::body::{Body, Node, NodeHandle, Op};
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::kernel::{Direction, Kernel};
use kgen_ir::types::Type;
use std::collections::BTreeMap;

/// Where a value of the dataflow is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    /// A natural or residue of this many bits.
    Natural { region: RegionId, bits: u32 },
    /// A table of naturals.
    Table { region: RegionId, bits: u32, entries: u32 },
    /// A modulus: its setup block.
    Modulus { region: RegionId, bits: u32 },
    /// A scalar in a register.
    Scalar(ValueId),
    /// Results of a loop.
    Loop(usize),
}

#[derive(Default)]
pub(super) struct Walk {
    forms: BTreeMap<u32, Way>,
    scratch: BTreeMap<u32, RegionId>,
    loops: Vec<Vec<Home>>,
}

/// Builds the kernel's program.
///
/// # Errors
/// What the machine cannot do, or what would overflow a lane.
pub(super) fn build(mut builder: ProgramBuilder<'_>, kernel: &Kernel) -> Lowering<Program> {
    let mut walk = Walk::default();
    let mut inputs = Vec::new();
    let mut results = Vec::new();
    for parameter in &kernel.parameters {
        let home = walk.parameter(&mut builder, &parameter.name, &parameter.ty, parameter.direction, parameter.secret)?;
        if parameter.direction != Direction::Out {
            inputs.push(home);
        }
        if parameter.direction != Direction::In {
            results.push(home);
        }
    }
    walk.body(&mut builder, &kernel.body, &inputs, &results)?;
    let mut forms = walk
        .forms
        .values()
        .filter(|form| kernel.parameters.iter().any(|parameter| natural_bits(&parameter.ty) == Some(form.digits().bits)));
    let modulus = kernel.parameters.iter().find_map(|parameter| match parameter.ty {
        Type::Modulus { bits } => walk.forms.get(&bits),
        _ => None,
    });
    let montgomery = modulus.map(|form| form.digits().montgomery());
    if let Some(form) = modulus.or(forms.next()) {
        let text = form.note(&builder);
        builder.note("radix", text);
    }
    let mut program = builder.finish()?;
    program.montgomery = montgomery;
    Ok(program)
}

impl Walk {
    /// The form of lanes of this size, for operations that only lanes have a lowering for.
    pub(super) fn lanes(&mut self, builder: &mut ProgramBuilder<'_>, bits: u32) -> Lowering<NaturalForm> {
        match self.form(builder, bits)? {
            Way::Lanes(form) => Ok(form),
            Way::Words(_) => Err(self.unsupported(builder, "this operation on naturals in words")),
        }
    }

    fn form(&mut self, builder: &mut ProgramBuilder<'_>, bits: u32) -> Lowering<Way> {
        if let Some(form) = self.forms.get(&bits) {
            return Ok(form.clone());
        }
        let form = Way::choose(builder, bits)?;
        self.forms.insert(bits, form.clone());
        Ok(form)
    }

    fn parameter(&mut self, builder: &mut ProgramBuilder<'_>, name: &str, ty: &Type, direction: Direction, secret: bool) -> Lowering<Home> {
        match ty {
            Type::Natural { bits } | Type::Residue { bits, .. } => {
                let digits = self.form(builder, *bits)?.digits();
                let region =
                    builder.region_parameter(name, direction, secret, Some(u64::from(digits.bytes())), digits.align_bytes, digits.layout());
                Ok(Home::Natural { region, bits: *bits })
            }
            Type::Modulus { bits } => {
                let form = self.form(builder, *bits)?;
                let size = form.setup_bytes();
                let bytes = u32::try_from(size).map_err(|_| builder.missing("a setup block below 4 GiB"))?;
                let layout = Layout::SetupBlock { bytes };
                let region = builder.region_parameter(name, direction, secret, Some(size), form.digits().align_bytes, layout);
                Ok(Home::Modulus { region, bits: *bits })
            }
            Type::Array { element, length } if natural_bits(element).is_some() => {
                let bits = natural_bits(element).unwrap_or(0);
                let digits = self.form(builder, bits)?.digits();
                let bytes = u64::from(digits.bytes()) * u64::from(*length);
                let layout = Layout::Array { element: Box::new(digits.layout()), stride_bytes: digits.bytes(), count: *length };
                let region = builder.region_parameter(name, direction, secret, Some(bytes), digits.align_bytes, layout);
                Ok(Home::Table { region, bits, entries: *length })
            }
            Type::Bits { width, lanes: 1 } => {
                let given = builder.scalar_parameter(name, *width, secret)?;
                Ok(Home::Scalar(builder.as_integer(given)?))
            }
            other => Err(self.unsupported(builder, &format!("parameter `{name}` of type {other} in a kernel on naturals"))),
        }
    }

    pub(super) fn unsupported(&self, builder: &ProgramBuilder<'_>, what: &str) -> Box<Diagnostic> {
        Box::new(
            Diagnostic::error(
                "not-lowered",
                builder.span(),
                format!("there is no lowering for {what} on target `{}`", builder.machine().name),
            )
            .help("split the kernel, so that naturals and lanes meet only in the caller"),
        )
    }

    pub(super) fn natural(&self, builder: &ProgramBuilder<'_>, home: Home) -> Lowering<(RegionId, u32)> {
        match home {
            Home::Natural { region, bits } => Ok((region, bits)),
            _ => Err(self.unsupported(builder, "a value that is no natural where one is needed")),
        }
    }

    pub(super) fn new_natural(&mut self, builder: &mut ProgramBuilder<'_>, bits: u32, name: &str) -> Lowering<RegionId> {
        let digits = self.form(builder, bits)?.digits();
        Ok(builder.frame_region(name, u64::from(digits.bytes()), digits.align_bytes, true))
    }

    /// Lowers a body whose inputs are at these homes; its outputs go to `results`.
    fn body(&mut self, builder: &mut ProgramBuilder<'_>, body: &Body, inputs: &[Home], results: &[Home]) -> Lowering<()> {
        // A value that is written straight to its result needs no copy; that is safe where nothing reads the result's old value afterwards.
        let mut wanted: BTreeMap<NodeHandle, Home> = BTreeMap::new();
        for ((_, handle), home) in body.outputs.iter().zip(results) {
            wanted.entry(*handle).or_insert(*home);
        }
        let mut homes: Vec<Option<Home>> = vec![None; body.nodes.len()];
        for (handle, node) in body.nodes.iter() {
            builder.set_span(node.span);
            let home = self.node(builder, node, inputs, &homes, wanted.get(&handle).copied())?;
            homes[handle.index()] = home;
        }
        for ((port, handle), result) in body.outputs.iter().zip(results) {
            builder.set_span(port.span);
            let home = homes[handle.index()].ok_or_else(|| self.unsupported(builder, "an output without a value"))?;
            let ((from, bits), (to, _)) = (self.natural(builder, home)?, self.natural(builder, *result)?);
            if from != to {
                self.copy(builder, from, to, bits)?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, builder: &mut ProgramBuilder<'_>, from: RegionId, to: RegionId, bits: u32) -> Lowering<()> {
        self.form(builder, bits)?.copy(builder, from, to)
    }

    fn node(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        node: &Node,
        inputs: &[Home],
        homes: &[Option<Home>],
        wanted: Option<Home>,
    ) -> Lowering<Option<Home>> {
        let home = |walk: &Self, builder: &ProgramBuilder<'_>, handle: &NodeHandle| {
            homes[handle.index()].ok_or_else(|| walk.unsupported(builder, "an operand without a value"))
        };
        match &node.op {
            Op::Input(index) => Ok(Some(inputs[*index as usize])),
            Op::Constant(bits) => match bits.to_u64() {
                Some(value) if bits.width() <= 32 => Ok(Some(Home::Scalar(builder.integer(value as i64)?))),
                _ => Err(self.unsupported(builder, "a wide constant among naturals")),
            },
            Op::Montgomery { modulus, a, b } => {
                let Home::Modulus { region, bits } = home(self, builder, modulus)? else {
                    return Err(self.unsupported(builder, "a modulus that is no parameter"));
                };
                let form = self.form(builder, bits)?;
                let (a, b) = (home(self, builder, a)?, home(self, builder, b)?);
                let (a, b) = (self.as_factor(builder, a, &form)?, self.as_factor(builder, b, &form)?);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                let scratch = match self.scratch.get(&bits) {
                    Some(region) => Some(*region),
                    None => {
                        let scratch = form.montgomery_scratch(builder);
                        self.scratch.extend(scratch.map(|region| (bits, region)));
                        scratch
                    }
                };
                form.montgomery(builder, region, scratch, (a, b), result)?;
                Ok(Some(result_home))
            }
            Op::Integer(value) => {
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                self.constant(builder, value, bits, result)?;
                Ok(Some(result_home))
            }
            Op::NaturalMultiply(a, b) => {
                let operands = [home(self, builder, a)?, home(self, builder, b)?];
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                match self.form(builder, bits)? {
                    Way::Lanes(_) => self.multiply(builder, operands, bits, result)?,
                    words @ Way::Words(_) => self.multiply_words(builder, &words, operands, bits, result)?,
                }
                Ok(Some(result_home))
            }
            Op::NaturalAdd(a, b) | Op::NaturalSubtract(a, b) => {
                let join = if matches!(node.op, Op::NaturalAdd(..)) { Join::Sum } else { Join::Difference };
                let operands = [home(self, builder, a)?, home(self, builder, b)?];
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                self.joined(builder, join, operands, bits, result)?;
                Ok(Some(result_home))
            }
            Op::NaturalSlice { value, start } => {
                let value = home(self, builder, value)?;
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                self.slice(builder, value, *start, bits, result)?;
                Ok(Some(result_home))
            }
            Op::ResidueAdd { modulus, a, b } | Op::ResidueSubtract { modulus, a, b } => {
                let join = if matches!(node.op, Op::ResidueAdd { .. }) { Join::Sum } else { Join::Difference };
                let modulus = home(self, builder, modulus)?;
                let operands = [home(self, builder, a)?, home(self, builder, b)?];
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                self.joined_residues(builder, join, modulus, operands, result)?;
                Ok(Some(result_home))
            }
            Op::Canonical { modulus, value } => {
                let (modulus, value) = (home(self, builder, modulus)?, home(self, builder, value)?);
                let bits = natural_bits(&node.ty).unwrap_or(0);
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                self.canonical(builder, modulus, value, result)?;
                Ok(Some(result_home))
            }
            Op::Element { array, index } => {
                let Home::Table { region, bits, entries } = home(self, builder, array)? else {
                    return Err(self.unsupported(builder, "an element of what is no table of naturals"));
                };
                let Home::Scalar(index) = home(self, builder, index)? else {
                    return Err(self.unsupported(builder, "an index that is no scalar"));
                };
                let form = self.form(builder, bits)?;
                let (result, result_home) = self.destination(builder, wanted, bits, &node.name)?;
                form.scan(builder, region, entries, index, result)?;
                Ok(Some(result_home))
            }
            Op::Loop { count, carried, captured, body } => {
                let Home::Scalar(count) = home(self, builder, count)? else {
                    return Err(self.unsupported(builder, "a loop count that is no scalar"));
                };
                let mut regions = Vec::new();
                for (place, handle) in carried.iter().enumerate() {
                    let (from, bits) = self.natural(builder, home(self, builder, handle)?)?;
                    // The only carried value may live in the kernel's result all along.
                    let (to, carried_home) = match wanted {
                        Some(Home::Natural { region, bits: wanted_bits }) if place == 0 && wanted_bits == bits => {
                            (region, Home::Natural { region, bits })
                        }
                        _ => self.destination(builder, None, bits, "carried")?,
                    };
                    self.copy(builder, from, to, bits)?;
                    regions.push(carried_home);
                }
                let mut inner: Vec<Home> = regions.clone();
                for handle in captured {
                    inner.push(home(self, builder, handle)?);
                }
                self.rounds(builder, count, body, &regions, &inner)?;
                self.loops.push(regions);
                Ok(Some(Home::Loop(self.loops.len() - 1)))
            }
            Op::Result(handle, index) => match home(self, builder, handle)? {
                Home::Loop(number) => Ok(Some(self.loops[number][*index as usize])),
                _ => Err(self.unsupported(builder, "a result of what is no loop")),
            },
            other => Err(self.unsupported(builder, &format!("this operation on naturals ({})", operation_name(other)))),
        }
    }

    /// A factor of a Montgomery product in the product's form.
    fn as_factor(&mut self, builder: &mut ProgramBuilder<'_>, value: Home, form: &Way) -> Lowering<RegionId> {
        match form {
            Way::Lanes(lanes) => self.in_form(builder, value, lanes),
            Way::Words(words) => match self.natural(builder, value)? {
                (region, bits) if bits == words.digits.bits => Ok(region),
                _ => Err(self.unsupported(builder, "a factor of another size in words")),
            },
        }
    }

    /// result = a·b in words of one size.
    fn multiply_words(
        &mut self,
        builder: &mut ProgramBuilder<'_>,
        result_form: &Way,
        operands: [Home; 2],
        bits: u32,
        result: RegionId,
    ) -> Lowering<()> {
        let ((a, a_bits), (b, b_bits)) = (self.natural(builder, operands[0])?, self.natural(builder, operands[1])?);
        let form = self.form(builder, a_bits)?;
        let room = result_form.digits().limbs * result_form.digits().radix_bits >= bits;
        let built = (a_bits == b_bits && room).then(|| form.product(builder, result_form, (a, b), result)).flatten();
        built.unwrap_or_else(|| {
            let what = format!("a product of {a_bits} by {b_bits} bits whose result has another radix or other sizes");
            Err(self.unsupported(builder, &what))
        })
    }

    /// The result's region, or scratch.
    fn destination(&mut self, builder: &mut ProgramBuilder<'_>, wanted: Option<Home>, bits: u32, name: &str) -> Lowering<(RegionId, Home)> {
        match wanted {
            Some(Home::Natural { region, bits: there }) if there == bits => Ok((region, Home::Natural { region, bits })),
            _ => {
                let region = self.new_natural(builder, bits, if name.is_empty() { "natural" } else { name })?;
                Ok((region, Home::Natural { region, bits }))
            }
        }
    }

    fn rounds(&mut self, builder: &mut ProgramBuilder<'_>, count: ValueId, body: &Body, carried: &[Home], inner: &[Home]) -> Lowering<()> {
        // Input 0 is the counter, which no operation on naturals reads.
        let homes: Vec<Home> = std::iter::once(Home::Scalar(count)).chain(inner.iter().copied()).collect();
        // Next values are written over the current ones: with several carried values they wait in scratch until all of them are there.
        let next: Vec<Home> = match carried {
            [only] => vec![*only],
            several => several
                .iter()
                .map(|home| {
                    let (_, bits) = self.natural(builder, *home)?;
                    Ok(self.destination(builder, None, bits, "next")?.1)
                })
                .collect::<Lowering<_>>()?,
        };
        let has_inner = has_limb_loops(body) || self.forms.values().any(|form| form.has_loops(builder));
        builder.counted_loop(Rounds::Value(count), has_inner, &[], |builder, _| {
            self.body(builder, body, &homes, &next)?;
            for (from, to) in next.iter().zip(carried) {
                let ((from, bits), (to, _)) = (self.natural(builder, *from)?, self.natural(builder, *to)?);
                if from != to {
                    self.copy(builder, from, to, bits)?;
                }
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }
}

fn operation_name(op: &Op) -> &'static str {
    match op {
        Op::Map { .. } => "map",
        _ => "lane operation",
    }
}
