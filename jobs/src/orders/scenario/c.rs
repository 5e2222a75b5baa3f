//! Scenario C: offsets against rows. Each row of `t_order_log` carries partition and offset of its order; after two kills the set
//! of offsets in the topic and the set of those in the table must be the same.
//!
//! Owns: the play, and the two set differences. Does not own: the stage. Runs on: the main thread.

use std::collections::BTreeMap;

use serde_json::json;

use super::ScenarioError;
use super::b::{RUN_S, killed};
use super::grid::Grid;
use super::notes::Notes;
use super::outcome::Outcome;
use super::stage::{Plan, Set, Stage};
use crate::address::servers::MysqlMode;
use crate::attempt::KillPoint;
use crate::database::Session;
use crate::topic::read::each_record;

/// The kills fall at these parts of the orders, in tenths.
const KILLS_AT_TENTHS: [u64; 2] = [3, 6];

/// Offsets of one partition: how often each stands in the topic, and in the table.
#[derive(Debug, Default)]
struct Places {
    topic: BTreeMap<i64, u64>,
    table: BTreeMap<i64, u64>,
}

impl Places {
    fn only_in(these: &BTreeMap<i64, u64>, others: &BTreeMap<i64, u64>) -> u64 {
        these.keys().filter(|offset| !others.contains_key(offset)).count() as u64
    }

    fn doubled(&self) -> u64 {
        self.table.values().map(|times| times - 1).sum()
    }
}

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let orders = set.args.orders;
    let rate = Some((orders / RUN_S).max(1));
    let plan = Plan { name: "c", mode: MysqlMode::Xa, orders, rate, has_detail: false };
    let stage = Stage::set(set, plan)?;
    let mut outcome = Outcome::of("C", "offsets against rows, after two kills".to_owned());
    let mut notes = Notes::started();
    for tenths in KILLS_AT_TENTHS {
        let records_in = orders * tenths / 10;
        let point = KillPoint {
            records_in,
            records_in_at_last: records_in + orders / 10,
            checkpoints: 1,
            records_after_checkpoint: 0,
        };
        let died = stage.kill_at(point, &mut notes)?;
        outcome.line(killed("by progress", &died));
    }
    stage.finish(&mut notes)?;

    let mut places: BTreeMap<i64, Places> = BTreeMap::new();
    each_record(stage.source(), |record| {
        let topic = &mut places.entry(record.partition.into()).or_default().topic;
        *topic.entry(record.offset).or_default() += 1;
        Ok::<_, ScenarioError>(())
    })?;
    let mut session = Session::open(stage.tables())?;
    let sql = "SELECT source_partition, source_offset FROM t_order_log";
    session.each_row("read the table", sql, |row| {
        let at = |column| row.get_opt::<i64, _>(column).and_then(Result::ok).unwrap_or(i64::MIN);
        *places.entry(at(0)).or_default().table.entry(at(1)).or_default() += 1;
    })?;
    let mut grid = Grid::of(&[
        "partition",
        "offsets in the topic",
        "rows in the table",
        "in the topic only",
        "in the table only",
        "rows of one offset",
    ]);
    let mut differences = 0;
    for (partition, places) in &places {
        let lost = Places::only_in(&places.topic, &places.table);
        let strange = Places::only_in(&places.table, &places.topic);
        let rows: u64 = places.table.values().sum();
        differences += lost + strange + places.doubled();
        let cells = [places.topic.len() as u64, rows, lost, strange, places.doubled()];
        grid.row([json!(partition.to_string())].into_iter().chain(cells.map(|cell| json!(cell))));
    }
    outcome.grid = Some(grid);
    let found = format!("{differences} differences");
    outcome.check("the set of offsets is the set of rows, both ways", differences == 0, found);
    outcome.audited(stage.audit()?);
    outcome.nothing_left(stage.leftover()?);
    outcome.timeline = Some((notes.into_timeline(), orders));
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_and_a_doubled_offset_do_not_cancel() {
        let places = Places { topic: BTreeMap::from([(1, 1), (2, 1)]), table: BTreeMap::from([(1, 2)]) };
        assert_eq!(Places::only_in(&places.topic, &places.table), 1);
        assert_eq!(Places::only_in(&places.table, &places.topic), 0);
        assert_eq!(places.doubled(), 1);
    }
}
