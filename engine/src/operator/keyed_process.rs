//! Keyed `process`: the user's function with state and timers of the current key.
//!
//! Owns: the operator's tables and timers, and the firing of event-time timers. Does not own: the tables' layout
//! (see `tidegate_state`). Runs on: the slot's thread.

use tidegate_state::{
    KeyGroupRange, KeyedBackend, MaxParallelism, StateDeclaration, StateError, StateFileReader, StateType,
    TimerTable,
};

use super::{BatchCursor, FrozenKeyedState, Operator, OperatorPart, Output, Progress, TIMERS_PER_STEP_MAX};
use crate::element::EventTime;
use crate::error::JobError;
use crate::ids::OperatorUid;

/// Records whose state is fetched together, before the first of them is handled.
const RECORDS_AHEAD: usize = 64;

/// Entries copied in one step at most, but for those of one record or timer: after a freeze the first write to a page copies it, and
/// a batch of records that are far from each other would copy most of a table in one step.
const COPIED_PER_STEP_MAX: u64 = 16_384;

/// What a keyed function knows of the record or timer it handles.
pub struct KeyedContext<'a, K> {
    key: &'a K,
    hash: u64,
    time: Option<EventTime>,
    watermark: EventTime,
    timers: &'a mut TimerTable<K>,
}

impl<K: StateType + Eq> KeyedContext<'_, K> {
    /// The current key.
    pub fn key(&self) -> &K {
        self.key
    }

    /// Event time of the record, in milliseconds since 1970; `None` without watermarks. Of a timer: its time.
    pub fn event_time_ms(&self) -> Option<i64> {
        self.time.map(|t| t.0)
    }

    /// The current watermark, in milliseconds since 1970.
    pub fn watermark_ms(&self) -> i64 {
        self.watermark.0
    }

    /// Calls `on_timer` for the current key once the watermark reaches `at_ms`. Twice the same moment is one timer.
    pub fn register_event_timer(&mut self, at_ms: i64) {
        self.timers.register(self.key, self.hash, at_ms);
    }

    /// Takes a timer back.
    pub fn delete_event_timer(&mut self, at_ms: i64) {
        self.timers.delete(self.key, self.hash, at_ms);
    }
}

/// A keyed function. For one without timers a closure will do.
pub trait KeyedFunction<K: StateType + Eq, In, S: StateDeclaration<K>, Out>: Clone + Send + 'static {
    /// Handles a record with the state of its key.
    ///
    /// # Errors
    /// Any: the subtask fails with the operator's name.
    fn process(
        &mut self,
        record: In,
        state: &mut S::Handles<'_>,
        context: &mut KeyedContext<'_, K>,
        out: &mut Output<Out>,
    ) -> Result<(), JobError>;

    /// Handles an event-time timer.
    ///
    /// # Errors
    /// As for `process`.
    fn on_timer(
        &mut self,
        at_ms: i64,
        state: &mut S::Handles<'_>,
        context: &mut KeyedContext<'_, K>,
        out: &mut Output<Out>,
    ) -> Result<(), JobError> {
        let _ = (at_ms, state, context, out);
        Ok(())
    }
}

/// A closure as a [`KeyedFunction`].
#[derive(Clone, Debug)]
pub struct FromClosure<F>(pub F);

impl<K, In, S, Out, F> KeyedFunction<K, In, S, Out> for FromClosure<F>
where
    K: StateType + Eq,
    S: StateDeclaration<K>,
    F: for<'a, 'b, 'c> FnMut(
            In,
            &'a mut S::Handles<'b>,
            &'a mut KeyedContext<'c, K>,
            &'a mut Output<Out>,
        ) -> Result<(), JobError>
        + Clone
        + Send
        + 'static,
{
    fn process(
        &mut self,
        record: In,
        state: &mut S::Handles<'_>,
        context: &mut KeyedContext<'_, K>,
        out: &mut Output<Out>,
    ) -> Result<(), JobError> {
        (self.0)(record, state, context, out)
    }
}

/// The operator around a [`KeyedFunction`].
pub struct KeyedProcess<K: StateType + Eq, S: StateDeclaration<K>, KF, F> {
    uid: OperatorUid,
    range: KeyGroupRange,
    max_parallelism: MaxParallelism,
    key_of: KF,
    function: F,
    tables: S::Tables,
    timers: TimerTable<K>,
    watermark: EventTime,
    /// Keys and hashes of the records that come next.
    ahead: Vec<(K, u64)>,
}

/// What a keyed operator is built with.
pub struct KeyedParts<S, KF, F> {
    /// Its uid.
    pub uid: OperatorUid,
    /// Its declared states.
    pub states: S,
    /// Takes the key from a record.
    pub key_of: KF,
    /// The user's function.
    pub function: F,
}

impl<K: StateType + Eq, S: StateDeclaration<K>, KF, F> KeyedProcess<K, S, KF, F> {
    /// Opens its tables for `range` and restores them from state files.
    ///
    /// # Errors
    /// A file that does not fit the declared states.
    pub fn open(
        parts: KeyedParts<S, KF, F>,
        range: KeyGroupRange,
        max_parallelism: MaxParallelism,
        files: &[StateFileReader<'_>],
    ) -> Result<Self, StateError> {
        let backend = KeyedBackend::heap(range, max_parallelism);
        let mut tables = parts.states.open(&backend);
        let mut timers = TimerTable::new(range, max_parallelism);
        for file in files {
            parts.states.restore(&mut tables, file, range)?;
            timers.restore(file, range)?;
        }
        let KeyedParts { uid, key_of, function, .. } = parts;
        let (watermark, ahead) = (EventTime::MIN, Vec::with_capacity(RECORDS_AHEAD));
        Ok(Self { uid, range, max_parallelism, key_of, function, tables, timers, watermark, ahead })
    }

    /// Entries of state and timers that were copied since the operator was opened.
    #[inline]
    fn copied_entries(&self) -> u64 {
        S::copied_entries(&self.tables) + self.timers.copied_entries()
    }

    /// Takes the keys of the next records and brings their state near.
    #[inline]
    fn look_ahead<In>(&mut self, next: &[In])
    where
        KF: Fn(&In) -> K,
    {
        self.ahead.clear();
        self.ahead.extend(next.iter().take(RECORDS_AHEAD).map(|record| {
            let key = (self.key_of)(record);
            let hash = key.key_hash();
            (key, hash)
        }));
        S::touch(&self.tables, self.ahead.iter().map(|(key, hash)| (key, *hash)));
    }
}

impl<K, S, KF, F, In, Out> Operator<In, Out> for KeyedProcess<K, S, KF, F>
where
    K: StateType + Eq,
    S: StateDeclaration<K>,
    KF: Fn(&In) -> K + 'static,
    F: KeyedFunction<K, In, S, Out>,
    In: 'static,
    Out: 'static,
{
    fn process(&mut self, input: &mut BatchCursor<In>, out: &mut Output<Out>) -> Result<Progress, JobError> {
        // Most functions emit about one record for each: room for that, once a batch.
        out.batch.values.reserve(input.rest().len().min(out.capacity));
        let copied_before = self.copied_entries();
        while !input.is_empty() {
            self.look_ahead(input.rest());
            for (key, hash) in self.ahead.drain(..) {
                let Some((record, time)) = input.next() else { break };
                let mut state = S::bind(&mut self.tables, &key, hash);
                let (watermark, timers) = (self.watermark, &mut self.timers);
                let mut context = KeyedContext { key: &key, hash, time, watermark, timers };
                out.time = time;
                self.function.process(record, &mut state, &mut context, out)?;
                drop(state);
                let copied = S::copied_entries(&self.tables) + self.timers.copied_entries() - copied_before;
                if out.is_full() || copied > COPIED_PER_STEP_MAX {
                    return Ok(if input.is_empty() { Progress::Done } else { Progress::More });
                }
            }
        }
        Ok(Progress::Done)
    }

    fn on_watermark(&mut self, watermark: EventTime, out: &mut Output<Out>) -> Result<Progress, JobError> {
        self.watermark = self.watermark.max(watermark);
        let copied_before = self.copied_entries();
        for _ in 0..TIMERS_PER_STEP_MAX {
            if out.is_full() || self.copied_entries() - copied_before > COPIED_PER_STEP_MAX {
                return Ok(Progress::More);
            }
            let Some((at, key)) = self.timers.pop_due(watermark.0) else { return Ok(Progress::Done) };
            let hash = key.key_hash();
            let mut state = S::bind(&mut self.tables, &key, hash);
            let time = Some(EventTime(at));
            let timers = &mut self.timers;
            let mut context = KeyedContext { key: &key, hash, time, watermark: self.watermark, timers };
            out.time = time;
            self.function.on_timer(at, &mut state, &mut context, out)?;
        }
        Ok(Progress::More)
    }

    fn freeze(&mut self) -> Option<OperatorPart> {
        let mut tables = Vec::new();
        S::freeze(&mut self.tables, &mut tables);
        tables.push(self.timers.freeze());
        let keyed = FrozenKeyedState { range: self.range, max_parallelism: self.max_parallelism, tables };
        Some(OperatorPart {
            uid: self.uid.clone(),
            keyed: Some(keyed),
            lists: Vec::new(),
            ended: false,
            comes_later: false,
        })
    }
}

#[cfg(test)]
mod tests;
