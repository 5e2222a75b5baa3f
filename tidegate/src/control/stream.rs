//! One connection, over either kind of socket.
//!
//! Owns: opening and accepting, and that nothing waits for ever. Does not own: what is said. Runs on: anywhere; every call blocks.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use super::ControlAddress;

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    /// In the file system.
    Unix(UnixStream),
    /// Over a network.
    Tcp(TcpStream),
}

/// A door.
#[derive(Debug)]
pub(crate) enum Listener {
    /// In the file system.
    Unix(UnixListener),
    /// Over a network.
    Tcp(TcpListener),
}

impl Stream {
    pub(crate) fn connect(address: &ControlAddress, patience: Duration) -> io::Result<Self> {
        match address {
            ControlAddress::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            ControlAddress::Tcp(address) => TcpStream::connect_timeout(address, patience).map(Self::Tcp),
        }
    }

    /// `None`: for as long as it takes.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(crate) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(timeout),
            Self::Tcp(stream) => stream.set_write_timeout(timeout),
        }
    }

    pub(crate) fn close(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Listener {
    /// Opens a door, and says where it is: port 0 has become a free one.
    pub(crate) fn bind(address: &ControlAddress) -> io::Result<(Self, ControlAddress)> {
        match address {
            ControlAddress::Unix(path) => Ok((Self::Unix(UnixListener::bind(path)?), address.clone())),
            ControlAddress::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted)?;
                let bound = ControlAddress::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), bound))
            }
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
        }
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).read(buffer),
            Stream::Tcp(stream) => (&*stream).read(buffer),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => (&*stream).write(bytes),
            Stream::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => (&*stream).flush(),
            Stream::Tcp(stream) => (&*stream).flush(),
        }
    }
}
