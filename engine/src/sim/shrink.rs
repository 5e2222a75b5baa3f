//! Makes the schedule of a failing seed smaller as long as it still fails.
//!
//! Greedy: one kind of fault after the other is taken away, one blow after the other is spared, the input is halved; whatever still
//! fails stays. A seed that has become clean by less is of no interest here.
//!
//! Owns: the order of tries. Does not own: running. Runs on: the simulation's thread.

use super::options::SimOptions;
use super::report::SimFailure;
use super::simulation::Simulation;

/// The input is not made smaller than this.
const RECORDS_MIN: u64 = 60;
/// Where halving begins: more than any seed has.
const RECORDS_FROM: u64 = 4_096;

/// The smallest schedule that was found, with its failure; `None`: the seed is clean.
pub fn shrink(seed: u64) -> Option<(SimOptions, SimFailure)> {
    let mut options = SimOptions::default();
    let mut failure = Simulation::run_with(seed, &options).err()?;
    let mut attempt = |options: &mut SimOptions, change: &dyn Fn(&mut SimOptions)| {
        let mut smaller = options.clone();
        change(&mut smaller);
        if let Err(found) = Simulation::run_with(seed, &smaller) {
            (*options, failure) = (smaller, found);
            return true;
        }
        false
    };
    attempt(&mut options, &|o| o.message_faults = false);
    attempt(&mut options, &|o| o.store_faults = false);
    attempt(&mut options, &|o| o.database_faults = false);
    attempt(&mut options, &|o| o.function_faults = false);
    attempt(&mut options, &|o| o.clock_jumps = false);
    for blow in (0..Simulation::blows(seed)).rev() {
        attempt(&mut options, &|o| {
            o.spared.insert(blow);
        });
    }
    let mut records = RECORDS_FROM;
    while records / 2 >= RECORDS_MIN && attempt(&mut options, &|o| o.records_max = records / 2) {
        records /= 2;
    }
    Some((options, failure))
}
