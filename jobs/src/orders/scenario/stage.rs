//! One job on the real chain: a topic with orders, empty tables, a checkpoint folder, and the audit of all of it.
//!
//! Owns: the names of a scenario's topics and folders, what its runs are told, what must not be left over.
//! Does not own: the runs ([`crate::attempt`]), the audit ([`crate::verify`]).
//! Runs on: the main thread.

use tidegate::state::fault::FAULT_VARIABLE;

use super::notes::Notes;
use super::{ScenarioArgs, ScenarioError, Servers};
use crate::address::servers::{KafkaAddress, MysqlAddress, MysqlMode};
use crate::address::{SinkAddress, SourceAddress};
use crate::attempt::{AttemptError, KillPoint, Position, run_and_die, run_and_kill_when, run_to_the_end};
use crate::database::leftover::Branch;
use crate::database::{Session, leftover};
use crate::generate::{GenerateArgs, write_orders};
use crate::ground;
use crate::leftover::Leftover;
use crate::log_id::log_id;
use crate::run_line::RunLine;
use crate::topic::admin;
use crate::verify::{Verdict, audit_all};
use crate::work_folder::WorkFolder;

/// How often a kill is made that comes too early to show anything.
pub(crate) const TRIES_MAX: u32 = 3;

/// What all scenarios of one call share.
pub(crate) struct Set<'a> {
    /// Where they run.
    pub(crate) servers: &'a Servers,
    /// Where their files are.
    pub(crate) folder: &'a WorkFolder,
    /// The flags.
    pub(crate) args: &'a ScenarioArgs,
}

impl Set<'_> {
    /// `orders-a-4711`: a topic of this process's own.
    pub(crate) fn topic(&self, name: &str) -> KafkaAddress {
        let topic = format!("orders-{name}-{}", std::process::id());
        KafkaAddress { bootstrap: self.servers.bootstrap.clone(), topic }
    }
}

/// How a stage is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The scenario's name, in topics and folders.
    pub(crate) name: &'static str,
    /// How the tables are written.
    pub(crate) mode: MysqlMode,
    /// Number of orders; 0: the topic stays empty.
    pub(crate) orders: u64,
    /// Orders a second that a run reads at most.
    pub(crate) rate: Option<u64>,
    /// Whether a second topic takes the orders as they are.
    pub(crate) has_detail: bool,
}

/// See the module.
pub(crate) struct Stage {
    plan: Plan,
    line: RunLine,
    source: KafkaAddress,
    tables: MysqlAddress,
}

impl Stage {
    /// Fills the topic and empties the tables.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub(crate) fn set(set: &Set<'_>, plan: Plan) -> Result<Self, ScenarioError> {
        let folder = set.folder.part(&format!("{}-{}", plan.name, plan.mode.word()))?;
        let topic = |kind: &str| set.topic(&format!("{}-{}{kind}", plan.name, plan.mode.word()));
        let (source, args) = (topic(""), set.args);
        let partitions = args.parallelism;
        if plan.orders > 0 {
            let (orders, users, seed) = (plan.orders, args.users, args.seed);
            let out = folder.input();
            write_orders(&GenerateArgs { orders, users, partitions, seed, out, force: false })?;
            ground::fill(&SourceAddress::Kafka(source.clone()), &folder.input(), partitions, true)?;
        } else {
            admin::create(&source, partitions, true)?;
        }
        let tables = set.servers.mysql.in_mode(plan.mode);
        // What was somebody else's has been refused before the first scenario: these are our own.
        ground::empty(&SinkAddress::Mysql(tables.clone()), partitions, true)?;
        let detail = plan.has_detail.then(|| topic("-detail"));
        if let Some(detail) = &detail {
            admin::create(detail, partitions, true)?;
        }
        let line = RunLine {
            source: SourceAddress::Kafka(source.clone()),
            sink: SinkAddress::Mysql(tables.clone()),
            detail: detail.map(SinkAddress::Kafka),
            checkpoints: Some(folder.checkpoints()),
            interval: args.checkpoint_interval,
            parallelism: args.parallelism,
            rate: plan.rate,
            follow: false,
            mode: "exactly-once",
            restore: "latest",
        };
        Ok(Self { plan, line, source, tables })
    }

    /// The same with so many rows in a statement.
    pub(crate) fn with_batch_rows(self, rows: usize) -> Self {
        let tables = self.tables.with_batch_rows(rows);
        let line = RunLine { sink: SinkAddress::Mysql(tables.clone()), ..self.line };
        Self { line, tables, ..self }
    }

    /// What its runs are told.
    pub(crate) fn line(&self) -> &RunLine {
        &self.line
    }

    /// What its runs are told, to be changed.
    pub(crate) fn line_mut(&mut self) -> &mut RunLine {
        &mut self.line
    }

    /// The tables.
    pub(crate) fn tables(&self) -> &MysqlAddress {
        &self.tables
    }

    /// The topic with the orders.
    pub(crate) fn source(&self) -> &KafkaAddress {
        &self.source
    }

    /// Starts a run that dies at the `nth` pass through a fault point.
    ///
    /// # Errors
    /// [`ScenarioError::Run`] when it did not.
    pub(crate) fn die_at(&self, point: &str, nth: u64, notes: &mut Notes) -> Result<Position, ScenarioError> {
        let mut command = self.line.command().map_err(ScenarioError::Program)?;
        command.env(FAULT_VARIABLE, format!("{point}:{nth}"));
        let died = run_and_die(command, notes);
        let died =
            died.map_err(|source| self.failed(format!("the kill at {point}:{nth} was not made"), source))?;
        notes.killed(&died);
        Ok(died)
    }

    /// Starts a run that dies at the `nth` pass through a fault point with something in its transactions; whether it had. The first
    /// checkpoints of a job whose first orders are still on their way are empty: such a death shows nothing, and is made again.
    ///
    /// # Errors
    /// As [`Self::die_at`].
    pub(crate) fn die_at_work(
        &self,
        point: &str,
        nth: u64,
        notes: &mut Notes,
    ) -> Result<(Position, bool), ScenarioError> {
        let mut tries = 0;
        loop {
            let died = self.die_at(point, nth, notes)?;
            let at_work = match self.plan.mode {
                MysqlMode::Upsert | MysqlMode::Plain => died.records_in > 0,
                MysqlMode::Xa | MysqlMode::Staging => {
                    let left = self.leftover()?;
                    left.branches + left.staging > 0
                }
            };
            tries += 1;
            if at_work || tries == TRIES_MAX {
                return Ok((died, at_work));
            }
        }
    }

    /// Starts a run that is killed at a place.
    ///
    /// # Errors
    /// [`ScenarioError::Run`] when it was not.
    pub(crate) fn kill_at(&self, point: KillPoint, notes: &mut Notes) -> Result<Position, ScenarioError> {
        self.kill_when(&|position| point.is_reached(position), notes)
    }

    /// Starts a run that is killed when `is_time` says so.
    ///
    /// # Errors
    /// [`ScenarioError::Run`] when it was not.
    pub(crate) fn kill_when(
        &self,
        is_time: &dyn Fn(&Position) -> bool,
        notes: &mut Notes,
    ) -> Result<Position, ScenarioError> {
        let command = self.line.command().map_err(ScenarioError::Program)?;
        let killed = run_and_kill_when(command, is_time, notes);
        let killed = killed.map_err(|source| self.failed("the run was not killed".to_owned(), source))?;
        notes.killed(&killed);
        Ok(killed)
    }

    /// Starts a run that finishes, at full speed.
    ///
    /// # Errors
    /// [`ScenarioError::Run`] when it did not.
    pub(crate) fn finish(&self, notes: &mut Notes) -> Result<Position, ScenarioError> {
        let line = RunLine { rate: None, ..self.line.clone() };
        let command = line.command().map_err(ScenarioError::Program)?;
        run_to_the_end(command, notes)
            .map_err(|source| self.failed("the run did not finish".to_owned(), source))
    }

    fn failed(&self, what: String, source: AttemptError) -> ScenarioError {
        let what = format!("{what} ({})", self.plan.mode.word());
        ScenarioError::Run { scenario: self.plan.name, what, source }
    }

    /// The tables, and the detail topic where there is one, against the topic.
    ///
    /// # Errors
    /// [`ScenarioError::Verify`].
    pub(crate) fn audit(&self) -> Result<Verdict, ScenarioError> {
        Ok(audit_all(&self.line.source, &self.line.sink, self.line.detail.as_ref())?)
    }

    /// Prepared branches of this job.
    ///
    /// # Errors
    /// [`ScenarioError::Database`].
    pub(crate) fn branches(&self, session: &mut Session) -> Result<Vec<Branch>, ScenarioError> {
        let log_id = self.line.checkpoints.as_deref().and_then(log_id);
        Ok(log_id.map_or_else(|| Ok(Vec::new()), |log_id| leftover::branches(session, &log_id))?)
    }

    /// What stands undecided in the servers.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub(crate) fn leftover(&self) -> Result<Leftover, ScenarioError> {
        Ok(Leftover::of(&self.line)?)
    }
}
