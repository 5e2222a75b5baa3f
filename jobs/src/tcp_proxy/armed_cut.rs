//! A cut that waits for certain bytes of a client.
//!
//! Owns: the pattern, how often it is used, the search. Does not own: connections. Runs on: plain data.

/// Longest pattern, bytes: so much of a connection's past is kept, for patterns that arrive in pieces.
pub const PATTERN_BYTES_MAX: usize = 256;

/// When a connection is cut whose client sent the pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CutMoment {
    /// The piece that completes the pattern never reaches the server.
    BeforeForwarding,
    /// Right after it was passed on: whether the server acts on it is anybody's guess.
    AfterForwarding,
    /// When the server answers: it has acted, and the client does not learn it.
    AfterAnswer,
}

#[derive(Debug)]
pub(super) struct ArmedCut {
    pattern: Vec<u8>,
    moment: CutMoment,
    pub(super) times: u32,
}

impl ArmedCut {
    pub(super) fn new(pattern: &[u8], moment: CutMoment, times: u32) -> Self {
        assert!(!pattern.is_empty(), "a pattern has at least one byte");
        assert!(pattern.len() <= PATTERN_BYTES_MAX, "a pattern has at most {PATTERN_BYTES_MAX} bytes");
        Self { pattern: pattern.to_owned(), moment, times }
    }

    /// Uses it up once, if its pattern stands in `bytes` and reaches beyond the first `seen` of them.
    pub(super) fn take_if_in(&mut self, bytes: &[u8], seen: usize) -> Option<CutMoment> {
        // Nothing that ends within what was seen before.
        let from = (seen + 1).saturating_sub(self.pattern.len());
        let new = bytes.get(from..)?;
        if self.times == 0 || !new.windows(self.pattern.len()).any(|window| window == self.pattern) {
            return None;
        }
        self.times -= 1;
        Some(self.moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_in_two_pieces_is_found_once() {
        let mut cut = ArmedCut::new(b"COMMIT", CutMoment::AfterAnswer, 5);
        assert_eq!(cut.take_if_in(b"XA COM", 0), None);
        assert_eq!(cut.take_if_in(b"XA COMMIT", 6), Some(CutMoment::AfterAnswer));
        assert_eq!(cut.take_if_in(b"XA COMMIT 1", 9), None, "it ended in what was seen before");
        assert_eq!(cut.take_if_in(b"XA COMMIT", 8), Some(CutMoment::AfterAnswer));
        assert_eq!(cut.times, 3);
    }

    #[test]
    fn it_is_used_so_many_times() {
        let mut cut = ArmedCut::new(b"x", CutMoment::BeforeForwarding, 1);
        assert!(cut.take_if_in(b"x", 0).is_some());
        assert!(cut.take_if_in(b"x", 0).is_none());
    }
}
