use super::*;

fn column(name: &str, full_type: &str) -> ThereColumn {
    let data_type = full_type.split(['(', ' ']).next().unwrap().to_owned();
    let second_digits = if full_type.ends_with("(6)") { 6 } else { 0 };
    ThereColumn {
        name: name.to_owned(),
        data_type,
        full_type: full_type.to_owned(),
        nullable: false,
        has_default: false,
        generated: false,
        auto_increment: false,
        second_digits,
    }
}

fn key(name: &str, columns: &[&str]) -> ThereKey {
    ThereKey { name: name.to_owned(), columns: columns.iter().map(|&c| c.to_owned()).collect(), whole: true }
}

fn there() -> ThereTable {
    ThereTable {
        kind: "BASE TABLE".into(),
        engine: "InnoDB".into(),
        columns: vec![column("User_ID", "bigint unsigned"), column("total", "bigint")],
        keys: vec![key("PRIMARY", &["User_ID"])],
        triggers: Vec::new(),
    }
}

fn spec() -> TableSpec {
    let column = |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, optional: false };
    let columns = vec![column("user_id", ColumnKind::Unsigned), column("total", ColumnKind::Signed)];
    TableSpec { name: "t".into(), columns, mode: MergeMode::Add { by: vec!["user_id".into()] } }
}

#[test]
fn a_table_that_fits_is_taken() {
    assert_eq!(compare(&spec(), &there()), Ok(()));
}

#[test]
fn views_engines_and_columns_that_do_not_fit_are_refused() {
    let with = |change: fn(&mut ThereTable)| {
        let mut there = there();
        change(&mut there);
        compare(&spec(), &there).unwrap_err()
    };
    assert!(matches!(with(|t| t.kind = "VIEW".into()), TableRefusal::NotATable { .. }));
    assert!(matches!(with(|t| t.engine = "MyISAM".into()), TableRefusal::Engine { .. }));
    assert!(matches!(with(|t| t.columns[1].name = "x".into()), TableRefusal::NoColumn { .. }));
    assert!(matches!(with(|t| t.columns[1].generated = true), TableRefusal::Generated { .. }));
    assert!(matches!(with(|t| t.columns[1].data_type = "varchar".into()), TableRefusal::ColumnType { .. }));
    assert!(matches!(with(|t| t.columns.push(column("x", "int"))), TableRefusal::NotWritten { .. }));
    let mut optional = spec();
    (optional.columns[1].optional, optional.mode) = (true, MergeMode::Append);
    assert!(matches!(compare(&optional, &there()), Err(TableRefusal::NotNull { .. })));
}

#[test]
fn values_that_would_be_rounded_without_a_word_are_refused() {
    let fits = |kind, full_type: &str| unfit(kind, &column("c", full_type)).is_none();
    assert!(!fits(ColumnKind::Double, "float") && fits(ColumnKind::Double, "double"));
    assert!(!fits(ColumnKind::DateTime, "datetime") && fits(ColumnKind::DateTime, "datetime(6)"));
    assert!(!fits(ColumnKind::Decimal, "double") && fits(ColumnKind::Decimal, "decimal(38,10)"));
    assert!(!fits(ColumnKind::Bytes, "text") && fits(ColumnKind::Text, "varchar(40)"));
    assert!(!fits(ColumnKind::Text, "int") && fits(ColumnKind::Unsigned, "bigint(20) unsigned"));
}

#[test]
fn rows_are_merged_by_a_real_key_and_by_no_other() {
    let with = |keys: Vec<ThereKey>| {
        let mut there = there();
        there.keys = keys;
        compare(&spec(), &there)
    };
    assert!(matches!(with(vec![]), Err(TableRefusal::NoSuchKey { .. })));
    assert!(matches!(with(vec![key("u", &["user_id", "total"])]), Err(TableRefusal::NoSuchKey { .. })));
    let mut prefix = key("u", &["user_id"]);
    prefix.whole = false;
    assert!(matches!(with(vec![prefix]), Err(TableRefusal::NoSuchKey { .. })));
    let second = with(vec![key("PRIMARY", &["user_id"]), key("u", &["total"])]);
    assert!(matches!(second, Err(TableRefusal::SecondKey { .. })));
    assert_eq!(with(vec![key("u", &["user_id"]), key("w", &["total", "user_id"])]), Ok(()));
}

#[test]
fn a_key_that_the_server_numbers_does_no_harm() {
    let mut there = there();
    let mut id = column("id", "bigint");
    id.auto_increment = true;
    there.columns.push(id);
    there.keys = vec![key("PRIMARY", &["id"]), key("u", &["user_id"])];
    assert_eq!(compare(&spec(), &there), Ok(()));
}

#[test]
fn a_missing_table_is_answered_with_a_definition() {
    assert_eq!(
        definition(&spec()),
        "`user_id` bigint unsigned NOT NULL, `total` bigint NOT NULL, PRIMARY KEY (`user_id`)"
    );
}
