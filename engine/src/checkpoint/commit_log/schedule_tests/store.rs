//! A store in memory whose every operation pauses before and after, fails, lies, or lands later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::super::bytes::{ENTRY_MAGIC, open};
use super::super::entry::number_in;
use super::super::{Listing, LogStore, PutResult, StoreError};
use super::{Dice, Shared, pause};

#[derive(Clone)]
pub(super) struct ScheduledStore(Shared<State>);

struct State {
    objects: BTreeMap<String, Bytes>,
    floating: Vec<(String, Bytes)>,
    landed: u64,
    faults: bool,
    dice: Dice,
}

impl ScheduledStore {
    pub(super) fn new(seed: u64, faults: bool) -> Self {
        let dice = Dice::new(seed);
        let state = State { objects: BTreeMap::new(), floating: Vec::new(), landed: 0, faults, dice };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn has_floating(&self) -> bool {
        !self.0.lock().unwrap().floating.is_empty()
    }

    /// A put that was given up long ago reaches the store.
    pub(super) fn land_one(&self) {
        let mut state = self.0.lock().unwrap();
        let (path, bytes) = state.floating.remove(0);
        let before = state.objects.len();
        state.objects.entry(path).or_insert(bytes);
        state.landed += (state.objects.len() - before) as u64;
    }

    pub(super) fn landed(&self) -> u64 {
        self.0.lock().unwrap().landed
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.0.lock().unwrap().objects.contains_key(path)
    }

    /// The log as it stands, without pauses.
    pub(super) fn listing(&self) -> Listing {
        let state = self.0.lock().unwrap();
        let entries = state.objects.iter().filter_map(|(path, bytes)| Some((number_in(path)?, bytes)));
        entries.map(|(number, bytes)| (number, Arc::new(open(ENTRY_MAGIC, bytes).unwrap()))).collect()
    }

    fn misfortune(&self, of: u64) -> bool {
        let mut state = self.0.lock().unwrap();
        state.faults && state.dice.roll(of) == 0
    }

    async fn maybe_fail(&self) -> Result<(), StoreError> {
        pause().await;
        match self.misfortune(25) {
            true => Err("the store is away".into()),
            false => Ok(()),
        }
    }
}

impl LogStore for ScheduledStore {
    fn url(&self) -> &str {
        "memory://schedule"
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<PutResult, StoreError> {
        self.maybe_fail().await?;
        if self.misfortune(10) {
            self.0.lock().unwrap().floating.push((path.to_owned(), bytes));
            return Err("timed out".into());
        }
        let existed = {
            let mut state = self.0.lock().unwrap();
            let existed = state.objects.contains_key(path);
            state.objects.entry(path.to_owned()).or_insert(bytes);
            existed
        };
        pause().await;
        match existed {
            true => Ok(PutResult::AlreadyExists),
            false if self.misfortune(10) => Ok(PutResult::AlreadyExists), // its own retry met its own object
            false if self.misfortune(10) => Err("connection reset".into()),
            false => Ok(PutResult::Created),
        }
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.maybe_fail().await?;
        Ok(self.0.lock().unwrap().objects.get(path).cloned())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.maybe_fail().await?;
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Ok(self.0.lock().unwrap().objects.keys().filter(|path| path.starts_with(&prefix)).cloned().collect())
    }

    async fn delete(&self, path: &str) -> Result<(), StoreError> {
        self.maybe_fail().await?;
        self.0.lock().unwrap().objects.remove(path);
        Ok(())
    }
}
