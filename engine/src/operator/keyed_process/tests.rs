//! What a step of a keyed operator may cost.

use tidegate_state::{ValueDeclaration, value};

use super::*;

#[test]
fn after_a_freeze_a_step_copies_a_bounded_part_and_loses_no_record() {
    const KEYS: u64 = 200_000;
    let max = MaxParallelism::default();
    let parts = KeyedParts {
        uid: OperatorUid::from("count"),
        states: value::<u64>("count"),
        key_of: |record: &u64| *record,
        function: FromClosure(
            |record: u64,
             count: &mut tidegate_state::ValueState<'_, u64>,
             _: &mut KeyedContext<'_, u64>,
             out: &mut Output<(u64, u64)>| {
                out.emit((record, *count.update(|count| *count += 1)?));
                Ok(())
            },
        ),
    };
    let range = KeyGroupRange::all(max);
    let mut op = KeyedProcess::<u64, ValueDeclaration<u64>, _, _>::open(parts, range, max, &[]).unwrap();
    let batch = |keys: std::ops::Range<u64>| BatchCursor::new(keys.collect());
    assert_eq!(op.process(&mut batch(0..KEYS), &mut Output::new(usize::MAX)).unwrap(), Progress::Done);

    let frozen = op.freeze();
    let (mut input, mut out, mut steps) = (batch(0..1_024), Output::new(1_024), 0);
    loop {
        let before = ValueDeclaration::<u64>::copied(&op.tables);
        let progress = op.process(&mut input, &mut out).unwrap();
        let copied = ValueDeclaration::<u64>::copied(&op.tables) - before;
        assert!(copied <= COPIED_PER_STEP_MAX + 1_024, "{copied} entries in one step");
        steps += 1;
        if progress == Progress::Done {
            break;
        }
    }
    drop(frozen);
    assert!(steps > 1, "the whole table was copied in one step");
    assert_eq!(out.batch.values, (0..1_024).map(|key| (key, 2)).collect::<Vec<_>>());
}

/// Names the trait's function for one key type.
trait Copied {
    type Tables;
    fn copied(tables: &Self::Tables) -> u64;
}

impl Copied for ValueDeclaration<u64> {
    type Tables = <Self as StateDeclaration<u64>>::Tables;

    fn copied(tables: &Self::Tables) -> u64 {
        <Self as StateDeclaration<u64>>::copied_entries(tables)
    }
}
