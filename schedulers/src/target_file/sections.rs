//! The entries of a target file that are no rows: the machine, its parameters, files, queues, units, hazards, calling convention.

use super::cursor::{Cursor, Token, unknown_name};
use super::intrinsics;
use super::lines::Entry;
use super::mapped::MappedText;
use crate::machine::{Abi, Enforcement, FileId, FrameStep, Hazard, HazardKind, Machine, MemoryKind, Parameter, Queue, RegisterFile, Unit};
use indexmap::IndexMap;
use kgen_ir::diagnostic::Diagnostic;
use kgen_ir::source::Span;
use kgen_ir::types::ByteOrder;

/// The words that entries start with.
const ENTRY_WORDS: [&str; 11] =
    ["machine", "parameter", "variant", "file", "queue", "unit", "hazard", "class", "instr", "abi", "intrinsics"];

const HAZARDS: [(&str, HazardKind); 15] = [
    ("unit_per_cycle", HazardKind::UnitPerCycle),
    ("unit_busy", HazardKind::UnitBusy),
    ("latency", HazardKind::Latency),
    ("result_port", HazardKind::ResultPort),
    ("read_port", HazardKind::ReadPort),
    ("cross_path", HazardKind::CrossPath),
    ("bundle_shape", HazardKind::BundleShape),
    ("memory_port", HazardKind::MemoryPort),
    ("bank", HazardKind::Bank),
    ("tied", HazardKind::Tied),
    ("early_clobber", HazardKind::EarlyClobber),
    ("tuple", HazardKind::Tuple),
    ("state_required", HazardKind::StateRequired),
    ("branch_delay", HazardKind::BranchDelay),
    ("interrupts", HazardKind::Interrupts),
];

/// The attributes that rows share under a name.
pub type Classes = IndexMap<String, MappedText>;

/// Name and summary of the machine and its variants.
pub fn names(text: &str) -> Vec<(String, String)> {
    let mut ignored = Vec::new();
    let mut list = Vec::new();
    // Templates cannot make machines, so only the lines that can matter are looked at: listing targets must not cost reading them.
    for line in text.lines().filter(|line| line.starts_with("machine ") || line.starts_with("variant ")) {
        let mut mapped = MappedText::default();
        mapped.push_verbatim(line, 0);
        let mut cursor = Cursor::new(&mapped, &mut ignored);
        cursor.next();
        if let (Some(name), Some(summary)) = (cursor.word("a name"), cursor.text("a summary")) {
            list.push((name, summary));
        }
    }
    list
}

/// Reads everything but rows. `None` where there is no machine to speak of.
pub fn machine(entries: &[Entry], name: Option<&str>, errors: &mut Vec<Diagnostic>) -> Option<(Machine, Classes)> {
    let mut machine = head(entries, errors)?;
    parameters(entries, name, &mut machine, errors);
    let mut classes = Classes::new();
    for entry in entries {
        let mut cursor = Cursor::new(&entry.line, errors);
        match cursor.next() {
            Some(Token::Word(word)) => match word.as_str() {
                "file" => {
                    if let Some(file) = file(&mut cursor, &machine) {
                        unique(&mut cursor, "register file", &file.name, machine.register_files.iter().map(|file| &file.name));
                        machine.register_files.push(file);
                    }
                }
                "queue" => {
                    if let Some(queue) = queue(&mut cursor, &machine) {
                        unique(&mut cursor, "queue", &queue.name, machine.queues.iter().map(|queue| &queue.name));
                        machine.queues.push(queue);
                    }
                }
                "unit" => {
                    if let Some(unit) = unit(&mut cursor, &machine) {
                        unique(&mut cursor, "unit", &unit.name, machine.units.iter().map(|unit| &unit.name));
                        machine.units.push(unit);
                    }
                }
                "hazard" => {
                    if let Some(hazard) = hazard(&mut cursor, &machine) {
                        machine.hazards.push(hazard);
                    }
                }
                "class" => {
                    if let Some(name) = cursor.word("a class's name") {
                        unique(&mut cursor, "class", &name, classes.keys());
                        classes.insert(name, entry.line.clone());
                    }
                }
                "machine" | "parameter" | "variant" | "instr" | "abi" | "intrinsics" => {}
                other => cursor.unknown("entry", other, &ENTRY_WORDS),
            },
            _ => {
                let span = entry.line.whole();
                errors.push(Diagnostic::error("target-syntax", span, "an entry starts with a word").help(ENTRY_WORDS.join(", ")));
            }
        }
    }
    for entry in entries.iter().filter(|entry| starts_with(entry, "unit")) {
        check_queue(entry, &machine, errors);
    }
    for entry in entries.iter().filter(|entry| starts_with(entry, "abi")) {
        machine.abi = abi(entry, &machine, errors);
    }
    for entry in entries.iter().filter(|entry| starts_with(entry, "intrinsics")) {
        machine.intrinsics = intrinsics::section(entry, errors);
    }
    Some((machine, classes))
}

fn check_queue(entry: &Entry, machine: &Machine, errors: &mut Vec<Diagnostic>) {
    let mut cursor = Cursor::new(&entry.line, errors);
    while let Some(token) = cursor.next() {
        if token == Token::Word("queue".to_owned())
            && let Some(name) = cursor.word("a queue")
            && !machine.queues.iter().any(|queue| queue.name == name)
        {
            let known: Vec<&str> = machine.queues.iter().map(|queue| queue.name.as_str()).collect();
            cursor.unknown("queue", &name, &known);
        }
    }
}

fn starts_with(entry: &Entry, word: &str) -> bool {
    entry.line.text.strip_prefix(word).is_some_and(|rest| rest.starts_with(' '))
}

fn unique<'n>(cursor: &mut Cursor<'_>, what: &str, name: &str, mut known: impl Iterator<Item = &'n String>) {
    if known.any(|known| known == name) {
        let span = cursor.last_span();
        cursor.errors.push(Diagnostic::error("duplicate-name", span, format!("there are two {what}s `{name}`")));
    }
}

fn head(entries: &[Entry], errors: &mut Vec<Diagnostic>) -> Option<Machine> {
    let mut heads = entries.iter().filter(|entry| starts_with(entry, "machine"));
    let Some(entry) = heads.next() else {
        let span = entries.first().map_or(Span::default(), |entry| entry.line.whole());
        errors
            .push(Diagnostic::error("no-machine", span, "the file describes no machine").help("start it with `machine NAME \"summary\"`"));
        return None;
    };
    for other in heads {
        let error = Diagnostic::error("duplicate-name", other.line.whole(), "a file describes one machine; others are its variants");
        errors.push(error.label(entry.line.whole(), "the first one"));
    }
    let mut cursor = Cursor::new(&entry.line, errors);
    cursor.next();
    let name = cursor.word("the machine's name")?;
    let summary = cursor.text("the machine's summary in quotes")?;
    let mut machine = Machine {
        name,
        summary,
        byte_order: ByteOrder::Little,
        memory: MemoryKind::Cached,
        instruction_cache_bytes: None,
        instruction_bytes: 4,
        word_bits: 32,
        comment: "#".to_owned(),
        parallel: None,
        misalign_boundary_bytes: None,
        register_files: Vec::new(),
        queues: Vec::new(),
        units: Vec::new(),
        hazards: Vec::new(),
        rows: Vec::new(),
        parameters: Vec::new(),
        abi: None,
        intrinsics: None,
        forms: Vec::new(),
        guesses: Vec::new(),
    };
    for child in &entry.children {
        setting(&mut Cursor::new(&child.line, errors), &mut machine);
    }
    Some(machine)
}

fn setting(cursor: &mut Cursor<'_>, machine: &mut Machine) -> Option<()> {
    const SETTINGS: [&str; 9] =
        ["order", "memory", "word", "instruction_bytes", "instruction_cache", "misalign_boundary", "comment", "parallel", "forms"];
    while !cursor.at_end() {
        let word = cursor.word("a setting")?;
        match word.as_str() {
            "order" => {
                machine.byte_order = *choice(cursor, "byte order", &[("big", ByteOrder::Big), ("little", ByteOrder::Little)])?;
            }
            "memory" => {
                let kinds = [("cached", MemoryKind::Cached), ("banked", MemoryKind::Banked), ("flat", MemoryKind::Flat)];
                machine.memory = *choice(cursor, "kind of memory", &kinds)?;
            }
            "word" => {
                let span = cursor.span();
                machine.word_bits = cursor.small("the bits of an address")?;
                if !(8..=64).contains(&machine.word_bits) {
                    cursor.errors.push(Diagnostic::error("target-number", span, "an address has 8 to 64 bits"));
                }
            }
            "instruction_bytes" => machine.instruction_bytes = cursor.small("bytes of an instruction")?,
            "instruction_cache" => machine.instruction_cache_bytes = Some(cursor.small("bytes of the instruction cache")?),
            "misalign_boundary" => machine.misalign_boundary_bytes = Some(cursor.small("bytes")?),
            "comment" => machine.comment = cursor.text("what starts a comment")?,
            "parallel" => machine.parallel = Some(cursor.text("the mark of an instruction in the same bundle")?),
            "forms" => loop {
                machine.forms.push(cursor.word("a form")?);
                if !cursor.take(&Token::Comma) {
                    break;
                }
            },
            other => {
                cursor.unknown("setting", other, &SETTINGS);
                return None;
            }
        }
    }
    Some(())
}

/// A word out of a closed list.
pub fn choice<'c, T>(cursor: &mut Cursor<'_>, what: &str, choices: &'c [(&str, T)]) -> Option<&'c T> {
    let word = cursor.word(what)?;
    let found = choices.iter().find(|(name, _)| *name == word);
    if found.is_none() {
        let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        cursor.unknown(what, &word, &known);
    }
    found.map(|(_, value)| value)
}

fn parameters(entries: &[Entry], name: Option<&str>, machine: &mut Machine, errors: &mut Vec<Diagnostic>) {
    for entry in entries.iter().filter(|entry| starts_with(entry, "parameter")) {
        let mut cursor = Cursor::new(&entry.line, errors);
        if let Some((parameter, guess)) = parameter(&mut cursor) {
            if machine.parameters.iter().any(|known| known.name == parameter.name) {
                let message = format!("there are two parameters `{}`", parameter.name);
                cursor.errors.push(Diagnostic::error("duplicate-name", entry.line.whole(), message));
            }
            if parameter.cite.is_empty() && !guess {
                let message = format!("parameter `{}` has no source", parameter.name);
                cursor.errors.push(Diagnostic::error("no-source", entry.line.whole(), message).help("add `cite \"…\"` or `guess`"));
            }
            if guess {
                machine.guesses.push(parameter.name.clone());
            }
            machine.parameters.push(parameter);
        }
    }
    let base = machine.name.clone();
    let mut known = vec![base.clone()];
    let mut found = name.is_none_or(|name| name == base);
    for entry in entries.iter().filter(|entry| starts_with(entry, "variant")) {
        let mut cursor = Cursor::new(&entry.line, errors);
        cursor.next();
        let (Some(variant), Some(summary)) = (cursor.word("the variant's name"), cursor.text("the variant's summary")) else { continue };
        let chosen = name == Some(variant.as_str());
        if chosen {
            found = true;
            machine.name.clone_from(&variant);
            machine.summary = summary;
        }
        for child in &entry.children {
            let mut cursor = Cursor::new(&child.line, errors);
            if let Some((override_, _)) = parameter(&mut cursor) {
                match machine.parameters.iter_mut().find(|parameter| parameter.name == override_.name) {
                    Some(parameter) if chosen => {
                        parameter.value = override_.value;
                        if !override_.cite.is_empty() {
                            parameter.cite = override_.cite;
                        }
                    }
                    Some(_) => {}
                    None => {
                        let names: Vec<&str> = machine.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                        errors.push(unknown_name(child.line.whole(), "parameter", &override_.name, &names));
                    }
                }
            }
        }
        known.push(variant);
    }
    if let Some(name) = name.filter(|_| !found) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        errors.push(unknown_name(Span::default(), "machine or variant", name, &known));
    }
}

fn parameter(cursor: &mut Cursor<'_>) -> Option<(Parameter, bool)> {
    if !cursor.take_word("parameter") {
        return cursor.expected("`parameter`");
    }
    let name = cursor.word("the parameter's name")?;
    let value = match cursor.next() {
        Some(Token::Number(number)) => number.to_string(),
        Some(Token::Word(word)) => word,
        _ => return cursor.expected("a number or a word as the parameter's value"),
    };
    let mut parameter = Parameter { name, value, meaning: String::new(), cite: String::new() };
    let mut guess = false;
    if let Some(Token::Text(_)) = cursor.peek(0) {
        parameter.meaning = cursor.text("the meaning")?;
    }
    while !cursor.at_end() {
        match cursor.word("`guess` or `cite`")?.as_str() {
            "guess" => guess = true,
            "cite" => parameter.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of parameters", other, &["guess", "cite"]);
                return None;
            }
        }
    }
    Some((parameter, guess))
}

/// A number, or the name of a parameter that holds one.
pub fn figure(cursor: &mut Cursor<'_>, machine: &Machine, what: &str) -> Option<u32> {
    match cursor.peek(0) {
        Some(Token::Word(_)) => {
            let word = cursor.word(what)?;
            match machine.parameters.iter().find(|parameter| parameter.name == word) {
                Some(parameter) => match parameter.value.parse() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        let message = format!("{what}: parameter `{word}` is `{}`, not a number", parameter.value);
                        let span = cursor.last_span();
                        cursor.errors.push(Diagnostic::error("target-number", span, message));
                        None
                    }
                },
                None => {
                    let known: Vec<&str> = machine.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
                    cursor.unknown("parameter", &word, &known);
                    None
                }
            }
        }
        _ => cursor.small(what),
    }
}

fn file(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<RegisterFile> {
    const ATTRIBUTES: [&str; 18] = [
        "side",
        "width",
        "count",
        "scalar",
        "sticky",
        "text",
        "reads",
        "reserved",
        "saved",
        "zero",
        "inline_reserved",
        "inline_name",
        "inline_class",
        "inline_base_class",
        "tuple",
        "renames",
        "branch_delay",
        "cite",
    ];
    let name = cursor.word("the register file's name")?;
    let name_span = cursor.last_span();
    let mut file = RegisterFile {
        text: format!("{name}{{n}}"),
        name,
        width_bits: 0,
        count: Some(1),
        scalar: false,
        sticky: false,
        spellings: Vec::new(),
        reserved: Vec::new(),
        saved: Vec::new(),
        zero_in_base: None,
        inline_reserved: Vec::new(),
        inline_name: None,
        inline_class: None,
        inline_base_class: None,
        tuples: Vec::new(),
        renames: None,
        branch_delay_cycles: 0,
        side: None,
        cite: String::new(),
    };
    while !cursor.at_end() {
        match cursor.word("an attribute of register files")?.as_str() {
            "width" => file.width_bits = cursor.small("bits")?,
            "count" if cursor.take_word("unlimited") => file.count = None,
            "count" => file.count = Some(cursor.small("how many registers, or `unlimited`")?),
            "scalar" => file.scalar = true,
            "sticky" => file.sticky = true,
            "text" => file.text = cursor.text("how a register is written")?,
            "reads" => file.spellings = cursor.texts("another spelling")?,
            "reserved" => file.reserved = cursor.numbers("register numbers")?,
            "saved" => file.saved = cursor.numbers("register numbers")?,
            "zero" => file.zero_in_base = Some(cursor.small("the register that means zero")?),
            "inline_reserved" => file.inline_reserved = cursor.numbers("register numbers")?,
            "inline_name" => file.inline_name = Some(cursor.text("how Rust's inline assembly names a register")?),
            "inline_class" => file.inline_class = Some(cursor.text("a class of Rust's inline assembly")?),
            "inline_base_class" => file.inline_base_class = Some(cursor.text("a class of Rust's inline assembly")?),
            "tuple" => file.tuples.push((cursor.small("the tuple's length")?, cursor.small("its alignment")?)),
            "renames" => file.renames = Some(figure(cursor, machine, "renames")?),
            "branch_delay" => file.branch_delay_cycles = figure(cursor, machine, "cycles to a branch")?,
            "side" => file.side = Some(side(cursor)?),
            "cite" => file.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of register files", other, &ATTRIBUTES);
                return None;
            }
        }
    }
    if file.width_bits == 0 || file.width_bits > 512 || (file.width_bits > 64 && !file.scalar && !file.width_bits.is_multiple_of(8)) {
        let message = format!("registers of `{}` have {} bits", file.name, file.width_bits);
        cursor.errors.push(Diagnostic::error("register-width", name_span, message).help("1 to 512; whole bytes past 64"));
    }
    if let Some(count) = file.count {
        let lists = [&file.reserved, &file.saved, &file.inline_reserved];
        if let Some(number) = lists.into_iter().flatten().chain(&file.zero_in_base).find(|number| **number >= count) {
            let message = format!("register {number} of `{}` does not exist", file.name);
            cursor.errors.push(Diagnostic::error("register-number", name_span, message).at(format!("{count} registers")));
        }
    }
    Some(file)
}

/// A side of a clustered machine.
fn side(cursor: &mut Cursor<'_>) -> Option<u8> {
    let span = cursor.span();
    let number = cursor.small("a side")?;
    let side = u8::try_from(number).ok();
    if side.is_none() {
        cursor.errors.push(Diagnostic::error("target-number", span, format!("there is no side {number}")));
    }
    side
}

fn queue(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<Queue> {
    let name = cursor.word("the queue's name")?;
    let mut queue = Queue { name, entries: 1, dispatch: 1, issue: 1, window: 1, out_of_order: false, cite: String::new() };
    while !cursor.at_end() {
        match cursor.word("an attribute of queues")?.as_str() {
            "entries" => queue.entries = figure(cursor, machine, "entries")?,
            "dispatch" => queue.dispatch = figure(cursor, machine, "instructions accepted per cycle")?,
            "issue" => queue.issue = figure(cursor, machine, "instructions issued per cycle")?,
            "window" => queue.window = figure(cursor, machine, "entries that may issue")?,
            "out_of_order" => queue.out_of_order = figure(cursor, machine, "0 or 1")? != 0,
            "cite" => queue.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of queues", other, &["entries", "dispatch", "issue", "window", "out_of_order", "cite"]);
                return None;
            }
        }
    }
    Some(queue)
}

fn unit(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<Unit> {
    const ATTRIBUTES: [&str; 9] = ["queue", "copies", "stations", "finish", "dispatch", "in_flight", "oldest", "side", "cite"];
    let name = cursor.word("the unit's name")?;
    let mut unit = Unit {
        name,
        copies: 1,
        queue: None,
        stations: 1,
        finish_cycles: 0,
        dispatch: None,
        in_flight: None,
        retires_oldest: false,
        side: None,
        cite: String::new(),
    };
    while !cursor.at_end() {
        match cursor.word("an attribute of units")?.as_str() {
            "queue" => unit.queue = Some(cursor.word("a queue")?),
            "copies" => unit.copies = figure(cursor, machine, "copies")?,
            "stations" => unit.stations = figure(cursor, machine, "reservation stations")?,
            "finish" => unit.finish_cycles = figure(cursor, machine, "finish cycles")?,
            "dispatch" => unit.dispatch = Some(figure(cursor, machine, "instructions dispatched per cycle")?),
            "in_flight" => unit.in_flight = Some(figure(cursor, machine, "instructions in flight")?),
            "oldest" => unit.retires_oldest = figure(cursor, machine, "0 or 1")? != 0,
            "side" => unit.side = Some(side(cursor)?),
            "cite" => unit.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of units", other, &ATTRIBUTES);
                return None;
            }
        }
    }
    Some(unit)
}

fn hazard(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<Hazard> {
    let kind = *choice(cursor, "hazard", &HAZARDS)?;
    let enforcement = *choice(cursor, "enforcement", &[("must", Enforcement::Must), ("cost", Enforcement::Cost)])?;
    let mut hazard = Hazard { kind, enforcement, limit: None, cite: String::new() };
    while !cursor.at_end() {
        match cursor.word("`limit` or `cite`")?.as_str() {
            "limit" => hazard.limit = Some(figure(cursor, machine, "the hazard's number")?),
            "cite" => hazard.cite = cursor.text("a source in quotes")?,
            other => {
                cursor.unknown("attribute of hazards", other, &["limit", "cite"]);
                return None;
            }
        }
    }
    if machine.hazard(kind).is_some() {
        let span = cursor.last_span();
        cursor.errors.push(Diagnostic::error("duplicate-name", span, "this hazard is there already"));
    }
    Some(hazard)
}

/// The register file named next.
pub fn file_id(cursor: &mut Cursor<'_>, machine: &Machine) -> Option<FileId> {
    let name = cursor.word("a register file")?;
    let found = machine.file_named(&name);
    if found.is_none() {
        let known: Vec<&str> = machine.register_files.iter().map(|file| file.name.as_str()).collect();
        cursor.unknown("register file", &name, &known);
    }
    found
}

fn abi(entry: &Entry, machine: &Machine, errors: &mut Vec<Diagnostic>) -> Option<Abi> {
    let mut abi = None;
    let mut cursor = Cursor::new(&entry.line, errors);
    cursor.next();
    if cursor.take_word("arguments") {
        let integer_file = file_id(&mut cursor, machine)?;
        let arguments = cursor.numbers("argument registers")?;
        let mut read = Abi {
            integer_file,
            arguments,
            stack_pointer: 0,
            stack_align_bytes: 1,
            frame_header_bytes: 0,
            prologue: Vec::new(),
            epilogue: Vec::new(),
            directives: Vec::new(),
            cite: String::new(),
        };
        while !cursor.at_end() {
            match cursor.word("an attribute of calling conventions")?.as_str() {
                "stack" => read.stack_pointer = cursor.small("the stack pointer's number")?,
                "align" => read.stack_align_bytes = cursor.small("bytes")?,
                "header" => read.frame_header_bytes = cursor.small("bytes")?,
                "cite" => read.cite = cursor.text("a source in quotes")?,
                other => {
                    cursor.unknown("attribute of calling conventions", other, &["stack", "align", "header", "cite"]);
                    return None;
                }
            }
        }
        abi = Some(read);
    } else {
        cursor.expected::<()>("`arguments`");
    }
    let abi_steps = abi.as_mut()?;
    for child in &entry.children {
        abi_line(&mut Cursor::new(&child.line, errors), machine, abi_steps);
    }
    abi
}

fn abi_line(cursor: &mut Cursor<'_>, machine: &Machine, abi: &mut Abi) -> Option<()> {
    let word = cursor.word("`entry`, `exit` or `directive`")?;
    if word == "directive" {
        abi.directives.extend(cursor.texts("a directive")?);
        return Some(());
    }
    let steps = match word.as_str() {
        "entry" => &mut abi.prologue,
        "exit" => &mut abi.epilogue,
        other => {
            cursor.unknown("part of calling conventions", other, &["entry", "exit", "directive"]);
            return None;
        }
    };
    match cursor.word("`once`, `always` or `saved`")?.as_str() {
        "once" => steps.extend(cursor.texts("a line")?.into_iter().map(FrameStep::Once)),
        "always" => steps.extend(cursor.texts("a line")?.into_iter().map(FrameStep::Always)),
        "saved" => steps.push(FrameStep::EachSaved { file: file_id(cursor, machine)?, lines: cursor.texts("a line")? }),
        other => cursor.unknown("kind of step", other, &["once", "always", "saved"]),
    }
    Some(())
}
