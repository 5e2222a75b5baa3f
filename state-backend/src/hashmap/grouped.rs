//! Rows of one flat table, put together by the key that owns them: how maps and lists are written, without a lookup for each row.
//!
//! One pass over the table puts each row behind those of its owner's that came before, or at its own position; who writes then walks
//! owner after owner.
//!
//! Owns: the order. Does not own: rows, and how they are written (see [`MapTable`](super::MapTable), [`ListTable`](super::ListTable)).
//! Runs on: off the slot's thread, over frozen pages.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::Head;

/// Where the rows of each owner begin.
pub(crate) struct Owners {
    places: Places,
    rows: usize,
}

/// First places by owner's id. Ids are given in order, so that they mostly lie close together.
enum Places {
    Dense(Vec<usize>),
    Sparse(HashMap<u64, usize, BuildHasherDefault<DefaultHasher>>),
}

/// Ids may reach so many times the number of owners before a map is smaller than a vector.
const IDS_PER_OWNER_MAX: usize = 4;

impl Owners {
    /// The owners in the order in which they are written.
    pub(crate) fn new<'h>(heads: impl Iterator<Item = &'h Head> + Clone) -> Self {
        let (owners, ids) = heads.clone().fold((0, 0), |(owners, ids), head| (owners + 1, head.id.max(ids)));
        let dense = usize::try_from(ids).is_ok_and(|ids| ids / IDS_PER_OWNER_MAX <= owners);
        let mut places = match dense {
            true => Places::Dense(vec![0; ids as usize + 1]),
            false => Places::Sparse(HashMap::with_capacity_and_hasher(owners, BuildHasherDefault::default())),
        };
        let mut rows = 0;
        for head in heads {
            match &mut places {
                Places::Dense(first) => first[head.id as usize] = rows,
                Places::Sparse(first) => {
                    first.insert(head.id, rows);
                }
            }
            rows += head.length as usize;
        }
        Self { places, rows }
    }

    /// The rows in order: `rows` yields (owner's id, position) of each, or `None` where rows of an owner have no order.
    ///
    /// Every owner has as many rows as its head says: these are the tables of one freeze.
    pub(crate) fn in_order<R: Copy>(mut self, rows: impl Iterator<Item = (u64, Option<u64>, R)>) -> Vec<R> {
        let mut ordered = vec![None; self.rows];
        for (owner, position, row) in rows {
            let place = match &mut self.places {
                Places::Dense(first) => first.get_mut(owner as usize),
                Places::Sparse(first) => first.get_mut(&owner),
            };
            let place = place.expect("the owner of each row has a head");
            match position {
                Some(position) => ordered[*place + position as usize] = Some(row),
                None => {
                    ordered[*place] = Some(row);
                    *place += 1;
                }
            }
        }
        ordered.into_iter().map(|row| row.expect("an owner has as many rows as its head says")).collect()
    }
}
