//! What the sample jobs share: seeded numbers, output folders, child processes, real servers and a proxy in front of them,
//! a stopwatch, numbers for people.
//!
//! Owns: pieces that know nothing of a particular job and nothing of the engine.
//! Does not own: the jobs themselves (each is a binary in a folder of its own), nor anything a job author would
//! need: that is in the `tidegate` crate.
//! Runs on: the main thread of a job's command line.

pub mod child;
pub mod digits;
pub mod output_folder;
pub mod random;
pub mod services;
pub mod stopwatch;
pub mod tcp_proxy;
