//! Which job is meant: a checkpoint folder, an address, a name, or the only one that runs.
//!
//! Owns: the order in which a word is tried. Does not own: the list of jobs ([`registry`]). Runs on: the main thread.

use std::path::Path;

use super::CliError;
use crate::control::registry::{self, Listed};
use crate::control::{ControlAddress, folder_socket};
use crate::settings::local_folder;

/// Where the job that is meant answers.
pub(super) fn resolve(job: Option<&str>) -> Result<ControlAddress, CliError> {
    resolve_or_name(job).map(|(address, _)| address)
}

/// The same, with the name of a job that was not named.
pub(super) fn resolve_or_name(job: Option<&str>) -> Result<(ControlAddress, Option<String>), CliError> {
    match job {
        None => only_one(registry::listed().map_err(CliError::Registry)?)
            .map(|(address, name)| (address, Some(name))),
        Some(word) => named(word).map(|address| (address, None)),
    }
}

fn named(word: &str) -> Result<ControlAddress, CliError> {
    if let Ok(address) = word.parse() {
        return Ok(address);
    }
    if let Some(folder) = folder(word) {
        return Ok(folder);
    }
    by_name(word, registry::listed().map_err(CliError::Registry)?)
}

/// A folder that is there, as a path or `file://`.
fn folder(word: &str) -> Option<ControlAddress> {
    let folder = local_folder(word)?;
    let named = word.contains('/') || Path::new(&folder).is_dir();
    named.then(|| folder_socket::address_of(&folder))
}

fn only_one(listed: Vec<Listed>) -> Result<(ControlAddress, String), CliError> {
    match &listed[..] {
        [job] => address(job).map(|address| (address, job.job.clone())),
        _ => Err(CliError::WhichJob { running: listed.iter().map(shown).collect() }),
    }
}

/// A job with what it can be named by, whatever its name.
fn shown(listed: &Listed) -> String {
    format!("{} (at {})", listed.job, listed.control)
}

fn by_name(name: &str, listed: Vec<Listed>) -> Result<ControlAddress, CliError> {
    let jobs: Vec<_> = listed.into_iter().filter(|job| job.job == name).collect();
    match &jobs[..] {
        [] => Err(CliError::NoSuchJob { name: name.to_owned() }),
        [job] => address(job),
        _ => Err(CliError::SeveralOfThisName {
            name: name.to_owned(),
            pids: jobs.iter().map(|job| job.pid).collect(),
        }),
    }
}

fn address(job: &Listed) -> Result<ControlAddress, CliError> {
    job.control.parse().map_err(|_| CliError::NoSuchJob { name: job.job.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(jobs: &[(&str, u32)]) -> Vec<Listed> {
        let job = |(job, pid): &(&str, u32)| Listed {
            job: (*job).to_owned(),
            pid: *pid,
            control: format!("127.0.0.1:{pid}"),
        };
        jobs.iter().map(job).collect()
    }

    #[test]
    fn the_only_job_needs_no_name_and_several_do() {
        let (address, name) = only_one(listed(&[("a", 5)])).unwrap();
        assert_eq!((address.to_string().as_str(), name.as_str()), ("127.0.0.1:5", "a"));
        let several = only_one(listed(&[("a", 5), ("b", 6)])).unwrap_err().to_string();
        assert!(several.contains("a (at 127.0.0.1:5), b (at 127.0.0.1:6)"), "{several}");
        assert!(only_one(Vec::new()).unwrap_err().to_string().contains("no job runs"));
    }

    #[test]
    fn a_name_finds_its_job() {
        let jobs = || listed(&[("a", 5), ("b", 6), ("b", 7)]);
        assert_eq!(by_name("a", jobs()).unwrap().to_string(), "127.0.0.1:5");
        assert!(by_name("b", jobs()).unwrap_err().to_string().contains("6, 7"));
        assert!(matches!(by_name("c", jobs()), Err(CliError::NoSuchJob { .. })));
    }

    #[test]
    fn folders_and_addresses_are_told_from_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        for word in [path.to_owned(), format!("file://{path}")] {
            let ControlAddress::Unix(socket) = resolve(Some(&word)).unwrap() else { panic!("{word}") };
            assert!(socket.ends_with("control.sock"), "{}", socket.display());
        }
        assert_eq!(resolve(Some("127.0.0.1:7")).unwrap().to_string(), "127.0.0.1:7");
        assert!(folder_socket::address_of(Path::new("/nowhere/x")) == resolve(Some("/nowhere/x")).unwrap());
    }
}
