//! Operator state: lists that belong to a subtask and not to a key, such as a source's splits or a sink's pending
//! committables.
//!
//! Owns: how the items of all subtasks are dealt out again at a restore, and the blob of one list.
//! Does not own: where blobs are stored, and which items an operator keeps.
//! Runs on: the slot's thread (encoding), the job manager (redistribution).

use serde::{Deserialize, Serialize};

use crate::codec::{CodecError, StateType, hash_bytes};
use crate::error::{FileDefect, StateError};
use crate::schema::Schema;
use crate::snapshot::{Frame, seal, unseal};

/// The frame of operator-state blobs.
const OPERATOR_LIST: Frame = Frame { magic: "TGOL", version: 1 };

/// How a blob is called in errors.
const BLOB: &str = "operator state";

/// How the items of all subtasks are dealt out at a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Redistribution {
    /// Each item goes to one subtask, in turn.
    Split,
    /// Every subtask gets all items.
    Union,
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema: Schema,
    items: u64,
    checksum: u64,
}

/// Deals the encoded items of the old subtasks out to `new_parallelism` new ones. Items keep their order.
pub fn redistribute(
    per_subtask: &[Vec<Vec<u8>>],
    mode: Redistribution,
    new_parallelism: usize,
) -> Vec<Vec<Vec<u8>>> {
    let all = per_subtask.iter().flatten();
    match mode {
        Redistribution::Union => vec![all.cloned().collect(); new_parallelism],
        Redistribution::Split => {
            let mut dealt = vec![Vec::new(); new_parallelism];
            if new_parallelism > 0 {
                all.enumerate().for_each(|(index, item)| dealt[index % new_parallelism].push(item.clone()));
            }
            dealt
        }
    }
}

/// The blob of a list: header with the items' schema, checksum, items.
pub fn encode_list<T: StateType>(items: &[T]) -> Vec<u8> {
    let mut body = Vec::new();
    items.iter().for_each(|item| item.encode(&mut body));
    let header = Header { schema: T::schema(), items: items.len() as u64, checksum: hash_bytes(&body) };
    seal(&OPERATOR_LIST, &header, vec![body])
}

/// Reads a blob, by the schema of its writer.
///
/// # Errors
/// When the blob is empty, torn or changed, or its items are of another type.
pub fn decode_list<T: StateType>(bytes: &[u8]) -> Result<Vec<T>, StateError> {
    let (header, mut body) = open_list(BLOB, bytes)?;
    let undecodable = |source| StateError::Undecodable {
        file: BLOB.into(),
        section: "the list".into(),
        source: Box::new(source),
    };
    T::check(&header.schema).map_err(|source| undecodable(CodecError::Mismatch { source }))?;
    let same = T::schema() == header.schema;
    let mut items = Vec::new();
    for _ in 0..header.items {
        let item = if same { T::decode(&mut body) } else { T::decode_as(&header.schema, &mut body) };
        items.push(item.map_err(undecodable)?);
    }
    match body.len() {
        0 => Ok(items),
        left => Err(undecodable(CodecError::TrailingBytes { of: "list".into(), left })),
    }
}

/// Whether a blob is whole, whatever type its items are of; `file` stands in errors.
///
/// # Errors
/// When it is empty, torn or changed.
pub fn check_list(file: &str, bytes: &[u8]) -> Result<(), StateError> {
    open_list(file, bytes).map(drop)
}

fn open_list<'a>(file: &str, bytes: &'a [u8]) -> Result<(Header, &'a [u8]), StateError> {
    let (header, body) = unseal::<Header>(&OPERATOR_LIST, file, bytes)?;
    let found = hash_bytes(body);
    if found != header.checksum {
        let source = Box::new(FileDefect::WrongChecksum { expected: header.checksum, found });
        return Err(StateError::DamagedFile { file: file.into(), section: "items".into(), source });
    }
    Ok((header, body))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn items(counts: &[usize]) -> Vec<Vec<Vec<u8>>> {
        let mut next = 0;
        let mut item = || {
            next += 1;
            vec![next]
        };
        counts.iter().map(|count| (0..*count).map(|_| item()).collect()).collect()
    }

    #[test]
    fn split_deals_in_turn_and_union_gives_all_to_everyone() {
        let split = redistribute(&items(&[3, 0, 2]), Redistribution::Split, 2);
        assert_eq!(split, [vec![vec![1], vec![3], vec![5]], vec![vec![2], vec![4]]]);
        let union = redistribute(&items(&[1, 1]), Redistribution::Union, 3);
        assert_eq!(union, vec![vec![vec![1], vec![2]]; 3]);
        assert_eq!(redistribute(&[], Redistribution::Split, 2), vec![Vec::<Vec<u8>>::new(); 2]);
    }

    #[test]
    fn a_list_of_another_type_names_both() {
        let error = decode_list::<i64>(&encode_list(&[1i32])).unwrap_err();
        let StateError::Undecodable { source, .. } = error else { panic!("{error:?}") };
        let CodecError::Mismatch { source } = *source else { panic!("{source:?}") };
        assert_eq!((&*source.was, &*source.is), ("i32", "i64"));
    }

    proptest! {
        #[test]
        fn lists_round_trip_and_damage_is_noticed(list: Vec<(u32, String)>, flip: prop::sample::Index) {
            let blob = encode_list(&list);
            prop_assert_eq!(decode_list::<(u32, String)>(&blob).unwrap(), list);
            let mut damaged = blob.clone();
            damaged[flip.index(blob.len())] ^= 0x10;
            prop_assert!(decode_list::<(u32, String)>(&damaged).is_err());
            prop_assert!(decode_list::<(u32, String)>(&blob[..flip.index(blob.len())]).is_err());
            prop_assert!(check_list("list", &blob).is_ok() && check_list("list", &damaged).is_err());
        }
    }
}
