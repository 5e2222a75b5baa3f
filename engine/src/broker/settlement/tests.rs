//! Every answer that was measured, and what the settlement makes of it.

use super::*;
use SettlementAnswer::{Code, NoAnswer, Ready};
use SettlementStep::{Done, EndTxn, Find, ReadLedger, Refused, Wait};

const WAIT: SettlementStep = Wait { ms: ASK_AGAIN_MS };
/// Whose transaction is settled.
const OWN: AttemptId = AttemptId(3);

/// An entry that the transaction's own attempt wrote.
const fn ledger(newest: Option<u64>) -> SettlementAnswer {
    match newest {
        Some(newest) => ledger_of(newest, Some(OWN)),
        None => SettlementAnswer::Ledger(None),
    }
}

const fn ledger_of(newest: u64, attempt: Option<AttemptId>) -> SettlementAnswer {
    SettlementAnswer::Ledger(Some(LedgerEntry { checkpoint: CheckpointId(newest), attempt }))
}

fn after(answers: &[SettlementAnswer]) -> Settlement {
    let mut settlement = Settlement::new(OWN, CheckpointId(5));
    answers.iter().for_each(|answer| settlement.told(*answer));
    settlement
}

fn step(answers: &[SettlementAnswer]) -> SettlementStep {
    after(answers).step().clone()
}

/// Answers up to `EndTxn`, with a ledger that stands below.
const ASKED: [SettlementAnswer; 3] = [Ready, ledger(Some(4)), Ready];

fn asked_and(more: &[SettlementAnswer]) -> SettlementStep {
    step(&[&ASKED[..], more].concat())
}

#[test]
fn the_ledger_is_read_as_it_stands_before_anything_is_ended() {
    assert_eq!(step(&[]), Find(Coordinator::Ledger));
    assert_eq!(step(&[Ready]), ReadLedger { require_stable: false });
    for newest in [5, 6] {
        assert_eq!(step(&[Ready, ledger(Some(newest))]), Done(CommitOutcome::AlreadyCommitted));
    }
    for below in [None, Some(0), Some(4)] {
        assert_eq!(step(&[Ready, ledger(below)]), Find(Coordinator::Transaction));
        assert_eq!(step(&[Ready, ledger(below), Ready]), EndTxn);
    }
}

#[test]
fn a_ledger_of_a_lower_attempt_says_nothing_since_a_rewind_gives_its_ids_again() {
    for newest in [5, 9] {
        let before = ledger_of(newest, Some(AttemptId(2)));
        assert_eq!(step(&[Ready, before]), Find(Coordinator::Transaction));
        assert_eq!(step(&[Ready, before, Ready, Code(BrokerCode::NONE)]), Done(CommitOutcome::Committed));
        let doubt = [Ready, before, Ready, Code(BrokerCode::PRODUCER_FENCED), Ready, before];
        let Done(CommitOutcome::Lost { reason }) = step(&doubt) else { panic!("it is not committed") };
        assert!(reason.ends_with("its ledger is of an attempt before it"), "{reason}");
        for counts in [Some(OWN), Some(AttemptId(4)), None] {
            assert_eq!(step(&[Ready, ledger_of(newest, counts)]), Done(CommitOutcome::AlreadyCommitted));
        }
    }
}

#[test]
fn zero_is_committed() {
    assert_eq!(asked_and(&[Code(BrokerCode::NONE)]), Done(CommitOutcome::Committed));
}

#[test]
fn codes_of_a_coordinator_and_a_missing_answer_repeat_the_same_request() {
    for answer in [14, 15, 16, 51].map(|code| Code(BrokerCode(code))).into_iter().chain([NoAnswer]) {
        assert_eq!(asked_and(&[answer]), WAIT);
        assert_eq!(asked_and(&[answer, Ready]), Find(Coordinator::Transaction));
        assert_eq!(asked_and(&[answer, Ready, Ready]), EndTxn);
        assert_eq!(step(&[answer, Ready, Ready]), ReadLedger { require_stable: false });
    }
}

#[test]
fn no_code_alone_tells_committed_from_lost_the_stable_ledger_does() {
    for code in [47, 48, 49, 90].map(|code| Code(BrokerCode(code))) {
        assert_eq!(asked_and(&[code]), Find(Coordinator::Ledger));
        assert_eq!(asked_and(&[code, Ready]), ReadLedger { require_stable: true });
        assert_eq!(asked_and(&[code, Ready, ledger(Some(5))]), Done(CommitOutcome::AlreadyCommitted));
        for below in [None, Some(4)] {
            let Done(CommitOutcome::Lost { reason }) = asked_and(&[code, Ready, ledger(below)]) else {
                panic!("{code:?} with the ledger at {below:?} is lost")
            };
            assert!(reason.contains("broker error") && reason.contains("ledger"), "{reason}");
        }
    }
}

#[test]
fn while_markers_are_written_a_doubt_waits_for_a_stable_offset() {
    let unstable = Code(BrokerCode::UNSTABLE_OFFSET_COMMIT);
    let doubt = Code(BrokerCode::PRODUCER_FENCED);
    assert_eq!(asked_and(&[doubt, Ready, unstable]), WAIT);
    let seen = asked_and(&[doubt, Ready, unstable, Ready, Ready, ledger(Some(7))]);
    assert_eq!(seen, Done(CommitOutcome::AlreadyCommitted));
    let settlement = after(&[&ASKED[..], &[doubt, Ready, unstable]].concat());
    assert_eq!(settlement.doubt(), Some(BrokerCode::PRODUCER_FENCED));
}

#[test]
fn a_broker_that_stays_away_is_for_the_driver_to_retry_and_nothing_is_decided() {
    let round = [NoAnswer, Ready, Ready];
    let answers: Vec<_> =
        ASKED.into_iter().chain(round.into_iter().cycle().take(3 * TRIES_MAX as usize)).collect();
    assert!(matches!(step(&answers), Done(CommitOutcome::RetryAfter { .. })), "{:?}", step(&answers));
}

#[test]
fn any_other_code_is_a_refusal_and_stays_one() {
    let refused = Refused(BrokerCode(53));
    assert_eq!(asked_and(&[Code(BrokerCode(53))]), refused);
    assert_eq!(asked_and(&[Code(BrokerCode(53)), Code(BrokerCode::NONE)]), refused);
    assert_eq!(step(&[Code(BrokerCode(30))]), Refused(BrokerCode(30)));
}
