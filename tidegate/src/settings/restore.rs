//! `--restore`: latest, none, or a checkpoint by name.
//!
//! Owns: the forms, and whether two URLs name one folder.
//! Does not own: what may be restored (the commit log says).
//! Runs on: the main thread, while flags are read.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::state::local_folder;

/// Where a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restore {
    /// The newest completed checkpoint in the folder, or nothing when there is none.
    Latest,
    /// Nothing: a new lineage; older checkpoints can never be restored again.
    None,
    /// A checkpoint by name.
    Checkpoint {
        /// Its folder.
        url: String,
        /// Its id.
        id: u64,
    },
}

/// What was given is no place to restore from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a place to restore from: write latest, none, or URL#id with the id of a checkpoint")]
pub struct RestoreError {
    /// What was given.
    pub text: String,
}

impl FromStr for Restore {
    type Err = RestoreError;

    fn from_str(text: &str) -> Result<Self, RestoreError> {
        let wrong = || RestoreError { text: text.into() };
        match (text, text.rsplit_once('#')) {
            ("latest", _) => Ok(Self::Latest),
            ("none", _) => Ok(Self::None),
            (_, Some((url, id))) if !url.is_empty() => match id.parse() {
                Ok(id) => Ok(Self::Checkpoint { url: url.into(), id }),
                Err(_) => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}

/// Whether both name one folder.
pub(super) fn same_folder(one: &str, other: &str) -> bool {
    match (local_folder(one), local_folder(other)) {
        (Some(one), Some(other)) => absolute(&one) == absolute(&other),
        _ => one.trim_end_matches('/') == other.trim_end_matches('/'),
    }
}

fn absolute(path: &Path) -> PathBuf {
    let absolute = path.canonicalize().or_else(|_| std::path::absolute(path));
    // Components, so that a slash at the end does not count.
    absolute.unwrap_or_else(|_| path.to_owned()).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restores_are_read() {
        assert_eq!("latest".parse(), Ok(Restore::Latest));
        assert_eq!("none".parse(), Ok(Restore::None));
        let named = Restore::Checkpoint { url: "file:///c".into(), id: 14 };
        assert_eq!("file:///c#14".parse(), Ok(named));
        for text in ["", "newest", "#14", "file:///c#", "file:///c#x"] {
            assert!(text.parse::<Restore>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_folder_has_many_names() {
        assert!(same_folder("file:///a/b", "/a/b/"));
        assert!(same_folder("file:///a/b%20c", "/a/b c"));
        assert!(same_folder("s3://bucket/x/", "s3://bucket/x"));
        assert!(!same_folder("/a/b", "/a/c"));
        assert!(!same_folder("s3://bucket/a", "/bucket/a"));
    }
}
