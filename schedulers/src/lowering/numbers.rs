//! Numbers of few bytes in memory as integers in registers: by loads and stores of the integer file, or through a narrower file and a move.

use super::builder::{Input, Lowering, Place, ProgramBuilder};
use super::shapes;
use crate::machine::FileId;
use crate::program::ValueId;

impl ProgramBuilder<'_> {
    /// A value in the file of integers, zero filled where it comes from a narrower file.
    ///
    /// # Errors
    /// The machine has no such move.
    pub fn as_integer(&mut self, value: ValueId) -> Lowering<ValueId> {
        self.moved_to(value, self.integer_file())
    }

    fn moved_to(&mut self, value: ValueId, to: FileId) -> Lowering<ValueId> {
        let from = self.file_of(value);
        if from == to {
            return Ok(value);
        }
        self.emit_single(&shapes::move_shape(self.machine(), from, to), &[Input::Value(value)])
    }

    /// A file whose registers are exactly such numbers, with moves from and to integers.
    fn file_of_numbers(&self, bytes: u32, write: bool, indexed: bool) -> Option<FileId> {
        let (machine, integer) = (self.machine(), self.integer_file());
        (0..machine.register_files.len() as u16).map(FileId).find(|file| {
            let (from, to) = if write { (integer, *file) } else { (*file, integer) };
            machine[*file].width_bits == 8 * bytes
                && self.memory_rows.best(*file, bytes, write, indexed).is_some()
                && self.selector.row_for(&shapes::move_shape(machine, from, to)).is_some()
        })
    }

    /// Loads `bytes` bytes as an integer, zero filled.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_integer(&mut self, bytes: u32, place: Place) -> Lowering<ValueId> {
        let (file, indexed) = (self.integer_file(), place.index.is_some());
        let narrow =
            self.memory_rows.best(file, bytes, false, indexed).is_none().then(|| self.file_of_numbers(bytes, false, indexed)).flatten();
        let loaded = self.load(narrow.unwrap_or(file), bytes, place)?;
        self.as_integer(loaded)
    }

    /// Stores the low `bytes` bytes of an integer.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub fn store_integer(&mut self, value: ValueId, bytes: u32, place: Place) -> Lowering<()> {
        let (file, indexed) = (self.integer_file(), place.index.is_some());
        let narrow =
            self.memory_rows.best(file, bytes, true, indexed).is_none().then(|| self.file_of_numbers(bytes, true, indexed)).flatten();
        let stored = self.moved_to(value, narrow.unwrap_or(file))?;
        self.store(stored, bytes, place)
    }
}
