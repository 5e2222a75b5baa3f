//! [`Placing`]: how the hash that places an entry in a table follows from the entry's key.
//!
//! Owns: one rule for each kind of table. Does not own: the hash of a key of user code (see [`StateType::key_hash`]).
//! Runs on: anywhere. Pure arithmetic.

use super::spread;
use crate::codec::StateType;

/// Makes the hash of a table's key again, for a page that splits or grows.
pub(crate) trait Placing<K> {
    fn hash(key: &K) -> u64;
}

/// By the hash that also routes the key.
pub(crate) struct ByKey;

impl<K: StateType> Placing<K> for ByKey {
    #[inline]
    fn hash(key: &K) -> u64 {
        key.key_hash()
    }
}

/// Of (owner, position): all over the table.
pub(crate) struct ByPosition;

impl Placing<(u64, u64)> for ByPosition {
    #[inline]
    fn hash(&(owner, position): &(u64, u64)) -> u64 {
        spread(owner, position)
    }
}

/// Of (owner, map key): all over the table.
pub(crate) struct ByMapKey;

impl<M: StateType> Placing<(u64, M)> for ByMapKey {
    #[inline]
    fn hash((owner, map_key): &(u64, M)) -> u64 {
        spread(*owner, map_key.key_hash())
    }
}

/// Of (key, time): all over the table.
pub(crate) struct ByTimer;

impl<K: StateType> Placing<(K, i64)> for ByTimer {
    #[inline]
    fn hash((key, time): &(K, i64)) -> u64 {
        spread(key.key_hash(), *time as u64)
    }
}
