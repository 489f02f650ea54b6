//! The HTTP surface: in process through the router, and over real sockets with the real binary.

mod auth;
mod lists;
mod money;
mod served;
mod statement;
mod streams;
mod strict;
mod support;
mod surface;
