//! APT's source entries, and the entry for backports that is derived from one that is there.
//!
//! Nobody's mirror is written in this repository: the entry for `CODENAME-backports` is the
//! machine's own entry for `CODENAME` with another suite, so that its mirror, its proxy rules and
//! its key stay what the machine's owner chose. Both formats of sources.list(5) are read: deb822
//! stanzas (`*.sources`) and lines (`*.list`).

/// The text of a file of source entries, in one of APT's two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Stanzas of `Name: value` (`*.sources`).
    Deb822,
    /// A line an entry (`*.list`).
    OneLine,
}

impl Format {
    /// The ending of the names of files in this format; APT ignores files with any other.
    pub fn file_ending(self) -> &'static str {
        match self {
            Format::Deb822 => "sources",
            Format::OneLine => "list",
        }
    }
}

/// Whether some active entry for binary packages in `text` names `suite`.
pub fn has_suite(text: &str, format: Format, suite: &str) -> bool {
    match format {
        Format::Deb822 => stanzas(text).iter().any(|stanza| stanza.offers(suite)),
        Format::OneLine => text.lines().filter_map(OneLine::parse).any(|entry| entry.suite == suite),
    }
}

/// The first active entry for `suite` in `text`, rewritten to name `other` instead and the
/// component `main` alone. `None` when there is no such entry.
pub fn entry_for_other_suite(text: &str, format: Format, suite: &str, other: &str) -> Option<String> {
    match format {
        Format::Deb822 => {
            let stanzas = stanzas(text);
            let stanza = stanzas.iter().find(|stanza| stanza.offers(suite))?;
            Some(stanza.with_suite(other))
        }
        Format::OneLine => {
            let entry = text.lines().filter_map(OneLine::parse).find(|e| e.suite == suite)?;
            Some(entry.with_suite(other))
        }
    }
}

/// A deb822 stanza: its fields in order, each with its value's lines as they stand.
struct Stanza<'a> {
    fields: Vec<(&'a str, Vec<&'a str>)>,
}

/// Splits at empty lines; lines that begin with `#` are comments, those that begin with a blank
/// continue the field above.
fn stanzas(text: &str) -> Vec<Stanza<'_>> {
    let mut stanzas = vec![Stanza { fields: Vec::new() }];
    for line in text.lines() {
        let last = stanzas.len() - 1;
        if line.trim().is_empty() {
            stanzas.push(Stanza { fields: Vec::new() });
        } else if line.starts_with('#') {
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = stanzas[last].fields.last_mut() {
                value.push(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            stanzas[last].fields.push((name.trim(), vec![value]));
        }
    }
    stanzas.retain(|stanza| !stanza.fields.is_empty());
    stanzas
}

impl Stanza<'_> {
    fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        fields.flat_map(|(_, lines)| lines).flat_map(|line| line.split_whitespace())
    }

    fn offers(&self, suite: &str) -> bool {
        let disabled = self.words("Enabled").any(|word| word.eq_ignore_ascii_case("no"));
        !disabled && self.words("Types").any(|word| word == "deb") && self.words("Suites").any(|word| word == suite)
    }

    fn with_suite(&self, suite: &str) -> String {
        let mut text = String::new();
        for (name, lines) in &self.fields {
            let replaced = match name.to_ascii_lowercase().as_str() {
                "types" => Some("deb"),
                "suites" => Some(suite),
                "components" => Some("main"),
                _ => None,
            };
            text.push_str(name);
            text.push(':');
            match replaced {
                Some(value) => text.push_str(&format!(" {value}\n")),
                None => lines.iter().for_each(|line| text.push_str(&format!("{line}\n"))),
            }
        }
        text
    }
}

/// An entry `deb [options] URI suite components…`.
struct OneLine<'a> {
    options: Option<&'a str>,
    uri: &'a str,
    suite: &'a str,
}

impl<'a> OneLine<'a> {
    /// `None` for comments, sources of source packages, and what is no entry.
    fn parse(line: &'a str) -> Option<OneLine<'a>> {
        let rest = line.trim().strip_prefix("deb")?;
        if !rest.starts_with([' ', '\t']) {
            return None;
        }
        let rest = rest.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(inside) => {
                let (options, rest) = inside.split_once(']')?;
                (Some(options.trim()), rest)
            }
            None => (None, rest),
        };
        let mut words = rest.split_whitespace();
        Some(OneLine { options, uri: words.next()?, suite: words.next()? })
    }

    fn with_suite(&self, suite: &str) -> String {
        let options = self.options.map(|options| format!("[{options}] ")).unwrap_or_default();
        format!("deb {options}{} {suite} main\n", self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "\
# a comment
Types: deb deb-src
URIs: http://mirror.test/security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://old.test/debian
Suites: bookworm
Components: main

Types: deb deb-src
# the mirror in the house
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc=
 -----END PGP PUBLIC KEY BLOCK-----
";

    #[test]
    fn a_stanza_keeps_its_mirror_and_key() {
        let entry = entry_for_other_suite(STANZAS, Format::Deb822, "bookworm", "bookworm-backports");
        let expected = "\
Types: deb
URIs: http://mirror.test/debian
Suites: bookworm-backports
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc=
 -----END PGP PUBLIC KEY BLOCK-----
";
        assert_eq!(entry.as_deref(), Some(expected));
        assert!(has_suite(expected, Format::Deb822, "bookworm-backports"));
        assert!(!has_suite(STANZAS, Format::Deb822, "bookworm-backports"));
        assert!(has_suite(STANZAS, Format::Deb822, "bookworm-security"));
    }

    #[test]
    fn a_line_keeps_its_mirror_and_options() {
        let text = "\
# deb http://commented.test/debian bookworm main
deb-src http://mirror.test/debian bookworm main
deb [ signed-by=/usr/share/keyrings/k.gpg arch=amd64 ] http://mirror.test/debian bookworm main contrib
";
        let entry = entry_for_other_suite(text, Format::OneLine, "bookworm", "bookworm-backports");
        let expected = "deb [signed-by=/usr/share/keyrings/k.gpg arch=amd64] http://mirror.test/debian bookworm-backports main\n";
        assert_eq!(entry.as_deref(), Some(expected));
        assert!(has_suite(expected, Format::OneLine, "bookworm-backports"));
        assert!(!has_suite(text, Format::OneLine, "bookworm-backports"));
    }

    #[test]
    fn text_that_is_no_source_list_offers_nothing() {
        for text in ["", "\0\u{fffd}: :", "deb", "deb [unclosed http://a b", ": x\n y", " y"] {
            for format in [Format::Deb822, Format::OneLine] {
                assert_eq!(entry_for_other_suite(text, format, "b", "c"), None, "{text:?}");
            }
        }
    }
}
