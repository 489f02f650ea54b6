//! `sluice load`: a small open-loop load client.
