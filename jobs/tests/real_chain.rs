//! The orders job on real servers, small: Kafka → tables in MariaDB and a topic, scenarios, torture, and an audit that sees what is
//! planted.
//!
//! Owns: that each scenario's checks hold, and that the audit over servers can say no. Does not own: the scenarios themselves.
//! Runs on: the test threads; the job runs in processes, the servers are shared (`scripts/services`), each test has a database and
//! topics of its own.
#![cfg(all(feature = "mysql", feature = "rdkafka"))]
#![allow(clippy::unwrap_used, reason = "a test program")]

use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use serde_json::Value;
use tidegate_jobs::services::{Service, ServiceKind};

/// Addresses of the servers, started once.
struct Servers {
    kafka: String,
    mysql: String,
}

fn servers() -> &'static Servers {
    static SERVERS: OnceLock<Servers> = OnceLock::new();
    SERVERS.get_or_init(|| {
        let kafka = Service::shared(ServiceKind::Kafka).unwrap().bootstrap().unwrap().to_owned();
        let mysql = Service::shared(ServiceKind::MariaDb).unwrap().mysql_url().unwrap().to_owned();
        Servers { kafka, mysql }
    })
}

/// A database that is dropped at the end, and a folder.
struct Chain {
    database: String,
    url: String,
    folder: tempfile::TempDir,
}

impl Chain {
    fn new(name: &str) -> Self {
        let database = format!("tidegate_orders_{name}_{}", std::process::id());
        sql(&servers().mysql, &[&format!("CREATE DATABASE {database}")]).unwrap();
        let server = servers().mysql.rsplit_once('/').unwrap().0;
        Self { url: format!("{server}/{database}"), database, folder: tempfile::tempdir().unwrap() }
    }

    fn orders(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orders"));
        command.current_dir(self.folder.path()).args(args).env_remove("TIDEGATE_FAULT").output().unwrap()
    }

    fn topic(&self, name: &str) -> String {
        format!("{}-{name}", self.database)
    }

    /// A small scenario, as JSON; all its checks must hold.
    fn scenario(&self, which: &str, more: &[&str]) -> Value {
        let kafka = format!("--kafka={}", servers().kafka);
        let mysql = format!("--mysql={}", self.url);
        let args = ["scenario", which, &kafka, &mysql, "--json", "--dir=scenario"];
        let output = self.orders(&[&args, more].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{which}: {}{said}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(report["ok"], true, "{report}");
        assert!(self.folder.path().join("scenario/report.html").is_file());
        report["scenarios"][0].clone()
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // What is left over is dropped with the instance.
        drop(sql(&servers().mysql, &[&format!("DROP DATABASE IF EXISTS {}", self.database)]));
    }
}

/// Runs statements, each within some seconds.
fn sql(url: &str, statements: &[&str]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection =
            Conn::new(Opts::from_url(url).unwrap()).await.map_err(|error| error.to_string())?;
        for statement in statements {
            let ran = tokio::time::timeout(Duration::from_secs(20), connection.query_drop(*statement)).await;
            ran.map_err(|_| format!("no answer to {statement}"))?.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

fn is_all_zeros(audit: &Value) {
    for figure in ["duplicates", "lost", "wrong", "unexpected", "deviation_cents"] {
        assert_eq!(audit[figure], 0, "{audit}");
    }
    assert_eq!(audit["ok"], true, "{audit}");
}

#[test]
fn tables_that_a_prepared_branch_holds_are_not_dropped_and_the_branch_is_told() {
    let chain = Chain::new("held");
    let mysql = format!("--mysql={}", chain.url);
    let tables = || chain.orders(&["tables", &mysql, "--force"]);
    assert!(tables().status.success());
    let xid = format!("'tidegate.held','{}'", std::process::id());
    let (start, end) = (format!("XA START {xid}"), format!("XA END {xid}"));
    let prepare = format!("XA PREPARE {xid}");
    // Its session is gone with the call.
    sql(&chain.url, &[&start, "INSERT INTO t_order_stat VALUES (1, 1, 1)", &end, &prepare]).unwrap();
    let refused = tables();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    // Before the assertions: a test that fails leaves no lock.
    let rolled_back = sql(&chain.url, &[&format!("XA ROLLBACK {xid}")]);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("t_order_stat") && said.contains("tidegate xa rollback"), "{said}");
    rolled_back.unwrap();
    for table in ["t_order_event", "t_order_log", "t_order_stat", "t_user_total"] {
        sql(&chain.url, &[&format!("SELECT 1 FROM {table}")]).unwrap();
    }
    assert!(tables().status.success());
}

#[test]
fn without_a_fault_tables_and_detail_topic_are_what_the_topic_asks_for() {
    let chain = Chain::new("a");
    let outcome = chain.scenario("a", &["--orders=3000", "--users=50"]);
    is_all_zeros(&outcome["audit"]);
    assert_eq!(outcome["audit"]["expected"], 3_000);
    assert_eq!(outcome["audit"]["tables"]["topic"]["actual"], 3_000);
    assert_eq!(outcome["audit"]["tables"]["t_order_log by offset"]["actual"], 3_000);
}

#[test]
fn a_job_killed_inside_a_transaction_counts_nothing_twice_and_one_left_alone_holds_its_locks() {
    let chain = Chain::new("b");
    let outcome = chain.scenario("b", &["--orders=3000"]);
    is_all_zeros(&outcome["audit"]);
}

#[test]
fn after_two_kills_the_set_of_offsets_is_the_set_of_rows() {
    let chain = Chain::new("c");
    let outcome = chain.scenario("c", &["--orders=3000"]);
    assert_eq!(outcome["table"].as_array().unwrap().len(), 3);
    is_all_zeros(&outcome["audit"]);
}

#[test]
fn a_kill_at_each_of_four_places_leaves_zeros_by_each_way_to_write() {
    let chain = Chain::new("positions");
    let outcome = chain.scenario("positions", &["--orders=6000"]);
    assert_eq!(outcome["table"].as_array().unwrap().len(), 12);
}

#[test]
fn without_checkpoints_the_same_kills_double_orders() {
    let chain = Chain::new("control");
    let outcome = chain.scenario("control", &["--orders=6000"]);
    assert!(outcome["table"][0]["duplicates"].as_u64() > Some(2_400), "{outcome}");
    assert_eq!(outcome["table"][1]["duplicates"], 0);
}

#[test]
fn a_reader_of_exactly_once_tables_sees_no_order_twice_and_no_sum_going_back() {
    let chain = Chain::new("latency");
    let outcome = chain.scenario("latency", &["--orders=5000"]);
    assert_eq!(outcome["table"].as_array().unwrap().len(), 4);
    for row in outcome["table"].as_array().unwrap() {
        assert!(row["p50_ms"].is_u64() && row["back_after_ms"].is_u64(), "{row}");
    }
}

#[test]
fn a_tortured_job_on_the_real_chain_counts_each_order_once_and_leaves_no_transaction() {
    for (mode, seed) in [("xa", 5), ("staging", 6)] {
        let chain = Chain::new(&format!("torture_{mode}"));
        let topic = |name| format!("kafka://{}/{}", servers().kafka, chain.topic(name));
        let (source, sink) =
            (format!("--source={}", topic("in")), format!("--sink={}?mode={mode}", chain.url));
        let (detail, seed) = (format!("--detail={}", topic("detail")), format!("--seed={seed}"));
        let output =
            chain.orders(&["torture", "--kills=7", &seed, &source, &sink, &detail, "--json", "--dir=t"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_str(&said).unwrap();
        is_all_zeros(&report);
        assert_eq!(report["places_not_struck"], Value::Array(Vec::new()));
        for kind in ["xa", "staging_tables", "kafka_partitions"] {
            assert_eq!(report["transactions_left"][kind], 0, "{kind}: {report}");
        }
    }
}

#[test]
fn a_tortured_job_from_kafka_to_kafka_brings_each_order_once_and_leaves_no_transaction() {
    let chain = Chain::new("torture_kafka");
    let topic = |name| format!("kafka://{}/{}", servers().kafka, chain.topic(name));
    let (source, sink) = (format!("--source={}", topic("in")), format!("--sink={}", topic("out")));
    let output = chain.orders(&["torture", "--kills=7", "--seed=8", &source, &sink, "--json", "--dir=t"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&said).unwrap();
    is_all_zeros(&report);
    assert_eq!(report["places_not_struck"], Value::Array(Vec::new()));
    assert_eq!(report["transactions_left"]["kafka_partitions"], 0);
}

#[test]
fn the_audit_over_servers_sees_each_planted_fault() {
    let chain = Chain::new("planted");
    let (kafka, topic) = (servers().kafka.clone(), chain.topic("in"));
    let (source, sink) = (format!("--source=kafka://{kafka}/{topic}"), format!("--sink={}", chain.url));
    let produce =
        ["produce", "--kafka", &kafka, "--topic", &topic, "--orders=200", "--users=7", "--partitions=2"];
    assert!(chain.orders(&produce).status.success());
    assert!(chain.orders(&["tables", "--mysql", &chain.url]).status.success());
    let run = ["run", &source, &sink, "--checkpoints=c", "--checkpoint-interval=200ms", "--json"];
    let ran = chain.orders(&run);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let verify = || -> Value {
        let output = chain.orders(&["verify", &source, &sink, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    is_all_zeros(&verify());
    let log = "INSERT INTO t_order_log (order_id, user_id, amount_cents, source_partition, source_offset)";
    let cases = [
        (
            format!(
                "{log} SELECT order_id, user_id, amount_cents, source_partition, source_offset FROM t_order_log WHERE order_id = 7"
            ),
            "DELETE FROM t_order_log WHERE order_id = 7 ORDER BY log_id DESC LIMIT 1".to_owned(),
            "duplicates",
            "t_order_log",
        ),
        (
            "UPDATE t_order_log SET source_offset = source_offset + 100000 WHERE order_id = 7".to_owned(),
            "UPDATE t_order_log SET source_offset = source_offset - 100000 WHERE order_id = 7".to_owned(),
            "lost",
            "t_order_log by offset",
        ),
        (
            "UPDATE t_order_stat SET total_amount_cents = total_amount_cents + 1 WHERE user_id = 3"
                .to_owned(),
            "UPDATE t_order_stat SET total_amount_cents = total_amount_cents - 1 WHERE user_id = 3"
                .to_owned(),
            "wrong",
            "t_order_stat",
        ),
        (
            "UPDATE t_order_event SET order_id = 9999 WHERE order_id = 7".to_owned(),
            "UPDATE t_order_event SET order_id = 7 WHERE order_id = 9999".to_owned(),
            "unexpected",
            "t_order_event",
        ),
    ];
    for (plant, undo, figure, table) in &cases {
        sql(&chain.url, &[plant]).unwrap();
        let report = verify();
        assert_eq!(
            (report["ok"].as_bool(), report["tables"][table][figure].as_u64()),
            (Some(false), Some(1)),
            "{plant}: {report}"
        );
        sql(&chain.url, &[undo]).unwrap();
        is_all_zeros(&verify());
    }
}

#[test]
fn what_is_there_is_not_written_over_without_a_word() {
    let chain = Chain::new("refused");
    let (kafka, topic) = (servers().kafka.clone(), chain.topic("in"));
    let produce =
        ["produce", "--kafka", &kafka, "--topic", &topic, "--orders=20", "--users=7", "--partitions=2"];
    assert!(chain.orders(&produce).status.success());
    let again = chain.orders(&produce);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("has 20 records already"));
    let tables = ["tables", "--mysql", &chain.url];
    assert!(chain.orders(&tables).status.success());
    let again = chain.orders(&tables);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("t_order_event already"));
    let scenario = chain.orders(&["scenario", "a", "--kafka", &kafka, "--mysql", &chain.url, "--dir=s"]);
    assert!(String::from_utf8_lossy(&scenario.stderr).contains("--force"), "tables of somebody else");
}
