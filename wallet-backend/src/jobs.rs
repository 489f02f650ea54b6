//! Jobs on a timer and on a nudge.
