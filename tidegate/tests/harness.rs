//! A whole job as an author writes it, under the test kit: none of the places that it names is there.
//!
//! Owns: that a test of an author's job is as short as the book says. Does not own: the harness. Runs on: the test's thread.
#![allow(clippy::unwrap_used, reason = "a test program")]

use tidegate::prelude::*;
use tidegate::testkit::JobHarness;

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

struct Places {
    input: PathBuf,
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

#[test]
fn two_orders_of_one_user_are_added_up() {
    let places = Places { input: "/nowhere/in".into(), db: "/nowhere/totals.sqlite".into() };
    let mut job = JobHarness::of(build, &places).unwrap();
    let orders = job.source("orders");
    orders.push(Order { user_id: 7, amount_cents: 250 });
    orders.push(Order { user_id: 8, amount_cents: 1 });
    orders.push(Order { user_id: 7, amount_cents: 100 });
    job.run_until_idle().unwrap();
    assert_eq!(job.sink::<(u64, i64)>("user_total_sink").last(), Some((7, 350)));
    job.finish().unwrap();
    assert_eq!(job.sink::<(u64, i64)>("user_total_sink").records().len(), 3);
}

#[test]
fn a_total_that_does_not_fit_ends_the_job_with_the_operator_and_the_user() {
    let places = Places { input: "/nowhere/in".into(), db: "/nowhere/totals.sqlite".into() };
    let mut job = JobHarness::of(build, &places).unwrap();
    let orders = job.source("orders");
    orders.push(Order { user_id: 7, amount_cents: i64::MAX });
    orders.push(Order { user_id: 7, amount_cents: 1 });
    let error = job.run_until_idle().unwrap_err().to_string();
    assert!(
        error.contains("\"user_total\"") && error.contains("the total of user 7 is too large"),
        "{error}"
    );
}
