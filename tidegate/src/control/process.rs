//! What the system says about a process that does not answer.
//!
//! Owns: reading `/proc`; where there is none (not Linux), nobody is known to be stopped. Does not own: which process is meant
//! ([`super::registry`]). Runs on: the calling thread.

use std::fs;

/// A process at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) pid: u32,
    /// By SIGSTOP, Ctrl-Z or a debugger: it answers nobody until it is continued.
    pub(crate) stopped: bool,
}

impl Asked {
    pub(crate) fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Self { pid, stopped: is_stopped(&stat) }
    }
}

/// The state stands behind the name, which may hold anything, also a bracket.
fn is_stopped(stat: &str) -> bool {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    matches!(behind.split_whitespace().next(), Some("T" | "t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_told_by_its_state_whatever_its_name() {
        assert!(is_stopped("7 (orders) T 1 7 7 0"));
        assert!(is_stopped("7 (a) R (b) t 1"));
        assert!(!is_stopped("7 (T) S 1 7") && !is_stopped("") && !is_stopped("7 (x"));
        assert!(!Asked::of(std::process::id()).stopped);
    }
}
