//! Scripted histories: tables of requests and of the answers that real servers gave, replayed here on the simulation's models and, where a
//! feature brings the client, on the servers.
//!
//! A model that is kinder than its server proves nothing, so both answer one script, odd codes included. The scripts are data
//! (`tests/histories/*.json`).
//!
//! Owns: reading the scripts and asking the models. Does not own: the models (`engine/src/sim`). Runs on: the test's thread.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod kafka;
#[cfg(feature = "rdkafka")]
mod kafka_real;
mod xa;
#[cfg(feature = "mysql")]
mod xa_servers;

/// Reads a script.
fn read<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("histories").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
