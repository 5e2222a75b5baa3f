//! Values come back as they were given.

use mysql_async::Value;
use tidegate::connectors::mysql::{Date, DateTime, Decimal, MysqlSink};
use tidegate::engine::api::{TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::element::Batch;

use super::scene::{on_both, settle};

#[derive(Clone, Default)]
struct Wide {
    unsigned: u64,
    signed: i64,
    double: f64,
    decimal: Option<i128>,
    text: Option<String>,
    bytes: Option<Vec<u8>>,
    at_micros: Option<i64>,
    day: Option<i64>,
}

#[test]
fn the_limits_of_each_type_come_back_as_they_were_given_and_nulls_as_null() {
    on_both(async |scene| {
        scene
            .sql(
                "CREATE TABLE w (u BIGINT UNSIGNED NOT NULL, i BIGINT NOT NULL, f DOUBLE NOT NULL, d DECIMAL(38,10), \
                 t VARCHAR(40) CHARACTER SET utf8mb4, b BLOB, at DATETIME(6), day DATE)",
            )
            .await;
        let sink = MysqlSink::table(&scene.url, "w")
            .column("u", |w: &Wide| w.unsigned)
            .column("i", |w| w.signed)
            .column("f", |w| w.double)
            .column("d", |w| w.decimal.map(|unscaled| Decimal { unscaled, scale: 10 }))
            .column("t", |w| w.text.clone())
            .column("b", |w| w.bytes.clone())
            .column("at", |w| w.at_micros.map(DateTime::from_micros))
            .column("day", |w| w.day.map(Date::from_days));
        sink.preflight(scene.preflight(1)).await.unwrap();
        let nines = 99_999_999_999_999_999_999_999_999_999_999_999_999;
        let most = Wide {
            unsigned: u64::MAX,
            signed: i64::MIN,
            double: 0.1 + 0.2,
            decimal: Some(-nines),
            text: Some("it's \\ \u{1f980} \0".into()),
            bytes: Some(vec![0, 0xff, b'\'']),
            at_micros: Some(253_402_300_799_999_999),
            day: Some(-719_162),
        };
        let mut writer = scene.writer(&sink, 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![most, Wide::default()])).await.unwrap();
        let committable = writer.prepare().await.unwrap().unwrap();
        let item = tidegate::engine::api::Prepared {
            name: scene.name(0, 1),
            closed_by: scene.name(1, 1).opened_after,
            committable,
        };
        settle(&scene, &mut scene.committer(&sink, 1).await, &item).await;
        let seen: Vec<(u64, i64, String, Option<String>)> =
            scene.ask("SELECT u, i, CAST(d AS CHAR), t FROM w ORDER BY u DESC LIMIT 1").await;
        let decimal = "-9999999999999999999999999999.9999999999".to_owned();
        assert_eq!(seen, [(u64::MAX, i64::MIN, decimal, Some("it's \\ \u{1f980} \0".into()))]);
        let double: Vec<(bool,)> = scene.ask("SELECT f = 0.1e0 + 0.2e0 FROM w WHERE u > 0").await;
        assert_eq!(double, [(true,)]);
        let times: Vec<(String, String, String)> =
            scene.ask("SELECT CAST(at AS CHAR), CAST(day AS CHAR), HEX(b) FROM w WHERE u > 0").await;
        let expected =
            ("9999-12-31 23:59:59.999999".to_owned(), "0001-01-01".to_owned(), "00FF27".to_owned());
        assert_eq!(times, [expected]);
        let nulls: Vec<(Value, Value, Value, Value, Value)> =
            scene.ask("SELECT d, t, b, at, day FROM w WHERE u = 0").await;
        assert_eq!(nulls, [(Value::NULL, Value::NULL, Value::NULL, Value::NULL, Value::NULL)]);
    });
}
