//! `tidegate checkpoint list|verify|fsck`: what stands in a checkpoint folder, with or without a job on it.
//!
//! Owns: the words and JSON of all three, and that nothing is deleted beside a running job. Does not own: the looking
//! ([`crate::engine::checkpoint::fsck`]). Runs on: the main thread, with a small runtime.

mod rows;

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use tokio::runtime::Runtime;

use self::rows::entry_rows;
use super::CliError;
use super::shown::{bytes, counted, moment, number};
use super::table::{Column, table};
use crate::control::folder_socket::{self, Who};
use crate::control::{ControlServer, FsckHost, JobState};
use crate::engine::checkpoint::fsck::{Checked, CheckpointFolder, Finding};
use crate::engine::clock::SystemClock;
use crate::settings::local_folder;
use crate::state::CheckpointStorage;
use crate::stdout;

/// Arguments of `tidegate checkpoint list` and `verify`.
#[derive(Debug, clap::Args)]
pub(super) struct FolderArgs {
    /// The checkpoint folder: a path, file:///path, or s3://bucket/prefix.
    url: String,
    /// Print a JSON object instead of words.
    #[arg(long)]
    json: bool,
}

/// Arguments of `tidegate checkpoint fsck`.
#[derive(Debug, clap::Args)]
pub(super) struct FsckArgs {
    #[command(flatten)]
    folder: FolderArgs,
    /// Delete left-overs: files that no entry names and half-written ones, of attempts that are over. Refused while a job runs on the
    /// folder.
    #[arg(long)]
    delete: bool,
}

/// A folder that is open, and whether it lies on a local disk.
pub(super) struct Place {
    pub(super) url: String,
    pub(super) storage: CheckpointStorage,
    local: Option<PathBuf>,
    pub(super) runtime: Runtime,
}

impl Place {
    pub(super) fn open(url: &str) -> Result<Self, CliError> {
        let local = local_folder(url);
        // Opening would make it.
        if local.as_ref().is_some_and(|folder| !folder.is_dir()) {
            return Err(CliError::FolderMissing { url: url.to_owned() });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CliError::Runtime)?;
        Ok(Self { url: url.to_owned(), storage: CheckpointStorage::open(url)?, local, runtime })
    }

    fn look(&self) -> Result<CheckpointFolder, CliError> {
        Ok(self.runtime.block_on(CheckpointFolder::look(self.storage.clone(), self.local.as_deref()))?)
    }

    /// Who runs on it, as far as its socket says. Of other stores nobody knows.
    pub(super) fn who(&self) -> Option<Who> {
        self.local.as_deref().and_then(folder_socket::who_runs_on)
    }

    /// Keeps jobs from starting on it until the answer is dropped. `None`: on another store that cannot be had.
    pub(super) fn hold(&self, job: &str) -> Result<Option<ControlServer>, CliError> {
        let Some(folder) = &self.local else { return Ok(None) };
        if let Some(who) = self.who() {
            return Err(CliError::FolderInUse { url: self.url.clone(), who: who.words() });
        }
        let host = FsckHost {
            job: job.to_owned(),
            checkpoint_folder: self.url.clone(),
            since_ms: SystemClock::shared().wall_ms(),
        };
        let held = ControlServer::open(&[folder_socket::address_of(folder)], host);
        held.map(Some).map_err(|(_, source)| CliError::Hold { url: self.url.clone(), source })
    }
}

fn job_of(folder: &CheckpointFolder) -> Option<String> {
    folder.owner.as_ref().map(|(job, _)| job.to_string())
}

/// Exit status 0; 1 if an entry cannot be read.
pub(super) fn list(args: &FolderArgs) -> Result<ExitCode, CliError> {
    let folder = Place::open(&args.url)?.look()?;
    let rows = entry_rows(&folder);
    let damaged = !folder.unreadable.is_empty();
    if args.json {
        let log_id = folder.owner.as_ref().map(|(_, log_id)| log_id.to_string());
        let json =
            serde_json::json!({ "url": args.url, "job": job_of(&folder), "log_id": log_id, "entries": rows });
        stdout::line(serde_json::to_string_pretty(&json).expect("numbers and strings"));
        return Ok(status(damaged));
    }
    let job = job_of(&folder).map_or_else(|| "nobody knows whose".to_owned(), |job| format!("job \"{job}\""));
    stdout::line(format_args!("{} · {job} · {}", args.url, counted_entries(rows.len())));
    let columns = [
        Column::Right("entry"),
        Column::Left("kind"),
        Column::Right("attempt"),
        Column::Right("checkpoint"),
        Column::Left("retained"),
        Column::Right("files"),
        Column::Right("size"),
        Column::Left("written (UTC)"),
        Column::Left("note"),
    ];
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let size = row.size_bytes.map_or_else(|| "–".to_owned(), bytes);
            let retained = match row.retained {
                Some(true) => "yes",
                Some(false) => "no",
                None => "–",
            };
            [
                row.entry.to_string(),
                row.kind.to_owned(),
                number(row.attempt),
                number(row.checkpoint),
                retained.to_owned(),
                number(row.files),
                size,
                moment(row.written_ms),
                row.note.clone(),
            ]
        })
        .collect();
    stdout::text(table(columns, &cells));
    Ok(status(damaged))
}

fn counted_entries(entries: usize) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

fn status(found: bool) -> ExitCode {
    if found { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What `verify` and `fsck` say.
#[derive(Debug, Serialize)]
struct Report<'a> {
    url: &'a str,
    job: Option<String>,
    /// Whether a job answers on the folder's socket; null where there is none.
    running: Option<bool>,
    checkpoints: Vec<u64>,
    files: u64,
    bytes: u64,
    clean: bool,
    findings: &'a [Finding],
    /// Files that are nobody's we know; they are left alone.
    foreign: Vec<&'a str>,
    deleted: &'a [String],
}

impl Report<'_> {
    fn print(&self, json: bool) {
        if json {
            stdout::line(serde_json::to_string_pretty(self).expect("numbers and strings"));
            return;
        }
        let job = self.job.as_deref().map_or_else(String::new, |job| format!(" of job \"{job}\""));
        let checkpoints = counted(self.checkpoints.len() as u64, "checkpoint");
        let (files, read) = (counted(self.files, "file"), bytes(self.bytes));
        stdout::line(format_args!("{}{job}: {checkpoints}, {files} read, {read}", self.url));
        for finding in self.findings {
            let gone = finding.path().is_some_and(|path| self.deleted.iter().any(|deleted| deleted == path));
            stdout::line(format_args!("  {finding}{}", if gone { " (deleted)" } else { "" }));
        }
        for path in &self.foreign {
            stdout::line(format_args!("  {path}: not Tidegate's; left alone"));
        }
        match self.findings.len() {
            0 => stdout::line("clean"),
            found => stdout::line(format_args!("{}{}", counted(found as u64, "finding"), self.rest())),
        }
    }

    /// What can be done about the findings.
    fn rest(&self) -> &'static str {
        let left_over = |finding: &&Finding| {
            matches!(
                finding,
                Finding::Orphan { .. } | Finding::HalfWritten { .. } | Finding::PreflightLeft { .. }
            )
        };
        match self.findings.iter().filter(left_over).count() {
            _ if self.deleted.len() == self.findings.len() => {
                ": all of them were left-overs, and are deleted"
            }
            0 => "",
            _ if self.findings.iter().any(Finding::is_of_a_gap) => {
                "; files of attempts stay while an entry is missing: it may name them"
            }
            _ if self.deleted.is_empty() => "; left-overs go with the next start, or with --delete",
            _ => "; what is left is not safe to delete",
        }
    }
}

/// Exit status 0 if every file is as it was written, else 1.
pub(super) fn verify(args: &FolderArgs) -> Result<ExitCode, CliError> {
    let place = Place::open(&args.url)?;
    let folder = place.look()?;
    let mut checked = place.runtime.block_on(folder.verify())?;
    checked.findings.splice(..0, unreadable(&folder));
    report(&place, &folder, &checked, Vec::new(), args.json);
    Ok(status(!checked.findings.is_empty()))
}

/// An entry that cannot be read may be a retained checkpoint.
fn unreadable(folder: &CheckpointFolder) -> Vec<Finding> {
    let damaged = folder.unreadable.iter();
    damaged.map(|(path, why)| Finding::DamagedEntry { path: path.clone(), why: why.to_string() }).collect()
}

/// Exit status 0 if nothing is found, else 1; what was deleted counts as found.
pub(super) fn fsck(args: &FsckArgs) -> Result<ExitCode, CliError> {
    let FsckArgs { folder: FolderArgs { url, json }, delete } = args;
    let place = Place::open(url)?;
    let held = if *delete { place.hold(&job_name(&place)?)? } else { None };
    let alive = held.is_none() && place.who().is_some_and(|who| !is_check(&who));
    let folder = place.look()?;
    let checked = place.runtime.block_on(folder.check(alive))?;
    let deleted = match delete {
        true => place.runtime.block_on(folder.delete(&checked.findings, held.is_some()))?,
        false => Vec::new(),
    };
    report(&place, &folder, &checked, deleted, *json);
    Ok(status(!checked.findings.is_empty()))
}

fn job_name(place: &Place) -> Result<String, CliError> {
    Ok(job_of(&place.look()?).unwrap_or_default())
}

fn is_check(who: &Who) -> bool {
    matches!(who, Who::Known(report) if report.state == JobState::Checking)
}

fn report(place: &Place, folder: &CheckpointFolder, checked: &Checked, deleted: Vec<String>, json: bool) {
    let running = place.local.is_some().then(|| place.who().is_some_and(|who| !is_check(&who)));
    let report = Report {
        url: &place.url,
        job: job_of(folder),
        running,
        checkpoints: checked.checkpoints.iter().map(|id| id.0).collect(),
        files: checked.files,
        bytes: checked.bytes,
        clean: checked.findings.is_empty(),
        findings: &checked.findings,
        foreign: folder.foreign(),
        deleted: &deleted,
    };
    report.print(json);
}
