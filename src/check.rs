//! `sluice check`: validates rule files.
