//! The file backend: typed tables in memory, frozen by copy-on-write, written as one full file per subtask.
//!
//! Every state is made of one or more flat hash tables in pages. A freeze shares the rows of the pages; the first
//! write to a shared page afterwards copies the rows of that one page (or takes them back when the snapshot is done with
//! them), so no step after a freeze copies more than a page for each entry it touches, whatever the number of key groups.
//!
//! Owns: the tables of value, list and map state and of timers.
//! Does not own: the handles that user code sees (see [`crate::state`]), the state file (see [`crate::snapshot`]).
//! Runs on: tables on the slot's thread; frozen ones anywhere.

mod column;
mod directory;
mod grouped;
mod list_table;
mod map_table;
mod page;
mod placing;
mod row_index;
mod rows;
mod table;
#[cfg(test)]
mod tests;
mod timer_table;
mod value_table;

pub use self::list_table::ListTable;
pub use self::map_table::MapTable;
pub use self::timer_table::{TIMERS_STATE, TimerTable};
pub use self::value_table::ValueTable;

pub(crate) use self::grouped::Owners;
pub(crate) use self::placing::{ByKey, ByMapKey, ByPosition, ByTimer};
pub(crate) use self::table::{FrozenPages, Table};

/// The place and length of the entries that one key has in a flat table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Stands for the key in the flat table, so that the key is held once.
    pub(crate) id: u64,
    /// How many entries it has.
    pub(crate) length: u64,
}

/// Where the part `part` of the entries of `owner` lies: spreads the entries of one key over all pages.
#[inline]
pub(crate) fn spread(owner: u64, part: u64) -> u64 {
    let product = u128::from(owner ^ 0x9E37_79B9_7F4A_7C15) * u128::from(part ^ 0xD6E8_FEB8_6659_FD93);
    (product as u64) ^ ((product >> 64) as u64)
}
