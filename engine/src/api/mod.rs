//! The author's side: streams, keyed streams, sources and sinks.
//!
//! Owns: what a job is written with. Does not own: how it runs. Runs on: `main`, while the graph is being built.

pub mod build_stage;
pub mod claim_watch;
pub mod data_stream;
pub mod environment;
pub mod keyed_stream;
pub mod preflight;
pub mod sink;
pub mod source;

pub use claim_watch::{ClaimError, ClaimWatch};
pub use data_stream::{DataStream, IntoSinkNode, SinkHandle};
pub use environment::StreamEnvironment;
pub use keyed_stream::KeyedStream;
pub use preflight::{JobNeeds, Preflight, PreflightContext, PreflightResult};
pub use sink::{
    AskCommitted, Committer, Prepared, Sink, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter, Writer,
};
pub use source::{
    AnyEnumerator, AnyFound, Assignment, ConnectorContext, ConnectorError, ErasedEnumerator, ReadStatus,
    Source, SourceOutput, SourcePosition, SplitEnumerator, SplitReader,
};
