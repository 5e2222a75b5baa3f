//! What cannot work is refused before the job runs, with place and remedy; what shows only later fails the job and loses nothing.

use tidegate::connectors::mysql::{Columns, MysqlSink};
use tidegate::prelude::*;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_tests::Ended;

use crate::scene::{Database, config, run_job};

type Pair = (u64, Option<String>);

fn pairs() -> Columns<Pair> {
    Columns::new().column("id", |p: &Pair| p.0).column("name", |p| p.1.clone())
}

fn run(url: &str, table: &str, key: &str, rows: Vec<Pair>) -> Ended {
    let (env, count) = (StreamEnvironment::new(), rows.len() as u64);
    let source = Datagen::new(move |index: u64| rows[usize::try_from(index).unwrap()].clone()).bounded(count);
    let sink = MysqlSink::table(url, table).columns(|_| pairs()).upsert_by(key);
    let _ = env.source("pairs", source).sink("out", sink);
    run_job(env, 1, config())
}

/// Refused before it ran: never restarted, nothing written, and these words.
fn refused(ended: &Ended, words: &[&str]) {
    let text = ended.failure();
    assert_eq!(ended.restarts, Vec::<String>::new(), "{text}");
    for word in words {
        assert!(text.contains(word), "\"{word}\" is not in: {text}");
    }
}

fn one() -> Vec<Pair> {
    vec![(1, Some("one".into()))]
}

#[test]
fn a_table_that_cannot_be_upserted_into_is_refused_with_the_remedy() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE no_key (id BIGINT UNSIGNED NOT NULL, name VARCHAR(9))");
    database.run(
        "CREATE TABLE other_key (id BIGINT UNSIGNED NOT NULL, name VARCHAR(9), n INT PRIMARY KEY DEFAULT 0)",
    );
    database.run("CREATE TABLE strict (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9) NOT NULL)");
    database.run("CREATE TABLE columns (id BIGINT UNSIGNED PRIMARY KEY)");
    database.run("CREATE TABLE loose (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9)) ENGINE=MyISAM");
    database.run("CREATE TABLE two_keys (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9) UNIQUE)");
    let url = database.url();
    let refusals = [
        ("missing", "no such table"),
        ("no_key", "neither its primary key nor a unique key"),
        ("other_key", "neither its primary key nor a unique key"),
        ("strict", "NOT NULL"),
        ("columns", "no column \"name\""),
        ("loose", "MyISAM"),
        ("two_keys", "another unique key"),
    ];
    for (table, why) in refusals {
        refused(&run(&url, table, "id", one()), &[table, why]);
    }
}

#[test]
fn a_server_that_cannot_be_asked_is_refused_with_the_remedy() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9))");
    let url = database.url();
    let wrong = url.replacen("tidegate:tidegate@", "tidegate:wrong@", 1);
    refused(&run(&wrong, "t", "id", one()), &["refuses user", "help: check user and password"]);
    let nobody = "mysql://u:p@127.0.0.1:1/d";
    refused(&run(nobody, "t", "id", one()), &["connecting to 127.0.0.1:1/d", "help: is the server running"]);
    refused(&run("postgres://h/d", "t", "id", one()), &["mysql://"]);
}

#[test]
fn a_right_that_is_missing_is_told_before_the_job_runs() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(9))");
    let (user, name) = (format!("u{}", std::process::id()), database.name.clone());
    let service = Service::shared(ServiceKind::MariaDb).unwrap();
    let as_root = |sql: String| drop(service.run("root", &["-e", &sql]).unwrap());
    as_root(format!(
        "CREATE USER '{user}'@'%' IDENTIFIED BY 'p'; GRANT SELECT, INSERT ON {name}.* TO '{user}'@'%'"
    ));
    let url = database.url().replacen("tidegate:tidegate@", &format!("{user}:p@"), 1);
    let ended = run(&url, "t", "id", one());
    as_root(format!("DROP USER '{user}'@'%'"));
    refused(&ended, &["trying the rights on the table t", "a right is missing", "UPDATE"]);
}

#[test]
fn a_value_that_does_not_fit_fails_the_job_at_once_and_writes_nothing_of_its_batch() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(5))");
    let rows = vec![(1, Some("short".into())), (2, Some("too long".into()))];
    let ended = run(&database.url(), "t", "id", rows);
    refused(&ended, &["upserting into the table t", "row (id = 2) does not fit", "name", "1406"]);
    assert_eq!(database.rows::<u64>("SELECT COUNT(*) FROM t"), [0]);
}

#[test]
fn a_row_above_the_packet_limit_is_named_before_it_is_sent() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name LONGTEXT)");
    let limit = database.rows::<u64>("SELECT @@GLOBAL.max_allowed_packet")[0];
    let large = "x".repeat(usize::try_from(limit).unwrap());
    let ended = run(&database.url(), "t", "id", vec![(1, None), (2, Some(large))]);
    refused(&ended, &["row 2 for the table t", "max_allowed_packet"]);
}

#[test]
fn a_trigger_and_a_key_that_folds_are_warned_of() {
    let mut database = Database::on(ServiceKind::MariaDb);
    database.run("CREATE TABLE t (id VARCHAR(9) COLLATE utf8mb4_general_ci PRIMARY KEY, name VARCHAR(9))");
    database.run("CREATE TRIGGER watching BEFORE INSERT ON t FOR EACH ROW SET NEW.name = NEW.name");
    let columns = Columns::new().column("id", |p: &Pair| p.0.to_string()).column("name", |p| p.1.clone());
    let sink = MysqlSink::table(database.url(), "t").columns(|_| columns).upsert_by("id");
    let warnings = crate::scene::preflight(&sink).unwrap();
    let text = warnings.join("\n");
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(
        text.contains("watching") && text.contains("utf8mb4_general_ci") && text.contains("help:"),
        "{text}"
    );
}

#[test]
fn a_text_key_that_takes_two_texts_for_one_is_warned_of_and_what_is_advised_instead_takes_both() {
    for kind in [ServiceKind::MariaDb, ServiceKind::MySql] {
        let mut database = Database::on(kind);
        let mut warned = |column: &str, texts: (&str, &str), are_one: bool| {
            database.run("DROP TABLE IF EXISTS t");
            database.run(&format!("CREATE TABLE t (id {column} PRIMARY KEY, name VARCHAR(9))"));
            database.run(&format!("INSERT INTO t (id) VALUES ('{}')", texts.0));
            let second = database.try_run(&format!("INSERT INTO t (id) VALUES ('{}')", texts.1));
            assert_eq!(second.is_err(), are_one, "{column} on {kind:?}: {second:?}");
            let columns =
                Columns::new().column("id", |p: &Pair| p.0.to_string()).column("name", |p| p.1.clone());
            let sink = MysqlSink::table(database.url(), "t").columns(|_| columns).upsert_by("id");
            crate::scene::preflight(&sink).unwrap()
        };
        let mut advised = String::new();
        for (column, texts, why) in [
            ("VARCHAR(9) COLLATE utf8mb4_bin", ("a", "a "), "blanks at the end"),
            ("VARCHAR(9) COLLATE utf8mb4_general_ci", ("a", "A"), "different texts"),
            ("CHAR(9) COLLATE utf8mb4_bin", ("a", "a "), "takes no blanks"),
            ("DECIMAL(9,2)", ("1", "1.0"), "different texts"),
            ("BINARY(9)", ("a", "a\\0"), "zero bytes"),
        ] {
            let warnings = warned(column, texts, true);
            assert_eq!(warnings.len(), 1, "{column} on {kind:?}: {warnings:?}");
            assert!(warnings[0].contains(why), "{column} on {kind:?}: {warnings:?}");
            advised = warnings[0].split("COLLATE ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        }
        for column in [format!("VARCHAR(9) COLLATE {advised}"), "VARBINARY(9)".to_owned()] {
            assert_eq!(warned(&column, ("a", "a "), false), Vec::<String>::new(), "{column} on {kind:?}");
        }
    }
}
