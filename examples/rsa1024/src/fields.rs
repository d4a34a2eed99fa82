//! The text format of the fixture: lines `name = hexadecimal digits`, and comments from `#`.

use std::fmt;

/// Why a fixture's text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldError {
    /// A line (counted from 1) is neither empty nor a comment nor `name = digits`.
    Malformed {
        /// The line.
        line: usize,
    },
    /// A value has a character that is no hexadecimal digit, or an odd number of digits.
    NotHexadecimal {
        /// The line.
        line: usize,
    },
    /// A value has not the width that its field has.
    Width {
        /// The field.
        name: String,
        /// Bytes that the field has.
        expected: usize,
        /// Bytes that were found.
        found: usize,
    },
    /// A field is missing, or fields stand in another order than their format's.
    Expected {
        /// The field that should have come.
        name: &'static str,
    },
}

impl fmt::Display for FieldError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldError::Malformed { line } => write!(out, "line {line}: not of the form `name = digits`"),
            FieldError::NotHexadecimal { line } => write!(out, "line {line}: not pairs of hexadecimal digits"),
            FieldError::Width { name, expected, found } => write!(out, "{name}: {found} bytes instead of {expected}"),
            FieldError::Expected { name } => write!(out, "{name} should come here"),
        }
    }
}

impl std::error::Error for FieldError {}

/// The fields of a text, in order, taken one by one by name.
pub(crate) struct Fields<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(text: &'a str) -> Fields<'a> {
        Fields { lines: text.lines().enumerate() }
    }

    /// The next field, which must be `name` and `BYTES` wide; big-endian as written.
    pub(crate) fn take<const BYTES: usize>(&mut self, name: &'static str) -> Result<[u8; BYTES], FieldError> {
        self.take_if_any(name)?.ok_or(FieldError::Expected { name })
    }

    /// Like [`Fields::take`], `None` at the end of the text.
    pub(crate) fn take_if_any<const BYTES: usize>(&mut self, name: &'static str) -> Result<Option<[u8; BYTES]>, FieldError> {
        let Some((index, line)) = self.lines.find(|(_, line)| !is_blank(line)) else {
            return Ok(None);
        };
        let line_number = index + 1;
        let (found, digits) = line.split_once('=').ok_or(FieldError::Malformed { line: line_number })?;
        if found.trim() != name {
            return Err(FieldError::Expected { name });
        }
        let bytes = bytes_of_digits(digits.trim()).ok_or(FieldError::NotHexadecimal { line: line_number })?;
        let found = bytes.len();
        let bytes = bytes.try_into().map_err(|_| FieldError::Width { name: name.to_owned(), expected: BYTES, found })?;
        Ok(Some(bytes))
    }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn bytes_of_digits(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = digits.chars().map(|digit| digit.to_digit(16)).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| u8::try_from(high << 4 | low).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_with_their_width() {
        let mut fields = Fields::of("# a comment\n\na = 0aFF\nb=00\n");
        assert_eq!(fields.take("a"), Ok([0x0a, 0xff]));
        assert_eq!(fields.take_if_any("b"), Ok(Some([0])));
        assert_eq!(fields.take_if_any::<1>("c"), Ok(None));
        assert_eq!(fields.take::<1>("c"), Err(FieldError::Expected { name: "c" }));
    }

    #[test]
    fn bad_text_is_refused_with_its_place() {
        let take = |text| Fields::of(text).take::<2>("a").expect_err("refused");
        assert_eq!(take("\na 0a0b"), FieldError::Malformed { line: 2 });
        assert_eq!(take("a = 0a0g"), FieldError::NotHexadecimal { line: 1 });
        assert_eq!(take("a = 0a0"), FieldError::NotHexadecimal { line: 1 });
        assert_eq!(take("a = é0"), FieldError::NotHexadecimal { line: 1 });
        assert_eq!(take("a = 0a"), FieldError::Width { name: "a".to_owned(), expected: 2, found: 1 });
        assert_eq!(take("b = 0a0b"), FieldError::Expected { name: "a" });
        assert_eq!(take(""), FieldError::Expected { name: "a" });
        let messages = [take("b = 0a0b"), take("a = 0a"), take("a"), take("a = x")].map(|error| error.to_string());
        assert_eq!(
            messages,
            [
                "a should come here",
                "a: 1 bytes instead of 2",
                "line 1: not of the form `name = digits`",
                "line 1: not pairs of hexadecimal digits"
            ]
        );
    }
}
