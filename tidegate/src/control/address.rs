//! Where a job answers: `unix:PATH`, or an address and a port.
//!
//! Owns: the form. Does not own: sockets ([`super::stream`]). Runs on: anywhere. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

const UNIX: &str = "unix:";
const TCP: &str = "tcp:";
const LOCALHOST: &str = "localhost:";

/// Where a job answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// An address and a port.
    Tcp(SocketAddr),
}

/// What was given is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address: write unix:PATH, or 127.0.0.1:PORT (port 0: a free one)")]
pub struct AddressError {
    /// What was given.
    pub text: String,
}

impl ControlAddress {
    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(address) => address.ip().is_loopback(),
        }
    }
}

impl FromStr for ControlAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError { text: text.to_owned() };
        if let Some(path) = text.strip_prefix(UNIX) {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(PathBuf::from(path))) };
        }
        let text = text.strip_prefix(TCP).unwrap_or(text);
        if let Some(port) = text.strip_prefix(LOCALHOST) {
            let port = port.parse().map_err(|_| wrong())?;
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self::Tcp).map_err(|_| wrong())
    }
}

impl fmt::Display for ControlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["unix:/tmp/x.sock", "127.0.0.1:7000", "[::1]:0"] {
            assert_eq!(text.parse::<ControlAddress>().unwrap().to_string(), text);
        }
        assert_eq!("tcp:localhost:7".parse::<ControlAddress>().unwrap().to_string(), "127.0.0.1:7");
        for text in ["", "unix:", "orders", "127.0.0.1", "localhost:x", "example.org:80"] {
            assert!(text.parse::<ControlAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_loopback_and_files_are_local() {
        let local = |text: &str| text.parse::<ControlAddress>().unwrap().is_local();
        assert!(local("unix:x") && local("127.9.9.9:1") && local("[::1]:1"));
        assert!(!local("0.0.0.0:1") && !local("10.0.0.1:1") && !local("[::]:1"));
    }
}
