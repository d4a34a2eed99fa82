//! Text that was put together from pieces of a source, with the way back from its bytes to the source's.

use kgen_ir::source::Span;
use std::ops::Range;

/// One piece: where it begins in the text and what it came from.
#[derive(Clone, Debug)]
struct Piece {
    start: usize,
    source: Span,
    /// Byte for byte the source; otherwise it stands in for the whole span (a filled-in template hole).
    verbatim: bool,
}

/// A text and where each of its bytes came from.
#[derive(Clone, Debug, Default)]
pub struct MappedText {
    /// The text.
    pub text: String,
    pieces: Vec<Piece>,
}

impl MappedText {
    /// Appends a piece of the source that begins there at `offset`.
    pub fn push_verbatim(&mut self, text: &str, offset: usize) {
        self.pieces.push(Piece { start: self.text.len(), source: Span::new(offset..offset + text.len()), verbatim: true });
        self.text.push_str(text);
    }

    /// Appends a text that stands in for a piece of the source.
    pub fn push_substituted(&mut self, text: &str, source: Span) {
        self.pieces.push(Piece { start: self.text.len(), source, verbatim: false });
        self.text.push_str(text);
    }

    /// Appends another text, after a newline where there is something already.
    pub fn push_line(&mut self, line: &MappedText) {
        if !self.text.is_empty() {
            self.push_substituted("\n", Span { start: line.span(0..0).start, end: line.span(0..0).start });
        }
        let base = self.text.len();
        self.pieces.extend(line.pieces.iter().map(|piece| Piece { start: base + piece.start, ..piece.clone() }));
        self.text.push_str(&line.text);
    }

    /// The span in the source of these bytes of the text.
    pub fn span(&self, range: Range<usize>) -> Span {
        let start = self.place(range.start, false);
        let end = if range.end > range.start { self.place(range.end - 1, true) } else { start };
        Span { start, end: end.max(start) }
    }

    /// The span of the whole text.
    pub fn whole(&self) -> Span {
        self.span(0..self.text.len())
    }

    fn place(&self, byte: usize, past: bool) -> u32 {
        let index = self.pieces.partition_point(|piece| piece.start <= byte);
        let Some(piece) = index.checked_sub(1).and_then(|index| self.pieces.get(index)) else { return 0 };
        match (piece.verbatim, past) {
            (true, _) => (piece.source.start + (byte - piece.start) as u32 + u32::from(past)).min(piece.source.end),
            (false, true) => piece.source.end,
            (false, false) => piece.source.start,
        }
    }
}
