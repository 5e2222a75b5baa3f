//! One attempt: claim, recover, then records, barriers, entries, commits and cleanings, until it is fenced or has finished.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_state::KeyGroupRange;

use super::super::{
    ClaimBase, ClaimOutcome, Claimed, EntryBody, LogClient, LogEntry, LogStore, NonceSource, Settled, Survey,
};
use super::store::ScheduledStore;
use super::weakness::{Weakness, claim_blindly};
use super::world::{Branch, BranchState, World, read_state, write_state};
use super::{Dice, Shared, pause};
use crate::checkpoint::CompletedCheckpoint;
use crate::checkpoint::cleaner::plan_cleaning;
use crate::checkpoint::manifest::{KeyedStateHandle, Manifest, OperatorState, OperatorSubtaskState};
use crate::element::CheckpointKind;
use crate::ids::{CheckpointId, EntryNumber};
use crate::io::{BoxFuture, Io, SpawnedIo};

/// How many older checkpoints are retained.
const OLDER: usize = 1;

/// An I/O seam that can only wait: each wait is a place where others may run.
struct WaitOnly;

impl Io for WaitOnly {
    fn spawn(&self, _name: &'static str, _future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        unreachable!("the log client starts no future")
    }

    fn sleep(&self, _span: Duration) -> BoxFuture<()> {
        Box::pin(pause())
    }

    fn run_blocking(&self, _work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        unreachable!("the log client does not block")
    }
}

pub(super) async fn run_attempt(
    n: u64,
    store: ScheduledStore,
    world: Shared<World>,
    mut dice: Dice,
    weakness: Option<Weakness>,
) {
    let mut nonces = NonceSource::new(u128::from(n + 1));
    let io = Arc::new(WaitOnly);
    let Ok(client) = LogClient::open(store.clone(), io, "orders".into(), &mut nonces).await else { return };
    let wish = if n == 0 { 0 } else { dice.roll(10) };
    let Some(claimed) = claim(&client, &world, &mut nonces, wish, weakness).await else { return };
    {
        let mut world = world.lock().unwrap();
        world.newest = world.newest.max(claimed.attempt.0);
    }
    let mut attempt = Attempt::restored(client, store, world, claimed, weakness);
    attempt.recover().await;
    let _ = attempt.client.sweep(attempt.claimed.attempt, &attempt.claimed.listing).await;
    let checkpoints = 1 + dice.roll(5);
    for _ in 0..checkpoints {
        if !attempt.checkpoint(&mut dice).await {
            return;
        }
    }
    if dice.roll(6) == 0 {
        attempt.finish().await;
    }
}

async fn claim(
    client: &LogClient<ScheduledStore>,
    world: &Shared<World>,
    nonces: &mut NonceSource,
    wish: u64,
    weakness: Option<Weakness>,
) -> Option<Claimed> {
    loop {
        let survey = survey(client, wish).await?;
        if weakness == Some(Weakness::NoSecondListing) {
            match claim_blindly(client, &survey, nonces).await {
                Some(claimed) => return Some(claimed),
                None => continue,
            }
        }
        match client.claim(&survey, nonces.draw()).await.ok()? {
            ClaimOutcome::Claimed(claimed) => return Some(*claimed),
            ClaimOutcome::Again => world.lock().unwrap().void_claims += 1,
            ClaimOutcome::Fenced { .. } => {
                world.lock().unwrap().fenced += 1;
                return None;
            }
        }
    }
}

async fn survey(client: &LogClient<ScheduledStore>, wish: u64) -> Option<Survey> {
    match wish {
        8 => client.survey(ClaimBase::None).await.ok(),
        9 => {
            let oldest = client.listing(None).await.ok()?.restorable().last()?.id();
            client.survey_rewind(oldest).await.ok().map(|(survey, _)| survey)
        }
        _ => client.survey(ClaimBase::Latest).await.ok(),
    }
}

pub(super) struct Attempt {
    client: LogClient<ScheduledStore>,
    pub(super) store: ScheduledStore,
    pub(super) world: Shared<World>,
    pub(super) claimed: Claimed,
    pub(super) last: EntryNumber,
    next_id: CheckpointId,
    position: u64,
    open: Vec<u64>,
    pub(super) listed: Vec<Branch>,
    retained: Vec<CompletedCheckpoint>,
    uncleaned: Vec<CompletedCheckpoint>,
    weakness: Option<Weakness>,
}

impl Attempt {
    fn restored(
        client: LogClient<ScheduledStore>,
        store: ScheduledStore,
        world: Shared<World>,
        claimed: Claimed,
        weakness: Option<Weakness>,
    ) -> Self {
        let (position, listed) =
            claimed.restored.as_ref().map(|c| read_state(&c.manifest)).unwrap_or_default();
        let retained: Vec<_> = claimed.retained.iter().chain(&claimed.restored).cloned().collect();
        let uncleaned = retained.iter().chain(&claimed.left_over).cloned().collect();
        let (last, next_id) = (claimed.number, claimed.next_checkpoint);
        Self {
            client,
            store,
            world,
            claimed,
            last,
            next_id,
            position,
            open: Vec::new(),
            listed,
            retained,
            uncleaned,
            weakness,
        }
    }

    /// Commits what is listed, then rolls back what lower attempts left behind.
    async fn recover(&mut self) {
        let own = self.claimed.attempt.0;
        for branch in self.listed.clone() {
            self.world.lock().unwrap().commit(own, branch);
            pause().await;
        }
        let in_bound = |branch: &Branch| {
            branch.0 < own || self.weakness == Some(Weakness::SweepWithoutBound) && branch.0 != own
        };
        let is_left_over = |branch: &Branch| in_bound(branch) && !self.listed.contains(branch);
        let left_over: Vec<_> = {
            let world = self.world.lock().unwrap();
            let prepared = world.branches.iter().filter(|(_, (_, state))| *state == BranchState::Prepared);
            prepared.map(|(branch, _)| *branch).filter(is_left_over).collect()
        };
        for branch in left_over {
            pause().await;
            self.world.lock().unwrap().roll_back(branch);
        }
        self.listed.clear();
    }

    /// One checkpoint; `false` when fenced.
    async fn checkpoint(&mut self, dice: &mut Dice) -> bool {
        for _ in 0..dice.roll(3) {
            self.open.push(self.position);
            self.position += 1;
            pause().await;
        }
        let id = self.next_id;
        self.next_id = id.next();
        self.prepare(id);
        let manifest = self.snapshot(id).await;
        if dice.roll(4) == 0 {
            if self.weakness == Some(Weakness::RollbackOnAbort) {
                self.roll_back(id);
            }
            return true; // aborted: its branch goes with the next one
        }
        let retained = self.retained[self.retained.len().saturating_sub(OLDER)..].to_vec();
        let numbers = retained.iter().map(|c| c.number).collect();
        let body =
            EntryBody::Checkpoint { manifest: manifest.clone(), retained: numbers, committed: Vec::new() };
        if !self.append(body).await {
            return false;
        }
        self.world.lock().unwrap().completed += 1;
        for branch in std::mem::take(&mut self.listed) {
            pause().await;
            self.world.lock().unwrap().commit(self.claimed.attempt.0, branch);
        }
        self.clean(CompletedCheckpoint { number: self.last, manifest: Arc::new(manifest) }, retained).await;
        true
    }

    fn roll_back(&mut self, id: CheckpointId) {
        let own = (self.claimed.attempt.0, id.0);
        self.world.lock().unwrap().roll_back(own);
        self.listed.retain(|branch| *branch != own);
    }

    fn prepare(&mut self, id: CheckpointId) {
        if self.open.is_empty() {
            return;
        }
        let branch = (self.claimed.attempt.0, id.0);
        let records = std::mem::take(&mut self.open);
        self.world.lock().unwrap().branches.insert(branch, (records, BranchState::Prepared));
        self.listed.push(branch);
    }

    async fn snapshot(&self, id: CheckpointId) -> Manifest {
        let attempt = self.claimed.attempt;
        let path = format!("{}/state", Manifest::folder(id, attempt));
        while self.store.create(&path, Bytes::from_static(b"state")).await.is_err() {}
        let range = KeyGroupRange { start: 0, end: 128 };
        let keyed = KeyedStateHandle { path, size_bytes: 5, range };
        let own_only = self.weakness == Some(Weakness::ListsOnlyOwnCheckpoint);
        let mut listed = self.listed.clone();
        listed.retain(|branch| !own_only || branch.1 == id.0);
        let operator = OperatorState {
            uid: "all".into(),
            max_parallelism: 128,
            two_phase: true,
            has_on_end: false,
            subtasks: vec![OperatorSubtaskState {
                uid: "all".into(),
                keyed: Some(keyed),
                lists: Vec::new(),
                ended: false,
            }],
            ended: vec![false],
            upstream: Vec::new(),
            enumerator: Some(write_state(self.position, &listed)),
        };
        Manifest {
            job: "orders".into(),
            log_id: self.claimed.log_id.clone(),
            lineage: self.claimed.lineage,
            checkpoint: id,
            attempt,
            kind: CheckpointKind::Checkpoint,
            completed_at_ms: 0,
            operators: vec![operator],
        }
    }

    /// Puts an entry at own last + 1; `false` when fenced.
    async fn append(&mut self, body: EntryBody) -> bool {
        let number = match self.weakness {
            Some(Weakness::NumbersFromListing) => self.store.listing().highest().next(),
            _ => self.last.next(),
        };
        let nonce = self.claimed.nonce.of_entry(number);
        let entry = LogEntry { attempt: self.claimed.attempt, nonce, body };
        if self.weakness == Some(Weakness::ErrorMeansFailure) {
            return self.append_or_give_up(number, &entry).await;
        }
        match self.client.append(number, entry).await {
            Settled::Ours => self.last = number,
            _ => {
                self.world.lock().unwrap().fenced += 1;
                return false;
            }
        }
        true
    }

    async fn clean(&mut self, newest: CompletedCheckpoint, retained: Vec<CompletedCheckpoint>) {
        self.uncleaned.push(newest.clone());
        let named = match self.weakness {
            Some(Weakness::CleanerKeepsTheNewest) => &[],
            _ => retained.as_slice(),
        };
        let plan = plan_cleaning(&newest, named, &self.uncleaned);
        let cleaned = self.client.clean(plan).await;
        self.world.lock().unwrap().cleaned += cleaned.len() as u64;
        self.uncleaned.retain(|c| !cleaned.contains(&c.number));
        self.retained = retained.into_iter().chain([newest]).collect();
    }

    /// Only when nothing is open or pending may the job be called finished.
    async fn finish(&mut self) {
        if self.open.is_empty() && self.listed.is_empty() {
            self.append(EntryBody::Finished).await;
        }
    }
}
