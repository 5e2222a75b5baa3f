//! May a checkpoint be triggered now?
//!
//! Owns: the decision. Does not own: the facts it is decided by (see [`super::coordinator`]). Runs on: pure.

use std::time::Duration;

use super::config::CheckpointConfig;
use super::pending::Purpose;
use crate::clock::Moment;

/// What is decided by.
#[derive(Clone, Copy, Debug)]
pub struct TriggerFacts {
    /// Now.
    pub now: Moment,
    /// Whether every subtask has recovered: before that none may acknowledge.
    pub recovered: bool,
    /// When the attempt was recovered.
    pub since: Moment,
    /// When the newest checkpoint was triggered.
    pub triggered_at: Option<Moment>,
    /// When the newest end of one was.
    pub ended_at: Option<Moment>,
    /// How many are in flight, those whose entry is being written included.
    pub in_flight: u32,
    /// Barriers since the newest completed checkpoint, whatever became of them.
    pub barriers_out: u32,
    /// Whether a sink holds transactions, so that each barrier takes one of its places.
    pub transactional: bool,
    /// Whether somebody asked for one.
    pub requested: bool,
    /// Whether every subtask has ended.
    pub all_ended: bool,
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerDecision {
    /// Do it.
    TriggerNow(Purpose),
    /// Ask again at this moment.
    WaitUntil(Moment),
    /// Ask again when something has happened.
    WaitForEvent,
    /// Never again: every place for a sink's transactions but the writer's and the committer's is taken, and nothing in flight
    /// can free one. The job fails with this reason (law 5).
    NoPlaceLeft,
}

/// A last checkpoint that failed is tried again after this.
const LAST_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Decides.
pub fn decide_trigger(config: &CheckpointConfig, facts: &TriggerFacts) -> TriggerDecision {
    if !facts.recovered || facts.in_flight >= config.max_concurrent {
        return TriggerDecision::WaitForEvent;
    }
    if facts.all_ended && facts.in_flight > 0 {
        return TriggerDecision::WaitForEvent; // the last one comes after the pending one
    }
    if facts.transactional && facts.barriers_out >= config.barrier_places() {
        return match facts.in_flight {
            0 => TriggerDecision::NoPlaceLeft,
            _ => TriggerDecision::WaitForEvent,
        };
    }
    let (purpose, due) = if facts.all_ended {
        let failed_before = facts.barriers_out > 0;
        (
            Purpose::Last,
            facts.ended_at.filter(|_| failed_before).map_or(facts.now, |at| at + LAST_AGAIN_AFTER),
        )
    } else if facts.requested {
        (Purpose::Requested, facts.now)
    } else {
        let rhythm = facts.triggered_at.unwrap_or(facts.since) + config.interval();
        let pause = facts.ended_at.map_or(Moment::ZERO, |at| at + config.min_pause());
        (Purpose::Periodic, rhythm.max(pause))
    };
    match facts.now >= due {
        true => TriggerDecision::TriggerNow(purpose),
        false => TriggerDecision::WaitUntil(due),
    }
}

#[cfg(test)]
mod tests {
    use super::TriggerDecision::{NoPlaceLeft, TriggerNow, WaitForEvent, WaitUntil};
    use super::*;

    fn s(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn facts() -> TriggerFacts {
        TriggerFacts {
            now: s(15),
            recovered: true,
            since: s(1),
            triggered_at: None,
            ended_at: None,
            in_flight: 0,
            barriers_out: 0,
            transactional: true,
            requested: false,
            all_ended: false,
        }
    }

    fn decide(facts: TriggerFacts) -> TriggerDecision {
        decide_trigger(&CheckpointConfig { min_pause_ms: 4_000, ..Default::default() }, &facts)
    }

    #[test]
    fn the_interval_runs_from_the_last_trigger_and_the_pause_from_the_last_end() {
        assert_eq!(decide(facts()), TriggerNow(Purpose::Periodic));
        assert_eq!(decide(TriggerFacts { now: s(10), ..facts() }), WaitUntil(s(11)));
        let running = TriggerFacts { triggered_at: Some(s(11)), ended_at: Some(s(12)), ..facts() };
        assert_eq!(decide(running), WaitUntil(s(21)));
        let slow = TriggerFacts { now: s(22), ended_at: Some(s(20)), ..running };
        assert_eq!(decide(slow), WaitUntil(s(24)));
    }

    #[test]
    fn nothing_is_triggered_before_all_recovered_or_beyond_the_bound() {
        assert_eq!(decide(TriggerFacts { recovered: false, requested: true, ..facts() }), WaitForEvent);
        assert_eq!(decide(TriggerFacts { in_flight: 1, requested: true, ..facts() }), WaitForEvent);
        assert_eq!(
            decide(TriggerFacts { now: s(2), requested: true, ..facts() }),
            TriggerNow(Purpose::Requested)
        );
    }

    #[test]
    fn the_last_one_comes_after_the_pending_one_and_is_repeated() {
        let ended = TriggerFacts { now: s(2), all_ended: true, ..facts() };
        assert_eq!(decide(TriggerFacts { in_flight: 1, ..ended }), WaitForEvent);
        assert_eq!(decide(ended), TriggerNow(Purpose::Last));
        let failed = TriggerFacts { ended_at: Some(s(2)), barriers_out: 1, ..ended };
        assert_eq!(decide(failed), WaitUntil(s(2) + LAST_AGAIN_AFTER));
    }

    #[test]
    fn when_no_place_is_left_the_job_fails_unless_one_in_flight_can_free_them() {
        let full = TriggerFacts { barriers_out: 4, ..facts() };
        assert_eq!(decide(full), NoPlaceLeft);
        assert_eq!(decide(TriggerFacts { transactional: false, ..full }), TriggerNow(Purpose::Periodic));
        let two = CheckpointConfig { max_concurrent: 2, ..Default::default() };
        assert_eq!(
            decide_trigger(&two, &TriggerFacts { barriers_out: 5, in_flight: 1, ..facts() }),
            WaitForEvent
        );
    }
}
