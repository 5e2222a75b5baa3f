//! `mysql_xa.json` on the real servers: what the model answers, they answer too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate::connectors::mysql::{
    Connection, MysqlError, MysqlUrl, ServerKind, SessionLimits, Xid, prepared_branches,
};
use tidegate::engine::io::{SharedIo, TokioIo};
use tidegate_jobs::services::{Service, ServiceKind};

use super::xa::{Case, Code, History, Step, Verb};

/// Whoever waits for a lock gives up after so long, and so the answer is "it waits".
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// A key that only a planted deadlock touches, and the many rows that make its other party the heavier one.
const DEADLOCK_KEY: u64 = 1_000;
const HEAVY_KEYS: u64 = 200;

#[derive(Debug, PartialEq)]
enum Answer {
    Ok,
    Waits,
    Found(bool),
    Listed(Vec<String>),
    Error(u16),
}

struct Replay {
    url: MysqlUrl,
    io: SharedIo,
    gtrid: String,
    sessions: BTreeMap<String, (Connection, Option<String>)>,
}

impl Replay {
    fn limits() -> SessionLimits {
        SessionLimits { lock_wait: LOCK_WAIT, ..SessionLimits::below(Duration::from_secs(40)) }
    }

    async fn connect(&self) -> Connection {
        Connection::open(&self.url, Self::limits(), &self.io).await.unwrap()
    }

    fn xid(&self, name: &str) -> Xid {
        Xid { gtrid: self.gtrid.clone().into_bytes(), bqual: name.as_bytes().to_vec(), format_id: 1 }
    }

    /// A session is gone when the server no longer shows it.
    async fn close(&mut self, session: &str) {
        let (connection, _) = self.sessions.remove(session).unwrap();
        let id = connection.id();
        connection.close().await;
        let mut side = self.connect().await;
        let sql = format!("SELECT ID FROM information_schema.PROCESSLIST WHERE ID = {id}");
        for _ in 0..200 {
            if side.rows("looking", &sql, Vec::new()).await.unwrap().is_empty() {
                return;
            }
            self.io.sleep(Duration::from_millis(10)).await;
        }
        panic!("session {id} does not end");
    }

    async fn listed(&self, connection: &mut Connection) -> Result<Vec<String>, MysqlError> {
        let found = prepared_branches(connection).await?;
        let mine = found.into_iter().filter(|xid| xid.gtrid == self.gtrid.as_bytes());
        let mut names: Vec<_> = mine.map(|xid| String::from_utf8(xid.bqual).unwrap()).collect();
        names.sort();
        Ok(names)
    }

    /// Another session waits for this one's row and this one for the other's: the lighter one, which this is, is rolled back.
    async fn deadlock(&mut self, session: &str) {
        let mut heavy = self.connect().await;
        heavy.run("planting", "START TRANSACTION").await.unwrap();
        let all = format!("UPDATE locks SET n = n + 1 WHERE k > {DEADLOCK_KEY}");
        heavy.run("planting", &all).await.unwrap();
        let (light, _) = self.sessions.get_mut(session).unwrap();
        let first = format!("UPDATE locks SET n = n + 1 WHERE k = {DEADLOCK_KEY}");
        light.run("planting", &first).await.unwrap();
        let second = format!("UPDATE locks SET n = n + 1 WHERE k = {}", DEADLOCK_KEY + 1);
        let (waits, struck) = tokio::join!(heavy.run("planting", &first), light.run("planting", &second));
        waits.unwrap();
        assert_eq!(struck.unwrap_err().code(), Some(1213));
        heavy.run("planting", "ROLLBACK").await.unwrap();
    }

    async fn ask(&mut self, step: &Step) -> Answer {
        let named = step.xid.as_deref().map(|name| self.xid(name).sql());
        let sql = |verb: &str| format!("XA {verb} {}", named.clone().unwrap());
        let gtrid = self.gtrid.clone();
        let (mut connection, open) = self.sessions.remove(&step.session).unwrap();
        let own = open.clone().map(|name| self.xid(&name).sql()).unwrap_or_default();
        let key = step.key.unwrap_or_default();
        let asked = match step.verb {
            Verb::Start => connection.run("", &sql("START")).await.map(|_| Answer::Ok),
            Verb::End => connection.run("", &format!("XA END {own}")).await.map(|_| Answer::Ok),
            Verb::Prepare => connection.run("", &format!("XA PREPARE {own}")).await.map(|_| Answer::Ok),
            Verb::Commit => connection.run("", &sql("COMMIT")).await.map(|_| Answer::Ok),
            Verb::Rollback => connection.run("", &sql("ROLLBACK")).await.map(|_| Answer::Ok),
            Verb::Ledger => {
                let row = format!("INSERT INTO ledger VALUES ('{gtrid}', '{}')", open.clone().unwrap());
                connection.run("", &row).await.map(|_| Answer::Ok)
            }
            Verb::Write => {
                let lock = format!("UPDATE locks SET n = n + 1 WHERE k = {key}");
                match connection.run("", &lock).await {
                    Ok(_) => connection
                        .run("", &format!("INSERT INTO log (k) VALUES ({key})"))
                        .await
                        .map(|_| Answer::Ok),
                    Err(error) => Err(error),
                }
            }
            Verb::Recover => self.listed(&mut connection).await.map(Answer::Listed),
            Verb::FindLedger => {
                let xid = step.xid.as_deref().unwrap();
                let read =
                    format!("SELECT 1 FROM ledger WHERE g = '{gtrid}' AND b = '{xid}' LOCK IN SHARE MODE");
                connection.rows("", &read, Vec::new()).await.map(|rows| Answer::Found(!rows.is_empty()))
            }
            Verb::Visible => {
                let rows =
                    connection.rows("", "SELECT CAST(k AS CHAR) FROM log ORDER BY id", Vec::new()).await;
                rows.map(|rows| Answer::Listed(rows.into_iter().map(mysql_async::from_row).collect()))
            }
            Verb::Connect | Verb::Close | Verb::Deadlock => unreachable!("asked elsewhere"),
        };
        let open = match (&step.verb, &asked) {
            (Verb::Start, Ok(_)) => step.xid.clone(),
            _ => open,
        };
        self.sessions.insert(step.session.clone(), (connection, open));
        asked.unwrap_or_else(|error| match error.code() {
            Some(LOCK_WAIT_TIMEOUT) => Answer::Waits,
            Some(code) => Answer::Error(code),
            None => panic!("{step:?}: {error}"),
        })
    }

    async fn step(&mut self, step: &Step, kind: ServerKind) {
        match step.verb {
            Verb::Connect => {
                let connection = self.connect().await;
                self.sessions.insert(step.session.clone(), (connection, None));
            }
            Verb::Close => self.close(&step.session).await,
            Verb::Deadlock => self.deadlock(&step.session).await,
            _ => {
                let answer = self.ask(step).await;
                assert_eq!(answer, expected(step, kind), "{step:?}");
            }
        }
    }

    async fn clear(&mut self) {
        let open: Vec<String> = self.sessions.keys().cloned().collect();
        for session in open {
            self.close(&session).await;
        }
        let mut connection = self.connect().await;
        for name in self.listed(&mut connection).await.unwrap() {
            let sql = format!("XA ROLLBACK {}", self.xid(&name).sql());
            connection.run("clearing", &sql).await.unwrap();
        }
    }
}

fn expected(step: &Step, kind: ServerKind) -> Answer {
    let code = match (&step.code, kind) {
        (None, _) => 0,
        (Some(Code::Both(code)), _) => *code,
        (Some(Code::Each { mariadb, .. }), ServerKind::MariaDb) => *mariadb,
        (Some(Code::Each { mysql, .. }), ServerKind::MySql) => *mysql,
    };
    let text = |value: &serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
    match (code, step.waits, step.found, &step.expect) {
        (0, true, ..) => Answer::Waits,
        (0, _, Some(found), _) => Answer::Found(found),
        (0, _, _, Some(listed)) => Answer::Listed(listed.iter().map(text).collect()),
        (0, ..) => Answer::Ok,
        (code, ..) => Answer::Error(code),
    }
}

async fn replay(case: &Case, url: &MysqlUrl, io: &SharedIo, kind: ServerKind, number: usize) {
    let database = url.database();
    let gtrid = format!("{database}.{number}");
    let mut replay = Replay { url: url.clone(), io: Arc::clone(io), gtrid, sessions: BTreeMap::new() };
    replay.connect().await.run("clearing", "TRUNCATE TABLE log").await.unwrap();
    for step in &case.steps {
        println!("  {step:?}");
        replay.step(step, kind).await;
    }
    replay.clear().await;
}

fn replay_on(service: ServiceKind, kind: ServerKind, name: &str) {
    let history: History = super::read("mysql_xa.json");
    let service = Service::shared(service).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let io = TokioIo::shared(runtime.handle().clone());
    runtime.block_on(async {
        let server = MysqlUrl::parse(service.mysql_url().unwrap()).unwrap();
        let mut first = Connection::open(&server, Replay::limits(), &io).await.unwrap();
        let rows =
            first.rows("asking", "SELECT CONCAT('tidegate_', UUID_SHORT())", Vec::new()).await.unwrap();
        let database: String = mysql_async::from_row(rows.into_iter().next().unwrap());
        let keys: Vec<String> =
            (0..20).chain(DEADLOCK_KEY..DEADLOCK_KEY + HEAVY_KEYS).map(|k| format!("({k}, 0)")).collect();
        for sql in [
            format!("CREATE DATABASE {database}"),
            format!("CREATE TABLE {database}.ledger (g VARCHAR(64), b VARCHAR(64), PRIMARY KEY (g, b))"),
            format!("CREATE TABLE {database}.log (id BIGINT AUTO_INCREMENT PRIMARY KEY, k BIGINT)"),
            format!("CREATE TABLE {database}.locks (k BIGINT PRIMARY KEY, n BIGINT)"),
            format!("INSERT INTO {database}.locks VALUES {}", keys.join(",")),
        ] {
            first.run("setting a test up", &sql).await.unwrap();
        }
        let url = server.with_database(&database);
        for (number, case) in history.cases.iter().enumerate() {
            if case.only.as_ref().is_none_or(|only| only == name) {
                println!("{} ({name})", case.name);
                replay(case, &url, &io, kind, number).await;
            }
        }
        // A new data folder of MariaDB may refuse its first drop (1034, an index of its own); nothing hangs on it.
        if let Err(error) = first.run("clearing", &format!("DROP DATABASE {database}")).await {
            println!("{database} is left: {error}");
        }
    });
}

#[test]
fn mariadb_answers_as_the_xa_model_does() {
    replay_on(ServiceKind::MariaDb, ServerKind::MariaDb, "mariadb");
}

#[test]
fn mysql_answers_as_the_xa_model_does() {
    replay_on(ServiceKind::MySql, ServerKind::MySql, "mysql");
}
