//! What the folder shows decides what a commit does.
//!
//! A name tells job, log, lineage, sink, subtask, checkpoint, attempt and part, so a file of the finished name can only come from
//! this transaction: where it stands and the pending one is gone, the part was published.
//!
//! Owns: the decision. Does not own: looking and doing (see [`super::PartCommitter`]). Runs on: anywhere. Pure.

use std::fmt;

use crate::mutation::{self, Mutation};

/// What stands under a finished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishedFile {
    /// Nothing.
    Missing,
    /// The pending file itself, or a copy of it; or the pending one is gone.
    Ours,
    /// Something with other content than the pending file.
    Other,
}

/// What was found of one listed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartFacts {
    /// The length that the committable says.
    pub listed_bytes: u64,
    /// The length of the pending file; `None`: it is gone.
    pub pending_bytes: Option<u64>,
    /// What stands under the finished name.
    pub finished: FinishedFile,
}

/// What is left to do for one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartStep {
    /// Link it, then take the pending name away.
    Publish,
    /// It is published: take the pending name away.
    Unlink,
    /// It is done.
    Nothing,
}

/// Why a part is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LostPart {
    /// Neither pending nor finished.
    Gone,
    /// Pending, but not as long as it was.
    WrongLength {
        /// Its length now.
        is_bytes: u64,
        /// Its length at prepare.
        was_bytes: u64,
    },
}

impl fmt::Display for LostPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => {
                f.write_str("is neither pending nor finished: it was removed, or this is another folder")
            }
            Self::WrongLength { is_bytes, was_bytes } => {
                write!(f, "was changed: its pending file has {is_bytes} bytes, and had {was_bytes}")
            }
        }
    }
}

/// What to do about a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CommitPlan {
    /// A step for each part. All `Nothing`, or none to publish: it had been committed before.
    Steps(Vec<PartStep>),
    /// A part is lost: nothing more of the transaction is published.
    Lost {
        /// Which part.
        part: usize,
        /// Why.
        why: LostPart,
    },
    /// A foreign file has the name of a part.
    Taken {
        /// Which part.
        part: usize,
    },
}

impl CommitPlan {
    /// Whether everything was published before.
    pub fn is_committed(&self) -> bool {
        matches!(self, Self::Steps(steps) if !steps.contains(&PartStep::Publish))
    }
}

/// Decides one transaction. A part that is lost goes before one whose name is taken.
pub fn decide_commit(parts: &[PartFacts]) -> CommitPlan {
    let (mut steps, mut taken) = (Vec::with_capacity(parts.len()), None);
    for (part, facts) in parts.iter().enumerate() {
        let forgotten = mutation::on(Mutation::FinishedFileNotCommitted);
        let step = match (facts.pending_bytes, facts.finished) {
            (None, FinishedFile::Missing) => return CommitPlan::Lost { part, why: LostPart::Gone },
            (None, _) if forgotten => return CommitPlan::Lost { part, why: LostPart::Gone },
            (None, FinishedFile::Ours | FinishedFile::Other) => PartStep::Nothing,
            (Some(_), FinishedFile::Ours) => PartStep::Unlink,
            (Some(is_bytes), _) if is_bytes != facts.listed_bytes => {
                let why = LostPart::WrongLength { is_bytes, was_bytes: facts.listed_bytes };
                return CommitPlan::Lost { part, why };
            }
            (Some(_), FinishedFile::Missing) => PartStep::Publish,
            (Some(_), FinishedFile::Other) => {
                taken.get_or_insert(part);
                PartStep::Nothing
            }
        };
        steps.push(step);
    }
    match taken {
        Some(part) => CommitPlan::Taken { part },
        None => CommitPlan::Steps(steps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pending_bytes: Option<u64>, finished: FinishedFile) -> PartFacts {
        PartFacts { listed_bytes: 7, pending_bytes, finished }
    }

    fn decide(parts: &[(Option<u64>, FinishedFile)]) -> CommitPlan {
        let parts: Vec<_> = parts.iter().map(|(pending, finished)| facts(*pending, *finished)).collect();
        decide_commit(&parts)
    }

    #[test]
    fn each_pair_of_facts_has_its_step() {
        use FinishedFile::{Missing, Other, Ours};
        let one = |pending, finished| decide(&[(pending, finished)]);
        assert_eq!(one(Some(7), Missing), CommitPlan::Steps(vec![PartStep::Publish]));
        assert_eq!(one(Some(7), Ours), CommitPlan::Steps(vec![PartStep::Unlink]));
        assert_eq!(one(Some(9), Ours), CommitPlan::Steps(vec![PartStep::Unlink]), "published is published");
        assert_eq!(one(None, Ours), CommitPlan::Steps(vec![PartStep::Nothing]));
        assert_eq!(one(Some(7), Other), CommitPlan::Taken { part: 0 });
        assert_eq!(one(None, Missing), CommitPlan::Lost { part: 0, why: LostPart::Gone });
        let why = LostPart::WrongLength { is_bytes: 6, was_bytes: 7 };
        assert_eq!(one(Some(6), Missing), CommitPlan::Lost { part: 0, why });
        assert_eq!(one(Some(6), Other), CommitPlan::Lost { part: 0, why });
    }

    #[test]
    fn one_lost_part_keeps_all_others_from_being_published() {
        use FinishedFile::{Missing, Other, Ours};
        let plan = decide(&[(Some(7), Missing), (Some(7), Other), (None, Missing)]);
        assert_eq!(plan, CommitPlan::Lost { part: 2, why: LostPart::Gone });
        assert!(!plan.is_committed());
        assert!(decide(&[(None, Ours), (Some(7), Ours)]).is_committed());
        assert!(!decide(&[(None, Ours), (Some(7), Missing)]).is_committed());
        assert_eq!(decide(&[(None, Ours), (Some(7), Other)]), CommitPlan::Taken { part: 1 });
    }
}
