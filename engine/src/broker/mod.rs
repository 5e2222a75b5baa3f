//! The protocol of a two-phase sink into a log broker with transactional producers (Kafka), as pure decisions: facts in, the next
//! request out. RFC 0008 tells it as one story.
//!
//! 1. A subtask has a fixed number of *slots* ([`SlotTable`]); each transaction takes one, and the slot's transactional id
//!    ([`ProducerSlot`]) is initialised anew for it ([`Initialisation`]). A slot is free again when its transaction is settled.
//! 2. Each transaction carries the id of the checkpoint that closes it as an offset of the slot's *ledger group*
//!    ([`LedgerGroup`]): the offset appears with the transaction's records or not at all.
//! 3. What the checkpoint stores is the transaction's identity ([`BrokerCommittable`]); whoever has it can commit, also after the
//!    process that wrote it was killed ([`Settlement`]).
//! 4. Recovery commits what is listed, then initialises ids of lower attempts ([`left_over`] says which), which fences
//!    and aborts.
//!
//! The simulation drives these against a model of the broker (`sim/broker.rs`); a connector drives the same ones over the wire.
//!
//! Owns: the order of requests and what each answer means. Does not own: connections, spelling of ids, *when* anything is
//! committed or rolled back (see [`crate::operator::commit_driver`]). Runs on: anywhere. Pure: no clock, no I/O.

pub mod code;
pub mod initialisation;
pub mod left_over;
pub mod settlement;
pub mod slot;
pub mod slot_table;
pub mod timeout;

pub use code::BrokerCode;
pub use initialisation::Initialisation;
pub use left_over::SlotState;
pub use settlement::{LedgerEntry, Settlement};
pub use slot::{BrokerCommittable, LedgerGroup, Producer, ProducerSlot};
pub use slot_table::SlotTable;
pub use timeout::{TimeoutRefusal, TransactionTimeout};
