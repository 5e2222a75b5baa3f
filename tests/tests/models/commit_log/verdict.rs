//! Whether a restart that came now would be right.
//!
//! Owns: the property. Does not own: what a restart restores (the engine's listing says). Runs on: the checker.

use tidegate_engine::checkpoint::commit_log::RestorePoint;
use tidegate_engine::ids::EntryNumber;

use super::CommitLog;
use super::log::{Base, Entry, Snapshot};
use super::world::World;

impl CommitLog {
    pub(super) fn verdict(&self, world: &World) -> Option<String> {
        if let Some(branch) = world.lost {
            return Some(format!(
                "LOST: the newest attempt is told that {branch}, which it has listed, was rolled back"
            ));
        }
        let nothing;
        let snapshot = match world.log.restart {
            RestorePoint::Checkpoint(EntryNumber(number)) => {
                let number = number as u8;
                let snapshot = world.log.get(number).and_then(Entry::snapshot)?;
                if world.files_gone >> number & 1 == 1 {
                    return Some(format!(
                        "TORN: a restart restores checkpoint {}, whose files are gone",
                        snapshot.id
                    ));
                }
                if let Some(foreign) = foreign_files(world, number, snapshot.id) {
                    return Some(format!("TORN: a restart restores checkpoint {}, {foreign}", snapshot.id));
                }
                snapshot
            }
            RestorePoint::Missing { base, .. } => {
                return Some(format!("TORN: a restart has to restore entry {base}, which is gone"));
            }
            RestorePoint::Nothing | RestorePoint::Finished(_) => {
                let since = world.log.began_anew(u8::MAX);
                nothing = Snapshot { id: 0, position: 0, listed: Vec::new(), since };
                &nothing
            }
        };
        // A rewind repeats output on purpose, and says so.
        let is_rewound = world.log.claims().any(|(_, base)| matches!(base, Base::Entry(_)));
        let counts = |branch: super::super::server::Branch| branch.attempt >= snapshot.since;
        world.server.wrong_output(snapshot.position, &snapshot.listed, !is_rewound, counts)
    }
}

fn foreign_files(world: &World, number: u8, id: u8) -> Option<String> {
    let attempt = world.log.get(number)?.attempt;
    let (_, writer) = world.written_by.iter().find(|(of, _)| *of == id)?;
    (*writer != attempt).then(|| format!("whose files attempt {writer} wrote, not attempt {attempt}"))
}
