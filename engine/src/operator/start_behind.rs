//! A start from a checkpoint behind which the output has more already.
//!
//! Owns: the words of the refusal. Does not own: what has been committed (the committer), when it is asked ([`super::sink_io`], [`crate::execution::output_look`]).
//! Runs on: the I/O side. Pure.

use crate::ids::CheckpointId;
use crate::quoted::quoted;

/// What the refusal says. `folder`: the checkpoint folder, as a command line takes it; none where there is no commit log.
pub(crate) fn refusal(committed: CheckpointId, restored: CheckpointId, folder: Option<&str>) -> String {
    let (from, again) = match restored {
        // A checkpoint 0 there is not, and so nothing to rewind to.
        CheckpointId(0) => ("without a checkpoint".to_owned(), "`--restore none` begins anew".to_owned()),
        restored => {
            let place = quoted(&format!("{}#{restored}", folder.unwrap_or("URL")));
            let again = format!("`--restore {place} --rewind` goes on all the same");
            (format!("from checkpoint {restored}"), again)
        }
    };
    format!(
        "the output has what checkpoint {committed} of this job closed, and this start goes on {from}: the records between would be there \
         twice\n  help: somebody committed a transaction by hand that no checkpoint lists, or newer checkpoints are gone, or the folder is an \
         old copy: bring the newest folder back; {again}, once those records are deleted"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_names_the_folder_and_where_there_is_no_checkpoint_the_start_that_begins_anew() {
        let said = |restored, folder| refusal(CheckpointId(7), CheckpointId(restored), folder);
        let behind = said(5, Some("/my folder"));
        assert!(behind.contains("`--restore '/my folder#5' --rewind` goes on all the same"), "{behind}");
        assert!(said(5, None).contains("`--restore 'URL#5' --rewind`"));
        let anew = said(0, Some("/c"));
        assert!(anew.contains("`--restore none` begins anew, once those records are deleted"), "{anew}");
        assert!(!anew.contains("--rewind"), "{anew}");
    }
}
