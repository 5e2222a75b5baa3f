//! A whole job as an author writes it: orders as JSON lines in, the total of each user out.
//!
//! ```text
//! cargo run -p tidegate --example totals -- run --input in --db totals.sqlite --checkpoints checkpoints
//! ```

use tidegate::prelude::*;

#[derive(Clone, Deserialize)]
struct Order {
    user_id: u64,
    amount_cents: i64,
}

#[derive(Clone, Default, StateType)]
struct Totals {
    orders: u64,
    amount_cents: i64,
}

/// Sums up what each user has ordered.
#[derive(Debug, Args)]
struct Places {
    /// Folder of JSON lines.
    #[arg(long)]
    input: PathBuf,
    /// Database file.
    #[arg(long)]
    db: PathBuf,
}

/// The same order would fail again: `final_` says that no restart can mend it.
fn too_large(user_id: u64) -> JobError {
    JobError::msg(format!("the total of user {user_id} is too large")).final_()
}

fn build(env: &StreamEnvironment, places: &Places) -> Result<()> {
    env.source("orders", FileSource::json_lines::<Order>(&places.input))
        .key_by(|order| order.user_id)
        .process(
            "user_total",
            value::<Totals>("totals"),
            |order: Order, totals, ctx, out: &mut Output<(u64, i64)>| {
                let before = totals.get()?.map_or(0, |totals| totals.amount_cents);
                let amount_cents =
                    before.checked_add(order.amount_cents).ok_or_else(|| too_large(*ctx.key()))?;
                let totals = totals.update(|totals| {
                    totals.orders += 1;
                    totals.amount_cents = amount_cents;
                })?;
                out.emit((*ctx.key(), totals.amount_cents));
                Ok(())
            },
        )
        .sink(
            "user_total_sink",
            SqliteSink::table(&places.db, "t_user_total")
                .column("user_id", |total: &(u64, i64)| total.0)
                .column("amount_cents", |total| total.1)
                .overwrite_by("user_id"),
        );
    Ok(())
}

fn main() -> ExitCode {
    tidegate::launch("totals", build)
}
