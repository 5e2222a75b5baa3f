//! A reader of the tables who looks all the time, as any other client of the database would.
//!
//! Owns: what it has seen: when each order first, which orders twice, which sums going back. Does not own: the tables.
//! Runs on: a thread of its own, with a connection of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Flag, joined, micros};
use crate::address::servers::MysqlAddress;
use crate::database::Session;
use crate::scenario::ScenarioError;
use tidegate_jobs::stopwatch::Stopwatch;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(4);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// When each order was seen first, by its id less one, in microseconds of the clock.
    pub(super) first_us: Vec<Option<u64>>,
    /// Orders with more than one row at once.
    pub(super) orders_twice: u64,
    /// Times that a user's number of orders was less than before.
    pub(super) sums_back: u64,
}

/// See the module.
pub(super) struct Reader {
    stop: Flag,
    has_some: Flag,
    has_all: Flag,
    thread: JoinHandle<Result<Sight, ScenarioError>>,
}

impl Reader {
    /// Begins to look for orders 1 to `orders`.
    ///
    /// # Errors
    /// [`ScenarioError::Database`].
    pub(super) fn start(tables: &MysqlAddress, orders: u64, clock: Stopwatch) -> Result<Self, ScenarioError> {
        let mut session = Session::open(tables)?;
        let (stop, has_some, has_all) = (Flag::default(), Flag::default(), Flag::default());
        let (told, first, last) = (Arc::clone(&stop), Arc::clone(&has_some), Arc::clone(&has_all));
        let thread = std::thread::spawn(move || {
            let mut look = Look::of(orders);
            while !told.load(Ordering::Relaxed) {
                look.once(&mut session, clock)?;
                raise_if(&first, look.missing < orders);
                raise_if(&last, look.missing == 0);
                std::thread::park_timeout(PAUSE);
            }
            look.once(&mut session, clock)?;
            look.sight.orders_twice = look.twice.iter().filter(|&&twice| twice).count() as u64;
            Ok(look.sight)
        });
        Ok(Self { stop, has_some, has_all, thread })
    }

    /// Whether an order was seen.
    pub(super) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// Whether every order was seen.
    pub(super) fn has_all(&self) -> bool {
        self.has_all.load(Ordering::Relaxed) || self.thread.is_finished()
    }

    /// Tells it to look once more and end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// What it has seen.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub(super) fn join(self) -> Result<Sight, ScenarioError> {
        self.stop();
        joined(self.thread, "the last look of the reader")
    }
}

fn raise_if(flag: &AtomicBool, so: bool) {
    if so {
        flag.store(true, Ordering::Relaxed);
    }
}

struct Look {
    sight: Sight,
    missing: u64,
    twice: Vec<bool>,
    counts: BTreeMap<u64, i64>,
}

impl Look {
    fn of(orders: u64) -> Self {
        let count = usize::try_from(orders).unwrap_or(0);
        let sight = Sight { first_us: vec![None; count], ..Sight::default() };
        Self { sight, missing: orders, twice: vec![false; count], counts: BTreeMap::new() }
    }

    fn once(&mut self, session: &mut Session, clock: Stopwatch) -> Result<(), ScenarioError> {
        let mut ids = Vec::new();
        session.each_row("read the table", "SELECT order_id FROM t_order_log", |mut row| {
            ids.extend(row.take_opt::<u64, _>(0).and_then(Result::ok));
        })?;
        self.orders(&ids, micros(clock));
        let mut counts = Vec::new();
        session.each_row("read the table", "SELECT user_id, order_count FROM t_user_total", |mut row| {
            let user = row.take_opt::<u64, _>(0).and_then(Result::ok);
            counts.extend(user.zip(row.take_opt::<i64, _>(1).and_then(Result::ok)));
        })?;
        self.sums(&counts);
        Ok(())
    }

    fn orders(&mut self, ids: &[u64], now_us: u64) {
        let mut seen_now = vec![false; self.twice.len()];
        for id in ids {
            let Some(index) = id.checked_sub(1).and_then(|index| usize::try_from(index).ok()) else {
                continue;
            };
            let Some(first) = self.sight.first_us.get_mut(index) else { continue };
            self.missing -= u64::from(first.is_none());
            first.get_or_insert(now_us);
            self.twice[index] |= std::mem::replace(&mut seen_now[index], true);
        }
    }

    fn sums(&mut self, counts: &[(u64, i64)]) {
        for &(user, count) in counts {
            let before = self.counts.insert(user, count).unwrap_or(i64::MIN);
            self.sight.sums_back += u64::from(count < before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_seen_twice_and_sums_going_back_are_counted_once_each() {
        let mut look = Look::of(3);
        look.orders(&[1, 2], 10);
        look.orders(&[1, 1, 2, 9], 20);
        look.orders(&[1, 1, 2, 3], 30);
        assert_eq!(look.sight.first_us, [Some(10), Some(10), Some(30)]);
        assert_eq!((look.missing, look.twice), (0, vec![true, false, false]));
        let mut look = Look::of(1);
        [5, 7, 6, 6, 8].iter().for_each(|&count| look.sums(&[(1, count)]));
        assert_eq!(look.sight.sums_back, 1);
    }
}
