//! The Tidegate dataflow engine.

pub mod api;
pub mod checkpoint;
pub mod clock;
pub mod element;
pub mod error;
pub mod execution;
pub mod exchange;
pub mod fault;
pub mod graph;
pub mod ids;
pub mod io;
pub mod jobmanager;
pub mod mutation;
pub mod operator;
pub mod sim;
pub mod taskworker;
