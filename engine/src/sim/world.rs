//! What outlives the simulated processes: time, store, database, network, and how bad they are.
//!
//! Owns: drawing the world of a seed, letting what is late arrive. Does not own: processes. Runs on: the simulation's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStore;
use tidegate_state::storage::FaultyStore;

use super::clock::SimClock;
use super::coverage::{Area, SharedCoverage};
use super::floating::{EntryPuts, FloatingStore};
use super::line::{Line, LineFaults};
use super::network::Network;
use super::options::SimOptions;
use super::rng::Rng;
use super::store::SimStoreFaults;
use super::subject::Subject;

/// See the module.
#[derive(Debug)]
pub struct World<'a> {
    /// Time.
    pub clock: Arc<SimClock>,
    /// The objects.
    pub objects: Arc<FloatingStore>,
    /// The objects, as processes see them.
    pub store: Arc<dyn ObjectStore>,
    /// Between processes and database.
    pub line: Line,
    /// Messages.
    pub network: Arc<Network>,
    /// The job, its input and its database.
    pub subject: Box<dyn Subject + 'a>,
    /// Faults have stopped.
    pub calm: Arc<AtomicBool>,
    /// What was come upon.
    pub coverage: SharedCoverage,
    clock_jumps: bool,
}

/// Draws what is put to the test, from its own numbers.
pub type DrawSubject<'a> =
    dyn FnOnce(&mut Rng, &SimOptions, Arc<AtomicBool>, SharedCoverage) -> Box<dyn Subject + 'a> + 'a;

impl<'a> World<'a> {
    /// Draws the world of a seed.
    pub fn draw(rng: &mut Rng, options: &SimOptions, subject: Box<DrawSubject<'a>>) -> Self {
        let (clock, calm, coverage) =
            (SimClock::shared(), Arc::<AtomicBool>::default(), SharedCoverage::default());
        let puts = EntryPuts::default();
        let pick = |rng: &mut Rng, of: &[u64]| of[usize::try_from(rng.below(of.len() as u64)).unwrap_or(0)];
        let latency = pick(rng, &[0, 200, 1_500, 6_000]);
        let mut fault_one_in = pick(rng, &[u64::MAX, 60, 15]);
        let mut float_one_in = pick(rng, &[u64::MAX, 60, 20]);
        if !options.store_faults {
            (fault_one_in, float_one_in) = (u64::MAX, u64::MAX);
        }
        let objects = Arc::new(FloatingStore::new(
            Arc::clone(&clock),
            rng.fork(),
            float_one_in,
            Arc::clone(&calm),
            puts.clone(),
            coverage.clone(),
        ));
        let faults = SimStoreFaults::new(
            Arc::clone(&clock),
            rng.fork(),
            latency,
            fault_one_in,
            Arc::clone(&calm),
            puts,
            coverage.clone(),
        );
        let store = Arc::new(FaultyStore::new(Arc::clone(&objects) as _, Arc::new(faults)));
        let drawn = LineFaults::draw(rng);
        let line_faults = if options.database_faults { drawn } else { drawn.without_faults() };
        let line =
            Line::new(Arc::clone(&clock), rng.fork(), line_faults, Arc::clone(&calm), coverage.clone());
        let message_faults = pick(rng, &[0, 0, 300, 80]);
        let message_faults = if options.message_faults { message_faults } else { 0 };
        let network =
            Network::new(Arc::clone(&clock), rng.fork(), message_faults, Arc::clone(&calm), coverage.clone());
        let subject = subject(&mut rng.fork(), options, Arc::clone(&calm), coverage.clone());
        let clock_jumps = options.clock_jumps;
        Self { clock, objects, store, line, network, subject, calm, coverage, clock_jumps }
    }

    /// Whether faults have stopped.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Time moves on, and what is late arrives.
    pub fn advance(&self, micros: u64, rng: &mut Rng) {
        self.clock.advance(micros);
        let jump = rng.below(4_000);
        if jump < 2 && self.clock_jumps && !self.is_calm() {
            self.clock.jump_wall(if jump == 0 { 3_600_000 } else { -3_600_000 });
            self.coverage.count(Area::Injected, "wall clock jumped");
        }
        self.settle();
    }

    fn settle(&self) {
        self.objects.settle();
        self.line.settle();
        self.subject.settle(self.clock.micros());
    }

    /// When something moves by itself.
    pub fn next_due(&self, running: &[u32]) -> Option<u64> {
        let server = self.subject.next_due();
        let messages = running.iter().filter_map(|p| self.network.next_due(*p)).min();
        let all =
            [self.clock.next_sleeper(), self.objects.next_due(), self.line.next_due(), server, messages];
        all.into_iter().flatten().min()
    }
}
