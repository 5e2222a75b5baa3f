//! A chain stops anywhere, loses nothing, and lets a barrier pass only when nothing is in hand.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::element::{AlignmentMode, CheckpointKind, SplitRun, SplitStanding};
use crate::ids::CheckpointId;
use crate::operator::StageLimits;
use crate::operator::flat_map::FlatMap;
use crate::operator::map::{Identity, Map};
use crate::operator::watermarks::{AssignWatermarks, Watermarks};

/// What came to the end of a chain.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Records(Vec<u64>),
    Watermark(i64),
    Status(StreamStatus),
    End,
    Barrier(u64),
}

/// A stage with room for so many batches; then it is blocked until room is made.
#[derive(Clone, Default)]
struct Probe {
    seen: Rc<RefCell<Vec<Seen>>>,
    room: Rc<RefCell<usize>>,
}

impl AnyStage for Probe {
    fn resume(&mut self, _cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        Ok(if *self.room.borrow() == 0 { Flow::Blocked } else { Flow::Idle })
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        _parts: &mut Vec<OperatorPart>,
        _cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        self.seen.borrow_mut().push(Seen::Barrier(barrier.id.0));
        Ok(())
    }

    fn control(&mut self, _control: StageControl, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        Ok(())
    }

    fn poll(&mut self, _cx: &mut StageContext) -> Result<bool, TaskFailure> {
        Ok(false)
    }

    fn status(&self) -> StageStatus {
        StageStatus::SETTLED
    }
}

impl Stage<u64> for Probe {
    fn push(&mut self, element: StageElement<u64>, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        assert!(*self.room.borrow() > 0, "an element was pushed into a blocked stage");
        self.seen.borrow_mut().push(match element {
            StageElement::Records(batch) => {
                *self.room.borrow_mut() -= 1;
                Seen::Records(batch.values)
            }
            StageElement::Watermark(at) => Seen::Watermark(at.0),
            StageElement::EndOfData => Seen::End,
            StageElement::Status(status) => Seen::Status(status),
        });
        Ok(())
    }
}

const BATCH: usize = 4;

fn context() -> StageContext {
    StageContext::new(StageLimits { batch_records: BATCH, batch_age: Duration::from_millis(5) })
}

fn chain<Op: Operator<u64, u64>>(op: Op, probe: &Probe, ended: bool) -> Chained<u64, u64, Op> {
    let stages: Vec<Box<dyn Stage<u64>>> = vec![Box::new(probe.clone())];
    Chained::new(Arc::from("op"), op, Downstream::new(stages), BATCH, ended)
}

fn records(values: Vec<u64>) -> StageElement<u64> {
    StageElement::Records(Batch::of(values))
}

fn count(seen: &[Seen]) -> usize {
    seen.iter().map(|s| if let Seen::Records(values) = s { values.len() } else { 0 }).sum()
}

#[test]
fn one_record_that_becomes_ten_million_stops_at_the_first_full_batch() {
    let probe = Probe::default();
    *probe.room.borrow_mut() = 2;
    let explode = FlatMap::<_, std::ops::Range<u64>>::new(|n: u64| 0..n);
    let (mut chain, mut cx) = (chain(explode, &probe, false), context());
    chain.push(records(vec![10_000_000]), &mut cx).unwrap();
    let mut steps = 0;
    while chain.resume(&mut cx).unwrap() == Flow::More {
        steps += 1;
        assert!(count(&probe.seen.borrow()) <= 2 * BATCH);
    }
    assert!(steps >= 1, "one call of the operator a step");
    assert_eq!(chain.resume(&mut cx).unwrap(), Flow::Blocked);
    assert_eq!(count(&probe.seen.borrow()), 2 * BATCH);
    // Room for one more batch: exactly the next records come, and the iterator goes on where it stopped.
    *probe.room.borrow_mut() = 1;
    assert_ne!(chain.resume(&mut cx).unwrap(), Flow::Idle);
    assert_eq!(probe.seen.borrow().last(), Some(&Seen::Records(vec![8, 9, 10, 11])));
}

#[test]
fn a_watermark_waits_for_the_records_before_it() {
    let probe = Probe::default();
    *probe.room.borrow_mut() = 100;
    let twice = FlatMap::<_, [u64; 2]>::new(|n: u64| [n, n]);
    let (mut chain, mut cx) = (chain(twice, &probe, false), context());
    chain.push(records(vec![1, 2, 3]), &mut cx).unwrap();
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
    chain.push(StageElement::Watermark(EventTime(7)), &mut cx).unwrap();
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
    let expected = [Seen::Records(vec![1, 1, 2, 2]), Seen::Records(vec![3, 3]), Seen::Watermark(7)];
    assert_eq!(*probe.seen.borrow(), expected);
}

/// Emits twelve records at the end, whatever came before.
struct LastWords {
    calls: Rc<RefCell<u32>>,
}

impl Operator<u64, u64> for LastWords {
    fn process(
        &mut self,
        input: &mut BatchCursor<u64>,
        _out: &mut Output<u64>,
    ) -> Result<Progress, JobError> {
        input.take_rest();
        Ok(Progress::Done)
    }

    fn on_end(&mut self, out: &mut Output<u64>) -> Result<Progress, JobError> {
        *self.calls.borrow_mut() += 1;
        (0..12).for_each(|n| out.emit(n));
        Ok(Progress::Done)
    }
}

#[test]
fn the_last_word_is_spoken_once_and_end_of_data_follows_it_even_if_output_is_blocked_in_between() {
    let (probe, calls) = (Probe::default(), Rc::default());
    *probe.room.borrow_mut() = 1;
    let (mut chain, mut cx) = (chain(LastWords { calls: Rc::clone(&calls) }, &probe, false), context());
    chain.push(StageElement::EndOfData, &mut cx).unwrap();
    assert_eq!(chain.resume(&mut cx).unwrap(), Flow::Blocked);
    assert_eq!(chain.resume(&mut cx).unwrap(), Flow::Blocked);
    assert_eq!(*probe.seen.borrow(), [Seen::Records(vec![0, 1, 2, 3])]);
    *probe.room.borrow_mut() = 3;
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
    assert_eq!(*calls.borrow(), 1);
    assert_eq!(probe.seen.borrow().last(), Some(&Seen::End));
    assert_eq!(count(&probe.seen.borrow()), 12);
}

#[test]
fn a_restored_subtask_that_had_ended_sends_end_of_data_again_without_its_last_word() {
    let (probe, calls) = (Probe::default(), Rc::default());
    *probe.room.borrow_mut() = 100;
    let (mut chain, mut cx) = (chain(LastWords { calls: Rc::clone(&calls) }, &probe, true), context());
    chain.push(StageElement::EndOfData, &mut cx).unwrap();
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
    assert_eq!((*calls.borrow(), probe.seen.borrow().as_slice()), (0, &[Seen::End][..]));
}

#[test]
fn a_barrier_reaches_the_end_of_the_chain_behind_the_records_before_it() {
    let probe = Probe::default();
    *probe.room.borrow_mut() = 100;
    let (mut chain, mut cx) = (chain(Map(|n: u64| n + 1), &probe, false), context());
    chain.push(records(vec![1]), &mut cx).unwrap();
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
    let barrier = CheckpointBarrier {
        id: CheckpointId(3),
        kind: CheckpointKind::Checkpoint,
        alignment: AlignmentMode::Aligned,
        newest_completed: CheckpointId(0),
        triggered_at_us: 0,
    };
    chain.snapshot(&barrier, &mut Vec::new(), &mut cx).unwrap();
    assert_eq!(*probe.seen.borrow(), [Seen::Records(vec![2]), Seen::Barrier(3)]);
}

#[test]
fn a_failing_function_is_named() {
    #[derive(Clone)]
    struct Fails;
    impl Operator<u64, u64> for Fails {
        fn process(
            &mut self,
            _input: &mut BatchCursor<u64>,
            _out: &mut Output<u64>,
        ) -> Result<Progress, JobError> {
            Err(JobError::msg("no such customer"))
        }
    }
    let probe = Probe::default();
    *probe.room.borrow_mut() = 1;
    let (mut chain, mut cx) = (chain(Fails, &probe, false), context());
    chain.push(records(vec![1]), &mut cx).unwrap();
    let failure = chain.resume(&mut cx).unwrap_err().to_string();
    assert_eq!(failure, "operator \"op\": no such customer");
}

/// What a source's head does: notes in front of the batch that they are about.
fn read(chain: &mut Chained<u64, u64, Identity>, at_ms: u64, splits: &[(u32, SplitStanding, Vec<u64>)]) {
    let mut cx = context();
    let runs =
        splits.iter().map(|(split, _, records)| SplitRun { split: *split, records: records.len() }).collect();
    let standings = splits.iter().map(|(split, standing, _)| (*split, *standing)).collect();
    let now = Duration::from_millis(at_ms);
    chain.note_splits(&SplitNotes { now, waited: true, runs, splits: standings }, &mut cx);
    let values: Vec<u64> = splits.iter().flat_map(|(_, _, records)| records.clone()).collect();
    if !values.is_empty() {
        chain.push(records(values), &mut cx).unwrap();
    }
    while chain.resume(&mut cx).unwrap() != Flow::Idle {}
}

#[test]
fn each_split_of_a_source_has_its_own_watermark_and_a_status_goes_before_the_records_that_change_it() {
    let probe = Probe::default();
    *probe.room.borrow_mut() = usize::MAX;
    let strategy = Watermarks::ascending().event_time(|time: &u64| i64::try_from(*time).unwrap());
    let marks = AssignWatermarks::new(strategy.with_idleness(Duration::from_secs(1)));
    let stages: Vec<Box<dyn Stage<u64>>> = vec![Box::new(chain(marks, &probe, false))];
    let mut source = Chained::new(Arc::from("source"), Identity, Downstream::new(stages), BATCH, false);
    assert!(source.hears_splits());
    let mut after = |at_ms, splits: &[(u32, SplitStanding, Vec<u64>)]| {
        read(&mut source, at_ms, splits);
        probe.seen.take()
    };
    use SplitStanding::CaughtUp;
    let first = after(0, &[(0, CaughtUp, vec![100, 200]), (1, CaughtUp, vec![50])]);
    assert_eq!(first, [Seen::Records(vec![100, 200, 50]), Seen::Watermark(49)], "the slower split counts");
    let later = after(900, &[(0, CaughtUp, vec![300]), (1, CaughtUp, vec![])]);
    assert_eq!(later, [Seen::Records(vec![300])]);
    let idle = after(1_000, &[(0, CaughtUp, vec![]), (1, CaughtUp, vec![])]);
    assert_eq!(idle, [Seen::Watermark(299)], "the silent split holds nobody back");
    let all_idle = after(2_000, &[(0, CaughtUp, vec![]), (1, CaughtUp, vec![])]);
    assert_eq!(all_idle, [Seen::Status(StreamStatus::Idle)]);
    let active = after(2_100, &[(0, CaughtUp, vec![400]), (1, CaughtUp, vec![])]);
    let expected = [Seen::Status(StreamStatus::Active), Seen::Records(vec![400]), Seen::Watermark(399)];
    assert_eq!(active, expected);
}
