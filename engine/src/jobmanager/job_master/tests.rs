//! The laws of one attempt, law by law, without threads, clock or store.

mod checkpoints;
mod ending;
mod harness;
mod mail;
mod random;
