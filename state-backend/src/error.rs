//! [`StateError`]: what can go wrong with state, its files and its restore.
//!
//! Owns: the reasons, each with operator, state, file or section as far as they apply.
//! Does not own: errors of the store (see [`StorageError`](crate::StorageError)) and of single values
//! (see [`CodecError`]).
//! Runs on: anywhere.

use crate::codec::{CodecError, CodecId};
use crate::descriptor::StateKind;

/// What can go wrong with state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A stored state has another type than the declared one.
    #[error(
        "the state of operator \"{operator}\" does not fit this job: {state} ({kind}), field {field}, was {was}, is \
         {is}; bring the type back, make a new field an Option or #[state(default)], or start without this state"
    )]
    SchemaMismatch {
        /// The operator's uid.
        operator: Box<str>,
        /// The state's name.
        state: Box<str>,
        /// Its kind.
        kind: StateKind,
        /// The path to the place, such as `amount_cents`, `(value)`, `(key)` or `(map key).x`.
        field: Box<str>,
        /// What was written there.
        was: Box<str>,
        /// What is declared there.
        is: Box<str>,
    },
    /// A stored state has another kind than the declared one.
    #[error(
        "the state of operator \"{operator}\" does not fit this job: {state} was {was}, is {is}; give the new state \
         another name"
    )]
    KindMismatch {
        /// The operator's uid.
        operator: Box<str>,
        /// The state's name.
        state: Box<str>,
        /// The stored kind.
        was: StateKind,
        /// The declared kind.
        is: StateKind,
    },
    /// The state was written with another number of key groups.
    #[error(
        "the state of operator \"{operator}\" has {was} key groups, this job has {is}; set the maximum parallelism \
         to {was}: it cannot change once there is state"
    )]
    MaxParallelismMismatch {
        /// The operator's uid.
        operator: Box<str>,
        /// The stored number.
        was: u16,
        /// The job's number.
        is: u16,
    },
    /// A file is not what was written.
    #[error("{file} is damaged in its {section}; restore from another checkpoint")]
    DamagedFile {
        /// The file's name, as far as it is known.
        file: Box<str>,
        /// The part of it: `header`, or a state and key group.
        section: Box<str>,
        /// What is wrong there.
        #[source]
        source: Box<FileDefect>,
    },
    /// A value in a sound file cannot be decoded.
    #[error("a value in {section} of {file} cannot be decoded")]
    Undecodable {
        /// The file's name, as far as it is known.
        file: Box<str>,
        /// The state and key group, or the list.
        section: Box<str>,
        /// Why not.
        #[source]
        source: Box<CodecError>,
    },
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileDefect {
    /// Nothing was written, or it was lost.
    #[error("it is empty")]
    Empty,
    /// The end is missing, or something follows it.
    #[error("it should have {expected} bytes and has {found}")]
    WrongLength {
        /// As its header says.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// It does not begin as such a file does.
    #[error("it does not begin with {expected}, so it is no file of this kind")]
    WrongMagic {
        /// The four letters.
        expected: &'static str,
    },
    /// A later program has written it.
    #[error("it has format version {found}, and this program reads up to {newest}; use the newer program")]
    NewerFormat {
        /// Its version.
        found: u16,
        /// The newest version that this program reads.
        newest: u16,
    },
    /// Another codec has written it.
    #[error("it was written with {found}, and this program reads {known}")]
    UnknownCodec {
        /// Its codec.
        found: CodecId,
        /// The codec of this program.
        known: CodecId,
    },
    /// Some byte has changed.
    #[error("the checksum does not match: {expected:016x} was written, the bytes have {found:016x}")]
    WrongChecksum {
        /// As written.
        expected: u64,
        /// As computed.
        found: u64,
    },
    /// The checksum holds but the content cannot be.
    #[error("its content does not parse")]
    Unparsable {
        /// Why not.
        #[source]
        source: CodecError,
    },
    /// A key lies in a section that is not of its group.
    #[error("it holds a key of key group {group}")]
    StrayKey {
        /// The key's group.
        group: u16,
    },
}
