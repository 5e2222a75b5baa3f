//! Publishes pending parts, lists what is staged, removes what is rolled back.
//!
//! A commit looks at every part first, decides ([`decide_commit`]), links, and takes pending names away last: whatever a crash leaves
//! is one of the cases that the next look tells apart. Whoever was overtaken between look and link looks again.
//!
//! Owns: the order of steps. Does not own: which transaction is committed or rolled back, and when. Runs on: the I/O side.

use tidegate_state::fault_point;

use super::decide::{CommitPlan, FinishedFile, PartFacts, PartStep, decide_commit};
use super::name::PartName;
use super::{PartError, PartFolder, Published, WrittenPart, WrittenParts};
use crate::api::{ConnectorError, Prepared};
use crate::operator::{CommitOutcome, TransactionName, TransactionScope};

/// So often a commit looks again because somebody else had changed what it had seen.
const LOOKS_MAX: u32 = 4;
/// So often a rollback lists again until nothing is left.
const LISTINGS_MAX: u32 = 8;
/// Pause before a full disk is asked again, in milliseconds.
const NO_ROOM_RETRY_MS: u64 = 1_000;

/// See the module.
#[derive(Debug)]
pub struct PartCommitter<F> {
    folder: F,
    scope: TransactionScope,
}

/// How the steps of a plan came out.
enum Carried {
    Done,
    /// The link of this part met what the look had not seen.
    LookAgain(usize),
    NoRoom(String),
}

impl<F: PartFolder> PartCommitter<F> {
    /// A committer for a sink in one log of its job.
    pub fn new(folder: F, scope: TransactionScope) -> Self {
        Self { folder, scope }
    }

    /// Commits one transaction: idempotent, also beside another committer of it.
    ///
    /// # Errors
    /// The file system failed, or a foreign file has the name of a part.
    pub async fn commit(&self, item: &Prepared<WrittenParts>) -> Result<CommitOutcome, ConnectorError> {
        let parts = &item.committable.parts;
        let mut in_the_way = 0;
        for _ in 0..LOOKS_MAX {
            let plan = decide_commit(&self.look(parts).await?);
            let steps = match &plan {
                CommitPlan::Lost { part, why } => {
                    let WrittenPart { finished, records, .. } = &parts[*part];
                    let reason = format!("the part {finished} with {records} records {why}");
                    return Ok(CommitOutcome::Lost { reason });
                }
                CommitPlan::Taken { part } => {
                    in_the_way = *part;
                    break;
                }
                CommitPlan::Steps(steps) => steps,
            };
            match self.carry_out(parts, steps).await? {
                Carried::Done if plan.is_committed() => return Ok(CommitOutcome::AlreadyCommitted),
                Carried::Done => return Ok(CommitOutcome::Committed),
                Carried::LookAgain(part) => in_the_way = part,
                Carried::NoRoom(reason) => {
                    return Ok(CommitOutcome::RetryAfter { ms: NO_ROOM_RETRY_MS, reason });
                }
            }
        }
        // Looks that contradict the links: something that is no file has a name of ours.
        let WrittenPart { pending, finished, .. } = parts[in_the_way].clone();
        Err(PartError::NameTaken { finished, pending, name: Box::new(item.name.clone()) }.into())
    }

    async fn look(&self, parts: &[WrittenPart]) -> Result<Vec<PartFacts>, ConnectorError> {
        let mut facts = Vec::with_capacity(parts.len());
        for part in parts {
            facts.push(self.look_at(part).await?);
        }
        Ok(facts)
    }

    /// The pending name first: it goes after the finished one has come, so a part that was published meanwhile is never missed.
    async fn look_at(&self, part: &WrittenPart) -> Result<PartFacts, ConnectorError> {
        let listed_bytes = part.bytes;
        for _ in 0..LOOKS_MAX {
            let pending_bytes = self.folder.length(&part.pending).await?;
            let finished = match (pending_bytes, self.folder.length(&part.finished).await?) {
                (_, None) => FinishedFile::Missing,
                (None, Some(_)) => FinishedFile::Ours,
                (Some(_), Some(_)) => match self.folder.is_same(&part.pending, &part.finished).await? {
                    Some(true) => FinishedFile::Ours,
                    Some(false) => FinishedFile::Other,
                    None => continue,
                },
            };
            return Ok(PartFacts { listed_bytes, pending_bytes, finished });
        }
        Ok(PartFacts { listed_bytes, pending_bytes: Some(listed_bytes), finished: FinishedFile::Other })
    }

    /// Every finished name stands before the first pending one goes.
    async fn carry_out(&self, parts: &[WrittenPart], steps: &[PartStep]) -> Result<Carried, ConnectorError> {
        for (index, (part, step)) in parts.iter().zip(steps).enumerate() {
            match step {
                PartStep::Nothing => {}
                PartStep::Unlink => self.folder.settle(&part.finished).await?,
                PartStep::Publish => {
                    fault_point!("file_sink.link.before");
                    match self.folder.publish(&part.pending, &part.finished).await? {
                        Published::Done => {}
                        Published::Taken | Published::Gone => return Ok(Carried::LookAgain(index)),
                        Published::NoRoom { reason } => return Ok(Carried::NoRoom(reason)),
                    }
                    fault_point!("file_sink.link.after");
                }
            }
        }
        for (part, step) in parts.iter().zip(steps) {
            if *step != PartStep::Nothing {
                fault_point!("file_sink.unlink.before");
                self.folder.remove(&part.pending).await?;
                fault_point!("file_sink.unlink.after");
            }
        }
        Ok(Carried::Done)
    }

    /// Transactions with an open or pending file, of any lineage, subtask and attempt, in the order of their names.
    ///
    /// # Errors
    /// The folder could not be listed.
    pub async fn list(&self) -> Result<Vec<TransactionName>, ConnectorError> {
        let mut names: Vec<_> = self.staged().await?.into_iter().map(|(_, part)| part.transaction).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Removes the open and pending files of one transaction. Finished ones are never touched.
    ///
    /// # Errors
    /// A file could not be removed.
    pub async fn roll_back(&self, name: &TransactionName) -> Result<(), ConnectorError> {
        for _ in 0..LISTINGS_MAX {
            let staged = self.staged().await?;
            let mine: Vec<_> = staged.into_iter().filter(|(_, part)| part.transaction == *name).collect();
            if mine.is_empty() {
                return Ok(());
            }
            for (path, _) in mine {
                fault_point!("file_sink.sweep.before");
                self.folder.remove(&path).await?;
                fault_point!("file_sink.sweep.after");
            }
        }
        Err(PartError::ComesBack { name: Box::new(name.clone()) }.into())
    }

    /// Paths and names of all staged files of this sink. What has another kind of name is left alone.
    async fn staged(&self) -> Result<Vec<(String, PartName)>, ConnectorError> {
        let folder = PartName::staging_folder(&self.scope);
        let files = self.folder.list(&folder).await?;
        let read = files.into_iter().filter_map(|file| {
            let (part, _) = PartName::of_staged(&self.scope, &file)?;
            Some((format!("{folder}/{file}"), part))
        });
        Ok(read.collect())
    }
}
