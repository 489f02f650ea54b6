//! Flags over environment over file, parsed once.
