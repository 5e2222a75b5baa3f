//! Initialising a transactional id: a new producer for a transaction, or the end of somebody else's.
//!
//! `InitProducerId` raises the epoch: whoever used the id before is fenced, and a transaction that was open is aborted; the broker
//! answers 51 until that is done, and must be asked again.
//!
//! An answer that does not come leaves the request in the world: it may be done later. On the id of a dead attempt that is
//! harmless, so a *fence* asks again. On an id that a transaction is about to be written under, the late one would abort that
//! transaction, perhaps after its checkpoint completed; so an *opening* asks no second time: the subtask fails, and the next
//! attempt has ids of its own.
//!
//! Owns: the order of requests for one id. Does not own: which ids may be fenced (the sweep rule, law 6).
//! Runs on: the I/O side. Pure: answers in, the next request out.

use super::code::BrokerCode;
use super::settlement::{ASK_AGAIN_MS, TRIES_MAX};
use super::slot::Producer;
use crate::mutation::{self, Mutation};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialisationStep {
    /// Find the coordinator of the transactional id.
    FindCoordinator,
    /// Send `InitProducerId`.
    Initialise,
    /// Let this time pass.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// The id is this producer's; nothing of an earlier one is open.
    Done(Producer),
    /// It did not come to an end; nothing is known to be wrong.
    GaveUp(Option<BrokerCode>),
    /// The broker refuses for good.
    Refused(BrokerCode),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialisationAnswer {
    /// The coordinator is found, or the time has passed.
    Ready,
    /// The id is this producer's.
    Initialised(Producer),
    /// An error code.
    Code(BrokerCode),
    /// The connection failed, or no answer came in time.
    NoAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Open,
    Fence,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialisation {
    purpose: Purpose,
    step: InitialisationStep,
    tries_left: u32,
}

impl Initialisation {
    /// For a transaction that will be written under this id.
    pub const fn open() -> Self {
        Self::new(Purpose::Open)
    }

    /// To abort what is open under this id, and to fence whoever has it.
    pub const fn fence() -> Self {
        Self::new(Purpose::Fence)
    }

    const fn new(purpose: Purpose) -> Self {
        Self { purpose, step: InitialisationStep::FindCoordinator, tries_left: TRIES_MAX }
    }

    /// What to do next.
    pub const fn step(&self) -> InitialisationStep {
        self.step
    }

    /// What came of the last step.
    pub fn told(&mut self, answer: InitialisationAnswer) {
        use InitialisationStep::{Done, FindCoordinator, GaveUp, Initialise, Refused, Wait};
        let repeatable = self.purpose == Purpose::Fence || mutation::on(Mutation::OpeningAskedAgain);
        let asked = self.step == Initialise;
        self.step = match (self.step, answer) {
            (Done(_) | GaveUp(_) | Refused(_), _) => self.step,
            (Wait { .. }, _) => FindCoordinator,
            (FindCoordinator, InitialisationAnswer::Ready) => Initialise,
            (_, InitialisationAnswer::Ready) => self.step,
            (_, InitialisationAnswer::Initialised(producer)) => Done(producer),
            (_, InitialisationAnswer::Code(code)) if code.is_transient() => self.again(Some(code)),
            (_, InitialisationAnswer::Code(code)) => Refused(code),
            (_, InitialisationAnswer::NoAnswer) if asked && !repeatable => GaveUp(None),
            (_, InitialisationAnswer::NoAnswer) => self.again(None),
        };
    }

    fn again(&mut self, why: Option<BrokerCode>) -> InitialisationStep {
        self.tries_left = self.tries_left.saturating_sub(1);
        match self.tries_left {
            0 => InitialisationStep::GaveUp(why),
            _ => InitialisationStep::Wait { ms: ASK_AGAIN_MS },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use InitialisationAnswer::{Code, Initialised, NoAnswer, Ready};
    use InitialisationStep::{Done, FindCoordinator, GaveUp, Initialise, Refused, Wait};

    const PRODUCER: Producer = Producer { id: 7, epoch: 2 };

    fn walk(mut it: Initialisation, answers: &[InitialisationAnswer]) -> Vec<InitialisationStep> {
        let mut steps = vec![it.step()];
        for answer in answers {
            it.told(*answer);
            steps.push(it.step());
        }
        steps
    }

    #[test]
    fn an_open_transaction_is_aborted_first_and_the_id_asked_for_again() {
        let answers = [Ready, Code(BrokerCode::CONCURRENT_TRANSACTIONS), Ready, Ready, Initialised(PRODUCER)];
        let steps = walk(Initialisation::fence(), &answers);
        let wait = Wait { ms: ASK_AGAIN_MS };
        assert_eq!(steps, [FindCoordinator, Initialise, wait, FindCoordinator, Initialise, Done(PRODUCER)]);
    }

    #[test]
    fn a_fence_without_answer_is_sent_again_and_an_opening_is_not() {
        assert_eq!(walk(Initialisation::fence(), &[Ready, NoAnswer])[2], Wait { ms: ASK_AGAIN_MS });
        assert_eq!(walk(Initialisation::open(), &[Ready, NoAnswer])[2], GaveUp(None));
        // Nothing was sent: nothing can come late.
        assert_eq!(walk(Initialisation::open(), &[NoAnswer])[1], Wait { ms: ASK_AGAIN_MS });
    }

    #[test]
    fn it_gives_up_in_the_end_and_takes_a_refusal_at_once() {
        let round = [Ready, Code(BrokerCode::NOT_COORDINATOR), Ready];
        let answers: Vec<_> = round.iter().copied().cycle().take(3 * TRIES_MAX as usize).collect();
        let last = walk(Initialisation::fence(), &answers).pop();
        assert_eq!(last, Some(GaveUp(Some(BrokerCode::NOT_COORDINATOR))));
        let refused = BrokerCode::INVALID_TRANSACTION_TIMEOUT;
        assert_eq!(walk(Initialisation::open(), &[Ready, Code(refused)])[2], Refused(refused));
    }
}
