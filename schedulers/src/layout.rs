//! Values of the language as bytes in a layout, and back: what replay, tests and headers agree on.

use crate::program::Layout;
use kgen_ir::types::ByteOrder;
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Zero};

/// An integer's limbs in the canonical digits of the layout: 0 … 2^r−1, or balanced −2^(r−1) … 2^(r−1)−1 where limbs are signed. The topmost limb takes what
/// is left. `None` where that does not fit the topmost limb's limits, or the layout is not of limbs.
pub fn canonical_limbs(layout: &Layout, value: &BigUint) -> Option<Vec<i64>> {
    let Layout::Limbs { radix_bits, signed, limb_order, limb_limits, .. } = layout else { return None };
    let radix = BigInt::one() << *radix_bits;
    let half = &radix >> 1u32;
    let mut rest = BigInt::from(value.clone());
    let mut limbs = Vec::with_capacity(limb_order.len());
    for (index, (low, high)) in limb_limits.iter().enumerate() {
        if index + 1 == limb_order.len() {
            let last = i64::try_from(&rest).ok()?;
            return (*low <= last && last <= *high).then(|| {
                limbs.push(last);
                limbs
            });
        }
        let mut digit = &rest & (&radix - 1);
        if *signed && digit >= half {
            digit -= &radix;
        }
        rest = (rest - &digit) >> *radix_bits;
        limbs.push(i64::try_from(&digit).ok()?);
    }
    rest.is_zero().then_some(limbs)
}

/// Moves units between neighbouring limbs where their limits allow it, by a source of random words: another representation of the same integer, such as
/// functions leave. Layouts without slack come back unchanged.
pub fn perturbed_limbs(layout: &Layout, limbs: &[i64], mut random: impl FnMut() -> u64) -> Vec<i64> {
    let Layout::Limbs { radix_bits, limb_limits, .. } = layout else { return limbs.to_vec() };
    let mut limbs = limbs.to_vec();
    let unit = 1i64 << radix_bits;
    for index in 0..limbs.len().saturating_sub(1) {
        let moves = if random() & 1 == 0 { unit } else { -unit };
        let (here, above) = (limbs[index] + moves, limbs[index + 1] - moves.signum());
        let fits = |value: i64, limits: (i64, i64)| limits.0 <= value && value <= limits.1;
        if fits(here, limb_limits[index]) && fits(above, limb_limits[index + 1]) && random() & 1 == 0 {
            limbs[index] = here;
            limbs[index + 1] = above;
        }
    }
    limbs
}

/// Bytes of limbs in the layout.
pub fn limbs_to_bytes(layout: &Layout, limbs: &[i64], order: ByteOrder) -> Vec<u8> {
    let Layout::Limbs { limb_bytes, limb_order, bytes, .. } = layout else { return Vec::new() };
    let mut image = vec![0; *bytes as usize];
    let size = *limb_bytes as usize;
    for (limb, position) in limbs.iter().zip(limb_order) {
        let start = *position as usize * size;
        let place = &mut image[start..start + size];
        match order {
            ByteOrder::Big => place.copy_from_slice(&limb.to_be_bytes()[8 - size..]),
            ByteOrder::Little => place.copy_from_slice(&limb.to_le_bytes()[..size]),
        }
    }
    image
}

/// The integer that bytes in a layout of limbs stand for; negative where signed limbs sum to a negative number.
pub fn bytes_to_integer(layout: &Layout, image: &[u8], order: ByteOrder) -> Option<BigInt> {
    let Layout::Limbs { radix_bits, limb_bytes, signed, limb_order, .. } = layout else { return None };
    let size = *limb_bytes as usize;
    let mut sum = BigInt::zero();
    for (index, position) in limb_order.iter().enumerate() {
        let place = image.get(*position as usize * size..(*position as usize + 1) * size)?;
        let limb = match (order, signed) {
            (ByteOrder::Big, true) => BigInt::from_signed_bytes_be(place),
            (ByteOrder::Little, true) => BigInt::from_signed_bytes_le(place),
            (ByteOrder::Big, false) => BigInt::from_bytes_be(Sign::Plus, place),
            (ByteOrder::Little, false) => BigInt::from_bytes_le(Sign::Plus, place),
        };
        sum += limb << (*radix_bits as usize * index);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(signed: bool) -> Layout {
        let limits = if signed { (-8200, 8200) } else { (0, 16400) };
        Layout::Limbs {
            radix_bits: 14,
            limb_bytes: 2,
            signed,
            limb_order: (0..37).rev().collect(),
            bytes: 80,
            limb_limits: vec![limits; 37],
        }
    }

    proptest! {
        #[test]
        fn bytes_give_back_the_integer(bytes in proptest::collection::vec(any::<u8>(), 64), signed: bool, big: bool, words in proptest::collection::vec(any::<u64>(), 80)) {
            let value = BigUint::from_bytes_be(&bytes);
            let layout = layout(signed);
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            let limbs = canonical_limbs(&layout, &value).unwrap();
            let mut words = words.into_iter().cycle();
            let other = perturbed_limbs(&layout, &limbs, || words.next().unwrap());
            for limbs in [limbs, other] {
                let image = limbs_to_bytes(&layout, &limbs, order);
                prop_assert_eq!(bytes_to_integer(&layout, &image, order), Some(BigInt::from(value.clone())));
            }
        }
    }

    #[test]
    fn an_integer_past_the_last_limb_is_refused() {
        assert_eq!(canonical_limbs(&layout(false), &(BigUint::one() << 600u32)), None);
    }
}
