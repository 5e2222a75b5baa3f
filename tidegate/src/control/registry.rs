//! The jobs that run on this machine, as far as this user started them: a small file for each.
//!
//! The file only says where to ask; whether the job still runs is what the answer says. A file whose process is gone is removed by
//! whoever comes upon it.
//!
//! Owns: the folder (`TIDEGATE_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/tidegate`, else one of this user below the temporary folder) and
//! its files. Does not own: the sockets. Runs on: the calling thread.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, getuid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::ControlAddress;

const VARIABLE: &str = "TIDEGATE_RUNTIME_DIR";
/// A process may run several jobs, one after the other or side by side.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A job in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) job: String,
    pub(crate) pid: u32,
    pub(crate) control: String,
}

/// A place in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registered {
    file: PathBuf,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Where jobs are listed. Made if it is missing; only this user may read it.
fn folder() -> io::Result<PathBuf> {
    let given = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_system = || given("XDG_RUNTIME_DIR").map(|folder| folder.join("tidegate"));
    let uid = getuid().as_raw();
    let folder = given(VARIABLE).or_else(of_system);
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join(format!("tidegate-{uid}")));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != uid {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder belongs to somebody else"));
    }
    Ok(folder)
}

/// A socket for a job that has no folder of its own on this machine.
pub(crate) fn socket() -> io::Result<ControlAddress> {
    let name = format!("{}-{}.sock", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Ok(ControlAddress::Unix(folder()?.join(name)))
}

/// Puts a job into the list.
pub(crate) fn register(job: &str, control: &ControlAddress) -> io::Result<Registered> {
    register_in(&folder()?, job, control)
}

fn register_in(folder: &Path, job: &str, control: &ControlAddress) -> io::Result<Registered> {
    sweep(folder);
    let pid = std::process::id();
    let listed = Listed { job: job.to_owned(), pid, control: control.to_string() };
    let file = folder.join(format!("{pid}-{}.json", NEXT.fetch_add(1, Ordering::Relaxed)));
    // Whole, or not there: somebody may be reading the list.
    let beside = file.with_extension("new");
    fs::write(&beside, serde_json::to_vec(&listed).expect("names and numbers"))?;
    fs::rename(&beside, &file)?;
    Ok(Registered { file })
}

/// Every job in the list whose process is there.
pub(crate) fn listed() -> io::Result<Vec<Listed>> {
    let folder = folder()?;
    sweep(&folder);
    Ok(read(&folder))
}

/// The processes of the list that say that they answer there: several, where one has taken the other's job over.
pub(crate) fn processes_at(control: &ControlAddress) -> Vec<u32> {
    let control = control.to_string();
    let listed = folder().map(|folder| read(&folder)).unwrap_or_default();
    listed.into_iter().filter(|job| job.control == control).map(|job| job.pid).collect()
}

fn read(folder: &Path) -> Vec<Listed> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let json = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut jobs: Vec<Listed> =
        json.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect();
    jobs.sort_by(|one, other| (&one.job, one.pid).cmp(&(&other.job, other.pid)));
    jobs
}

/// Removes what processes that are gone have left.
fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let pid = name.split('-').next().and_then(|pid| pid.parse::<i32>().ok()).and_then(Pid::from_raw);
        let gone = pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
        if gone {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_listed_until_it_goes_and_the_dead_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let control: ControlAddress = "127.0.0.1:7".parse().unwrap();
        let registered = register_in(folder.path(), "orders", &control).unwrap();
        let jobs = read(folder.path());
        assert_eq!((jobs[0].job.as_str(), jobs[0].control.as_str()), ("orders", "127.0.0.1:7"));
        assert_eq!(jobs[0].pid, std::process::id());

        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let left = folder.path().join(format!("{}-0.json", gone.id()));
        fs::write(&left, "{}").unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        sweep(folder.path());
        assert!(!left.exists() && folder.path().join("notes.txt").exists());
        drop(registered);
        assert_eq!(read(folder.path()), []);
    }
}
