//! The address of a database: `mysql://user:password@host:port/database`, with a query that is its reader's affair.
//!
//! Owns: taking it apart, what is wrong with a bad one. Does not own: connecting. Runs on: plain data. The password is never shown.

use std::fmt;

/// Port of a server whose address names none.
const DEFAULT_PORT: u16 = 3306;

/// Where a database is, and as whom to ask for it. Its text has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct MysqlUrl {
    user: String,
    password: String,
    host: String,
    port: u16,
    database: String,
    query: Option<String>,
}

/// An address that cannot be used. It never repeats the address, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MysqlUrlError {
    /// Not `mysql://`.
    #[error(
        "a MySQL address begins with mysql:// and this one does not\n  help: mysql://user:password@host:3306/database"
    )]
    Scheme,
    /// Something is missing.
    #[error(
        "the MySQL address has no {part}\n  help: mysql://user:password@host:3306/database; in user and password write % as %25, @ as %40, : as \
         %3A and / as %2F"
    )]
    Missing {
        /// What.
        part: &'static str,
    },
    /// The port is no port.
    #[error("the MySQL address of host {host} has the port \"{port}\", which is no number from 1 to 65535")]
    Port {
        /// The host.
        host: String,
        /// What stands there.
        port: String,
    },
    /// A `%` that is followed by no two hexadecimal digits, or bytes that are no text.
    #[error(
        "the {part} in the MySQL address is not percent-encoded text\n  help: write % as %25, @ as %40, : as %3A and / as %2F"
    )]
    Encoding {
        /// Where.
        part: &'static str,
    },
}

impl MysqlUrl {
    /// Takes an address apart.
    ///
    /// # Errors
    /// [`MysqlUrlError`].
    pub fn parse(text: &str) -> Result<Self, MysqlUrlError> {
        let rest = text.trim().strip_prefix("mysql://").ok_or(MysqlUrlError::Scheme)?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        let missing = |part| MysqlUrlError::Missing { part };
        let (authority, database) = rest.split_once('/').ok_or(missing("database"))?;
        let (login, place) = authority.rsplit_once('@').ok_or(missing("user"))?;
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = host_and_port(place)?;
        let url = Self {
            user: decoded(user, "user")?,
            password: decoded(password, "password")?,
            host,
            port,
            database: decoded(database, "database")?,
            query,
        };
        for (part, text) in [("user", &url.user), ("host", &url.host), ("database", &url.database)] {
            if text.is_empty() {
                return Err(missing(part));
            }
        }
        Ok(url)
    }

    /// Who asks.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// With which password.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Name or address of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// What follows the question mark, as it stands there.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// `host:port/database`, as messages name the place.
    pub fn place(&self) -> String {
        format!("{}:{}/{}", self.host, self.port, self.database)
    }

    /// The same with another database.
    #[must_use]
    pub fn with_database(mut self, database: &str) -> Self {
        database.clone_into(&mut self.database);
        self
    }

    /// The same with another host and port: a proxy's, say.
    #[must_use]
    pub fn with_address(mut self, host: &str, port: u16) -> Self {
        host.clone_into(&mut self.host);
        self.port = port;
        self
    }

    /// The same with another user.
    #[must_use]
    pub fn with_login(mut self, user: &str, password: &str) -> Self {
        user.clone_into(&mut self.user);
        password.clone_into(&mut self.password);
        self
    }
}

impl fmt::Display for MysqlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mysql://{}@{}", self.user, self.place())
    }
}

impl fmt::Debug for MysqlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a sink takes as an address. What is wrong with it is told when the job is checked.
pub trait IntoMysqlUrl {
    /// The address.
    ///
    /// # Errors
    /// [`MysqlUrlError`].
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError>;
}

impl IntoMysqlUrl for &str {
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError> {
        MysqlUrl::parse(self)
    }
}

impl IntoMysqlUrl for &String {
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError> {
        MysqlUrl::parse(self)
    }
}

impl IntoMysqlUrl for String {
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError> {
        MysqlUrl::parse(&self)
    }
}

impl IntoMysqlUrl for MysqlUrl {
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError> {
        Ok(self)
    }
}

impl IntoMysqlUrl for &MysqlUrl {
    fn into_mysql_url(self) -> Result<MysqlUrl, MysqlUrlError> {
        Ok(self.clone())
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`.
fn host_and_port(place: &str) -> Result<(String, u16), MysqlUrlError> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, after)) => (host, after.strip_prefix(':')),
        None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let Some(port) = port else { return Ok((host.to_owned(), DEFAULT_PORT)) };
    match port.parse() {
        Ok(number) if number > 0 => Ok((host.to_owned(), number)),
        _ => Err(MysqlUrlError::Port { host: host.to_owned(), port: port.to_owned() }),
    }
}

fn decoded(text: &str, part: &'static str) -> Result<String, MysqlUrlError> {
    let bad = || MysqlUrlError::Encoding { part };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit().ok_or_else(bad)?, digit().ok_or_else(bad)?);
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| bad())?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_its_password_never_shown() {
        let url = MysqlUrl::parse("mysql://o%40x:se%3Acret@db.example:3307/orders?mode=xa&a=b").unwrap();
        assert_eq!(
            (url.user(), url.password(), url.host(), url.port()),
            ("o@x", "se:cret", "db.example", 3307)
        );
        assert_eq!((url.database(), url.query()), ("orders", Some("mode=xa&a=b")));
        assert!(!format!("{url} {url:?}").contains("cret"));
        assert_eq!(url.to_string(), "mysql://o@x@db.example:3307/orders");
        let plain = MysqlUrl::parse("mysql://root@[::1]/d").unwrap();
        assert_eq!((plain.host(), plain.port(), plain.password()), ("::1", 3306, ""));
    }

    #[test]
    fn a_bad_address_says_what_is_wrong_and_not_the_password() {
        let bad = [
            ("postgres://u:secret@h/d", "begins with mysql://"),
            ("mysql://u:secret@h", "no database"),
            ("mysql://u:secret@h/", "no database"),
            ("mysql://h/d", "no user"),
            ("mysql://:secret@h/d", "no user"),
            ("mysql://u:secret@/d", "no host"),
            ("mysql://u:secret@h:0/d", "port \"0\""),
            ("mysql://u:secret@h:x/d", "port \"x\""),
            ("mysql://u:secret%4@h/d", "password in the MySQL address is not percent-encoded"),
        ];
        for (text, expected) in bad {
            let said = MysqlUrl::parse(text).unwrap_err().to_string();
            assert!(said.contains(expected) && !said.contains("secret"), "{text}: {said}");
        }
    }
}
