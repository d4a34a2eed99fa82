//! Variables of a program printed as a language with variables: which values need one, and what they are called.

use kgen_schedulers::machine::Machine;
use kgen_schedulers::program::{Program, ValueId};
use proc_macro2::{Ident, Span};
use std::collections::{BTreeMap, BTreeSet};

/// Names in use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    /// The text of each value that has one.
    pub places: BTreeMap<ValueId, String>,
    /// The name of each region; empty for parameters.
    pub regions: Vec<String>,
    /// In forms that hold pointers as distances: the text of the region that each pointer points into.
    pub bases: BTreeMap<ValueId, String>,
    /// The variable that holds a pointer's distance from the start of its region; none where that is zero.
    pub distances: BTreeMap<ValueId, String>,
}

impl Names {
    /// No names yet but the words of the rows' own texts, which a variable would hide or be hidden by.
    pub fn new<'a>(templates: impl Iterator<Item = &'a str>) -> Self {
        let word = |character: char| !(character.is_alphanumeric() || character == '_');
        // `{name}` and `{name.view}` are operands' places, which no text keeps.
        let place = |inside: &str| inside.chars().all(|character| character == '.' || !word(character));
        let outside = |template: &'a str| {
            template.split('{').map(move |part| part.split_once('}').map_or(part, |(inside, rest)| if place(inside) { rest } else { part }))
        };
        let taken = templates.flat_map(outside).flat_map(|part| part.split(word)).map(str::to_owned).collect();
        Self { taken, ..Self::default() }
    }

    /// A name like the wanted one that nothing else has.
    pub fn claim(&mut self, wanted: &str) -> Ident {
        let mut plain: String = wanted.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect();
        if plain.starts_with(|first: char| first.is_ascii_digit()) || plain.trim_matches('_').is_empty() {
            plain.insert(0, 'v');
        }
        let mut name = plain.clone();
        let mut count = 0;
        while syn::parse_str::<Ident>(&name).is_err() || self.taken.contains(&name) {
            name = format!("{plain}_v{count}");
            count += 1;
        }
        self.taken.insert(name.clone());
        Ident::new(&name, Span::call_site())
    }
}

impl Names {
    /// The text that stands for the value itself in an assignment: of a pointer its distance.
    pub fn value_text(&self, value: ValueId) -> Option<&str> {
        match (self.bases.get(&value), self.distances.get(&value)) {
            (_, Some(distance)) => Some(distance),
            (Some(_), None) => Some("0"),
            (None, None) => self.places.get(&value).map(String::as_str),
        }
    }
}

/// Values that reach memory or a branch.
pub(crate) fn needed_values(machine: &Machine, program: &Program) -> BTreeSet<ValueId> {
    let mut needed = BTreeSet::new();
    loop {
        let before = needed.len();
        for instruction in program.blocks.iter().rev().flat_map(|block| block.instructions.iter().rev()) {
            let effect = machine[instruction.row].control.is_some() || instruction.memory.as_ref().is_some_and(|access| access.write);
            if effect || instruction.writes(machine).any(|(_, value)| needed.contains(&value)) {
                needed.extend(instruction.reads(machine).map(|(_, value)| value));
            }
        }
        for carried in program.loops.iter().rev().flat_map(|lap| &lap.carried) {
            if needed.contains(&carried.current) || needed.contains(&carried.last) {
                needed.extend([carried.current, carried.initial, carried.next]);
            }
        }
        if needed.len() == before {
            return needed;
        }
    }
}
