//! Keeps the newest good rule set published while files change.
