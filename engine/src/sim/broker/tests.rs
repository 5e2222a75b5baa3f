//! What the scripted history cannot say: time, moving coordinators, ids that are used again.

use super::*;
use TransactionState::{Ended, Ending, Ongoing};

const SETTINGS: BrokerSettings = BrokerSettings { marker_us: 10, timeout_us_max: 1_000 };
const NONE: Reply<&'static str> = Reply::Code(BrokerCode::NONE);

fn broker() -> Broker<&'static str, u8> {
    Broker::new(SETTINGS)
}

fn init(broker: &mut Broker<&'static str, u8>, now: u64) -> Producer {
    match broker.execute(Request::Init { id: "a", timeout_us: 500 }, now) {
        Reply::Producer(producer) => producer,
        other => panic!("{other:?}"),
    }
}

/// A transaction with one record and an offset.
fn write(broker: &mut Broker<&'static str, u8>, producer: Producer, record: u8, now: u64) {
    let requests = [
        Request::AddPartition("a", producer, "t".to_owned()),
        Request::Produce("a", producer, "t".to_owned(), vec![record]),
        Request::AddOffsets("a", producer, "g".to_owned()),
        Request::CommitOffset(
            "a",
            producer,
            "g".to_owned(),
            GroupOffset { offset: u64::from(record), note: 0 },
        ),
    ];
    for request in requests {
        assert_eq!(broker.execute(request.clone(), now), NONE, "{request:?}");
    }
}

fn commit(
    broker: &mut Broker<&'static str, u8>,
    producer: Producer,
    version: i16,
    now: u64,
) -> Reply<&'static str> {
    broker.execute(Request::End { id: "a", producer, commit: true, version }, now)
}

fn offset(broker: &mut Broker<&'static str, u8>, require_stable: bool, now: u64) -> Reply<&'static str> {
    broker.execute(Request::FetchOffset { group: "g".to_owned(), require_stable }, now)
}

#[test]
fn until_markers_are_written_nothing_is_visible_and_the_offset_is_not_stable() {
    let mut b = broker();
    let p = init(&mut b, 0);
    write(&mut b, p, 1, 0);
    assert_eq!(offset(&mut b, true, 0), Reply::Code(BrokerCode::UNSTABLE_OFFSET_COMMIT));
    assert_eq!(offset(&mut b, false, 0), Reply::Offset(None));
    assert_eq!(commit(&mut b, p, 4, 1), NONE);
    assert_eq!(commit(&mut b, p, 4, 5), Reply::Code(BrokerCode::CONCURRENT_TRANSACTIONS));
    assert!(b.read_committed("t").is_empty());
    assert_eq!((b.state_of(&"a").unwrap().1, b.next_due()), (Ending { commit: true, due: 11 }, Some(11)));
    b.settle(11);
    assert_eq!(offset(&mut b, true, 11), Reply::Offset(Some(GroupOffset { offset: 1, note: 0 })));
    assert_eq!(b.read_committed("t"), [&1]);
    assert_eq!((commit(&mut b, p, 4, 12), b.open()), (NONE, vec![]));
}

#[test]
fn a_late_retry_under_the_same_epoch_commits_the_next_transaction() {
    let mut b = broker();
    let p = init(&mut b, 0);
    write(&mut b, p, 1, 0);
    assert_eq!(commit(&mut b, p, 4, 1), NONE);
    b.settle(20);
    write(&mut b, p, 2, 20);
    assert_eq!(commit(&mut b, p, 4, 21), NONE);
    b.settle(40);
    assert_eq!(b.read_committed("t"), [&1, &2]);
    // A fresh initialisation refuses it.
    let q = init(&mut b, 40);
    write(&mut b, q, 3, 40);
    assert_eq!(commit(&mut b, p, 4, 41), Reply::Code(BrokerCode::PRODUCER_FENCED));
    assert_eq!(commit(&mut b, p, 1, 41), Reply::Code(BrokerCode::INVALID_PRODUCER_EPOCH));
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_aborted() {
    let mut b = broker();
    let p = init(&mut b, 0);
    write(&mut b, p, 1, 100);
    assert_eq!(b.next_due(), Some(601));
    b.settle(600);
    assert_eq!(b.open(), ["a"]);
    b.settle(601);
    b.settle(611);
    assert_eq!(b.state_of(&"a"), Some((Producer { epoch: 1, ..p }, Ended { commit: false })));
    assert_eq!(offset(&mut b, true, 611), Reply::Offset(None));
    assert!(b.read_committed("t").is_empty());
}

#[test]
fn while_coordinators_move_nothing_is_decided_and_nothing_is_forgotten() {
    let mut b = broker();
    let p = init(&mut b, 0);
    write(&mut b, p, 1, 0);
    b.fail_over(50);
    assert_eq!(commit(&mut b, p, 5, 1), Reply::Code(BrokerCode::NOT_COORDINATOR));
    assert_eq!(b.state_of(&"a").unwrap().1, Ongoing);
    assert_eq!(commit(&mut b, p, 5, 50), NONE);
    b.fail_over(200);
    b.settle(100);
    assert_eq!(b.next_due(), Some(200));
    b.settle(200);
    assert_eq!(b.read_committed("t"), [&1]);
}

#[test]
fn initialising_an_open_id_aborts_it_and_raises_the_epoch_twice() {
    let mut b = broker();
    let p = init(&mut b, 0);
    write(&mut b, p, 1, 0);
    let again = Request::Init { id: "a", timeout_us: 500 };
    assert_eq!(b.execute(again.clone(), 1), Reply::Code(BrokerCode::CONCURRENT_TRANSACTIONS));
    assert_eq!(b.execute(again.clone(), 5), Reply::Code(BrokerCode::CONCURRENT_TRANSACTIONS));
    assert_eq!(b.execute(again, 12), Reply::Producer(Producer { epoch: 2, ..p }));
    let late = Request::AddPartition("a", p, "t".to_owned());
    assert_eq!(b.execute(late, 13), Reply::Code(BrokerCode::PRODUCER_FENCED));
    let late = Request::Produce("a", p, "t".to_owned(), vec![2]);
    assert_eq!(b.execute(late, 13), Reply::Code(BrokerCode::INVALID_PRODUCER_EPOCH));
}
