//! A database of one's own on either server, and the parts of a sink on it.
//!
//! Owns: [`Scene`]. Does not own: any scenario. Runs on: a tokio runtime per test.

use std::sync::Arc;
use std::time::Duration;

use tidegate::connectors::mysql::{
    Connection, MysqlSink, MysqlUrl, ServerKind, SessionLimits, XaBranch, XaWriter,
};
use tidegate::engine::api::{
    ClaimWatch, Committer, ConnectorContext, JobNeeds, PreflightContext, Prepared, TwoPhaseContext,
    TwoPhaseSink, TwoPhaseWriter,
};
use tidegate::engine::checkpoint::CheckpointConfig;
use tidegate::engine::clock::SystemClock;
use tidegate::engine::element::Batch;
use tidegate::engine::ids::{AttemptId, CheckpointId, Lineage};
use tidegate::engine::io::{NoWake, SharedIo, TokioIo};
use tidegate::engine::operator::{CommitOutcome, TransactionName, TransactionScope};
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::TcpProxy;

/// What the sinks of these tests take: a key and an amount.
pub(crate) type Pair = (u64, i64);

/// Timeout of the checkpoints that these sinks would take part in.
pub(crate) const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(8);

/// A database of one's own.
pub(crate) struct Scene {
    pub(crate) url: MysqlUrl,
    pub(crate) kind: ServerKind,
    log_id: String,
    pub(crate) io: SharedIo,
}

/// Runs a scenario on MariaDB and on MySQL.
pub(crate) fn on_both<F: Future<Output = ()>>(scenario: impl Fn(Arc<Scene>) -> F) {
    for kind in [ServiceKind::MariaDb, ServiceKind::MySql] {
        on(kind, &scenario);
    }
}

/// Runs a scenario on one server.
pub(crate) fn on<F: Future<Output = ()>>(kind: ServiceKind, scenario: impl Fn(Arc<Scene>) -> F) {
    let service = Service::shared(kind).unwrap();
    on_server(service.mysql_url().unwrap(), scenario);
}

/// Runs a scenario on the server at `url`.
pub(crate) fn on_server<F: Future<Output = ()>>(url: &str, scenario: impl Fn(Arc<Scene>) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let io = TokioIo::shared(runtime.handle().clone());
    runtime.block_on(async {
        let server = MysqlUrl::parse(url).unwrap();
        let scene = Arc::new(Scene::new(&server, io).await);
        println!("{} on {:?}", scene.url, scene.kind);
        scenario(Arc::clone(&scene)).await;
        scene.leave().await;
    });
}

impl Scene {
    async fn new(server: &MysqlUrl, io: SharedIo) -> Self {
        let limits = SessionLimits::below(CHECKPOINT_TIMEOUT);
        let mut connection = Connection::open(server, limits, &io).await.unwrap();
        let rows = connection.rows("asking", "SELECT REPLACE(UUID(), '-', '')", Vec::new()).await.unwrap();
        let log_id: String = mysql_async::from_row(rows.into_iter().next().unwrap());
        let database = format!("tidegate_{}", &log_id[..20]);
        connection.run("making a database", &format!("CREATE DATABASE {database}")).await.unwrap();
        let url = server.clone().with_database(&database);
        let kind = connection.server();
        connection.close().await;
        Self { url, kind, log_id, io }
    }

    /// Nothing prepared is left, and the database goes.
    async fn leave(&self) {
        assert_eq!(self.branches().await, Vec::<String>::new(), "branches are left");
        // A server that was killed may have damaged system tables, which is none of our affair.
        let mut connection = self.connect().await;
        drop(connection.run("clearing", &format!("DROP DATABASE {}", self.url.database())).await);
        connection.close().await;
    }

    /// A proxy in front of the server, and the address of this database behind it.
    pub(crate) fn proxy(&self) -> (Arc<TcpProxy>, MysqlUrl) {
        let server = format!("{}:{}", self.url.host(), self.url.port());
        let proxy = Arc::new(TcpProxy::start(server.parse().unwrap()).unwrap());
        let url = self.url.clone().with_address("127.0.0.1", proxy.address().port());
        (proxy, url)
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(&self.url, SessionLimits::below(CHECKPOINT_TIMEOUT), &self.io).await.unwrap()
    }

    /// Runs statements.
    pub(crate) async fn sql(&self, sql: &str) {
        let mut connection = self.connect().await;
        for statement in sql.split(';').filter(|s| !s.trim().is_empty()) {
            connection.run("setting a test up", statement).await.unwrap();
        }
        connection.close().await;
    }

    /// Asks for rows.
    pub(crate) async fn ask<T: mysql_async::prelude::FromRow>(&self, sql: &str) -> Vec<T> {
        let mut connection = self.connect().await;
        let rows = connection.rows("looking", sql, Vec::new()).await.unwrap();
        connection.close().await;
        rows.into_iter().map(mysql_async::from_row).collect()
    }

    /// The table `t` without a key.
    pub(crate) async fn table(&self) {
        self.sql("CREATE TABLE t (user_id BIGINT UNSIGNED NOT NULL, cents BIGINT NOT NULL)").await;
    }

    /// The table `s` with a key.
    pub(crate) async fn keyed_table(&self) {
        self.sql("CREATE TABLE s (user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, cents BIGINT NOT NULL)")
            .await;
    }

    pub(crate) async fn rows(&self, table: &str) -> Vec<Pair> {
        self.ask(&format!("SELECT user_id, cents FROM {table} ORDER BY user_id, cents")).await
    }

    /// Whole jobs of this scene are called so: they have log ids of their own.
    pub(crate) fn job_name(&self) -> String {
        format!("job-{}", &self.log_id[..16])
    }

    /// Prepared branches of this scene, as text.
    pub(crate) async fn branches(&self) -> Vec<String> {
        let mut connection = self.connect().await;
        let found = tidegate::connectors::mysql::prepared_branches(&mut connection).await.unwrap();
        connection.close().await;
        let is_ours = |xid: &String| xid.contains(&self.log_id) || xid.contains(&self.job_name());
        found.iter().map(ToString::to_string).filter(is_ours).collect()
    }

    /// A sink into `table` that appends.
    pub(crate) fn sink(&self, table: &str) -> MysqlSink<Pair> {
        self.sink_at(&self.url, table)
    }

    /// The same, reached at another address.
    pub(crate) fn sink_at(&self, url: &MysqlUrl, table: &str) -> MysqlSink<Pair> {
        MysqlSink::table(url, table)
            .column("user_id", |pair: &Pair| pair.0)
            .column("cents", |pair: &Pair| pair.1)
    }

    pub(crate) fn name(&self, opened_after: u64, attempt: u64) -> TransactionName {
        TransactionName {
            scope: TransactionScope {
                job: "orders".into(),
                log_id: self.log_id.as_str().into(),
                lineage: Lineage(1),
                uid: "sink".into(),
            },
            subtask: 0,
            opened_after: CheckpointId(opened_after),
            attempt: AttemptId(attempt),
        }
    }

    pub(crate) fn connector(&self) -> ConnectorContext {
        ConnectorContext {
            clock: SystemClock::shared(),
            io: Arc::clone(&self.io),
            waker: Arc::new(NoWake),
            checkpoint_timeout: CHECKPOINT_TIMEOUT,
            claim: ClaimWatch::unclaimed(),
        }
    }

    pub(crate) fn context(&self, name: TransactionName) -> TwoPhaseContext {
        TwoPhaseContext {
            connector: self.connector(),
            subtask: name.subtask,
            parallelism: 1,
            places: 4,
            restored_attempt: AttemptId(0),
            name,
        }
    }

    pub(crate) fn preflight(&self, parallelism: u32) -> PreflightContext {
        let timeout_ms = u64::try_from(CHECKPOINT_TIMEOUT.as_millis()).unwrap();
        PreflightContext {
            job: "orders".into(),
            clock: SystemClock::shared(),
            io: Arc::clone(&self.io),
            parallelism,
            places: 4,
            checkpoints: CheckpointConfig { timeout_ms, ..CheckpointConfig::default() },
            needs: JobNeeds::default(),
        }
    }

    pub(crate) async fn committer<S: TwoPhaseSink>(&self, sink: &S, attempt: u64) -> S::Committer {
        sink.open_committer(self.context(self.name(0, attempt))).await.unwrap()
    }

    /// The writer of an attempt, whose ledger is there.
    pub(crate) async fn writer<S: TwoPhaseSink>(&self, sink: &S, attempt: u64) -> S::Writer {
        drop(self.committer(sink, attempt).await);
        sink.open_writer(self.context(self.name(0, attempt))).await.unwrap()
    }

    /// Prepares one transaction; the writer stays.
    pub(crate) async fn prepare<W: TwoPhaseWriter<Record = Pair>>(
        &self,
        writer: &mut W,
        name: &TransactionName,
        rows: &[Pair],
    ) -> Prepared<W::Committable> {
        let closed_by = name.opened_after.next();
        writer.write(name, Batch::of(rows.to_vec())).await.unwrap();
        writer.closing(closed_by);
        let committable = writer.prepare().await.unwrap().unwrap();
        Prepared { name: name.clone(), closed_by, committable }
    }

    /// Waits until nobody else has a session in this database. MariaDB lets a branch go only after it has stopped showing its session.
    pub(crate) async fn alone(&self) {
        self.alone_but_for(0).await;
        self.io.sleep(Duration::from_millis(200)).await;
    }

    /// Waits until no more than so many others have a session in this database.
    pub(crate) async fn alone_but_for(&self, others: usize) {
        let sql =
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
        for _ in 0..400 {
            if self.ask::<(u64,)>(sql).await.len() <= others {
                return;
            }
            self.io.sleep(Duration::from_millis(10)).await;
        }
        panic!("sessions are left in {}", self.url);
    }

    /// Ends every other session in this database, as a server does that has not heard of them for long.
    pub(crate) async fn end_others(&self) {
        let sql =
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
        let mut connection = self.connect().await;
        for row in connection.rows("looking", sql, Vec::new()).await.unwrap() {
            connection.kill(mysql_async::from_row::<(u64,)>(row).0).await.unwrap();
        }
        connection.close().await;
    }

    /// A prepared branch whose writer is gone.
    pub(crate) async fn prepared(&self, after: u64, rows: &[Pair]) -> Prepared<XaBranch> {
        let mut writer: XaWriter<Pair> = self.writer(&self.sink("t"), 1).await;
        self.prepare(&mut writer, &self.name(after, 1), rows).await
    }
}

/// Commits, for as long as the answer is "retry after".
pub(crate) async fn settle<C: Committer>(
    scene: &Scene,
    committer: &mut C,
    item: &Prepared<C::Committable>,
) -> CommitOutcome {
    for _ in 0..400 {
        match committer.commit(item).await.unwrap() {
            CommitOutcome::RetryAfter { ms, reason } => {
                println!("retry after {ms} ms: {reason}");
                scene.io.sleep(Duration::from_millis(ms)).await;
            }
            outcome => return outcome,
        }
    }
    panic!("it is never settled");
}
