//! Files that a local store has begun to write and not named yet.
//!
//! The store writes `name#1` (or another number), syncs it, and gives it its name. What a process leaves that dies in between is in
//! no listing of the store, and none of its paths reaches it: such files are found by walking the disk.
//!
//! Owns: the walk and the deletion. Does not own: whose files may go (the caller says). Runs on: the I/O side; the folder of a job
//! is small, and this is done once at its start and once at its end.

use std::fs;
use std::io;
use std::path::Path;

/// Deletes those whose name-to-be `may` allows, and answers how many. What vanishes meanwhile has been named or deleted.
pub(super) fn sweep(root: &Path, may: &dyn Fn(&str) -> bool) -> io::Result<usize> {
    sweep_below(root, "", may)
}

fn sweep_below(folder: &Path, prefix: &str, may: &dyn Fn(&str) -> bool) -> io::Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut swept = 0;
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            swept += sweep_below(&entry.path(), &format!("{path}/"), may)?;
        } else if name_to_be(&path).is_some_and(may) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => {
                    removed?;
                    swept += 1;
                }
            }
        }
    }
    if swept > 0 && !prefix.is_empty() {
        // A folder with something else in it stays.
        let _ = fs::remove_dir(folder);
    }
    Ok(swept)
}

/// `7-3/total-0.state` of `7-3/total-0.state#1`.
fn name_to_be(path: &str) -> Option<&str> {
    let (name, number) = path.rsplit_once('#')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_half_written_files_that_may_go_are_deleted_and_their_empty_folder_with_them() {
        let root = tempfile::tempdir().unwrap();
        let paths = ["7-3/a#1", "8-3/a#2", "8-3/b", "9-4/a#1", "9-4/a#x", "log/01#1", "log/02"];
        for path in paths {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "half").unwrap();
        }
        let may = |path: &str| path.contains("-3/") || path == "log/01";
        assert_eq!(sweep(root.path(), &may).unwrap(), 3);
        let left: Vec<_> = paths.into_iter().filter(|path| root.path().join(path).exists()).collect();
        assert_eq!(left, ["8-3/b", "9-4/a#1", "9-4/a#x", "log/02"]);
        assert!(!root.path().join("7-3").exists());
        assert_eq!(sweep(&root.path().join("not there"), &may).unwrap(), 0);
    }
}
