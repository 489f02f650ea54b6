//! The wallet over HTTP.
