//! The promises of datagen.

use std::time::Duration;

use tidegate_engine::api::{ReadStatus, Source, SourceOutput, SplitEnumerator, SplitReader};

use super::*;
use crate::testing::{self, Bench, read_some, read_to_end};

fn splits_of<S: Source>(source: &S, parallelism: u32) -> Vec<Vec<S::Split>>
where
    S::Enumerator: SplitEnumerator<Found = ()>,
{
    let mut enumerator = source.enumerator(parallelism);
    let assignments = enumerator.on_found(()).unwrap();
    assert!(enumerator.is_complete());
    assert!(enumerator.on_found(()).unwrap().is_empty(), "splits are handed out once");
    assignments.into_iter().map(|assignment| assignment.splits).collect()
}

#[test]
fn every_index_comes_once_whatever_the_parallelism() {
    testing::run(async {
        for parallelism in [1, 3, 4] {
            let source = Datagen::new(|index| index * 10).bounded(1_000);
            let bench = Bench::new();
            let mut records = Vec::new();
            for (subtask, splits) in splits_of(&source, parallelism).into_iter().enumerate() {
                let mut reader = source.reader(bench.context(), u32::try_from(subtask).unwrap());
                reader.add_splits(splits).unwrap();
                records.extend(read_to_end(&mut reader, 7).await);
            }
            records.sort_unstable();
            assert_eq!(records, (0..1_000).map(|i| i * 10).collect::<Vec<u64>>());
        }
    });
}

#[test]
fn a_rescale_from_three_to_two_goes_on_where_it_was() {
    testing::run(async {
        let source = Datagen::new(|index| index).bounded(100);
        let bench = Bench::new();
        let mut records = Vec::new();
        let mut state = Vec::new();
        for (subtask, splits) in splits_of(&source, 3).into_iter().enumerate() {
            let mut reader = source.reader(bench.context(), 0);
            reader.add_splits(splits).unwrap();
            records.extend(read_some(&mut reader, 5 + subtask, 4).await.unwrap());
            state.extend(reader.snapshot());
        }
        let last = state.pop().unwrap();
        for splits in [state, vec![last]] {
            let mut reader = source.reader(bench.context(), 0);
            reader.add_splits(splits).unwrap();
            records.extend(read_to_end(&mut reader, 16).await);
        }
        records.sort_unstable();
        assert_eq!(records, (0..100).collect::<Vec<u64>>());
    });
}

#[test]
fn a_restored_enumerator_that_handed_out_does_it_no_more() {
    let source = Datagen::new(|index| index);
    let mut enumerator = source.enumerator(2);
    let bench = Bench::new();
    assert!(enumerator.discover(&bench.io).is_some());
    enumerator.on_found(()).unwrap();
    let mut restored = source.enumerator(2);
    restored.restore(enumerator.snapshot(), 4).unwrap();
    assert!(restored.discover(&bench.io).is_none());
    assert!(restored.is_complete());
}

#[test]
fn the_rate_is_kept_by_the_clock() {
    let source = Datagen::new(|index| index).rate_per_second(1_000);
    let bench = Bench::new();
    bench.clock.advance(Duration::from_secs(5));
    let mut reader = source.reader(bench.context(), 0);
    reader.add_splits(splits_of(&source, 1).remove(0)).unwrap();
    let mut records = 0;
    for _ in 0..1_000 {
        let mut output = SourceOutput::with_room(1_024);
        match reader.poll(&mut output).unwrap() {
            ReadStatus::More => records += output.take().len(),
            ReadStatus::Pending(Some(moment)) => assert!(moment > bench.context().clock.now()),
            other => panic!("{other:?}"),
        }
        bench.clock.advance(Duration::from_millis(1));
    }
    assert!((980..=1_010).contains(&records), "{records}");
}

#[test]
fn a_rate_of_zero_is_refused() {
    let source = Datagen::new(|index| index).rate_per_second(0);
    assert!(source.validate().unwrap_err().message.contains("rate of 0"));
}

#[test]
fn seeded_records_depend_on_seed_and_index_only() {
    let one = seeded(1, |index, random| (index, random.below(1_000)));
    let same = seeded(1, |index, random| (index, random.below(1_000)));
    let other = seeded(2, |index, random| (index, random.below(1_000)));
    let numbers = |generate: &dyn Fn(u64) -> (u64, u64)| (0..20).map(generate).collect::<Vec<_>>();
    assert_eq!(numbers(&one), numbers(&same));
    assert_ne!(numbers(&one), numbers(&other));
}
