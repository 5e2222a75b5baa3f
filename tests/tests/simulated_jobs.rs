//! Jobs as an author writes them, under the author's simulation: one that is right stays right through every crash; what keeps something
//! outside of Tidegate's state is found.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::prelude::*;
use tidegate::testkit::{Simulation, SimulationFailure};

#[derive(Clone, Debug, Deserialize)]
struct Order {
    order_id: u64,
    user_id: u64,
    amount_cents: i64,
}

#[derive(Clone, Default, StateType)]
struct Totals {
    orders: u64,
    amount_cents: i64,
}

#[derive(Clone, Debug)]
struct UserTotal {
    user_id: u64,
    orders: u64,
    amount_cents: i64,
}

struct Places {
    input: PathBuf,
    db: PathBuf,
}

fn places() -> Places {
    Places { input: "/nowhere/in".into(), db: "/nowhere/out.sqlite".into() }
}

fn orders(count: u64) -> Vec<Order> {
    let order =
        |id: u64| Order { order_id: id, user_id: id * 7 % 13, amount_cents: (id * 31 % 997).cast_signed() };
    (0..count).map(order).collect()
}

/// Every order into a table without a key, and a running total of each user.
fn build(env: &StreamEnvironment, places: &Places) -> Result<()> {
    let orders = env.source("orders", FileSource::json_lines::<Order>(&places.input));
    let log =
        SqliteSink::table(&places.db, "t_order_log").column("order_id", |o: &Order| o.order_id).append();
    orders.sink("order_log_sink", log);
    let totals = orders.key_by(|order| order.user_id).process(
        "user_total",
        value::<Totals>("totals"),
        |order: Order, totals, ctx, out: &mut Output<UserTotal>| {
            let totals = totals.update(|totals| {
                totals.orders += 1;
                totals.amount_cents += order.amount_cents;
            })?;
            let (orders, amount_cents) = (totals.orders, totals.amount_cents);
            out.emit(UserTotal { user_id: *ctx.key(), orders, amount_cents });
            Ok(())
        },
    );
    let table = SqliteSink::table(&places.db, "t_user_total")
        .column("user_id", |total: &UserTotal| total.user_id)
        .column("orders", |total| total.orders)
        .column("amount_cents", |total| total.amount_cents)
        .overwrite_by("user_id");
    totals.sink("user_total_sink", table);
    Ok(())
}

#[test]
fn a_job_that_keeps_everything_in_state_survives_every_schedule() {
    let places = places();
    let report = Simulation::of(build, &places).input("orders", orders(600)).seeds(0..20).check(|run| {
        run.sink::<Order>("order_log_sink").equals_reference_exactly_once()?;
        let totals = run.sink::<UserTotal>("user_total_sink");
        totals.equals_reference_exactly_once()?;
        totals.last_of_each(|total| total.user_id).equals_reference_exactly_once()
    });
    println!("{report}");
    assert_eq!(report.seeds, 20);
    assert!(report.crashes >= 2 * report.seeds, "{report}");
    assert!(report.checkpoints >= 3 * report.seeds, "{report}");
}

/// Numbers the orders that pass, by `number`.
fn numbered(
    places: &Places,
    env: &StreamEnvironment,
    number: impl FnMut(Order) -> (u64, u64) + Clone + Send + 'static,
) {
    let orders = env.source("orders", FileSource::json_lines::<Order>(&places.input));
    let table = SqliteSink::table(&places.db, "t_numbered")
        .column("order_id", |row: &(u64, u64)| row.0)
        .column("number", |row| row.1)
        .append();
    let _ = orders.map(number).parallelism(1).sink("numbered_sink", table).parallelism(1);
}

fn verdict(build: impl Fn(&StreamEnvironment, &Places) -> Result<()>) -> SimulationFailure {
    let places = places();
    let simulation = Simulation::of(build, &places).input("orders", orders(300)).seeds(0..20);
    let verdict =
        simulation.try_check(|run| run.sink::<(u64, u64)>("numbered_sink").equals_reference_exactly_once());
    verdict.unwrap_err()
}

#[test]
fn a_counter_in_a_closure_is_caught_at_the_first_crash() {
    let failure = verdict(|env, places| {
        let mut count = 0;
        numbered(places, env, move |order| {
            count += 1;
            (order.order_id, count)
        });
        Ok(())
    });
    assert!(failure.seed.is_some(), "without a fault it is right: {failure}");
    let words = failure.to_string();
    for part in ["sink \"numbered_sink\"", "lost", "too many", "dies", "runs this schedule alone"] {
        assert!(words.contains(part), "{part:?} is missing in:\n{words}");
    }
}

#[test]
fn a_static_counter_is_caught_without_any_fault() {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let failure = verdict(|env, places| {
        numbered(places, env, |order| (order.order_id, COUNT.fetch_add(1, Ordering::Relaxed)));
        Ok(())
    });
    assert_eq!(failure.seed, None, "{failure}");
    assert!(failure.to_string().contains("outside of Tidegate's state"), "{failure}");
}

#[test]
fn a_sink_that_writes_at_once_is_caught_and_promises_at_least_once() {
    let build = |env: &StreamEnvironment, places: &Places| {
        let orders = env.source("orders", FileSource::json_lines::<Order>(&places.input));
        let table = SqliteSink::table(&places.db, "t_order_log").column("order_id", |o: &Order| o.order_id);
        orders.sink("order_log_sink", table.plain());
        Ok(())
    };
    let places = places();
    let simulation = || Simulation::of(build, &places).input("orders", orders(300)).seeds(0..10);
    let once = |run: &tidegate::testkit::SimulatedRun<'_>| {
        run.sink::<Order>("order_log_sink").equals_reference_exactly_once()
    };
    let failure = simulation().try_check(once).unwrap_err();
    assert!(failure.seed.is_some() && failure.to_string().contains("this sink writes at once"), "{failure}");
    simulation().check(|run| run.sink::<Order>("order_log_sink").contains_reference());
}

#[test]
fn an_input_that_is_missing_misnamed_or_of_another_type_is_refused_with_its_name() {
    let places = places();
    let words = |simulation: Simulation<'_>| simulation.try_check(|_| Ok(())).unwrap_err().to_string();
    let missing = words(Simulation::of(build, &places));
    assert!(
        missing.contains("source \"orders\" has no input") && missing.contains(".input(\"orders\""),
        "{missing}"
    );
    let misnamed = words(Simulation::of(build, &places).input("orders", orders(1)).input("order", [1_u64]));
    assert!(misnamed.contains("\"order\", which the job has not"), "{misnamed}");
    let mistyped = words(Simulation::of(build, &places).input("orders", [1_u64]));
    assert!(mistyped.contains("Order") && mistyped.contains("u64"), "{mistyped}");
}
