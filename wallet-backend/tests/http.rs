//! The HTTP surface: in process through the router, and over real sockets with the real binary.

mod amendments;
mod auth;
mod batches;
mod described;
mod events;
mod holds;
mod lists;
mod money;
mod pasts;
mod reversals;
mod served;
mod statement;
mod streams;
mod strict;
mod support;
mod surface;
