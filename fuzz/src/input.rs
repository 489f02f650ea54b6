//! The bytes of an input, as numbers and as edits of a file.
//!
//! Files of a data directory are long and mostly checksummed filling. As edits of a good one, what matters is a few
//! bytes long, and every byte of an input counts.

/// What is left of an input.
#[derive(Debug)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; 0 at the end.
    pub(crate) fn byte(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    pub(crate) fn short(&mut self) -> usize {
        u16::from_le_bytes(self.array()).into()
    }

    pub(crate) fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// One of some things.
    pub(crate) fn choose<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[usize::from(self.byte()) % of.len()]
    }

    /// Changes a file: at most so many edits, each a kind, a place and what it takes.
    pub(crate) fn edit(&mut self, file: &mut Vec<u8>, most: u8) {
        for _ in 0..most {
            if self.is_empty() || file.is_empty() {
                return;
            }
            let (kind, at) = (self.byte(), self.short() % file.len());
            match kind % 4 {
                0 => file[at] ^= self.byte(),
                1 => {
                    let bytes = self.take(usize::from(kind >> 5) + 1);
                    let end = file.len().min(at + bytes.len());
                    file[at..end].copy_from_slice(&bytes[..end - at]);
                }
                2 => file.truncate(at),
                _ => {
                    let (byte, more) = (self.byte(), self.short());
                    file.resize(file.len() + more % 8_192, byte);
                }
            }
        }
    }
}
