//! [`StateDescriptor`]: a declared state, as it stands in files and is checked at a restore.
//!
//! Owns: name, kind and schemas of a state, and the comparison of a stored with a declared one.
//! Does not own: the declaration's types (see [`crate::declaration`]).
//! Runs on: anywhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::codec::StateType;
use crate::schema::Schema;

/// What kind of state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StateKind {
    /// One value per key.
    Value,
    /// A list per key.
    List,
    /// A map per key.
    Map,
    /// Timers per key.
    Timers,
}

/// A declared state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDescriptor {
    /// Its name, unique within the operator.
    pub name: String,
    /// Its kind.
    pub kind: StateKind,
    /// The schema of the operator's key.
    pub key_schema: Schema,
    /// The schema of the values or items; `()` for timers.
    pub value_schema: Schema,
    /// The schema of the map keys of a map.
    pub map_key_schema: Option<Schema>,
}

impl StateDescriptor {
    /// A value per key.
    pub fn value<K: StateType, V: StateType>(name: &str) -> Self {
        Self::new::<K, V>(name, StateKind::Value, None)
    }

    /// A list per key.
    pub fn list<K: StateType, T: StateType>(name: &str) -> Self {
        Self::new::<K, T>(name, StateKind::List, None)
    }

    /// A map per key.
    pub fn map<K: StateType, M: StateType, V: StateType>(name: &str) -> Self {
        Self::new::<K, V>(name, StateKind::Map, Some(M::schema()))
    }

    /// Timers per key.
    pub fn timers<K: StateType>(name: &str) -> Self {
        Self::new::<K, ()>(name, StateKind::Timers, None)
    }

    fn new<K: StateType, V: StateType>(name: &str, kind: StateKind, map_key_schema: Option<Schema>) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            key_schema: K::schema(),
            value_schema: V::schema(),
            map_key_schema,
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value state",
            Self::List => "list state",
            Self::Map => "map state",
            Self::Timers => "timers",
        })
    }
}

impl fmt::Display for StateDescriptor {
    /// As its user knows it: `totals (ValueState<Totals>)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value_schema.short();
        match (self.kind, &self.map_key_schema) {
            (StateKind::Value, _) => write!(f, "{} (ValueState<{value}>)", self.name),
            (StateKind::List, _) => write!(f, "{} (ListState<{value}>)", self.name),
            (StateKind::Map, Some(key)) => write!(f, "{} (MapState<{}, {value}>)", self.name, key.short()),
            (StateKind::Map, None) => write!(f, "{} (MapState<_, {value}>)", self.name),
            (StateKind::Timers, _) => write!(f, "{} (timers)", self.name),
        }
    }
}
