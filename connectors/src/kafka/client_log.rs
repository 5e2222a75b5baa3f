//! What librdkafka writes into its log, sorted for ours.
//!
//! While brokers are away each of its threads says so several times a second. Who waits for them (the source, a delivery) says it once and has the
//! reason, so that these lines are for debugging.
//!
//! Owns: the levels. Does not own: what follows from a line. Runs on: threads of librdkafka.

use rdkafka::config::RDKafkaLogLevel;

/// A connection that was not made or has ended.
const CONNECTION_FAILED: &str = "FAIL";

/// Hands a line on.
pub(super) fn log_line(level: RDKafkaLogLevel, facility: &str, line: &str) {
    match level {
        RDKafkaLogLevel::Debug => tracing::trace!(target: "librdkafka", facility, "{line}"),
        RDKafkaLogLevel::Info | RDKafkaLogLevel::Notice => {
            tracing::debug!(target: "librdkafka", facility, "{line}");
        }
        _ if facility == CONNECTION_FAILED => tracing::debug!(target: "librdkafka", facility, "{line}"),
        _ => tracing::warn!(target: "librdkafka", facility, "{line}"),
    }
}
