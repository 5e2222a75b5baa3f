//! Which server answers, and where the two differ.
//!
//! Owns: telling them apart by the version they send. Does not own: what a difference leads to. Runs on: plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whose manners a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServerKind {
    /// MariaDB: a prepared branch belongs to its connection until that is closed.
    MariaDb,
    /// Oracle's MySQL: a prepared branch is anybody's at once, from 8.0.29 on and with `xa_detach_on_prepare` (see [`super::Connection::ties_branches`]).
    MySql,
}

/// Kind and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// Which server.
    pub kind: ServerKind,
    /// Its version as it tells it.
    pub text: String,
}

impl ServerVersion {
    /// Reads what `SELECT VERSION()` answers: `10.11.19-MariaDB-0+deb12u1`, `9.7.4`.
    pub fn of(text: &str) -> Self {
        let is_maria = text.to_ascii_lowercase().contains("mariadb");
        let kind = if is_maria { ServerKind::MariaDb } else { ServerKind::MySql };
        Self { kind, text: text.to_owned() }
    }

    /// Its first two numbers.
    pub fn number(&self) -> (u32, u32) {
        let mut numbers = self.text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ServerKind::MariaDb => f.write_str(&self.text),
            ServerKind::MySql => write!(f, "MySQL {}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_are_told_apart() {
        let (maria, mysql) = (ServerVersion::of("10.11.19-MariaDB-0+deb12u1"), ServerVersion::of("9.7.4"));
        assert_eq!((maria.kind, maria.number()), (ServerKind::MariaDb, (10, 11)));
        assert_eq!((mysql.kind, mysql.number()), (ServerKind::MySql, (9, 7)));
        assert_eq!(mysql.to_string(), "MySQL 9.7.4");
    }
}
