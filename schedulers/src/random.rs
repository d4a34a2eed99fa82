//! Fixed sequences that look random: the same on every machine and run.

/// The word after this one (SplitMix64's step and finalizer).
pub fn mix(word: u64) -> u64 {
    let mut mixed = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A sequence of words from a seed.
#[derive(Clone, Debug)]
pub struct Words(pub u64);

impl Iterator for Words {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Some(mix(self.0))
    }
}

impl Words {
    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.next().unwrap_or_default()
    }
}
