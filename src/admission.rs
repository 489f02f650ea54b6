//! Admission: every rule evaluated, then every rule taken, in one step.
