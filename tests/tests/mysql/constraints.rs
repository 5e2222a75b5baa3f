//! CHECKs and foreign keys of a target that rows reach by a staging table.

use tidegate::connectors::mysql::{MysqlSink, ServerKind, StagingMysqlSink, StagingWriter};
use tidegate::engine::api::{Committer, Prepared, TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::element::Batch;
use tidegate::engine::operator::CommitOutcome;

use super::scene::{Scene, on_both, settle};

/// A key, an amount and a text.
type Row = (u64, i64, String);

fn row(user_id: u64, cents: i64, status: &str) -> Row {
    (user_id, cents, status.to_owned())
}

async fn checked_table(scene: &Scene) {
    // Quotes and backslashes are what a clause is told wrong by.
    scene
        .sql(
            r"CREATE TABLE c (user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, cents BIGINT NOT NULL CHECK (cents >= 0),
              status VARCHAR(9) NOT NULL, CONSTRAINT known CHECK (status IN ('new', 'it''s', 'a\\b')))",
        )
        .await;
}

fn sink(scene: &Scene) -> MysqlSink<Row> {
    MysqlSink::table(&scene.url, "c")
        .column("user_id", |row: &Row| row.0)
        .column("cents", |row| row.1)
        .column("status", |row| row.2.clone())
}

/// Stages rows and merges them.
async fn merged(
    scene: &Scene,
    sink: &StagingMysqlSink<Row>,
    writer: &mut StagingWriter<Row>,
    rows: Vec<Row>,
) {
    let name = scene.name(0, 1);
    writer.write(&name, Batch::of(rows)).await.unwrap();
    let committable = writer.prepare().await.unwrap().unwrap();
    let closed_by = name.opened_after.next();
    let item = Prepared { name, closed_by, committable };
    let outcome = settle(scene, &mut scene.committer(sink, 1).await, &item).await;
    assert_eq!(outcome, CommitOutcome::Committed);
}

#[test]
fn a_row_against_a_check_is_refused_while_it_is_staged_and_no_restart_is_tried() {
    on_both(async |scene| {
        checked_table(&scene).await;
        let cases = [(row(2, -1, "new"), "`cents` >= 0"), (row(2, 1, "old"), "CHECK known")];
        for (attempt, (bad, expected)) in (1..).zip(cases) {
            let mut writer = scene.writer(&sink(&scene).staging(), attempt).await;
            writer.write(&scene.name(0, attempt), Batch::of(vec![row(1, 5, "new"), bad])).await.unwrap();
            let error = writer.prepare().await.unwrap_err();
            let said = error.full_text();
            assert!(!error.restartable && said.contains(expected), "{said}");
            assert!(said.contains("writing rows into the table c (its CHECK"), "{said}");
        }
        assert_eq!(scene.rows("c").await, []);
    });
}

#[test]
fn rows_that_fit_the_checks_are_merged() {
    on_both(async |scene| {
        checked_table(&scene).await;
        let sink = sink(&scene).staging();
        let mut writer = scene.writer(&sink, 1).await;
        let texts = ["new", "it's", r"a\b"].iter().zip(1..);
        merged(&scene, &sink, &mut writer, texts.map(|(status, id)| row(id, 0, status)).collect()).await;
        assert_eq!(scene.rows("c").await, [(1, 0), (2, 0), (3, 0)]);
    });
}

#[test]
fn a_check_with_letters_outside_ascii_refuses_nothing_that_it_takes() {
    on_both(async |scene| {
        scene
            .sql(
                "CREATE TABLE c (user_id BIGINT UNSIGNED NOT NULL, cents BIGINT NOT NULL, status VARCHAR(9) NOT NULL, \
                 CHECK (status = 'ü'))",
            )
            .await;
        let sink = sink(&scene).staging();
        let warnings = sink.preflight(scene.preflight(1)).await.unwrap();
        assert_eq!(warnings.len(), usize::from(scene.kind == ServerKind::MySql), "{warnings:?}");
        let mut writer = scene.writer(&sink, 1).await;
        merged(&scene, &sink, &mut writer, vec![row(1, 0, "ü")]).await;
        assert_eq!(scene.rows("c").await, [(1, 0)]);
    });
}

#[test]
fn a_sum_that_a_check_is_about_is_refused_as_the_merge_would_refuse_it() {
    on_both(async |scene| {
        scene.sql("CREATE TABLE s (user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, cents BIGINT NOT NULL CHECK (cents >= 0))").await;
        scene.sql("INSERT INTO s VALUES (1, 50)").await;
        // The sum would be 40; the servers look at the row before they find its key.
        let added = "INSERT INTO s VALUES (1, -10) ON DUPLICATE KEY UPDATE cents = s.cents - 10";
        assert!(scene.connect().await.execute("adding", added, Vec::new()).await.is_err());
        let mut writer = scene.writer(&scene.sink("s").add_by("user_id").staging(), 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, -10)])).await.unwrap();
        let said = writer.prepare().await.unwrap_err().full_text();
        assert!(said.contains("`cents` >= 0"), "{said}");
    });
}

#[test]
fn where_a_trigger_may_mend_a_row_or_a_column_is_not_written_the_check_is_left_to_the_merge() {
    on_both(async |scene| {
        scene.sql("CREATE TABLE s (user_id BIGINT UNSIGNED NOT NULL, cents BIGINT NOT NULL, CONSTRAINT low CHECK (cents >= 0))").await;
        scene
            .sql("CREATE TRIGGER mends BEFORE INSERT ON s FOR EACH ROW SET NEW.cents = ABS(NEW.cents)")
            .await;
        scene
            .sql(
                "CREATE TABLE t (user_id BIGINT UNSIGNED NOT NULL, cents BIGINT NOT NULL, most BIGINT DEFAULT 9, \
                 CONSTRAINT high CHECK (cents <= most))",
            )
            .await;
        let sink = scene.sink("s").staging();
        let warnings = sink.preflight(scene.preflight(1)).await.unwrap().join("\n");
        assert!(warnings.contains("the CHECK low is looked at when"), "{warnings}");
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, -10)]).await;
        settle(&scene, &mut scene.committer(&sink, 1).await, &item).await;
        assert_eq!(scene.rows("s").await, [(1, 10)]);
        drop(writer);

        let sink = scene.sink("t").staging();
        let warnings = sink.preflight(scene.preflight(1)).await.unwrap().join("\n");
        assert!(warnings.contains("the CHECK high is looked at when"), "{warnings}");
        let mut writer = scene.writer(&sink, 2).await;
        let item = scene.prepare(&mut writer, &scene.name(1, 2), &[(1, 10)]).await;
        let mut committer = scene.committer(&sink, 2).await;
        let error = committer.commit(&item).await.unwrap_err();
        let said = error.full_text();
        assert!(
            !error.restartable && said.contains("high") && said.contains(&item.committable.table),
            "{said}"
        );
        scene.sql(&format!("UPDATE {} SET cents = 9", item.committable.table)).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await, [(1, 9)]);
    });
}

#[test]
fn a_foreign_key_is_warned_of_at_submit_and_a_row_without_its_parent_waits_for_it() {
    on_both(async |scene| {
        scene.sql("CREATE TABLE parents (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)").await;
        scene
            .sql(
                "CREATE TABLE t (user_id BIGINT UNSIGNED NOT NULL, cents BIGINT NOT NULL, \
                 CONSTRAINT of_parent FOREIGN KEY (user_id) REFERENCES parents (id))",
            )
            .await;
        let sink = scene.sink("t").staging();
        let warnings = sink.preflight(scene.preflight(1)).await.unwrap().join("\n");
        assert!(warnings.contains("the foreign key of_parent (user_id) into parents"), "{warnings}");
        assert!(warnings.contains("without staging (mode=xa)"), "{warnings}");
        assert_eq!(
            scene.sink("t").preflight(scene.preflight(1)).await.unwrap(),
            [""; 0],
            "XA finds it at once"
        );
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(7, 1)]).await;
        for _ in 0..2 {
            // Also a start later.
            let mut committer = scene.committer(&sink, 1).await;
            let error = committer.commit(&item).await.unwrap_err();
            let said = error.full_text();
            assert!(!error.restartable && said.contains("of_parent") && said.contains("1452"), "{said}");
            assert!(said.contains("nothing is lost") && said.contains(&item.committable.table), "{said}");
        }
        scene.sql("INSERT INTO parents VALUES (7)").await;
        let mut committer = scene.committer(&sink, 1).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await, [(7, 1)]);
    });
}

#[test]
fn a_key_that_is_there_already_says_at_the_merge_where_the_rows_are() {
    on_both(async |scene| {
        scene.keyed_table().await;
        scene.sql("INSERT INTO s VALUES (7, 1)").await;
        let sink = scene.sink("s").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(7, 2)]).await;
        let mut committer = scene.committer(&sink, 1).await;
        let said = committer.commit(&item).await.unwrap_err().full_text();
        assert!(said.contains("'7'") && said.contains("remove the row whose key is there"), "{said}");
        scene.sql("DELETE FROM s").await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
    });
}
