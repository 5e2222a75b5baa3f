//! What stands in place of the sources and sinks of an author's job.
//!
//! A source reads the input that it was given; a sink in two phases writes staged transactions to a database model, another one adds its
//! records to a list at once. Database and list outlive the processes.
//!
//! Owns: inputs and outputs by uid. Does not own: the job (see [`super::author_job`]). Runs on: the simulation's thread.

use std::any::{Any, type_name};
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::any_record::AnyRecord;
use super::database::Database;
use super::line::Line;
use super::sink::SimSink;
use super::source::{Partitions, Reading, SimSource};
use crate::api::build_stage::{PlainSink, TwoPhaseSinkStage};
use crate::element::Batch;
use crate::error::{EngineError, JobError};
use crate::graph::edge::Erased;
use crate::graph::node::{BuildContext, BuildStage, NodeInfo};
use crate::ids::OperatorUid;
use crate::jobmanager::plan::OperatorKind;
use crate::operator::Stage;
use crate::testkit::CollectedSink;

/// Records of one source.
pub struct Input {
    /// [`Partitions`] of its type.
    partitions: Box<dyn Any>,
    /// How many records there are.
    pub records: u64,
    /// Their type, for people.
    record: &'static str,
}

impl Input {
    /// One list of records for each partition.
    pub fn of<T: Send + 'static>(partitions: Vec<Batch<T>>) -> Self {
        let partitions = Partitions::of(partitions);
        let records = partitions.records();
        Self { partitions: Box::new(partitions), records, record: type_name::<T>() }
    }
}

/// Inputs by the uid of their source.
pub type Inputs = BTreeMap<String, Input>;

/// What a sink has put out.
#[derive(Clone, Debug)]
pub enum Output {
    /// In transactions.
    Transactions(Database<AnyRecord>),
    /// At once.
    AtOnce(CollectedSink<AnyRecord>),
}

impl Output {
    /// Every record that a reader finds, in the order in which they came to be there.
    pub fn records(&self) -> Vec<AnyRecord> {
        match self {
            Self::Transactions(database) => database.committed().into_iter().flat_map(|c| c.rows).collect(),
            Self::AtOnce(list) => list.records(),
        }
    }
}

/// Outputs by the uid of their sink.
#[derive(Debug, Default)]
pub struct Outputs {
    by_uid: RefCell<BTreeMap<String, Output>>,
}

impl Outputs {
    /// A copy of the handles.
    pub fn all(&self) -> BTreeMap<String, Output> {
        self.by_uid.borrow().clone()
    }

    /// The databases.
    pub fn databases(&self) -> Vec<Database<AnyRecord>> {
        let all = self.by_uid.borrow();
        let databases = all.values().filter_map(|output| match output {
            Output::Transactions(database) => Some(database.clone()),
            Output::AtOnce(_) => None,
        });
        databases.collect()
    }
}

/// What one start of a process puts in place of sources and sinks.
#[derive(Debug)]
pub struct SimulatedEnds<'a> {
    /// What sources read.
    pub inputs: &'a Inputs,
    /// What sinks put out.
    pub outputs: &'a Outputs,
    /// How sources read.
    pub reading: Reading,
    /// Between sinks and databases.
    pub line: &'a Line,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input({} of {})", self.records, self.record)
    }
}

impl SimulatedEnds<'_> {
    /// In place of a source.
    ///
    /// # Errors
    /// It was given no input, or one of another type.
    pub fn source<T: 'static>(&self, uid: &OperatorUid) -> Result<SimSource<T>, JobError> {
        let Some(input) = self.inputs.get(uid.as_str()) else {
            return Err(JobError::msg(format!(
                "source \"{uid}\" has no input\n  help: give it one: .input(\"{uid}\", records)"
            )));
        };
        let Some(partitions) = input.partitions.downcast_ref::<Partitions<T>>() else {
            return Err(JobError::msg(format!(
                "the records of source \"{uid}\" are of type {}, and those of its input of type {}",
                type_name::<T>(),
                input.record
            )));
        };
        Ok(SimSource { partitions: partitions.clone(), reading: self.reading.clone() })
    }

    /// In place of a sink.
    pub fn sink(&self, uid: &OperatorUid, kind: OperatorKind) -> SimulatedSink {
        let mut outputs = self.outputs.by_uid.borrow_mut();
        let output = outputs.entry(uid.to_string()).or_insert_with(|| match kind {
            OperatorKind::TwoPhaseSink => Output::Transactions(Database::default()),
            _ => Output::AtOnce(CollectedSink::default()),
        });
        let uid = uid.clone();
        match output {
            Output::Transactions(database) => {
                let sink = SimSink::new(database.clone(), self.line.clone());
                SimulatedSink::TwoPhases(TwoPhaseSinkStage { uid, sink })
            }
            Output::AtOnce(list) => SimulatedSink::OnePhase(PlainSink { uid, sink: list.clone() }),
        }
    }
}

/// In place of a sink.
#[derive(Clone, Debug)]
pub enum SimulatedSink {
    /// Staged transactions.
    TwoPhases(TwoPhaseSinkStage<SimSink<AnyRecord>>),
    /// A list.
    OnePhase(PlainSink<CollectedSink<AnyRecord>>),
}

impl SimulatedSink {
    /// Its stage.
    ///
    /// # Errors
    /// State that does not fit.
    pub fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<AnyRecord>>, EngineError> {
        match self {
            Self::TwoPhases(build) => build.build(info, cx, downstream),
            Self::OnePhase(build) => build.build(info, cx, downstream),
        }
    }
}
