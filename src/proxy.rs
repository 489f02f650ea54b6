//! One request from its head to the last byte of its answer.
