//! Lines of text, where there is no terminal: few, since they go into a log.
//!
//! Owns: the words. Does not own: what they say.
//! Runs on: the thread that runs the job.

use std::io::Write;
use std::time::Duration;

use indicatif::HumanCount;

use crate::engine::clock::{Moment, SharedClock};
use crate::run_event::{RunEvent, Watcher};

/// Progress is a line no more often than this.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Writes lines of text.
pub struct PlainLines {
    job: String,
    to: Box<dyn Write>,
    clock: SharedClock,
    next_progress: Moment,
    newest: Newest,
}

/// The newest completed checkpoint: people need its id to go back to it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Newest(Option<u64>);

impl Newest {
    pub(super) fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Checkpoint { id, .. } => self.0 = Some(*id),
            RunEvent::Started { restored: Some(id), .. } => self.0 = Some(*id),
            _ => {}
        }
    }

    /// `14 checkpoints (newest: 21)`.
    pub(super) fn counted(self, checkpoints: u64) -> String {
        let s = if checkpoints == 1 { "" } else { "s" };
        let newest = self.0.map_or_else(String::new, |id| format!(" (newest: {id})"));
        format!("{checkpoints} checkpoint{s}{newest}")
    }
}

impl PlainLines {
    /// To standard output.
    pub fn to_stdout(job: &str, clock: SharedClock) -> Self {
        let (to, newest) = (Box::new(std::io::stdout()), Newest::default());
        Self { job: job.to_owned(), to, clock, next_progress: Moment::ZERO, newest }
    }
}

impl Watcher for PlainLines {
    fn listening(&mut self, control: &str) {
        let _ = writeln!(self.to, "{}: answers at {control}", self.job);
    }

    fn event(&mut self, event: &RunEvent) {
        self.newest.hear(event);
        if matches!(event, RunEvent::Progress { .. }) {
            let now = self.clock.now();
            if now < self.next_progress {
                return;
            }
            self.next_progress = now + PROGRESS_EVERY;
        }
        if let Some(line) = words(event, self.newest) {
            // A reader that has gone does not concern the job.
            let _ = writeln!(self.to, "{}: {line}", self.job);
        }
    }
}

/// An event in words; `None` for those that would only fill a log.
pub(super) fn words(event: &RunEvent, newest: Newest) -> Option<String> {
    Some(match event {
        RunEvent::Started { restored: None, rolled_back: 0, .. } => "started without a checkpoint".to_owned(),
        RunEvent::Started { restored: None, rolled_back, .. } => {
            format!("started without a checkpoint; rolled back {rolled_back}")
        }
        RunEvent::Started { restored: Some(id), restore_ms, committed, rolled_back, .. } => format!(
            "restored from checkpoint {id} in {restore_ms} ms; committed {committed}, rolled back {rolled_back}"
        ),
        RunEvent::GivenUp { transaction, sink, after, up_to, reason } => format!(
            "warning: goes on without transaction {transaction}, as was decided: records of {sink} after checkpoint {after} up to checkpoint \
             {up_to} are not in the output ({reason})"
        ),
        RunEvent::Progress { records_in, records_total, checkpoints, .. } => {
            let of = records_total.map_or_else(String::new, |total| format!(" of {}", HumanCount(total)));
            format!("{}{of} records, {}", HumanCount(*records_in), newest.counted(*checkpoints))
        }
        RunEvent::Checkpoint { .. } | RunEvent::Committed { .. } | RunEvent::Failed { .. } => return None,
        RunEvent::CheckpointFailed { id, reason } => format!("checkpoint {id} failed: {reason}"),
        RunEvent::RepeatedOutput { sinks, written, repeated, window_ms, in_transactions } => {
            let (repeated, written, window_s) =
                (HumanCount(*repeated), HumanCount(*written), window_ms / 1_000);
            let what_of_it = match in_transactions {
                true => "those transactions were rolled back, and the output has them once",
                false => "without transactions they are in the output twice",
            };
            format!(
                "warning: {repeated} of the {written} records that {sinks} wrote in the last {window_s} s had been written before the job \
                 failed; {what_of_it}"
            )
        }
        RunEvent::Restarting { cause, after_ms } => format!("failed, starts again in {after_ms} ms: {cause}"),
        RunEvent::Finished { records_in, checkpoints, elapsed_ms } => {
            ending("finished", *records_in, &newest.counted(*checkpoints), *elapsed_ms)
        }
        RunEvent::Canceled { settled: true, records_in, checkpoints, elapsed_ms } => {
            ending("canceled", *records_in, &newest.counted(*checkpoints), *elapsed_ms)
        }
        RunEvent::Canceled { settled: false, .. } => {
            "canceled before it had begun; what an earlier run left prepared is settled by the next start"
                .to_owned()
        }
    })
}

fn ending(how: &str, records_in: u64, checkpoints: &str, elapsed_ms: u64) -> String {
    let seconds = format!("{}.{} s", elapsed_ms / 1_000, elapsed_ms % 1_000 / 100);
    let records = if records_in == 1 { "record" } else { "records" };
    format!("{how} after {seconds}: {} {records}, {checkpoints}", HumanCount(records_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_documents() {
        let restored = RunEvent::Started {
            attempt: 9,
            restored: Some(14),
            restore_ms: 61,
            committed: 2,
            rolled_back: 1,
        };
        let expected = "restored from checkpoint 14 in 61 ms; committed 2, rolled back 1";
        assert_eq!(words(&restored, Newest::default()).as_deref(), Some(expected));
        let finished = RunEvent::Finished { records_in: 69_659, checkpoints: 31, elapsed_ms: 2_950 };
        let mut newest = Newest::default();
        newest.hear(&RunEvent::Checkpoint { id: 45, duration_ms: 3, bytes: 9 });
        let expected = "finished after 2.9 s: 69,659 records, 31 checkpoints (newest: 45)";
        assert_eq!(words(&finished, newest).as_deref(), Some(expected));
        let one = ending("finished", 1, "1 checkpoint", 100);
        assert_eq!(one, "finished after 0.1 s: 1 record, 1 checkpoint");
        assert_eq!(Newest::default().counted(1), "1 checkpoint");
    }
}
