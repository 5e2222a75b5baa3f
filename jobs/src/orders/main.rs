//! The orders job.
fn main() {}
