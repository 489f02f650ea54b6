//! Tracing, the access log, and every metric name with its unit.
