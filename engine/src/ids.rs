//! Newtypes for every number and name that means something in a protocol.
//!
//! Owns: identity only. Does not own: how any of them is chosen (the commit log chooses attempts, the coordinator checkpoint ids).
//! Runs on: everywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

number! {
    /// Number of a checkpoint. Ids rise within the entries of one commit log; 0 means "none yet".
    CheckpointId(u64)
}
number! {
    /// Number of an entry in a commit log, from 1.
    EntryNumber(u64)
}
number! {
    /// Number of an attempt: the number of the log entry that claimed the job for it.
    AttemptId(u64)
}
number! {
    /// Number of the claim that began a lineage (see the recovery law in [`crate::operator::sink_operator`]).
    Lineage(u64)
}
number! {
    /// Position of a vertex of the chained job graph, in topological order.
    VertexId(u32)
}

name! {
    /// Name of a job. A checkpoint folder belongs to one.
    JobName
}
name! {
    /// Stable identity of an operator across versions of a job; its state is found by it.
    OperatorUid
}
name! {
    /// Random identity of a commit log, as 32 hexadecimal digits.
    LogId
}

impl CheckpointId {
    /// The id after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl EntryNumber {
    /// The number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One parallel instance of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubtaskId {
    /// The vertex it belongs to.
    pub vertex: VertexId,
    /// Its index, from 0 to parallelism − 1.
    pub index: u32,
}

impl fmt::Display for SubtaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.vertex, self.index)
    }
}
