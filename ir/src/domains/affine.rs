//! Values as affine maps of input bits over GF(2): what is linear here can be folded into tables, merged with its neighbours, or moved to setup.

use super::bit_level::{Bit, BitLevelDomain, BitValue};
use crate::bits::Bits;
use crate::body::Body;
use crate::evaluate::evaluate;
use crate::types::Type;
use std::sync::Arc;

/// One bit as the parity of input bits, plus a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineRow {
    /// Which input bits, all inputs one after another; of width 0 where there are none.
    pub inputs: Bits,
    /// Added to their sum.
    pub constant: bool,
}

/// A row, or nothing where the bit is not an affine function of the inputs (or not seen to be).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineBit(Option<AffineRow>);

impl Bit for AffineBit {
    fn constant(value: bool) -> Self {
        Self(Some(AffineRow { inputs: Bits::zero(0), constant: value }))
    }

    fn unknown() -> Self {
        Self(None)
    }

    fn as_constant(&self) -> Option<bool> {
        self.0.as_ref().filter(|row| row.inputs.width() == 0).map(|row| row.constant)
    }

    fn xor(&self, other: &Self) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else { return Self(None) };
        let inputs = match (a.inputs.width(), b.inputs.width()) {
            (0, _) => b.inputs.clone(),
            (_, 0) => a.inputs.clone(),
            _ => a.inputs.xor(&b.inputs),
        };
        // A row without inputs has one form, so that constants are seen as such.
        let inputs = if inputs.is_zero() { Bits::zero(0) } else { inputs };
        Self(Some(AffineRow { inputs, constant: a.constant ^ b.constant }))
    }
}

/// An affine map of the inputs of a body to one of its outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineMap {
    /// Width of all inputs one after another, the first lowest.
    pub input_bits: u32,
    /// One row for each output bit; row i has bit j set where output bit i takes input bit j.
    pub rows: Vec<Bits>,
    /// Added to the product.
    pub constant: Bits,
}

impl AffineMap {
    /// The output for these inputs, one after another.
    ///
    /// # Panics
    /// Where `inputs` is not of `input_bits` bits.
    pub fn apply(&self, inputs: &Bits) -> Bits {
        assert_eq!(inputs.width(), self.input_bits, "inputs of another width than the map's");
        inputs.matrix_mul(&self.rows).xor(&self.constant)
    }
}

/// The outputs of a body as affine maps; `None` for an output that is not seen to be one, or that is not bits.
/// Inputs that are not bits take no place among the input bits.
pub fn maps(body: &Body) -> Vec<Option<AffineMap>> {
    let input_bits: u32 = body.inputs.iter().filter_map(|port| port.ty.total_bits()).sum();
    let mut place = 0;
    let inputs: Vec<BitValue<AffineBit>> = body
        .inputs
        .iter()
        .map(|port| match port.ty {
            Type::Bits { width, lanes } => {
                let bits = (place..place + width * lanes).map(|bit| {
                    let mut inputs = Bits::zero(input_bits);
                    inputs.insert(bit, &Bits::from_bool(true));
                    AffineBit(Some(AffineRow { inputs, constant: false }))
                });
                let value = BitValue::Bits(Arc::new(bits.collect()));
                place += width * lanes;
                value
            }
            _ => BitValue::Other,
        })
        .collect();
    let Ok(outcome) = evaluate(&mut BitLevelDomain::default(), body, &inputs);
    outcome.outputs.iter().map(|output| map_of(output, input_bits)).collect()
}

fn map_of(output: &BitValue<AffineBit>, input_bits: u32) -> Option<AffineMap> {
    let rows = output.bits()?.iter().map(|bit| bit.0.as_ref()).collect::<Option<Vec<_>>>()?;
    let mut constant = Bits::zero(rows.len() as u32);
    for (index, row) in rows.iter().enumerate() {
        constant.insert(index as u32, &Bits::from_bool(row.constant));
    }
    Some(AffineMap { input_bits, rows: rows.iter().map(|row| row.inputs.resize(input_bits)).collect(), constant })
}
