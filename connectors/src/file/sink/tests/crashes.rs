//! A process that dies at each fault point, and random schedules of deaths, rescales, failed checkpoints and zombies: exactly once
//! after every restart.

use tidegate_state::fault::FAULT_POINTS;

use super::model::{Death, World, mortal};
use super::*;

/// Writes everything in a few epochs and ends.
async fn run_to_end(world: &mut World, parallelism: u32) {
    let mut attempt = world.start(parallelism).await.unwrap();
    while attempt.left(world.records) > 0 {
        let records = attempt.left(world.records).min(40);
        attempt.write(records).await.unwrap();
        world.barrier(&mut attempt, true).await.unwrap();
        world.commit(&mut attempt).await.unwrap();
    }
    world.barrier(&mut attempt, true).await.unwrap();
    world.commit(&mut attempt).await.unwrap();
    world.sweep(&mut attempt).await.unwrap();
}

fn points() -> impl Iterator<Item = &'static str> {
    FAULT_POINTS.iter().copied().filter(|point| point.starts_with("file_sink."))
}

#[test]
fn a_death_at_any_step_neither_loses_nor_doubles() {
    for point in points() {
        let mut struck = 0;
        for (parallelism, after, nth) in [(1, 1, 1), (1, 2, 2), (3, 2, 1), (3, 1, 3), (2, 4, 5)] {
            let mut world = World::new(200);
            (world.buckets, world.part_bytes) = (2, 30);
            // Something to sweep: parts that no checkpoint lists.
            let first = mortal(
                Some(Death { point: Some("file_sink.prepare.after"), nth: 3 }),
                run_to_end(&mut world, 2),
            );
            assert_eq!(first, Err("file_sink.prepare.after"));
            world.check();
            let died = mortal(Some(Death { point: Some(point), nth }), run_to_end(&mut world, parallelism));
            world.check();
            if died == Err(point) {
                struck += 1;
                mortal(None, run_to_end(&mut world, after)).unwrap();
            }
            world.check_end();
        }
        assert!(struck >= 3, "{point} was struck {struck} times");
    }
}

#[test]
fn a_death_in_the_recovery_from_a_death_neither_loses_nor_doubles() {
    for first in
        ["file_sink.link.before", "file_sink.link.after", "file_sink.unlink.before", "file_sink.unlink.after"]
    {
        for second in points() {
            let mut world = World::new(150);
            world.part_bytes = 30;
            assert!(mortal(Some(Death { point: Some(first), nth: 2 }), run_to_end(&mut world, 2)).is_err());
            world.check();
            let _ = mortal(Some(Death { point: Some(second), nth: 1 }), run_to_end(&mut world, 3));
            world.check();
            mortal(None, run_to_end(&mut world, 1)).unwrap();
            world.check_end();
        }
    }
}

#[test]
fn pending_files_follow_their_owner_through_4_2_3_subtasks() {
    let mut world = World::new(120);
    let died =
        mortal(Some(Death { point: Some("file_sink.link.before"), nth: 1 }), run_to_end(&mut world, 4));
    assert!(died.is_err());
    assert_eq!(staged_files(&world.scene.out()).len(), 4, "one pending part of each of the four");
    assert!(world.scene.finished().is_empty());
    // The first of two publishes subtasks 0 and 2, and dies before it comes to 1 and 3.
    let died =
        mortal(Some(Death { point: Some("file_sink.unlink.after"), nth: 2 }), run_to_end(&mut world, 2));
    assert!(died.is_err());
    world.check();
    assert_eq!(world.scene.finished().len(), 20, "the records of subtasks 0 and 2 up to 40");
    mortal(None, run_to_end(&mut world, 3)).unwrap();
    world.check_end();
}

/// SplitMix64: the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }
}

/// One process of a random schedule. It may become a zombie; `true`: the job has ended.
async fn random_process(world: &mut World, random: &mut Random, may_stop: bool) -> bool {
    let mut attempt = world.start(u32::try_from(random.below(4)).unwrap() + 1).await.unwrap();
    loop {
        match random.below(12) {
            0..=4 => {
                let records = random.below(30).min(attempt.left(world.records));
                attempt.write(records).await.unwrap();
            }
            5..=7 => {
                let completes = random.below(3) > 0;
                world.barrier(&mut attempt, completes).await.unwrap();
            }
            8 | 9 => world.commit(&mut attempt).await.unwrap(),
            10 if may_stop => {
                // Dropped, or standing still.
                if random.below(2) == 0 {
                    world.zombies.push(attempt);
                }
                return false;
            }
            _ => {
                let mut zombies = std::mem::take(&mut world.zombies);
                for zombie in &mut zombies {
                    zombie.wake().await;
                }
                world.zombies = zombies;
            }
        }
        if attempt.left(world.records) == 0 {
            break;
        }
    }
    world.zombies.clear();
    world.barrier(&mut attempt, true).await.unwrap();
    world.commit(&mut attempt).await.unwrap();
    world.sweep(&mut attempt).await.unwrap();
    true
}

/// Deaths and stops of a schedule, at most.
const PROCESSES_MAX: u32 = 6;

fn random_schedule(seed: u64) {
    let mut random = Random(seed);
    let mut world = World::new(50 + random.below(300));
    world.buckets = 1 + random.below(4);
    world.part_bytes = 1 + random.below(120);
    for process in 0.. {
        let mortals = process < PROCESSES_MAX;
        let nth = 1 + u32::try_from(random.below(60)).unwrap();
        let death = (mortals && random.below(3) > 0).then_some(Death { point: None, nth });
        let run = random_process(&mut world, &mut random, mortals);
        let ended = mortal(death, run);
        world.check();
        if ended == Ok(true) {
            break;
        }
    }
    world.check_end();
}

#[test]
fn random_schedules_leave_everything_once_and_nothing_staged() {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let fixed = std::env::var("TIDEGATE_FILE_SINK_SEED").ok().and_then(|text| text.parse().ok());
    let first: u64 = fixed.unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 16);
    let seeds = if fixed.is_some() { 1 } else { 60 };
    for seed in first..first + seeds {
        println!("seed {seed}: TIDEGATE_FILE_SINK_SEED={seed} repeats it");
        random_schedule(seed);
    }
}
