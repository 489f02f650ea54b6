//! From the wire structs of all files to one checked [`RuleSet`](super::RuleSet).
