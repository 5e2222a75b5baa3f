//! Control of a running job, take-over, and checks of its folder: real processes, asked and steered by the real command line.
//!
//! Owns: the scenarios, a file for each subject. Does not own: the words of single tables (their unit tests).
//! Runs on: the test's thread; jobs and commands are processes.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod folders;
mod questions;
mod repeated_output;
mod scene;
mod settings;
mod signals;
mod stdout;
mod stopped;
mod take_over;
