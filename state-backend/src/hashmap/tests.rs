//! Tests of the tables: against a model, with freezes in between; the bound on copied entries; timers in order.
//!
//! Owns: the promises of copy-on-write.
//! Does not own: the state file's own checks (see `crate::snapshot`).
//! Runs on: the test threads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::prelude::*;

use super::page::page_capacity;
use super::*;
use crate::backend::{HeapBackend, KeyedBackend};
use crate::codec::StateType;
use crate::declaration::{StateDeclaration, list, map, value};
use crate::key_group::{KeyGroupRange, MaxParallelism};
use crate::snapshot::{FrozenTable, StateFileReader, write_state_file};

fn whole() -> (KeyGroupRange, MaxParallelism) {
    let max = MaxParallelism::default();
    (KeyGroupRange::all(max), max)
}

fn backend() -> KeyedBackend {
    let (range, max) = whole();
    KeyedBackend::heap(range, max)
}

/// Writes frozen tables and opens the file again.
fn stored(frozen: Vec<Box<dyn FrozenTable>>) -> Vec<u8> {
    let (range, max) = whole();
    write_state_file("op", range, max, frozen)
}

/// What a table of u32 keys holds, through its frozen form, a file and a restore.
fn content<S: StateDeclaration<u32>, C>(
    declaration: &S,
    file: &[u8],
    keys: impl Iterator<Item = u32>,
    mut read: impl FnMut(S::Handles<'_>) -> Option<C>,
) -> BTreeMap<u32, C> {
    let mut tables = declaration.open(&backend());
    let reader = StateFileReader::open(file).unwrap();
    declaration.restore(&mut tables, &reader, whole().0).unwrap();
    keys.filter_map(|key| {
        let handle = S::bind(&mut tables, &key, key.key_hash());
        read(handle).map(|content| (key, content))
    })
    .collect()
}

/// One step on the state of a key.
#[derive(Clone, Debug)]
enum Step {
    Put(u32, u8, i64),
    Remove(u32, u8),
    Clear(u32),
    Freeze,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u32..40;
    let step = prop_oneof![
        8 => (key.clone(), 0u8..6, any::<i64>()).prop_map(|(key, map_key, value)| Step::Put(key, map_key, value)),
        3 => (key.clone(), 0u8..6).prop_map(|(key, map_key)| Step::Remove(key, map_key)),
        1 => key.prop_map(Step::Clear),
        1 => Just(Step::Freeze),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_frozen_value_state_equals_the_model_at_its_freeze(steps in steps()) {
        let declaration = value::<i64>("v");
        let mut tables = StateDeclaration::<u32>::open(&declaration, &backend());
        let (mut model, mut frozen) = (BTreeMap::new(), Vec::new());
        for step in steps.into_iter().chain([Step::Freeze]) {
            match step {
                Step::Put(key, _, value) => {
                    let mut state = ValueDecl::bind(&mut tables, &key, key.key_hash());
                    prop_assert_eq!(state.get().unwrap(), model.get(&key));
                    prop_assert_eq!(state.set(value).unwrap(), model.insert(key, value));
                }
                Step::Remove(key, _) | Step::Clear(key) => {
                    let mut state = ValueDecl::bind(&mut tables, &key, key.key_hash());
                    prop_assert_eq!(state.clear().unwrap(), model.remove(&key));
                }
                Step::Freeze => frozen.push((tables.freeze(), model.clone())),
            }
        }
        for (table, model) in frozen {
            let file = stored(vec![table]);
            let content = content(&declaration, &file, 0..40, |mut state: crate::ValueState<'_, i64>| {
                state.get().unwrap().copied()
            });
            prop_assert_eq!(content, model);
        }
    }

    #[test]
    fn a_frozen_map_state_equals_the_model_at_its_freeze(steps in steps()) {
        let declaration = map::<u8, i64>("m");
        let mut tables = StateDeclaration::<u32>::open(&declaration, &backend());
        let mut model: BTreeMap<u32, BTreeMap<u8, i64>> = BTreeMap::new();
        let mut frozen = Vec::new();
        for step in steps.into_iter().chain([Step::Freeze]) {
            match step {
                Step::Put(key, map_key, value) => {
                    let mut state = MapDecl::bind(&mut tables, &key, key.key_hash());
                    let of_key = model.entry(key).or_default();
                    prop_assert_eq!(state.get(&map_key).unwrap(), of_key.get(&map_key));
                    prop_assert_eq!(state.insert(map_key, value).unwrap(), of_key.insert(map_key, value));
                    prop_assert_eq!(state.len().unwrap(), of_key.len());
                }
                Step::Remove(key, map_key) => {
                    let mut state = MapDecl::bind(&mut tables, &key, key.key_hash());
                    let of_key = model.entry(key).or_default();
                    prop_assert_eq!(state.remove(&map_key).unwrap(), of_key.remove(&map_key));
                    let entries: BTreeMap<_, _> = state.iter().unwrap().map(|(key, value)| (*key, *value)).collect();
                    prop_assert_eq!(&entries, &*of_key);
                }
                Step::Clear(key) => {
                    MapDecl::bind(&mut tables, &key, key.key_hash()).clear().unwrap();
                    model.remove(&key);
                }
                Step::Freeze => {
                    model.retain(|_, of_key| !of_key.is_empty());
                    frozen.push((tables.freeze(), model.clone()));
                }
            }
        }
        for (table, model) in frozen {
            let file = stored(vec![table]);
            let content = content(&declaration, &file, 0..40, |mut state: crate::MapState<'_, u8, i64>| {
                let entries: BTreeMap<_, _> = state.iter().unwrap().map(|(key, value)| (*key, *value)).collect();
                (!entries.is_empty()).then_some(entries)
            });
            prop_assert_eq!(content, model);
        }
    }

    #[test]
    fn a_frozen_list_state_equals_the_model_at_its_freeze(steps in steps()) {
        let declaration = list::<i64>("l");
        let mut tables = StateDeclaration::<u32>::open(&declaration, &backend());
        let mut model: BTreeMap<u32, Vec<i64>> = BTreeMap::new();
        let mut frozen = Vec::new();
        for step in steps.into_iter().chain([Step::Freeze]) {
            match step {
                Step::Put(key, _, item) => {
                    let mut state = ListDecl::bind(&mut tables, &key, key.key_hash());
                    state.push(item).unwrap();
                    model.entry(key).or_default().push(item);
                    prop_assert_eq!(state.iter().unwrap().copied().collect::<Vec<_>>(), model[&key].clone());
                }
                Step::Remove(key, _) | Step::Clear(key) => {
                    ListDecl::bind(&mut tables, &key, key.key_hash()).clear().unwrap();
                    model.remove(&key);
                }
                Step::Freeze => frozen.push((tables.freeze(), model.clone())),
            }
        }
        for (table, model) in frozen {
            let file = stored(vec![table]);
            let content = content(&declaration, &file, 0..40, |mut state: crate::ListState<'_, i64>| {
                let items: Vec<i64> = state.iter().unwrap().copied().collect();
                (!items.is_empty()).then_some(items)
            });
            prop_assert_eq!(content, model);
        }
    }

    #[test]
    fn timers_come_in_time_order_and_survive_a_restore(
        operations in prop::collection::vec((0u32..20, -50i64..50, any::<bool>()), 0..120), cut in -50i64..50
    ) {
        let (range, max) = whole();
        let mut timers = TimerTable::<u32>::new(range, max);
        let mut model = BTreeSet::new();
        for (key, time, add) in operations {
            let hash = key.key_hash();
            if add {
                prop_assert_eq!(timers.register(&key, hash, time), model.insert((time, hash, key)));
            } else {
                prop_assert_eq!(timers.delete(&key, hash, time), model.remove(&(time, hash, key)));
            }
        }
        while let Some((time, key)) = timers.pop_due(cut) {
            let first = model.pop_first().unwrap();
            prop_assert_eq!((time, key.key_hash(), key), first);
        }
        prop_assert!(model.first().is_none_or(|first| first.0 > cut));
        prop_assert_eq!(timers.next_time(), model.first().map(|first| first.0));
        let file = stored(vec![timers.freeze()]);
        let mut restored = TimerTable::<u32>::new(range, max);
        restored.restore(&StateFileReader::open(&file).unwrap(), range).unwrap();
        prop_assert_eq!(restored.len(), model.len());
        let rest: Vec<_> = std::iter::from_fn(|| restored.pop_due(i64::MAX)).collect();
        prop_assert_eq!(rest, model.iter().map(|(time, _, key)| (*time, *key)).collect::<Vec<_>>());
    }

    #[test]
    fn a_table_of_any_interval_keeps_every_key(first: u64, span: u64, count in 1usize..5_000) {
        let span = span.min(u64::MAX - first);
        let mut table = Table::<_, _, Carried>::new(first, span);
        let hash = |number: usize| first + ((u128::from((number as u64).key_hash()) * u128::from(span)) >> 64) as u64;
        for number in 0..count {
            table.insert_new(hash(number), (hash(number), number), number * 2);
        }
        prop_assert_eq!(table.len(), count);
        for number in 0..count {
            prop_assert_eq!(table.get(hash(number), |own| own.1 == number), Some(&(number * 2)));
        }
        let frozen = table.freeze();
        prop_assert_eq!(frozen.iter().count(), count);
        for number in (0..count).step_by(3) {
            let removed = table.remove(hash(number), |own| own.1 == number);
            prop_assert_eq!(removed, Some(((hash(number), number), number * 2)));
        }
        prop_assert_eq!(frozen.iter().find(|(key, _)| key.1 == 0).map(|(_, value)| *value), Some(0));
    }
}

/// Keys that carry the hash which places them.
struct Carried;

impl placing::Placing<(u64, usize)> for Carried {
    fn hash(&(hash, _): &(u64, usize)) -> u64 {
        hash
    }
}

type ValueDecl = Bound<crate::ValueDeclaration<i64>>;
type MapDecl = Bound<crate::MapDeclaration<u8, i64>>;
type ListDecl = Bound<crate::ListDeclaration<i64>>;

/// `bind` of a declaration over u32 keys.
struct Bound<S>(std::marker::PhantomData<S>);

impl<S: StateDeclaration<u32>> Bound<S> {
    fn bind<'a>(tables: &'a mut S::Tables, key: &'a u32, hash: u64) -> S::Handles<'a> {
        S::bind(tables, key, hash)
    }
}

/// A value state of `keys` keys over all of `groups` key groups.
fn filled(groups: u32, keys: u64) -> ValueTable<u64, u64> {
    let max = MaxParallelism::new(groups).unwrap();
    let heap = HeapBackend { range: KeyGroupRange::all(max), max_parallelism: max };
    let mut table = ValueTable::new("v", &heap);
    for key in 0..keys {
        crate::state::ValueAccess::set(&mut table, &key, key.key_hash(), key);
    }
    table
}

#[test]
fn a_write_after_a_freeze_copies_at_most_one_page_whatever_the_key_groups() {
    let bound = page_capacity::<u64, u64>() as u64;
    assert!(bound <= 1_024);
    for groups in [1, 128, 32_768] {
        let mut table = filled(groups, 50_000);
        let frozen = table.freeze();
        let mut before = table.copied_entries();
        assert_eq!(before, 0, "a freeze copies nothing");
        for key in 0..60_000u64 {
            crate::state::ValueAccess::set(&mut table, &key, key.key_hash(), 1);
            let copied = table.copied_entries() - before;
            assert!(copied <= bound, "one write copied {copied} entries at {groups} key groups");
            before = table.copied_entries();
        }
        assert!(before <= 50_000, "each entry is copied at most once a freeze");
        drop(frozen);
    }
}

#[test]
fn pages_are_taken_back_without_a_copy_when_the_snapshot_is_done() {
    let mut table = filled(128, 20_000);
    drop(table.freeze());
    for key in 0..20_000u64 {
        crate::state::ValueAccess::set(&mut table, &key, key.key_hash(), 1);
    }
    assert_eq!(table.copied_entries(), 0);
}

#[test]
fn reads_and_writes_of_absent_keys_copy_nothing() {
    let mut table = filled(128, 2_000);
    let frozen = table.freeze();
    for key in 0..10_000u64 {
        crate::state::ValueAccess::get(&table, &key, key.key_hash());
        let absent = key + 10_000;
        crate::state::ValueAccess::clear(&mut table, &absent, absent.key_hash());
    }
    assert_eq!(table.copied_entries(), 0);
    drop(frozen);
}

#[test]
fn one_key_with_many_map_entries_copies_no_more_than_a_few_pages_a_write() {
    let (range, max) = whole();
    let heap = HeapBackend { range, max_parallelism: max };
    let mut table = MapTable::<u64, u64, u64>::new("m", &heap);
    let (key, hash) = (7u64, 7u64.key_hash());
    for map_key in 0..50_000u64 {
        crate::state::MapAccess::insert(&mut table, &key, hash, map_key, map_key);
    }
    let frozen = table.freeze();
    let mut before = 0;
    for map_key in 0..50_000u64 {
        if map_key % 3 == 0 {
            crate::state::MapAccess::remove(&mut table, &key, hash, &map_key);
        } else {
            crate::state::MapAccess::insert(&mut table, &key, hash, map_key + 25_000, 0);
        }
        // A removal touches its entry, the moved entry and two places of the index, each in a page of its own.
        let copied = table.copied_entries() - before;
        assert!(copied <= 4 * 1_024 + 1, "one operation copied {copied} entries");
        before = table.copied_entries();
    }
    drop(frozen);
}

#[test]
fn the_directory_grows_with_the_pages() {
    let mut table = Table::<u64, (), ByKey>::unbounded();
    for number in 0..200_000u64 {
        table.insert_new(number.key_hash(), number, ());
    }
    let capacity = page_capacity::<u64, ()>();
    assert!(table.pages() <= 3 * 200_000 / capacity, "{} pages", table.pages());
    assert!(table.places() <= 16 * table.pages(), "{} places, {} pages", table.places(), table.pages());
    // Hashes that all agree cannot be split: the page grows, the directory does not.
    let mut clashing = Table::<_, _, Carried>::new(5, 0);
    for number in 0..3_000 {
        clashing.insert_new(5, (5, number), ());
    }
    assert_eq!((clashing.pages(), clashing.places(), clashing.len()), (1, 1, 3_000));
    // What the page's index cannot name is found all the same, also when rows move because others go.
    for number in (0..3_000).rev().step_by(7).chain(0..3_000) {
        let at = (0..3_000)
            .map(|next| (number + next * 11) % 3_000)
            .find(|at| clashing.get(5, |own| own.1 == *at).is_some());
        let Some(at) = at else { break };
        assert_eq!(clashing.remove(5, |own| own.1 == at), Some(((5, at), ())));
        assert!(clashing.get(5, |own| own.1 == at).is_none());
    }
    assert_eq!(clashing.len(), 0);
    clashing.insert_new(5, (5, 1), ());
    assert!(clashing.get(5, |own| own.1 == 1).is_some());
}

#[test]
fn large_entries_make_small_pages() {
    assert_eq!(page_capacity::<u64, [u8; 1_000_000]>(), 1);
    assert!(page_capacity::<u64, [u64; 100]>() * 800 <= 64 * 1024);
    let mut model = HashMap::new();
    let mut table = Table::<_, _, ByKey>::unbounded();
    for number in 0..200u64 {
        table.insert_new(number.key_hash(), number, [number; 4_000]);
        model.insert(number, number);
    }
    for (number, value) in model {
        assert_eq!(table.get(number.key_hash(), |own| *own == number).unwrap()[3_999], value);
    }
}

#[test]
fn many_entries_of_every_kind_come_back_from_a_file_in_one_piece_or_in_parts() {
    const KEYS: u32 = 3_000;
    let (range, max) = whole();
    let declaration = (value::<i64>("v"), map::<u32, i64>("m"), list::<u32>("l"));
    type Declared =
        (crate::ValueDeclaration<i64>, crate::MapDeclaration<u32, i64>, crate::ListDeclaration<u32>);
    let mut tables = StateDeclaration::<u32>::open(&declaration, &backend());
    for round in 0..7u32 {
        for key in 0..KEYS {
            let (mut value, mut map, mut list) =
                <Declared as StateDeclaration<u32>>::bind(&mut tables, &key, key.key_hash());
            value.set(i64::from(key)).unwrap();
            map.insert(round, i64::from(key + round)).unwrap();
            list.push(key * 7 + round).unwrap();
        }
        // Owners that go leave gaps in the ids.
        for key in (0..KEYS).filter(|key| round == 3 && key % 5 != 0) {
            let (_, mut map, mut list) =
                <Declared as StateDeclaration<u32>>::bind(&mut tables, &key, key.key_hash());
            map.clear().unwrap();
            list.clear().unwrap();
        }
    }
    let mut frozen = Vec::new();
    <Declared as StateDeclaration<u32>>::freeze(&mut tables, &mut frozen);
    let file = stored(frozen);
    let reader = StateFileReader::open(&file).unwrap();
    let mut together = StateDeclaration::<u32>::open(&declaration, &backend());
    declaration.restore(&mut together, &reader, range).unwrap();
    let mut in_parts = StateDeclaration::<u32>::open(&declaration, &backend());
    for part in 0..3 {
        declaration.restore(&mut in_parts, &reader, crate::range_of(part, 3, max)).unwrap();
    }
    for tables in [&mut together, &mut in_parts] {
        for key in 0..KEYS {
            let (mut value, mut map, mut list) =
                <Declared as StateDeclaration<u32>>::bind(tables, &key, key.key_hash());
            let first = if key % 5 == 0 { 0 } else { 4 };
            assert_eq!(value.get().unwrap(), Some(&i64::from(key)));
            let entries: BTreeMap<u32, i64> =
                map.iter().unwrap().map(|(key, value)| (*key, *value)).collect();
            assert_eq!(entries, (first..7).map(|round| (round, i64::from(key + round))).collect());
            let items: Vec<u32> = list.iter().unwrap().copied().collect();
            assert_eq!(items, (first..7).map(|round| key * 7 + round).collect::<Vec<_>>());
        }
    }
}

#[test]
fn room_for_a_restore_is_made_once_and_pages_hardly_split() {
    let mut table = Table::<u64, u64, ByKey>::unbounded();
    table.make_room_for(100_000);
    let made = table.pages();
    for number in 0..100_000u64 {
        table.insert_new(number.key_hash(), number, number);
    }
    assert!(made <= 256 && table.pages() <= made + made / 50, "{made} pages became {}", table.pages());
    assert!((0..100_000).all(|number| table.get(number.key_hash(), |own| *own == number) == Some(&number)));
    table.make_room_for(10_000_000);
    assert!(table.pages() <= made + made / 50, "only an empty table is cut");
}
