//! What must hold of an account at every moment.
