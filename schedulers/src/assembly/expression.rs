//! Constant expressions of assembly text, with names defined by `.set`.

use indexmap::IndexMap;

/// Names with constant values.
pub type Definitions = IndexMap<String, i64>;

/// The deepest nesting of parentheses and signs that is followed.
const DEPTH_LIMIT: u32 = 64;

/// The value of the longest constant expression that the text starts with, and its length. Operators as in GNU as, without comparisons.
pub fn expression(definitions: &Definitions, text: &str) -> Option<(i64, usize)> {
    let mut reader = Reader { definitions, text, at: 0 };
    let value = reader.binary(0, 0)?;
    Some((value, reader.at))
}

struct Reader<'a> {
    definitions: &'a Definitions,
    text: &'a str,
    at: usize,
}

/// Operators by rising strength, as GNU as has them.
const LEVELS: [&[&str]; 3] = [&["+", "-"], &["|", "&", "^"], &["<<", ">>", "*", "/", "%"]];

impl Reader<'_> {
    fn binary(&mut self, level: usize, depth: u32) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(depth) };
        let mut value = self.binary(level + 1, depth)?;
        loop {
            let start = self.at;
            self.skip_space();
            let Some(operator) = operators.iter().find(|operator| self.text[self.at..].starts_with(**operator)) else {
                self.at = start;
                return Some(value);
            };
            self.at += operator.len();
            // What follows may belong to the template (`symbol-label`): then the expression ends before the operator.
            let Some(right) = self.binary(level + 1, depth) else {
                self.at = start;
                return Some(value);
            };
            value = match *operator {
                "+" => value.wrapping_add(right),
                "-" => value.wrapping_sub(right),
                "|" => value | right,
                "&" => value & right,
                "^" => value ^ right,
                "*" => value.wrapping_mul(right),
                "<<" => u32::try_from(right).ok().and_then(|count| value.checked_shl(count)).unwrap_or(0),
                ">>" => u32::try_from(right).ok().and_then(|count| value.checked_shr(count)).unwrap_or(0),
                "/" => value.checked_div(right)?,
                _ => value.checked_rem(right)?,
            };
        }
    }

    fn unary(&mut self, depth: u32) -> Option<i64> {
        if depth == DEPTH_LIMIT {
            return None;
        }
        self.skip_space();
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        match first {
            '-' => {
                self.at += 1;
                Some(self.unary(depth + 1)?.wrapping_neg())
            }
            '~' => {
                self.at += 1;
                Some(!self.unary(depth + 1)?)
            }
            '+' => {
                self.at += 1;
                self.unary(depth + 1)
            }
            '(' => {
                self.at += 1;
                let value = self.binary(0, depth + 1)?;
                self.skip_space();
                self.text[self.at..].starts_with(')').then(|| self.at += 1)?;
                Some(value)
            }
            '0'..='9' => self.number(),
            _ => {
                let length = super::template::identifier_length(rest);
                let value = *self.definitions.get(&rest[..length])?;
                self.at += length;
                Some(value)
            }
        }
    }

    fn number(&mut self) -> Option<i64> {
        let rest = &self.text[self.at..];
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let digits = rest[..length].to_ascii_lowercase();
        let (radix, digits) = match digits.as_bytes() {
            [b'0', b'x', ..] => (16, &digits[2..]),
            [b'0', b'b', ..] => (2, &digits[2..]),
            [b'0', _, ..] => (8, &digits[1..]),
            _ => (10, &digits[..]),
        };
        // 64-bit patterns may be written without sign.
        let value = i64::from_str_radix(digits, radix).ok().or_else(|| u64::from_str_radix(digits, radix).ok().map(|value| value as i64));
        self.at += length;
        value
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_start().len();
    }
}
