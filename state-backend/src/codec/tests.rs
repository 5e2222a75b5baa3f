//! Tests of codecs: round trips, the bytes of bincode, evolution by the writer's schema, the key hash.
//!
//! Owns: the promises that [`StateType`] makes.
//! Does not own: files and tables.
//! Runs on: the test threads.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tidegate_state_derive::StateType;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::schema::{Schema, SchemaMismatch, skip};

fn encode<T: StateType>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

/// Round trip by the own schema, by the written schema, and skipping; all must end at the last byte.
fn round_trip<T: StateType + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = encode(value);
    let schema = Schema::from_bytes(&T::schema().to_bytes()).unwrap();
    assert_eq!(schema, T::schema());
    let mut input = bytes.as_slice();
    assert_eq!(&T::decode(&mut input).unwrap(), value);
    assert!(input.is_empty());
    let mut input = bytes.as_slice();
    assert_eq!(&T::decode_as(&schema, &mut input).unwrap(), value);
    assert!(input.is_empty());
    let mut input = bytes.as_slice();
    skip(&schema, &mut input).unwrap();
    assert!(input.is_empty());
    T::check(&schema).unwrap();
    assert_eq!(value.key_hash(), xxh3_64(&bytes));
    for cut in 0..bytes.len() {
        assert!(T::decode(&mut &bytes[..cut]).is_err(), "{cut} of {} bytes were enough", bytes.len());
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, StateType)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, StateType)]
struct Pair<A, B>(A, B);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, StateType)]
enum Status {
    New,
    Paid { cents: i64, by: Option<String> },
    Sent(u32, char),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, StateType)]
struct Everything {
    unit: Unit,
    pair: Pair<u8, Vec<i16>>,
    status: Status,
    r#type: bool,
    map: BTreeMap<String, u128>,
    set: BTreeSet<i32>,
    queue: VecDeque<(f32, f64)>,
    boxed: Box<Option<()>>,
    array: [u16; 3],
}

fn everything() -> Everything {
    Everything {
        unit: Unit,
        pair: Pair(7, vec![-1, 2]),
        status: Status::Paid { cents: -5, by: Some("ü".into()) },
        r#type: true,
        map: BTreeMap::from([("a".into(), 1), ("b".into(), u128::MAX)]),
        set: BTreeSet::from([3, -4]),
        queue: VecDeque::from([(1.5, -2.5)]),
        boxed: Box::new(Some(())),
        array: [1, 2, 3],
    }
}

#[test]
fn the_bytes_are_those_of_bincode() {
    let value = everything();
    assert_eq!(encode(&value), bincode::serde::encode_to_vec(&value, CONFIG).unwrap());
    round_trip(&value);
    round_trip(&Status::New);
    round_trip(&Status::Sent(9, '€'));
}

#[test]
fn integers_hash_as_their_encoding() {
    assert_eq!(7u64.key_hash(), xxh3_64(&[7, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(7usize.key_hash(), 7u64.key_hash());
    assert_eq!(hash_str("abc"), "abc".to_owned().key_hash());
}

#[test]
fn hash_maps_and_sets_have_one_encoding() {
    let forward: HashMap<u32, String> = (0..100).map(|n| (n, n.to_string())).collect();
    let backward: HashMap<u32, String> = (0..100).rev().map(|n| (n, n.to_string())).collect();
    assert_eq!(encode(&forward), encode(&backward));
    round_trip(&forward);
    let set: HashSet<String> = forward.values().cloned().collect();
    let again: HashSet<String> = set.iter().cloned().collect();
    assert_eq!(encode(&set), encode(&again));
    round_trip(&set);
}

proptest! {
    #[test]
    fn scalars_round_trip(
        a: (u8, u16, u32, u64, u128), b: (i8, i16, i32, i64, i128), c: (bool, char, String, usize, isize)
    ) {
        round_trip(&a);
        round_trip(&b);
        round_trip(&c);
    }

    #[test]
    fn text_of_any_length_hashes_as_its_encoding(text in "\\PC{0,200}") {
        prop_assert_eq!(hash_str(&text), xxh3_64(&encode(&text)));
    }

    #[test]
    fn containers_round_trip(
        list in prop::collection::vec(any::<Option<i16>>(), 0..8),
        map in prop::collection::btree_map(".{0,5}", any::<(u8, bool)>(), 0..8),
    ) {
        round_trip(&(list, map));
    }

    #[test]
    fn random_bytes_are_refused_or_read_but_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60)
    ) {
        let _ = Everything::decode(&mut bytes.as_slice());
        let _ = skip(&Everything::schema(), &mut bytes.as_slice());
        let _ = Schema::from_bytes(&bytes);
    }
}

/// The same type as an earlier version of the program had it.
mod before {
    use super::*;

    #[derive(Clone, StateType)]
    pub(super) struct Totals {
        pub(super) gone: Vec<(u8, Status)>,
        pub(super) amount: i64,
        pub(super) orders: u64,
    }

    #[derive(Clone, StateType)]
    pub(super) enum Level {
        Low,
        High { by: u8, gone: String },
        Gone,
    }

    #[derive(Clone, StateType)]
    pub(super) struct Account {
        pub(super) lines: Vec<Line>,
    }

    #[derive(Clone, StateType)]
    pub(super) struct Line {
        pub(super) amount_cents: i32,
    }
}

#[derive(Clone, Debug, PartialEq, StateType)]
#[state(version = 2)]
struct Totals {
    orders: u64,
    #[state(renamed_from = "amount")]
    amount_cents: i64,
    note: Option<String>,
    #[state(default)]
    level: u16,
}

#[test]
fn fields_are_matched_by_name() {
    let was = before::Totals { gone: vec![(1, Status::Sent(2, 'x'))], amount: 350, orders: 2 };
    let writer = before::Totals::schema();
    Totals::check(&writer).unwrap();
    let is = Totals::decode_as(&writer, &mut encode(&was).as_slice()).unwrap();
    assert_eq!(is, Totals { orders: 2, amount_cents: 350, note: None, level: 0 });
    let mismatch = before::Totals::check(&Totals::schema()).unwrap_err();
    assert_eq!(mismatch, SchemaMismatch::texts("Totals version 2", "Totals version 1"));
}

#[derive(Clone, Debug, PartialEq, StateType)]
enum Level {
    High {
        by: u8,
        note: Option<String>,
    },
    Middle,
    #[state(renamed_from = "Low")]
    Bottom,
}

#[test]
fn variants_are_matched_by_name() {
    let writer = before::Level::schema();
    let read = |value: before::Level| Level::decode_as(&writer, &mut encode(&value).as_slice());
    assert_eq!(read(before::Level::Low).unwrap(), Level::Bottom);
    let high = before::Level::High { by: 3, gone: "x".into() };
    assert_eq!(read(high).unwrap(), Level::High { by: 3, note: None });
    assert!(matches!(read(before::Level::Gone), Err(CodecError::UnknownTag { tag: 2, .. })));
    let mismatch = Level::check(&writer).unwrap_err();
    assert_eq!(mismatch.to_string(), "{Gone}: was a variant, is absent");
}

#[derive(Clone, StateType)]
struct Account {
    lines: Vec<Line>,
}

#[derive(Clone, StateType)]
struct Line {
    amount_cents: i64,
}

#[test]
fn a_changed_scalar_is_named_with_its_path() {
    let writer = before::Account::schema();
    let mismatch = Account::check(&writer).unwrap_err();
    assert_eq!(mismatch.to_string(), "lines[].amount_cents: was i32, is i64");
    let was = before::Account { lines: vec![before::Line { amount_cents: 1 }] };
    assert!(matches!(
        Account::decode_as(&writer, &mut encode(&was).as_slice()),
        Err(CodecError::Mismatch { .. })
    ));
    let field = Line::check(&before::Line::schema()).unwrap_err();
    assert_eq!((&*field.field, &*field.was, &*field.is), ("amount_cents", "i32", "i64"));
    let other = u64::check(&String::schema()).unwrap_err();
    assert_eq!(other.to_string(), "(value): was String, is u64");
    assert!(Line::check(&before::Account::schema()).is_err());
}

#[test]
fn a_new_field_without_a_default_is_refused() {
    #[derive(Clone, Debug, StateType)]
    #[state(renamed_from = "Line")]
    struct Longer {
        amount_cents: i32,
        count: u8,
    }
    let mismatch = Longer::check(&before::Line::schema()).unwrap_err();
    assert_eq!(mismatch.field, "count");
    assert_eq!(mismatch.was, "absent");
    let bytes = encode(&before::Line { amount_cents: 4 });
    let error = Longer::decode_as(&before::Line::schema(), &mut bytes.as_slice()).unwrap_err();
    assert!(matches!(error, CodecError::MissingField { of: "Longer", field: "count" }));
    let _ = Longer { amount_cents: 1, count: 2 };
}

/// A type that implements serde but not `StateType`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Foreign {
    parts: Vec<Foreign>,
    name: String,
}

#[derive(Clone, Debug, PartialEq, StateType)]
struct Holder {
    #[state(opaque)]
    foreign: Foreign,
    after: u8,
}

#[test]
fn an_opaque_field_is_a_blob_with_its_name() {
    let inner = Foreign { parts: vec![], name: "x".into() };
    let holder = Holder { foreign: Foreign { parts: vec![inner], name: "y".into() }, after: 9 };
    round_trip(&holder);
    assert_eq!(Holder::schema().to_string(), "Holder { foreign: opaque Foreign, after: u8 }");
}

#[test]
#[should_panic(expected = "recursive type has no finite schema")]
fn a_roundabout_recursion_is_refused() {
    #[derive(Clone, StateType)]
    struct Left {
        right: Vec<Right>,
    }
    #[derive(Clone, StateType)]
    struct Right {
        left: Option<Left>,
    }
    Left::schema();
}

#[test]
fn schemas_read_like_types() {
    assert_eq!(
        Status::schema().to_string(),
        "Status { New | Paid { cents: i64, by: Option<String> } | Sent { 0: u32, 1: char } }"
    );
    assert_eq!(<BTreeMap<u8, (i8, [u8; 2])>>::schema().to_string(), "Map<u8, (i8, [u8; 2])>");
}
