//! A job for scenario tests: numbers, counted by their last digits, into a table.
//!
//! Owns: the job. Does not own: what is done to it. Runs on: a process of its own.

use tidegate::prelude::*;

/// Counts numbers by their last digits.
#[derive(Debug, Args)]
struct Numbers {
    /// How many; without it, they never end.
    #[arg(long)]
    count: Option<u64>,
    /// At most so many a second.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// The database file.
    #[arg(long)]
    db: Option<PathBuf>,
    /// Fails at each number that this one divides.
    #[arg(long)]
    fail_every: Option<u64>,
    /// Its sink blocks its thread for ever at the first batch.
    #[arg(long)]
    block_sink: bool,
    /// Makes this file while the job is being built, and waits until it is removed.
    #[arg(long)]
    build_while: Option<PathBuf>,
}

#[derive(Clone, Default, StateType)]
struct Count {
    numbers: u64,
}

/// A sink as a C client without a timeout makes one: its thread never comes back.
#[derive(Clone)]
struct BlockingSink;

impl Sink for BlockingSink {
    type Record = (u64, u64);
    type Writer = Self;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(Self))
    }
}

impl Writer for BlockingSink {
    type Record = (u64, u64);

    async fn write(&mut self, _batch: Batch<Self::Record>) -> Result<(), ConnectorError> {
        loop {
            std::thread::park();
        }
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

fn build(env: &StreamEnvironment, args: &Numbers) -> Result<()> {
    if let Some(file) = &args.build_while {
        std::fs::write(file, "")?;
        while file.exists() {
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }
    let mut source = Datagen::new(|index| index).rate_per_second(args.rate);
    if let Some(count) = args.count {
        source = source.bounded(count);
    }
    let fail_every = args.fail_every;
    let counted = env.source("numbers", source).key_by(|number| number % 100).process(
        "count",
        value::<Count>("counts"),
        move |number: u64, count, ctx, out: &mut Output<(u64, u64)>| {
            if fail_every.is_some_and(|every| number % every == every - 1) {
                return Err(JobError::msg(format!("number {number} is not wanted")));
            }
            let count = count.update(|count| count.numbers += 1)?;
            out.emit((*ctx.key(), count.numbers));
            Ok(())
        },
    );
    if args.block_sink {
        counted.sink("counts_sink", BlockingSink);
        return Ok(());
    }
    match &args.db {
        Some(db) => {
            let table = SqliteSink::table(db, "counts")
                .column("digits", |row: &(u64, u64)| row.0)
                .column("numbers", |row| row.1)
                .overwrite_by("digits");
            counted.sink("counts_sink", table);
        }
        None => {
            counted.sink("counts_sink", BlackholeSink::new());
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    tidegate::launch("numbers", build)
}
