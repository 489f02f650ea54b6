//! What was written and not synced: kept, dropped, torn or reordered by a power cut.

use std::collections::BTreeMap;

use crate::support::Numbers;

const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub(super) enum Change {
    Bytes { at: usize, bytes: Vec<u8> },
    Cut(usize),
}

impl Change {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Bytes { at, bytes } => {
                let end = at + bytes.len();
                if content.len() < end {
                    content.extend_from_slice(&vec![0; end - content.len()]);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            Self::Cut(size) => content.truncate(*size),
        }
    }

    /// Some of it, in any order of sectors, and one sector perhaps in part.
    pub(super) fn apply_some(&self, content: &mut Vec<u8>, numbers: &mut Numbers) {
        let Self::Bytes { at, bytes } = self else {
            if numbers.below(2) == 0 {
                self.apply(content);
            }
            return;
        };
        let (mut from, mode) = (0, numbers.below(4));
        while from < bytes.len() {
            let to = ((at + from) / SECTOR * SECTOR + SECTOR - at).min(bytes.len());
            let kept = match (mode, numbers.below(4)) {
                (0, _) | (1, 0) | (2, 0..3) => 0,
                (1 | 2, 3) => usize::try_from(numbers.below(u64::try_from(to - from).unwrap())).unwrap(),
                _ => to - from,
            };
            let piece = bytes[from..from + kept].to_vec();
            if !piece.is_empty() {
                Self::Bytes {
                    at: at + from,
                    bytes: piece,
                }
                .apply(content);
            }
            from = to;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) durable: Vec<u8>,
    pub(super) current: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
}

impl Node {
    /// A file that is on the disk as it is.
    pub(super) fn clean(content: Vec<u8>) -> Self {
        Self {
            durable: content.clone(),
            current: content,
            unsynced: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Add(String, u64),
    Rename(String, String),
    Remove(String),
}

impl NameChange {
    pub(super) fn folder(&self) -> &str {
        let (Self::Add(name, _) | Self::Rename(_, name) | Self::Remove(name)) = self;
        name.split('/').next().unwrap()
    }

    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Add(name, node) => {
                names.insert(name.clone(), *node);
            }
            Self::Rename(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}
