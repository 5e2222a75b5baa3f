//! What a command that starts runs makes ready for them: a topic with the orders, empty tables.
//!
//! Owns: that nothing of somebody else's is written over without a word. Does not own: the topic (`topic`), the tables (`database`).
//! Runs on: the main thread.

use std::path::Path;

use crate::address::{SinkAddress, SourceAddress};

/// What cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GroundError {
    /// The topic.
    #[cfg(feature = "rdkafka")]
    #[error(transparent)]
    Topic(#[from] crate::topic::TopicError),
    /// The tables.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Database(#[from] crate::database::DatabaseError),
}

/// Puts the orders of a folder where the job will read them; a folder stays as it is.
///
/// # Errors
/// [`GroundError`].
#[cfg_attr(not(feature = "rdkafka"), expect(unused_variables, reason = "there is no topic to fill"))]
pub(crate) fn fill(
    source: &SourceAddress,
    folder: &Path,
    partitions: u32,
    force: bool,
) -> Result<(), GroundError> {
    match source {
        #[cfg(feature = "rdkafka")]
        SourceAddress::Kafka(address) => {
            crate::topic::produce::fill_from(address, folder, partitions, force)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Makes the tables, or the topic, that the job will write to; a file the job makes itself.
///
/// # Errors
/// [`GroundError`].
#[cfg_attr(
    not(all(feature = "mysql", feature = "rdkafka")),
    allow(unused_variables, reason = "one of two servers is missing")
)]
pub(crate) fn empty(sink: &SinkAddress, partitions: u32, force: bool) -> Result<(), GroundError> {
    match sink {
        #[cfg(feature = "mysql")]
        SinkAddress::Mysql(address) => Ok(crate::database::tables::create(address, force)?),
        #[cfg(feature = "rdkafka")]
        SinkAddress::Kafka(address) => Ok(crate::topic::admin::create(address, partitions, force)?),
        _ => Ok(()),
    }
}
