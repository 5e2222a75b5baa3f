//! Tests of state files: rescale, evolution, damage.
//!
//! Owns: the promises of a restore.
//! Does not own: copy-on-write (see `crate::hashmap`).
//! Runs on: the test threads.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_state_derive::StateType;

use super::*;
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::declaration::{StateDeclaration, list, map, value};
use crate::error::{FileDefect, StateError};
use crate::key_group::{KeyGroupRange, MaxParallelism, key_group_of, range_of, subtask_of};
use crate::state::{ListState, MapState, ValueState};

type States =
    (crate::ValueDeclaration<i64>, crate::ListDeclaration<String>, crate::MapDeclaration<u16, bool>);
type Tables = <States as StateDeclaration<String>>::Tables;
type Model = BTreeMap<String, (i64, Vec<String>, BTreeMap<u16, bool>)>;

fn states() -> States {
    (value("sum"), list("names"), map("flags"))
}

fn key(number: u16) -> String {
    format!("key-{number}")
}

/// The subtasks of one parallelism.
fn subtasks(parallelism: u32, max: MaxParallelism) -> Vec<Tables> {
    let ranges = (0..parallelism).map(|subtask| range_of(subtask, parallelism, max));
    ranges.map(|range| StateDeclaration::<String>::open(&states(), &KeyedBackend::heap(range, max))).collect()
}

fn files(tables: &mut [Tables], max: MaxParallelism) -> Vec<Vec<u8>> {
    let parallelism = tables.len() as u32;
    let mut files = Vec::new();
    for (subtask, tables) in tables.iter_mut().enumerate() {
        let mut frozen = Vec::new();
        <States as StateDeclaration<String>>::freeze(tables, &mut frozen);
        files.push(write_state_file("op", range_of(subtask as u32, parallelism, max), max, frozen));
    }
    files
}

fn restore(files: &[Vec<u8>], parallelism: u32, max: MaxParallelism) -> Vec<Tables> {
    let mut tables = subtasks(parallelism, max);
    for (subtask, tables) in tables.iter_mut().enumerate() {
        let range = range_of(subtask as u32, parallelism, max);
        for file in files {
            let reader = StateFileReader::open(file).unwrap();
            StateDeclaration::<String>::restore(&states(), tables, &reader, range).unwrap();
        }
    }
    tables
}

fn owner<'t>(tables: &'t mut [Tables], key: &String, max: MaxParallelism) -> &'t mut Tables {
    let subtask = subtask_of(key_group_of(key.key_hash(), max), tables.len() as u32, max);
    &mut tables[subtask as usize]
}

type Bound<'a> = (ValueState<'a, i64>, ListState<'a, String>, MapState<'a, u16, bool>);

fn bind<'a>(tables: &'a mut Tables, key: &'a String) -> Bound<'a> {
    <States as StateDeclaration<String>>::bind(tables, key, key.key_hash())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_restore_under_any_rescale_equals_the_model(
        writes in prop::collection::vec((0u16..60, any::<i64>(), 0u16..4), 0..150),
        groups in 8u32..200, before in 1u32..8, after in 1u32..8,
    ) {
        let max = MaxParallelism::new(groups).unwrap();
        let mut tables = subtasks(before, max);
        let mut model = Model::new();
        for (number, amount, flag) in writes {
            let key = key(number);
            let (mut sum, mut names, mut flags) = bind(owner(&mut tables, &key, max), &key);
            sum.update(|sum| *sum = sum.wrapping_add(amount)).unwrap();
            names.push(amount.to_string()).unwrap();
            flags.insert(flag, amount > 0).unwrap();
            let of_key = model.entry(key).or_default();
            of_key.0 = of_key.0.wrapping_add(amount);
            of_key.1.push(amount.to_string());
            of_key.2.insert(flag, amount > 0);
        }
        let files = files(&mut tables, max);
        let mut tables = restore(&files, after, max);
        prop_assert_eq!(tables.iter().map(|tables| tables.0.len()).sum::<usize>(), model.len());
        prop_assert_eq!(
            tables.iter().map(|tables| tables.1.len()).sum::<usize>(),
            model.values().map(|of_key| of_key.1.len()).sum::<usize>()
        );
        for (key, (total, texts, bits)) in &model {
            let (mut sum, mut names, mut flags) = bind(owner(&mut tables, key, max), key);
            prop_assert_eq!(sum.get().unwrap(), Some(total));
            prop_assert_eq!(&names.iter().unwrap().cloned().collect::<Vec<_>>(), texts);
            let found: BTreeMap<u16, bool> = flags.iter().unwrap().map(|(flag, on)| (*flag, *on)).collect();
            prop_assert_eq!(&found, bits);
        }
    }

    #[test]
    fn any_flipped_byte_and_any_cut_is_noticed(at: prop::sample::Index, bit in 0u32..8) {
        let file = one_file();
        let mut flipped = file.clone();
        flipped[at.index(file.len())] ^= 1 << bit;
        prop_assert!(read_all(&flipped).is_err());
        prop_assert!(read_all(&file[..at.index(file.len())]).is_err());
        prop_assert!(read_all(&[&file[..], b"x"].concat()).is_err());
    }
}

fn one_file() -> Vec<u8> {
    let max = MaxParallelism::default();
    let mut tables = subtasks(1, max);
    for number in 0..50 {
        let key = key(number);
        bind(&mut tables[0], &key).0.set(i64::from(number)).unwrap();
    }
    files(&mut tables, max).remove(0)
}

fn read_all(file: &[u8]) -> Result<(), StateError> {
    let max = MaxParallelism::default();
    let reader = StateFileReader::open_named("7-1/op-0", file)?;
    let mut tables = subtasks(1, max).remove(0);
    StateDeclaration::<String>::restore(&states(), &mut tables, &reader, KeyGroupRange::all(max))?;
    reader.verify()
}

#[test]
fn damage_names_file_and_section() {
    let text = |file: &[u8]| {
        let StateError::DamagedFile { file, section, source } = read_all(file).unwrap_err() else {
            panic!("another error");
        };
        format!("{file}: {section}: {source}")
    };
    let file = one_file();
    assert_eq!(text(&[]), "7-1/op-0: header: it is empty");
    assert!(text(b"{\"json\": 1}").contains("does not begin with TGST"));
    assert!(text(&file[..file.len() - 1]).contains("header: it should have"));
    let mut flipped = file.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let text = text(&flipped);
    assert!(text.starts_with("7-1/op-0: state \"sum\", key group ") && text.contains("checksum"), "{text}");
    let mut newer = file;
    newer[4] = 2;
    let StateError::DamagedFile { source, .. } = read_all(&newer).unwrap_err() else {
        panic!("another error");
    };
    assert!(matches!(*source, FileDefect::NewerFormat { found: 2, newest: 1 }));
}

#[test]
fn a_file_tells_what_is_in_it() {
    let file = one_file();
    let reader = StateFileReader::open(&file).unwrap();
    assert_eq!(reader.operator_uid(), "op");
    assert_eq!(reader.range(), KeyGroupRange { start: 0, end: 128 });
    assert_eq!(reader.entries_of("sum"), 50);
    let texts: Vec<_> = reader.descriptors().map(ToString::to_string).collect();
    assert_eq!(texts, ["sum (ValueState<i64>)", "names (ListState<String>)", "flags (MapState<u16, bool>)"]);
}

mod before {
    use super::*;

    #[derive(Clone, StateType)]
    pub(super) struct Totals {
        pub(super) amount_cents: i32,
    }
}

#[derive(Clone, Debug, Default, PartialEq, StateType)]
struct Totals {
    amount_cents: i64,
}

/// A file of one value state under the key 7.
fn file_of<V: StateType>(name: &str, content: V) -> Vec<u8> {
    let max = MaxParallelism::default();
    let range = KeyGroupRange::all(max);
    let declaration = value::<V>(name);
    let mut tables = StateDeclaration::<u64>::open(&declaration, &KeyedBackend::heap(range, max));
    let key = 7u64;
    <_ as Set<V>>::set(&mut tables, &key, content);
    write_state_file("user_total", range, max, vec![tables.freeze()])
}

trait Set<V> {
    fn set(&mut self, key: &u64, content: V);
}

impl<V: StateType> Set<V> for crate::hashmap::ValueTable<u64, V> {
    fn set(&mut self, key: &u64, content: V) {
        crate::ValueDeclaration::<V>::bind(self, key, key.key_hash()).set(content).unwrap();
    }
}

fn restored<V: StateType>(name: &str, file: &[u8]) -> Result<Option<V>, StateError> {
    let max = MaxParallelism::default();
    let range = KeyGroupRange::all(max);
    let declaration = value::<V>(name);
    let mut tables = StateDeclaration::<u64>::open(&declaration, &KeyedBackend::heap(range, max));
    let reader = StateFileReader::open(file)?;
    let stored: Vec<_> = reader.descriptors().cloned().collect();
    let checked = StateDeclaration::<u64>::check(&declaration, "user_total", &stored);
    let restored = StateDeclaration::<u64>::restore(&declaration, &mut tables, &reader, range);
    assert_eq!(checked.is_ok(), restored.is_ok(), "the check at submit and the restore agree");
    restored?;
    let found = crate::ValueDeclaration::<V>::bind(&mut tables, &7, 7u64.key_hash()).get()?.cloned();
    Ok(found)
}

#[test]
fn a_changed_type_names_operator_state_and_field() {
    let file = file_of("totals", before::Totals { amount_cents: 5 });
    let error = restored::<Totals>("totals", &file).unwrap_err();
    let StateError::SchemaMismatch { operator, state, field, was, is, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        [operator, state, field, was, is].map(|text| &**text),
        ["user_total", "totals", "amount_cents", "i32", "i64"]
    );
    assert_eq!(restored::<Totals>("other", &file).unwrap(), None);
}

#[test]
fn an_added_optional_field_is_none() {
    #[derive(Clone, Debug, PartialEq, StateType)]
    #[state(renamed_from = "Totals")]
    struct Longer {
        note: Option<String>,
        amount_cents: i32,
    }
    let file = file_of("totals", before::Totals { amount_cents: 5 });
    let longer = restored::<Longer>("totals", &file).unwrap();
    assert_eq!(longer, Some(Longer { note: None, amount_cents: 5 }));
}

#[test]
fn another_key_type_kind_or_number_of_groups_is_refused() {
    let file = file_of("totals", 5i64);
    let reader = StateFileReader::open(&file).unwrap();
    let stored: Vec<_> = reader.descriptors().cloned().collect();
    let key = StateDeclaration::<u32>::check(&value::<i64>("totals"), "op", &stored).unwrap_err();
    assert!(matches!(&key, StateError::SchemaMismatch { field, .. } if **field == *"(key)"), "{key:?}");
    let kind = StateDeclaration::<u64>::check(&list::<i64>("totals"), "op", &stored).unwrap_err();
    assert!(kind.to_string().contains("totals was value state, is list state"), "{kind}");
    let max = MaxParallelism::new(64).unwrap();
    let range = KeyGroupRange::all(max);
    let mut tables = StateDeclaration::<u64>::open(&value::<i64>("totals"), &KeyedBackend::heap(range, max));
    let groups = tables.restore(&reader, range).unwrap_err();
    assert!(groups.to_string().contains("has 128 key groups, this job has 64"), "{groups}");
}
