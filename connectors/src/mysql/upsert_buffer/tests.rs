//! The reduced buffer against what a table would say.

use proptest::prelude::*;

use super::*;

const KINDS: [RowKind; 4] = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter, RowKind::Delete];

/// Columns: key, value, version.
fn buffer(guarded: bool) -> UpsertBuffer {
    UpsertBuffer::new(RowLayout {
        kinds: vec![ColumnKind::Unsigned; 3],
        key: vec![0],
        version: guarded.then_some(2),
    })
}

fn row(key: u64, value: u64, version: u64) -> Vec<Value> {
    [key, value, version].map(Value::UInt).to_vec()
}

#[test]
fn insert_delete_insert_of_one_key_leaves_the_row() {
    let mut buffer = buffer(false);
    buffer.put(RowKind::Insert, row(1, 10, 0));
    buffer.put(RowKind::Delete, row(1, 10, 0));
    buffer.put(RowKind::Insert, row(1, 20, 0));
    assert_eq!(buffer.len(), 1);
    assert_eq!(buffer.take(true), Reduced { upserts: vec![row(1, 20, 0)], deletes: vec![] });
    assert!(buffer.is_empty());
    assert_eq!(buffer.bytes(), 0);
}

#[test]
fn the_last_change_of_a_key_wins() {
    let mut buffer = buffer(false);
    buffer.put(RowKind::Insert, row(1, 10, 0));
    buffer.put(RowKind::UpdateAfter, row(1, 11, 0));
    buffer.put(RowKind::Insert, row(2, 20, 0));
    buffer.put(RowKind::Delete, row(2, 20, 0));
    let reduced = buffer.take(true);
    assert_eq!(reduced, Reduced { upserts: vec![row(1, 11, 0)], deletes: vec![row(2, 20, 0)] });
}

#[test]
fn an_update_that_keeps_its_key_deletes_nothing_and_one_that_changes_it_deletes_the_old_row() {
    let mut buffer = buffer(false);
    buffer.put(RowKind::UpdateBefore, row(1, 10, 0));
    buffer.put(RowKind::UpdateAfter, row(1, 11, 0));
    buffer.put(RowKind::UpdateBefore, row(2, 20, 0));
    buffer.put(RowKind::UpdateAfter, row(3, 20, 0));
    let reduced = buffer.take(true);
    assert_eq!(reduced.upserts, [row(1, 11, 0), row(3, 20, 0)]);
    assert_eq!(reduced.deletes, [row(2, 20, 0)]);
}

#[test]
fn half_an_update_waits_for_its_other_half_but_not_through_a_snapshot() {
    let mut held = buffer(false);
    held.put(RowKind::Insert, row(2, 20, 0));
    held.put(RowKind::UpdateBefore, row(1, 10, 0));
    assert_eq!(held.take(false), Reduced { upserts: vec![row(2, 20, 0)], deletes: vec![] });
    assert!(held.bytes() > 0);
    held.put(RowKind::UpdateAfter, row(1, 11, 0));
    assert_eq!(held.take(false).upserts, [row(1, 11, 0)]);

    held.put(RowKind::UpdateBefore, row(1, 11, 0));
    assert_eq!(held.take(true).deletes, [row(1, 11, 0)], "a snapshot leaves nothing behind");

    held.put(RowKind::UpdateBefore, row(1, 11, 0));
    assert!(held.take(false).deletes.is_empty());
    assert_eq!(held.take(false).deletes, [row(1, 11, 0)], "nothing waits for ever");
}

#[test]
fn an_older_version_never_takes_the_place_of_a_newer_one() {
    let mut guarded = buffer(true);
    guarded.put(RowKind::Insert, row(1, 10, 5));
    guarded.put(RowKind::UpdateAfter, row(1, 9, 3));
    guarded.put(RowKind::Delete, row(1, 9, 4));
    guarded.put(RowKind::UpdateBefore, row(1, 8, 2));
    assert_eq!(guarded.take(false).upserts, [row(1, 10, 5)]);
    guarded.put(RowKind::Insert, row(1, 10, 5));
    guarded.put(RowKind::UpdateAfter, row(1, 11, 5));
    assert_eq!(guarded.take(true).upserts, [row(1, 11, 5)], "of equal versions the last one wins");
}

proptest! {
    /// Whenever it is emptied, and however: applied to a table, the outcome is that of the changes one by one.
    #[test]
    fn writing_the_reduced_changes_is_writing_them_all(
        changes in prop::collection::vec((0_u64..6, 0_u64..100, 0_usize..4), 0..80),
        emptied_every in 1_usize..20,
    ) {
        let mut buffer = buffer(false);
        let (mut one_by_one, mut reduced) = (BTreeMap::new(), BTreeMap::new());
        let mut apply = |taken: Reduced| {
            for row in taken.upserts {
                reduced.insert(row[0].clone().into_key(), row);
            }
            for row in taken.deletes {
                reduced.remove(&row[0].clone().into_key());
            }
        };
        for (index, (key, value, kind)) in changes.iter().enumerate() {
            let (kind, row) = (KINDS[*kind], row(*key, *value, 0));
            buffer.put(kind, row.clone());
            if kind.is_addition() {
                one_by_one.insert(*key, row);
            } else {
                one_by_one.remove(key);
            }
            if index % emptied_every == 0 {
                apply(buffer.take(index % 2 == 0));
            }
        }
        apply(buffer.take(true));
        prop_assert_eq!(buffer.bytes(), 0);
        prop_assert_eq!(reduced, one_by_one);
    }
}

trait IntoKey {
    fn into_key(self) -> u64;
}

impl IntoKey for Value {
    fn into_key(self) -> u64 {
        match self {
            Self::UInt(key) => key,
            other => panic!("a key is a number: {other:?}"),
        }
    }
}
