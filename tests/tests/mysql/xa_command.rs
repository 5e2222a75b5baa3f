//! The command `tidegate xa`: its words and its exit statuses.

use std::process::{Command, Output};

use serde_json::Value;
use tidegate::connectors::mysql::MysqlUrl;
use tidegate::engine::api::Committer;
use tidegate::engine::operator::CommitOutcome;

use super::chain::staging_tables;
use super::scene::{Scene, on_both};

/// The address with its password, which no other word of the program shows.
fn address(url: &MysqlUrl) -> String {
    format!("mysql://{}:{}@{}:{}/{}", url.user(), url.password(), url.host(), url.port(), url.database())
}

fn xa(url: &MysqlUrl, verb: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-cli"));
    command.args(["xa", verb, &address(url)]).args(args);
    tokio::task::block_in_place(|| command.output().unwrap())
}

/// Its exit status, and what it says there.
fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// What is left of this scene, as `list --json` has it.
fn listed(scene: &Scene, url: &MysqlUrl) -> Vec<Value> {
    let (status, out, err) = said(&xa(url, "list", &["--job", "orders", "--json"]));
    assert_eq!(status, 0, "{err}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let log_id = scene.name(0, 1).scope.log_id;
    rows.into_iter().filter(|row| row["log_id"] == log_id.as_str()).collect()
}

fn xid_of(row: &Value) -> String {
    row["xid"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_left_is_listed_and_settled_by_the_command() {
    on_both(async |scene| {
        scene.table().await;
        let kept = scene.prepared(0, &[(1, 1)]).await;
        let dropped = scene.prepared(1, &[(2, 2), (3, 3)]).await;
        let staging = scene.sink("t").staging();
        let mut writer = scene.writer(&staging, 1).await;
        let staged = scene.prepare(&mut writer, &scene.name(2, 1), &[(4, 4)]).await;
        let rows = listed(&scene, &scene.url);
        let fields = ["kind", "job", "uid", "subtask", "attempt", "closed_by", "table", "rows"];
        let of = |row: &Value| fields.map(|field| row[field].clone());
        assert_eq!(
            rows.iter().map(of).collect::<Vec<_>>(),
            [
                [
                    "branch".into(),
                    "orders".into(),
                    "sink".into(),
                    0.into(),
                    1.into(),
                    1.into(),
                    "t".into(),
                    1.into()
                ],
                [
                    "branch".into(),
                    "orders".into(),
                    "sink".into(),
                    0.into(),
                    1.into(),
                    2.into(),
                    "t".into(),
                    2.into()
                ],
                [
                    "staging table".into(),
                    "orders".into(),
                    "sink".into(),
                    0.into(),
                    1.into(),
                    Value::Null,
                    Value::Null,
                    1.into()
                ],
            ]
        );
        assert_eq!(rows[2]["staging_table"], staged.committable.table.as_str());
        assert!(rows.iter().all(|row| row["prepared_ms"].as_i64().unwrap() > 1_700_000_000_000), "{rows:?}");
        assert!(rows[2]["writer_session"].is_u64(), "{rows:?}");
        let (status, table, _) = said(&xa(&scene.url, "list", &[]));
        let line = table.lines().find(|line| line.contains(&xid_of(&rows[1]))).unwrap();
        assert!(status == 0 && line.contains("branch") && line.contains("orders"), "{table}");

        // The staging table's writer lives: only its job may settle that one.
        let (status, out, err) = said(&xa(&scene.url, "rollback", &["--xid", &xid_of(&rows[2])]));
        assert_eq!((status, out.contains("nothing is rolled back")), (1, true), "{out}{err}");
        assert!(err.contains("is at work for the subtask") && err.contains("cancel that job"), "{err}");
        drop((writer, staging));
        let (status, _, err) = said(&xa(&scene.url, "commit", &["--xid", &xid_of(&rows[2])]));
        assert!(status == 1 && err.contains("start the job again, which merges it"), "{err}");

        let (status, out, err) = said(&xa(&scene.url, "commit", &["--xid", &xid_of(&rows[0])]));
        assert_eq!(
            (status, out.contains("1 branch committed, noted in tidegate_ledger")),
            (0, true),
            "{out}{err}"
        );
        assert_eq!(scene.rows("t").await, [(1, 1)]);
        let (status, _, err) = said(&xa(&scene.url, "commit", &["--xid", &xid_of(&rows[0])]));
        assert!(status == 2 && err.contains("no transaction") && err.contains("tidegate xa list"), "{err}");
        // A live transaction beside one that is not there: nothing is done.
        let both = ["--xid", &xid_of(&rows[1]), "--xid", "tidegate.none"];
        assert_eq!(said(&xa(&scene.url, "rollback", &both)).0, 2);
        assert_eq!(listed(&scene, &scene.url).len(), 2);

        let (status, _, err) = said(&xa(&scene.url, "rollback", &["--all", "--job", "orders"]));
        assert!(status == 2 && err.contains("--yes"), "{err}");
        let (status, _, err) = said(&xa(&scene.url, "rollback", &["--all", "--job", "nobodys", "--yes"]));
        assert!(status == 2 && err.contains("nothing is left of a job \"nobodys\""), "{err}");
        let (status, out, err) = said(&xa(&scene.url, "rollback", &["--all", "--job", "orders", "--yes"]));
        assert_eq!(
            (status, out.contains("1 branch rolled back and 1 staging table dropped, noted in")),
            (0, true),
            "{out}{err}"
        );
        assert_eq!((listed(&scene, &scene.url).len(), staging_tables(&scene).await), (0, 0));
        let (status, out, _) = said(&xa(&scene.url, "list", &["--job", "nobodys"]));
        assert_eq!((status, out.trim()), (0, "nothing is left of a job \"nobodys\""));

        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(committer.commit(&kept).await.unwrap(), CommitOutcome::AlreadyCommitted);
        let lost = committer.commit(&dropped).await.unwrap();
        assert!(matches!(&lost, CommitOutcome::Lost { reason } if reason.contains("by hand")), "{lost:?}");
    });
}

#[test]
fn branches_of_another_database_are_settled_only_when_that_is_meant() {
    on_both(async |scene| {
        scene.table().await;
        let left = scene.prepared(0, &[(1, 1)]).await;
        let other = format!("{}_other", scene.url.database());
        scene.sql(&format!("CREATE DATABASE {other}")).await;
        let elsewhere = scene.url.clone().with_database(&other);
        let rows = listed(&scene, &elsewhere);
        assert_eq!((rows.len(), &rows[0]["table"]), (1, &Value::Null));
        let xid = xid_of(&rows[0]);
        let (_, table, _) = said(&xa(&elsewhere, "list", &["--job", "orders"]));
        assert!(
            table.lines().any(|line| line.contains(&xid) && line.contains("(another database)")),
            "{table}"
        );
        let (status, _, err) = said(&xa(&elsewhere, "commit", &["--xid", &xid]));
        assert!(status == 2 && err.contains("writes into another database"), "{err}");
        let (status, out, err) = said(&xa(&elsewhere, "rollback", &["--all", "--yes"]));
        assert!(
            status == 0 && out.contains("nothing is rolled back") && err.contains("left alone"),
            "{out}{err}"
        );
        assert_eq!(listed(&scene, &elsewhere).len(), 1);
        let (status, out, err) = said(&xa(&elsewhere, "commit", &["--xid", &xid, "--yes"]));
        assert_eq!((status, out.contains("1 branch committed")), (0, true), "{out}{err}");
        assert_eq!(scene.rows("t").await, [(1, 1)]);
        scene.sql(&format!("DROP DATABASE {other}")).await;
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(committer.commit(&left).await.unwrap(), CommitOutcome::AlreadyCommitted);
    });
}

#[test]
fn a_branch_whose_job_is_at_work_is_settled_by_the_command_only_with_force() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 1).await;
        let left = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await;
        let xid = xid_of(&listed(&scene, &scene.url)[0]);
        let (status, out, err) = said(&xa(&scene.url, "rollback", &["--all", "--job", "orders", "--yes"]));
        assert_eq!((status, out.contains("nothing is rolled back")), (1, true), "{out}{err}");
        assert!(err.contains(&xid) && err.contains("is at work for") && err.contains("--force"), "{err}");
        let (status, out, err) = said(&xa(&scene.url, "commit", &["--xid", &xid, "--force"]));
        assert_eq!((status, out.contains("1 branch committed")), (0, true), "{out}{err}");
        drop((writer, sink));
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        assert_eq!(committer.commit(&left).await.unwrap(), CommitOutcome::AlreadyCommitted);
        assert_eq!(scene.rows("t").await, [(1, 1)]);
    });
}

#[test]
fn a_server_that_is_not_there_ends_the_command_with_the_remedy() {
    for verb in ["list", "commit", "rollback"] {
        let args: &[&str] = if verb == "list" { &[] } else { &["--all", "--yes"] };
        let nobody = MysqlUrl::parse("mysql://u:a-secret@127.0.0.1:1/d").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-cli"));
        let (status, _, err) =
            said(&command.args(["xa", verb, &address(&nobody)]).args(args).output().unwrap());
        assert!(
            status == 1 && err.contains("127.0.0.1:1/d") && err.contains("is the server running"),
            "{err}"
        );
        assert!(!err.contains("a-secret"), "{err}");
    }
}
