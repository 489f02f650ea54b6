//! A backup's manifest, from wherever the backup was kept.
//!
//! The first byte says whether the rest is all of it, or its lines, to which the sum is added that they call for.

use std::path::{Component, Path};

use wallet_backend::store::embedded::fuzzing::{manifest, seal_manifest};

/// # Panics
/// Where something is wrong with the wallet.
pub fn check(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let text = if first % 2 == 0 {
        text.to_owned()
    } else {
        seal_manifest(text)
    };
    let Some(files) = manifest(&text) else { return };
    for name in files {
        let inside = Path::new(&name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        assert!(inside && !name.is_empty(), "{name} leads out of the directory");
    }
    // One spelling: what is one byte longer is another text.
    assert_eq!(manifest(&(text + "\n")), None);
}
