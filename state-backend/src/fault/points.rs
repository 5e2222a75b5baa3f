//! The list of all fault points, grouped by area: each stands on one side of a durable step.
//!
//! Owns: the names. A [`fault_point!`](crate::fault_point) with a name that is not listed does not compile.
//! Does not own: where they stand.
//! Runs on: nowhere; constants.

/// Every fault point of state and engine, by area: whatever a job is connected to, it passes them.
pub const FAULT_POINTS: &[&str] = &[
    // Checkpoint storage.
    "storage.put.before",
    "storage.put.after",
    "storage.create.before",
    "storage.create.after",
    // A subtask's snapshot.
    "snapshot.freeze.before",
    "snapshot.freeze.after",
    "snapshot.upload.before",
    "snapshot.upload.after",
    // The commit log.
    "commit_log.claim.before",
    "commit_log.claim.after",
    "commit_log.checkpoint.before",
    "commit_log.checkpoint.after",
    "commit_log.finished.before",
    "commit_log.finished.after",
    // The cleaner of retained checkpoints.
    "cleaner.entry.before",
    "cleaner.entry.after",
    "cleaner.files.before",
    "cleaner.files.after",
    // Restore.
    "restore.read.before",
    "restore.read.after",
    // Two-phase sinks.
    "sink.write.before",
    "sink.write.after",
    "sink.prepare.before",
    "sink.prepare.after",
    "sink.commit.before",
    "sink.commit.between",
    "sink.commit.after",
    "sink.recover.before",
    "sink.recover.after",
    "sink.rollback.before",
    "sink.rollback.after",
    // Part files of the file sink.
    "file_sink.flush.before",
    "file_sink.flush.after",
    "file_sink.prepare.before",
    "file_sink.prepare.after",
    "file_sink.link.before",
    "file_sink.link.after",
    "file_sink.unlink.before",
    "file_sink.unlink.after",
    "file_sink.sweep.before",
    "file_sink.sweep.after",
    // Sources.
    "source.snapshot.before",
    "source.snapshot.after",
    // Barriers and acknowledgements.
    "barrier.forward.before",
    "barrier.forward.after",
    "ack.send.before",
    "ack.send.after",
];

/// Fault points inside connectors: only a job that uses the connector passes them.
pub const CONNECTOR_FAULT_POINTS: &[&str] = &[
    // The SQLite sink: half of a batch is inserted; a transaction is merged and not yet in the ledger.
    "sqlite.insert.between",
    "sqlite.merge.between",
    // MySQL sinks: some statements of a batch are done.
    "mysql.insert.between",
    // The upsert sink, on each side of a write, and between the statements of one.
    "mysql.upsert.write.before",
    "mysql.upsert.write.between",
    "mysql.upsert.write.after",
    // The XA sink, on each side of every step of a branch.
    "mysql.xa.start.before",
    "mysql.xa.start.after",
    "mysql.xa.end.before",
    "mysql.xa.prepare.before",
    "mysql.xa.prepare.after",
    "mysql.xa.commit.before",
    "mysql.xa.commit.after",
    "mysql.xa.rollback.before",
    "mysql.xa.rollback.after",
    // The staging-table sink: rows are staged; a table is merged and not yet in the ledger.
    "mysql.staging.create.after",
    "mysql.staging.merge.before",
    "mysql.staging.merge.between",
    "mysql.staging.merge.after",
    "mysql.staging.drop.before",
];

/// Every fault point there is.
pub fn all() -> impl Iterator<Item = &'static str> {
    FAULT_POINTS.iter().chain(CONNECTOR_FAULT_POINTS).copied()
}

/// Whether `name` is in one of the lists; evaluated by the compiler.
#[doc(hidden)]
pub const fn is_listed(name: &str) -> bool {
    holds(FAULT_POINTS, name) || holds(CONNECTOR_FAULT_POINTS, name)
}

const fn holds(points: &[&str], name: &str) -> bool {
    let mut index = 0;
    while index < points.len() {
        if same(points[index].as_bytes(), name.as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}
