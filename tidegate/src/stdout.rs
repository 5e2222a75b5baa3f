//! What a program tells on its standard output.
//!
//! `println!` panics where nobody reads any more, as in `tidegate list | head -1`. Whoever closes the pipe has seen enough: the rest is left
//! out without a word, and the program does its work and ends with the status of that.
//!
//! Owns: writing. Does not own: what is told. Runs on: whichever thread tells something.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::Once;

static TOLD: Once = Once::new();

/// Writes a text and a line's end.
pub fn line(text: impl Display) {
    seen(writeln!(io::stdout().lock(), "{text}"));
}

/// Writes a text as it is.
pub fn text(text: impl Display) {
    seen(write!(io::stdout().lock(), "{text}"));
}

fn seen(written: io::Result<()>) {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            TOLD.call_once(|| eprintln!("warning: standard output cannot be written: {error}"));
        }
        _ => {}
    }
}
