//! A changelog made of a seed.
//!
//! Owns: the mix of inserts, updates with and without `-U`, updates that change the key, and deletes. Does not own: the list.
//! Runs on: plain data.

use std::collections::BTreeMap;

use tidegate_engine::element::Change;
use tidegate_state::StateType;

use super::ChangeScript;
use crate::datagen::Random;

/// A row of a generated changelog. The version grows with every change.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct VersionedRow {
    /// The key.
    pub key: u64,
    /// Anything.
    pub value: u64,
    /// Which change made it, from 1.
    pub version: u64,
}

impl ChangeScript<VersionedRow> {
    /// About `changes` changes of rows with keys below `keys`: the same ones for the same seed. Every change fits the table before it: only
    /// rows that are not there are inserted, and a `-U` or `-D` carries the row as it was.
    pub fn seeded(seed: u64, keys: u64, changes: u64) -> Self {
        let mut random = Random::of(seed, 0);
        let (mut table, mut made) = (BTreeMap::new(), Vec::new());
        let keys = keys.max(1);
        for version in 1..=changes {
            let row = VersionedRow { key: random.below(keys), value: random.next_u64() >> 1, version };
            change(&mut random, keys, &mut table, row, &mut made);
        }
        Self::of(made)
    }
}

fn change(
    random: &mut Random,
    keys: u64,
    table: &mut BTreeMap<u64, VersionedRow>,
    row: VersionedRow,
    made: &mut Vec<Change<VersionedRow>>,
) {
    let Some(before) = table.get(&row.key).cloned() else {
        table.insert(row.key, row.clone());
        made.push(Change::insert(row));
        return;
    };
    match random.below(10) {
        0 | 1 => {
            table.remove(&row.key);
            made.push(Change::delete(before));
        }
        2 => {
            let moved = VersionedRow { key: random.below(keys), ..row.clone() };
            if table.contains_key(&moved.key) {
                return;
            }
            table.remove(&row.key);
            table.insert(moved.key, moved.clone());
            made.extend([Change::update_before(before), Change::update_after(moved)]);
        }
        3..=6 => {
            table.insert(row.key, row.clone());
            made.extend([Change::update_before(before), Change::update_after(row)]);
        }
        _ => {
            table.insert(row.key, row.clone());
            made.push(Change::update_after(row));
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_engine::element::RowKind;

    use super::*;

    #[test]
    fn a_generated_changelog_fits_its_table_and_holds_every_kind() {
        let script = ChangeScript::seeded(7, 40, 2_000);
        let mut table: BTreeMap<u64, VersionedRow> = BTreeMap::new();
        let mut kinds = BTreeMap::new();
        for Change { kind, row } in script.changes() {
            *kinds.entry(*kind).or_insert(0) += 1;
            match kind {
                RowKind::Insert => assert_eq!(table.insert(row.key, row.clone()), None),
                RowKind::UpdateAfter => drop(table.insert(row.key, row.clone())),
                RowKind::UpdateBefore | RowKind::Delete => {
                    assert_eq!(table.remove(&row.key).as_ref(), Some(row))
                }
            }
        }
        assert_eq!(table, script.final_table(|row| row.key));
        assert!(kinds.len() == 4 && kinds.values().all(|count| *count > 100), "{kinds:?}");
    }

    #[test]
    fn a_seed_makes_the_same_changelog_again() {
        let made = |seed| ChangeScript::seeded(seed, 10, 100).changes().to_vec();
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }
}
