//! Every value comes back as it was given.

use std::collections::BTreeMap;

use mysql_async::Value;
use tidegate::connectors::mysql::{Columns, Date, DateTime, Decimal, MysqlSink};
use tidegate::prelude::*;
use tidegate_jobs::services::ServiceKind;

use crate::scene::{Database, config, run_job};

const TABLE: &str = "CREATE TABLE v (id BIGINT UNSIGNED PRIMARY KEY, whole BIGINT, natural_number BIGINT UNSIGNED, yes BOOLEAN, \
     amount DECIMAL(38,10), ratio DOUBLE, name VARCHAR(200), raw VARBINARY(200), at DATETIME(6), day DATE)";

#[derive(Clone, Debug)]
struct Row {
    id: u64,
    whole: Option<i64>,
    natural: Option<u64>,
    yes: Option<bool>,
    amount: Option<Decimal>,
    ratio: Option<f64>,
    name: Option<String>,
    raw: Option<Vec<u8>>,
    at: Option<DateTime>,
    day: Option<Date>,
}

impl Row {
    fn nothing(id: u64) -> Self {
        Self {
            id,
            whole: None,
            natural: None,
            yes: None,
            amount: None,
            ratio: None,
            name: None,
            raw: None,
            at: None,
            day: None,
        }
    }
}

fn columns() -> Columns<Row> {
    Columns::new()
        .column("id", |r: &Row| r.id)
        .column("whole", |r| r.whole)
        .column("natural_number", |r| r.natural)
        .column("yes", |r| r.yes)
        .column("amount", |r| r.amount)
        .column("ratio", |r| r.ratio)
        .column("name", |r| r.name.clone())
        .column("raw", |r| r.raw.clone())
        .column("at", |r| r.at)
        .column("day", |r| r.day)
}

/// The rows of the table, as text, by id.
fn written(kind: ServiceKind, rows: Vec<Row>) -> BTreeMap<u64, Vec<Option<String>>> {
    let mut database = Database::on(kind);
    database.run(TABLE);
    let (env, count) = (StreamEnvironment::new(), rows.len() as u64);
    let source = Datagen::new(move |index: u64| rows[usize::try_from(index).unwrap()].clone()).bounded(count);
    let _ = env
        .source("rows", source)
        .sink("v", MysqlSink::table(database.url(), "v").columns(|_| columns()).upsert_by("id"));
    run_job(env, 1, config()).unbroken();
    let text = |value: Value| match value {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
        other => panic!("the text protocol sends text: {other:?}"),
    };
    let sql = "SELECT id, whole, natural_number, yes, CAST(amount AS CHAR), CAST(ratio AS CHAR), name, HEX(raw), at, day FROM v";
    let rows = database.rows::<mysql_async::Row>(sql);
    let mut table = BTreeMap::new();
    for row in rows {
        let mut values = row.unwrap().into_iter().map(text);
        table.insert(values.next().unwrap().unwrap().parse().unwrap(), values.collect());
    }
    table
}

fn text(values: [&str; 9]) -> Vec<Option<String>> {
    values.iter().map(|value| Some((*value).to_owned())).collect()
}

fn limits_come_back(kind: ServiceKind) {
    // flink#12290, debezium DBZ-7543.
    let nines = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
    let high = Row {
        id: u64::MAX,
        whole: Some(i64::MAX),
        natural: Some(u64::MAX),
        yes: Some(true),
        amount: Some(Decimal { unscaled: nines, scale: 10 }),
        ratio: Some(0.1),
        name: Some("ünïcödé 🌊 ' \" \\ \0".to_owned()),
        raw: Some(vec![0, 255, 39, 92]),
        at: Some(DateTime::from_micros(253_402_300_799_999_999)),
        day: Some(Date::from_days(2_932_896)),
    };
    let low = Row {
        id: 0,
        whole: Some(i64::MIN),
        natural: Some(0),
        yes: Some(false),
        amount: Some(Decimal { unscaled: -nines, scale: 10 }),
        ratio: Some(-1e300),
        name: Some(String::new()),
        raw: Some(Vec::new()),
        at: Some(DateTime::from_micros(-1)),
        day: Some(Date::from_days(-1)),
    };
    let table = written(kind, vec![high, low]);
    let decimal = "9999999999999999999999999999.9999999999";
    assert_eq!(
        table[&u64::MAX],
        text([
            "9223372036854775807",
            "18446744073709551615",
            "1",
            decimal,
            "0.1",
            "ünïcödé 🌊 ' \" \\ \0",
            "00FF275C",
            "9999-12-31 23:59:59.999999",
            "9999-12-31",
        ])
    );
    assert_eq!(
        table[&0],
        text([
            "-9223372036854775808",
            "0",
            "0",
            &format!("-{decimal}"),
            "-1e300",
            "",
            "",
            "1969-12-31 23:59:59.999999",
            "1969-12-31",
        ])
    );
}

#[test]
fn the_limits_of_every_column_type_come_back_as_they_were_given() {
    limits_come_back(ServiceKind::MariaDb);
}

#[test]
fn the_limits_of_every_column_type_come_back_on_mysql_too() {
    limits_come_back(ServiceKind::MySql);
}

#[test]
fn nothing_is_null_in_every_column_type_and_replaces_what_was_there() {
    // pulsar#6848.
    let there = Row {
        whole: Some(1),
        name: Some("there".into()),
        at: Some(DateTime::from_micros(0)),
        ..Row::nothing(1)
    };
    let table = written(ServiceKind::MariaDb, vec![Row::nothing(0), there, Row::nothing(1)]);
    assert_eq!(table[&0], vec![None; 9]);
    assert_eq!(table[&1], vec![None; 9]);
}
