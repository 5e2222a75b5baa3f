//! Sources, channels, operator, sink, coordinator.
//!
//! Owns: the state of the model, and what the sources do. Does not own: operator and sink. Runs on: plain data.

use std::collections::VecDeque;
use std::fmt;

/// What travels in a channel. Barriers carry the number of aborts before their trigger: their checkpoint's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    Record,
    /// Half of what `on_end` emits: 0 or 1.
    Half(usize),
    EndOfData,
    Barrier(u8),
}

/// How far the operator is with its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    #[default]
    Running,
    /// The first half of `on_end` is out.
    InTheMiddle,
    /// `EndOfData` is forwarded.
    Ended,
}

/// One source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(super) position: u8,
    pub(super) has_ended: bool,
}

/// The operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Operator {
    pub(super) count: u8,
    pub(super) input_ended: [bool; 2],
    pub(super) ending: Ending,
    /// The barrier taken from each input whose snapshot is not taken yet.
    pub(super) aligned: [Option<u8>; 2],
}

/// What a transaction holds, and what is committed in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Output {
    pub(super) records: u8,
    pub(super) halves: [u8; 2],
}

/// What a checkpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Checkpoint {
    pub(super) sources: [Source; 2],
    pub(super) operator: Option<(u8, Ending)>,
    /// Set with the sink's acknowledgement.
    pub(super) listed: Option<Vec<Output>>,
}

/// One state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(super) sources: [Source; 2],
    pub(super) inputs: [VecDeque<Element>; 2],
    pub(super) operator: Operator,
    /// From operator to sink.
    pub(super) between: Option<Element>,
    pub(super) open: Output,
    pub(super) pending: Vec<Output>,
    pub(super) in_flight: Option<Checkpoint>,
    pub(super) restored_from: Checkpoint,
    pub(super) output: Output,
    pub(super) crashes: u8,
    pub(super) aborts: u8,
    pub(super) is_finished: bool,
}

impl Operator {
    pub(super) fn has_all_ends(&self) -> bool {
        self.input_ended == [true, true]
    }
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.halves.iter_mut().zip(other.halves).for_each(|(sum, more)| *sum += more);
    }
}

impl World {
    pub(super) fn emit(&mut self, source: usize) {
        self.sources[source].position += 1;
        self.inputs[source].push_back(Element::Record);
    }

    pub(super) fn send_end(&mut self, source: usize) {
        self.sources[source].has_ended = true;
        self.inputs[source].push_back(Element::EndOfData);
    }

    pub(super) fn abort(&mut self) {
        self.in_flight = None;
        self.aborts += 1;
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records and halves {}+{}", self.records, self.halves[0], self.halves[1])
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => write!(f, " r"),
            Self::Half(half) => write!(f, " e{half}"),
            Self::EndOfData => write!(f, " END"),
            Self::Barrier(_) => write!(f, " |"),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for input in &self.inputs {
            write!(f, "[")?;
            input.iter().try_for_each(|e| write!(f, "{e}"))?;
            write!(f, " ] ")?;
        }
        write!(f, "{:?} [", self.operator.ending)?;
        self.between.iter().try_for_each(|e| write!(f, "{e}"))?;
        write!(f, " ] committed: {}", self.output)
    }
}
