//! Random events in random order: subtasks that acknowledge, decline, commit, end, doubled and late; puts that settle at any
//! time; cancels. After every event the laws that can be seen from outside must hold.

use super::harness::*;
use crate::checkpoint::CheckpointConfig;
use crate::checkpoint::commit_log::{EntryBody, Settled};
use crate::ids::{AttemptId, CheckpointId, SubtaskId};
use crate::jobmanager::AttemptEnd;
use crate::jobmanager::job_master::{Control, MasterAction, MasterEvent};
use crate::taskworker::mail::{MailBody, TaskEvent, TaskReport};

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// What an observer knows.
#[derive(Default)]
struct Seen {
    last_entry: u64,
    put: Option<(u64, Option<u64>)>,
    completed: u64,
    triggered: u64,
    finished: bool,
    finish_said: bool,
    cancel_said: bool,
    ends: Vec<&'static str>,
}

impl Seen {
    fn look(&mut self, actions: Vec<MasterAction>) {
        for action in actions {
            assert!(self.ends.is_empty(), "{action:?} after {:?}", self.ends);
            match action {
                MasterAction::Append { number, entry } => {
                    assert!(self.put.is_none(), "a put before the one before is settled");
                    assert_eq!(number.0, self.last_entry + 1, "own last + 1");
                    let id = entry.manifest().map(|m| m.checkpoint.0);
                    assert!(id.is_none_or(|id| id > self.completed), "ids rise within the log");
                    self.finished = entry.body == EntryBody::Finished;
                    self.put = Some((number.0, id));
                }
                MasterAction::Mail { mail, .. } => self.mail(&mail.body),
                MasterAction::End(end) => self.ends.push(match end {
                    AttemptEnd::Finished => "finished",
                    AttemptEnd::Canceled => "canceled",
                    AttemptEnd::Fenced { .. } => "fenced",
                    AttemptEnd::Failed { .. } => "failed",
                    AttemptEnd::Lost(_) => "lost",
                    AttemptEnd::Replaced { .. } => "replaced",
                }),
                MasterAction::Clean(_) | MasterAction::Discover { .. } | MasterAction::Notice(_) => {}
            }
        }
    }

    fn mail(&mut self, body: &MailBody) {
        match body {
            MailBody::NotifyComplete { id } => {
                assert!(id.0 <= self.completed, "{id} told before its entry stands")
            }
            MailBody::Trigger(barrier) => {
                assert!(barrier.newest_completed.0 <= self.completed);
                assert!(!self.cancel_said && !self.finish_said);
                self.triggered = self.triggered.max(barrier.id.0);
            }
            MailBody::Cancel { newest_completed } => {
                assert_eq!(newest_completed.0, self.completed);
                assert!(self.put.is_none(), "canceled while a put is in flight");
                self.cancel_said = true;
            }
            MailBody::Finish => {
                assert!(self.finished && self.put.is_none(), "finish before it stands in the log");
                self.finish_said = true;
            }
            MailBody::NotifyAbort { id } => {
                assert!(
                    self.put.is_none_or(|(_, put)| put != Some(id.0)),
                    "aborted while its entry is being put"
                );
            }
            MailBody::AssignSplits { .. } | MailBody::NoMoreSplits => {}
        }
    }
}

fn subtask_event(dice: &mut Dice, seen: &Seen, ending: bool) -> TaskEvent {
    let id = (seen.triggered + 1).saturating_sub(dice.roll(3)).max(1);
    match dice.roll(if ending { 14 } else { 12 }) {
        0 if dice.roll(4) == 0 => TaskEvent::Decline { id: CheckpointId(id), reason: "random".into() },
        0..=5 => TaskEvent::Acknowledge(ack(id, false)),
        6..=8 => {
            let up_to = CheckpointId(dice.roll(seen.completed + 2));
            TaskEvent::Committed { uid: "sink".into(), up_to, prepared: 0, swept: dice.roll(2) == 0 }
        }
        9 => TaskEvent::MailAcked { seq: dice.roll(20) },
        10 => TaskEvent::Finished,
        11 => TaskEvent::Canceled,
        _ => TaskEvent::Ended,
    }
}

fn run(seed: u64) -> &'static str {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let max_concurrent = 1 + u32::try_from(dice.roll(2)).unwrap();
    let mut h = Harness::recovered(CheckpointConfig { max_concurrent, tolerable_failures: 8, ..config() });
    let mut seen = Seen { last_entry: 5, ..Seen::default() };
    for step in 0..800 {
        match dice.roll(20) {
            0..=2 => h.pass(ms(dice.roll(700))),
            3 | 4 if let Some((number, id)) = seen.put => {
                let outcome = if dice.roll(40) == 0 { Settled::Fenced } else { Settled::Ours };
                if outcome == Settled::Ours {
                    (seen.put, seen.last_entry) = (None, number);
                    seen.completed = id.unwrap_or(seen.completed);
                }
                h.settle(number, outcome);
            }
            5 if dice.roll(150) == 0 => h.tell(MasterEvent::Control(Control::Cancel)),
            6 => h.tell(MasterEvent::Control(Control::TriggerCheckpoint)),
            7 => h.tell(MasterEvent::Cleaned { entries: Vec::new() }),
            _ => {
                let all: Vec<SubtaskId> = SOURCES.into_iter().chain(SINKS).collect();
                let subtask = all[usize::try_from(dice.roll(4)).unwrap()];
                let attempt = if dice.roll(10) == 0 { AttemptId(4) } else { ATTEMPT };
                let event = subtask_event(&mut dice, &seen, step > 300);
                h.tell(MasterEvent::Task(TaskReport { attempt, subtask, event }));
            }
        }
        seen.look(h.take());
    }
    seen.ends.first().copied().unwrap_or("running")
}

#[test]
fn in_any_order_of_events_the_laws_hold() {
    let mut ends = std::collections::BTreeMap::<_, u32>::new();
    for seed in 0..100 {
        *ends.entry(run(seed)).or_default() += 1;
    }
    for end in ["finished", "canceled", "fenced"] {
        assert!(ends.get(end).is_some_and(|n| *n >= 2), "{ends:?}");
    }
}
