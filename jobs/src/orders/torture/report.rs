//! What a torture run says at its end.
//!
//! Owns: the two forms, and when all is well.
//! Does not own: the figures.
//! Runs on: the main thread. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

use super::checkpoint_folder::FolderVerdict;
use super::control::Control;
use super::kill::{Kill, not_struck, summary};
use crate::leftover::Leftover;
use crate::verify::Verdict;
use tidegate_jobs::digits::counted;

/// What all reports begin with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// `--seed`.
    pub(crate) seed: u64,
    /// `--parallelism`.
    pub(crate) parallelism: u32,
    /// `--mode`.
    pub(crate) mode: &'static str,
    /// Whether it wrote to servers.
    pub(crate) on_servers: bool,
    /// Whether each named place had to be struck.
    pub(crate) every_place: bool,
}

/// A job that was killed, restarted from its checkpoints and run to its end.
#[derive(Debug)]
pub(crate) struct Tortured {
    /// The kills that count.
    pub(crate) kills: Vec<Kill>,
    /// The audit.
    pub(crate) verdict: Verdict,
    /// Transactions that stand in the servers, where it wrote to servers.
    pub(crate) left: Leftover,
    /// What its checkpoint folder holds.
    pub(crate) folder: FolderVerdict,
}

impl Tortured {
    /// True when nothing is lost, doubled, wrong or left over.
    pub(crate) fn ok(&self, settings: &Settings) -> bool {
        let struck = !settings.every_place || not_struck(&self.kills).is_empty();
        self.verdict.ok() && self.folder.ok() && self.left.is_none() && struck
    }

    /// Behind the lines that were shown meanwhile.
    pub(crate) fn to_text(&self, settings: &Settings) -> String {
        let mut text = format!("\n{}", self.verdict.to_text());
        let mut put = |line: String| writeln!(text, "{line}").expect("a String takes all text");
        put(format!("  exactly once: {}", self.verdict.yes_or_no()));
        if settings.every_place {
            put(format!("  {}", summary(&self.kills)));
            for place in not_struck(&self.kills) {
                put(format!("      not struck     {}", place.words()));
            }
        }
        if settings.on_servers || !self.left.is_none() {
            put(format!("  transactions left undecided: {}", self.left.words()));
        }
        let folder = &self.folder;
        let verdict = if folder.ok() { "exactly" } else { "NOT exactly" };
        put(format!(
            "  checkpoint folder: {verdict} what {} refer to ({})",
            counted(folder.checkpoints, "retained checkpoint"),
            counted(folder.files, "file")
        ));
        for fault in &folder.faults {
            put(format!("      {fault}"));
        }
        text
    }

    fn to_json(&self, settings: &Settings) -> Value {
        let mut object = self.verdict.to_json();
        object["kills"] = json!(self.kills.len());
        object["list"] = self.kills.iter().map(Kill::to_json).collect();
        if settings.every_place {
            object["places_not_struck"] = not_struck(&self.kills).iter().map(|place| place.words()).collect();
        }
        object["transactions_left"] = json!({
            "xa": self.left.branches,
            "staging_tables": self.left.staging,
            "kafka_partitions": self.left.held_back,
        });
        object["checkpoint_folder"] = json!({
            "ok": self.folder.ok(),
            "checkpoints": self.folder.checkpoints,
            "files": self.folder.files,
            "faults": self.folder.faults,
        });
        object
    }
}

/// The report as one object: the fields of `verify`, and those of the torture.
pub(crate) fn to_json(settings: &Settings, control: Option<&Control>, tortured: &Tortured) -> Value {
    let mut object = match control {
        None => tortured.to_json(settings),
        Some(control) => {
            let mut object = control.verdict.to_json();
            object["kills"] = json!(control.read.len());
            object["list"] = control.read.iter().map(|read| json!({ "records_in": read })).collect();
            object["damage_shown"] = json!(control.proves());
            object["exactly_once"] = tortured.to_json(settings);
            object
        }
    };
    object["seed"] = json!(settings.seed);
    object["mode"] = json!(settings.mode);
    object["parallelism"] = json!(settings.parallelism);
    object
}

/// The control's part of the text.
pub(crate) fn control_text(control: &Control) -> String {
    let orders = control.verdict.orders().expected.max(1);
    let percent = |count: u64| {
        let tenths = u128::from(count) * 1_000 / u128::from(orders);
        format!("{}.{} %", tenths / 10, tenths % 10)
    };
    let damage = match control.restart {
        super::control::BadRestart::None => "duplicates",
        super::control::BadRestart::AtMostOnce => "lost",
    };
    let verdict = if control.proves() { "as it must be" } else { "NOT as it must be" };
    format!(
        "\n{}  exactly once: {}\n  {damage}: {} of the orders; above {} %: {verdict}\n",
        control.verdict.to_text(),
        control.verdict.yes_or_no(),
        percent(control.damaged()),
        control.restart.damage_percent_min()
    )
}
