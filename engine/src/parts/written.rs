//! What a prepared transaction of part files consists of, as the sink's state lists it.
//!
//! Owns: the committable. Does not own: the transaction's name (it stands beside it). Runs on: plain data.

/// One pending part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, tidegate_state::StateType)]
pub struct WrittenPart {
    /// Where it lies until it is published, from the output folder.
    pub pending: String,
    /// Where it will lie then, from the output folder.
    pub finished: String,
    /// Its length.
    pub bytes: u64,
    /// Its lines.
    pub records: u64,
}

/// The parts of one transaction: at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, tidegate_state::StateType)]
pub struct WrittenParts {
    /// In the order in which they were closed.
    pub parts: Vec<WrittenPart>,
}
