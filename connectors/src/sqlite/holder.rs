//! Who has a SQLite file locked, as far as the system tells.
//!
//! SQLite's locks are POSIX record locks: in WAL mode the writer holds byte 120 of the `-shm` file, else a byte near 2^30 of the
//! database itself. Linux lists them in `/proc/locks`. (Asking by `fcntl` would mean to open the file once more, and closing it
//! again would drop the locks that this process holds.)
//!
//! Owns: the look-up and its words. Does not own: when it is asked for (see [`super::SqliteError`]). Runs on: the I/O side.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The byte of the `-shm` file whose lock makes a connection the writer.
const WRITE_LOCK: u64 = 120;
/// Where the locks of a database begin that is not in WAL mode.
const PENDING_LOCK: u64 = 0x4000_0000;
const LOCK_BYTES: u64 = 512;

/// A process that has the file locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// Its id.
    pub process: u32,
    /// Its command, if the system tells.
    pub command: Option<String>,
    /// Whether it stands still (SIGSTOP, a debugger): then it will not let go by itself.
    pub stopped: bool,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        if let Some(command) = &self.command {
            write!(f, " ({command})")?;
        }
        if self.stopped {
            write!(f, ", which is stopped,")?;
        }
        Ok(())
    }
}

impl LockHolder {
    /// The other process that writes to `file` now; `None` if there is none any more, or the system does not tell.
    pub fn of(file: &Path) -> Option<Self> {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let mut shared_memory = file.as_os_str().to_owned();
        shared_memory.push("-shm");
        let places = [
            (PathBuf::from(shared_memory), WRITE_LOCK, WRITE_LOCK),
            (file.to_owned(), PENDING_LOCK, PENDING_LOCK + LOCK_BYTES),
        ];
        let process = places.iter().find_map(|(path, first, last)| {
            let metadata = fs::metadata(path).ok()?;
            let device = (device_major(metadata.dev()), device_minor(metadata.dev()));
            holder_in(&locks, device, metadata.ino(), (*first, *last), std::process::id())
        })?;
        let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).ok();
        let command = read("comm").map(|command| command.trim_end().to_owned());
        let stopped = read("stat").is_some_and(|stat| is_stopped(&stat));
        Some(Self { process, command, stopped })
    }
}

/// The process other than `own` that has locked a byte in `bytes` of this file for writing.
fn holder_in(locks: &str, device: (u64, u64), inode: u64, bytes: (u64, u64), own: u32) -> Option<u32> {
    locks.lines().find_map(|line| {
        // `7: POSIX  ADVISORY  WRITE 4711 fe:00:6365215 120 120`; one that waits has `->` behind its number.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", process, file, first, last] = words[..] else { return None };
        let mut file = file.split(':');
        let major = u64::from_str_radix(file.next()?, 16).ok()?;
        let minor = u64::from_str_radix(file.next()?, 16).ok()?;
        let is_it = (major, minor) == device && file.next()?.parse() == Ok(inode);
        let last = if last == "EOF" { u64::MAX } else { last.parse().ok()? };
        let overlaps = first.parse::<u64>().ok()? <= bytes.1 && last >= bytes.0;
        process.parse().ok().filter(|process| is_it && overlaps && *process != own && *process != 0)
    })
}

/// The state stands behind the command, which is in parentheses and may hold anything.
fn is_stopped(stat: &str) -> bool {
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

fn device_major(device: u64) -> u64 {
    ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff)
}

fn device_minor(device: u64) -> u64 {
    (device & 0xff) | ((device >> 12) & !0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: FLOCK  ADVISORY  WRITE 100 fe:01:77 0 EOF
2: POSIX  ADVISORY  READ  101 fe:01:77 120 120
3: POSIX  ADVISORY  WRITE 102 fe:01:77 124 124
4: POSIX  ADVISORY  WRITE 103 fe:02:77 120 120
5: POSIX  ADVISORY  WRITE 104 fe:01:77 120 120
5: -> POSIX  ADVISORY  WRITE 105 fe:01:77 120 120
6: POSIX  ADVISORY  WRITE 106 fe:01:88 1073741824 1073742335
";

    #[test]
    fn the_writer_is_found_by_file_and_byte() {
        let at = |inode, bytes, own| holder_in(LOCKS, (0xfe, 1), inode, bytes, own);
        assert_eq!(at(77, (120, 120), 1), Some(104));
        assert_eq!(at(77, (120, 120), 104), None, "this process is not another one");
        assert_eq!(at(88, (PENDING_LOCK, PENDING_LOCK + LOCK_BYTES), 1), Some(106));
        assert_eq!(at(99, (120, 120), 1), None);
    }

    #[test]
    fn a_stopped_process_is_told_by_its_state() {
        assert!(is_stopped("12 (a) b) T 1 12"));
        assert!(!is_stopped("12 (T ) S 1 12"));
    }

    #[test]
    fn a_device_is_taken_apart_as_the_kernel_writes_it() {
        let device = 0xfe01;
        assert_eq!((device_major(device), device_minor(device)), (0xfe, 1));
    }

    #[test]
    fn it_reads_as_a_sentence() {
        let holder = LockHolder { process: 7, command: Some("orders".into()), stopped: true };
        assert_eq!(format!("{holder} has it"), "process 7 (orders), which is stopped, has it");
    }
}
