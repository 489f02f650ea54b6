//! Sliding windows. Pure: `now` is an argument.
