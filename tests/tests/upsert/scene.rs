//! A database of one's own on a real server, and jobs that write into it.
//!
//! Owns: making and dropping the database, asking it, running a job and counting its restarts. Does not own: what is asserted.
//! Runs on: the test's thread; the client on a runtime of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Opts};
use tidegate::connectors::changes::VersionedRow;
use tidegate::connectors::mysql::{Columns, MysqlSink, UpsertSink};
use tidegate::engine::api::{JobNeeds, PreflightContext, PreflightResult, Sink};
use tidegate::engine::clock::SystemClock;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, LocalRunner};
use tidegate::engine::ids::JobName;
use tidegate::engine::io::TokioIo;
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::StreamEnvironment;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::TcpProxy;
use tidegate_tests::{Ended, checkpoints_every};

/// How long a test waits for anything before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A database that is dropped at the end.
pub(crate) struct Database {
    pub(crate) name: String,
    server_url: String,
    runtime: tokio::runtime::Runtime,
    conn: Option<Conn>,
}

impl Database {
    /// A new one on the server that all tests share.
    pub(crate) fn on(kind: ServiceKind) -> Self {
        Self::of(&Service::shared(kind).unwrap())
    }

    /// A new one.
    pub(crate) fn of(service: &Service) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("tidegate_upsert_{}_{count}", std::process::id());
        let server_url = service.mysql_url().unwrap().to_owned();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let conn = runtime.block_on(Conn::new(Opts::from_url(&server_url).unwrap())).unwrap();
        let mut database = Self { name: name.clone(), server_url, runtime, conn: Some(conn) };
        database.drop_named(&name).unwrap();
        database.run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"));
        database.run(&format!("USE {name}"));
        database
    }

    /// With the usual table `t`.
    pub(crate) fn with_rows(kind: ServiceKind) -> Self {
        let mut database = Self::on(kind);
        database.run(ROWS_TABLE);
        database
    }

    /// Its address.
    pub(crate) fn url(&self) -> String {
        let (place, _) = self.server_url.rsplit_once('/').unwrap();
        format!("{place}/{}", self.name)
    }

    /// A proxy in front of its server.
    pub(crate) fn proxy(&self) -> Arc<TcpProxy> {
        let place = self.server_url.rsplit_once('@').unwrap().1.split('/').next().unwrap();
        Arc::new(TcpProxy::start(place.parse().unwrap()).unwrap())
    }

    pub(crate) fn run(&mut self, sql: &str) {
        self.try_run(sql).unwrap();
    }

    /// A server whose data was copied repairs its table of procedures at the first drop, which fails.
    fn drop_named(&mut self, name: &str) -> mysql_async::Result<()> {
        let sql = format!("DROP DATABASE IF EXISTS {name}");
        self.try_run(&sql).or_else(|_| self.try_run(&sql))
    }

    pub(crate) fn try_run(&mut self, sql: &str) -> mysql_async::Result<()> {
        let (runtime, conn) = (&self.runtime, self.conn.as_mut().unwrap());
        runtime.block_on(conn.query_drop(sql))
    }

    pub(crate) fn rows<R: FromRow + Send + 'static>(&mut self, sql: &str) -> Vec<R> {
        let (runtime, conn) = (&self.runtime, self.conn.as_mut().unwrap());
        runtime.block_on(conn.query(sql)).unwrap()
    }

    /// Again after the server was away.
    pub(crate) fn reconnect(&mut self) {
        let url = self.url();
        self.conn = Some(self.runtime.block_on(Conn::new(Opts::from_url(&url).unwrap())).unwrap());
    }

    /// The usual table, by key.
    pub(crate) fn table(&mut self) -> BTreeMap<u64, VersionedRow> {
        let rows = self.rows::<(u64, u64, u64)>("SELECT id, value, version FROM t");
        rows.into_iter().map(|(key, value, version)| (key, VersionedRow { key, value, version })).collect()
    }

    /// Sessions in this database beside this one.
    pub(crate) fn sessions(&mut self) -> u64 {
        let name = self.name.clone();
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{name}' AND ID <> CONNECTION_ID()"
        );
        self.rows::<u64>(&sql)[0]
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let dropped = self.drop_named(&self.name.clone());
        if !std::thread::panicking() {
            dropped.unwrap();
        }
        if let Some(conn) = self.conn.take() {
            drop(self.runtime.block_on(conn.disconnect()));
        }
    }
}

/// The usual table.
pub(crate) const ROWS_TABLE: &str = "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, value BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL)";

/// A sink into the usual table.
pub(crate) fn rows_sink(url: &str) -> UpsertSink<VersionedRow> {
    let columns = Columns::new()
        .column("id", |row: &VersionedRow| row.key)
        .column("value", |row| row.value)
        .column("version", |row| row.version);
    MysqlSink::table(url, "t").columns(|_| columns).upsert_by("id")
}

/// A checkpoint every 50 ms, and restarts without a pause.
pub(crate) fn config() -> ExecutionConfig {
    let restart = RestartStrategy::FixedDelay { attempts: 50, delay_ms: 1 };
    ExecutionConfig { restart, ..checkpoints_every(50) }
}

/// Runs a job to its end.
pub(crate) fn run_job(env: StreamEnvironment, parallelism: u32, config: ExecutionConfig) -> Ended {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let mut restarts = Vec::new();
    let run = || {
        let graph = env.into_graph("upsert", parallelism, 128)?;
        LocalRunner::new(graph, config, Some(storage))?.run(|notice| {
            if let ExecutionNotice::Restarting { cause, .. } = notice {
                restarts.push(cause.clone());
            }
        })
    };
    let outcome = run();
    Ended { outcome, restarts }
}

/// Polls until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a real server needs real time")]
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        #[allow(clippy::disallowed_methods, reason = "between two looks at a real server")]
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Fails the job each time that many records have passed, a few times.
#[derive(Clone)]
pub(crate) struct Killer {
    passed: Arc<AtomicU64>,
    every: u64,
    kills_left: Arc<AtomicU32>,
}

impl Killer {
    pub(crate) fn new(every: u64, kills: u32) -> Self {
        Self { passed: Arc::default(), every, kills_left: Arc::new(AtomicU32::new(kills)) }
    }

    /// Panics when it is time.
    pub(crate) fn pass(&self) {
        let passed = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        let left = |left: u32| left.checked_sub(1);
        if passed.is_multiple_of(self.every)
            && self.kills_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok()
        {
            panic!("killed after {passed} records");
        }
    }

    pub(crate) fn kills_left(&self) -> u32 {
        self.kills_left.load(Ordering::SeqCst)
    }
}

/// What a sink's look at its server finds.
pub(crate) fn preflight<S: Sink>(sink: &S) -> PreflightResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let context = PreflightContext {
        job: JobName::from("upsert"),
        clock: SystemClock::shared(),
        io: TokioIo::shared(runtime.handle().clone()),
        parallelism: 1,
        places: 3,
        checkpoints: config().checkpoints,
        needs: JobNeeds::default(),
    };
    runtime.block_on(sink.preflight(context))
}
