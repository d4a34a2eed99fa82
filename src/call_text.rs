//! The text of a call on the command line: `mul_1(out buf:256, buf:256@64, 64, 0x12345)`.

/// A function and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallText {
    /// The function's label.
    pub function: String,
    /// Arguments in order.
    pub arguments: Vec<ArgumentText>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentText {
    /// A number for a register.
    Number(i128),
    /// A buffer; its address goes to a register.
    Buffer {
        /// What the code may do with it.
        access: BufferAccess,
        /// Length in bytes.
        bytes: u32,
        /// The address is a multiple of this power of two and of no greater one.
        align_bytes: u32,
    },
}

/// What code may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferAccess {
    /// Filled, and may not be written.
    In,
    /// Undefined until it is written.
    Out,
    /// Filled, and may be written.
    InOut,
}

/// Longest buffer in bytes: longer ones fit no cache, and the model knows nothing of misses.
pub const BUFFER_LIMIT_BYTES: u32 = 1 << 23;
/// Greatest alignment of a buffer.
pub const ALIGN_LIMIT_BYTES: u32 = 4096;
const DEFAULT_ALIGN_BYTES: u32 = 16;

/// Reads a call. A name alone calls without arguments.
///
/// # Errors
/// What is wrong, one sentence.
pub fn parse(text: &str) -> Result<CallText, String> {
    let text = text.trim();
    let (function, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((function, rest)) => {
            (function.trim_end(), rest.strip_suffix(')').ok_or("the call does not end with `)`, as in `NAME(1, buf:64)`")?)
        }
    };
    if function.is_empty() || !function.chars().all(|letter| letter.is_ascii_alphanumeric() || "._$@".contains(letter)) {
        return Err(format!("`{function}` is no name of a function"));
    }
    let arguments = if arguments.trim().is_empty() {
        Vec::new()
    } else {
        arguments.split(',').map(|argument| parse_argument(argument.trim())).collect::<Result<_, _>>()?
    };
    Ok(CallText { function: function.to_owned(), arguments })
}

fn parse_argument(text: &str) -> Result<ArgumentText, String> {
    let (access, rest) = match text.split_once(' ') {
        Some(("in", rest)) => (Some(BufferAccess::In), rest.trim_start()),
        Some(("out", rest)) => (Some(BufferAccess::Out), rest.trim_start()),
        Some(("inout", rest)) => (Some(BufferAccess::InOut), rest.trim_start()),
        _ => (None, text),
    };
    let Some(size) = rest.strip_prefix("buf:") else {
        return match (access, number(rest)) {
            (None, Some(value)) => Ok(ArgumentText::Number(value)),
            _ => Err(format!("`{text}` is neither a number nor a buffer `buf:BYTES`, `buf:BYTES@ALIGN`, `in buf:…`, `out buf:…`")),
        };
    };
    let (bytes, align) = match size.split_once('@') {
        Some((bytes, align)) => (bytes, Some(align)),
        None => (size, None),
    };
    let within = |what: &str, text: &str, limit: u32| {
        let value = number(text).and_then(|value| u32::try_from(value).ok()).filter(|value| (1..=limit).contains(value));
        value.ok_or_else(|| format!("`{text}` is no {what}: from 1 to {limit}"))
    };
    let bytes = within("length of a buffer in bytes", bytes, BUFFER_LIMIT_BYTES)?;
    let align_bytes = align.map_or(Ok(DEFAULT_ALIGN_BYTES), |align| within("alignment in bytes", align, ALIGN_LIMIT_BYTES))?;
    if !align_bytes.is_power_of_two() {
        return Err(format!("an alignment of {align_bytes} bytes is no power of two"));
    }
    Ok(ArgumentText::Buffer { access: access.unwrap_or(BufferAccess::InOut), bytes, align_bytes })
}

/// Decimal or `0x…`, perhaps negative, perhaps with `_`.
fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.replace('_', "");
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) if !hexadecimal.starts_with('+') => i128::from_str_radix(hexadecimal, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::{ArgumentText, BufferAccess, parse};

    #[test]
    fn numbers_and_buffers_are_read() {
        let call = parse(" f.1 ( out buf:64, in buf:0x20@1, buf:1_000@4096, -1, 0xff )").expect("a call");
        assert_eq!(call.function, "f.1");
        let buffer = |access, bytes, align_bytes| ArgumentText::Buffer { access, bytes, align_bytes };
        assert_eq!(
            call.arguments,
            [
                buffer(BufferAccess::Out, 64, 16),
                buffer(BufferAccess::In, 32, 1),
                buffer(BufferAccess::InOut, 1000, 4096),
                ArgumentText::Number(-1),
                ArgumentText::Number(255)
            ]
        );
        assert_eq!(parse("f").expect("a call").arguments, []);
        assert_eq!(parse("f( )").expect("a call").arguments, []);
    }

    #[test]
    fn what_is_no_call_is_said() {
        for text in
            ["", "(1)", "f(1", "f(1,)", "f(x)", "f(buf:)", "f(buf:0)", "f(buf:9999999999)", "f(buf:8@3)", "f(out 7)", "a b(1)", "f(0x+1)"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
