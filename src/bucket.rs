//! Token buckets: GCRA by governor over our own bounded state.
