//! Counting what an operation does, so that a list of its calls can be held against it.

use std::collections::BTreeMap;

/// A function, and the count that its loop was given, if it has one.
pub type Called = (&'static str, Option<u32>);

/// How often each function was called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    counts: BTreeMap<Called, u64>,
}

impl Calls {
    /// Counts one call.
    pub fn record(&mut self, function: &'static str, rounds: Option<u32>) {
        *self.counts.entry((function, rounds)).or_default() += 1;
    }

    /// What was counted since the last time, which starts anew.
    pub fn take(&mut self) -> BTreeMap<Called, u64> {
        std::mem::take(&mut self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::Calls;

    #[test]
    fn calls_are_counted_by_function_and_rounds() {
        let mut calls = Calls::default();
        calls.record("f", None);
        calls.record("f", Some(4));
        calls.record("f", Some(4));
        assert_eq!(calls.take().into_iter().collect::<Vec<_>>(), [(("f", None), 1), (("f", Some(4)), 2)]);
        assert!(calls.take().is_empty());
    }
}
