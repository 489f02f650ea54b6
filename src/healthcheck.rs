//! `sluice healthcheck`: exit 0 when the sidecar is ready.
