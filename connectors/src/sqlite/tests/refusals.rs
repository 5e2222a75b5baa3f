//! Settings, tables and values that are refused.

use super::*;

#[test]
fn a_table_with_other_columns_is_refused_with_was_and_is() {
    testing::run(async {
        let scene = Scene::new();
        let definition = "CREATE TABLE t (user_id INTEGER NOT NULL, cents TEXT, PRIMARY KEY (user_id))";
        Connection::open(scene.file()).unwrap().execute(definition, []).unwrap();
        let sink = scene.log();
        let opened = sink.open_committer(scene.context(name(0, 1))).await.err().unwrap();
        for error in [opened, TwoPhaseSink::validate(&sink).unwrap_err()] {
            assert!(!error.restartable);
            let error = text(error);
            let was = "was  (\"user_id\" INTEGER NOT NULL, \"cents\" TEXT) with the key (user_id)";
            let is = "is   (\"user_id\" INTEGER NOT NULL, \"cents\" INTEGER NOT NULL) without key";
            assert!(error.contains(was) && error.contains(is), "{error}");
        }
    });
}

#[test]
fn a_table_that_fits_is_used_whatever_the_order_of_its_columns() {
    testing::run(async {
        let scene = Scene::new();
        let definition = "CREATE TABLE T (Cents integer NOT NULL, User_Id integer NOT NULL)";
        Connection::open(scene.file()).unwrap().execute(definition, []).unwrap();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        assert_eq!(scene.commit(&scene.log(), &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows(), [(1, 10)]);
    });
}

#[test]
fn a_number_that_does_not_fit_names_table_column_and_row() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1), (u64::MAX, 1)])).await.unwrap_err();
        assert!(!error.restartable);
        let error = text(error);
        assert!(
            error.contains("row 2 for the table t: column \"user_id\": 18446744073709551615 is above"),
            "{error}"
        );
    });
}

#[test]
fn a_file_that_is_no_database_and_a_missing_folder_are_refused() {
    let scene = Scene::new();
    std::fs::write(scene.file(), vec![b'x'; 8_192]).unwrap();
    let error = TwoPhaseSink::validate(&scene.log()).unwrap_err();
    assert!(!error.restartable && error.message.contains("is not a SQLite database"), "{}", error.message);
    let sink = SqliteSink::table(scene.folder.path().join("no/out.db"), "t").column("a", |n: &i64| *n);
    let error = TwoPhaseSink::validate(&sink).unwrap_err();
    assert!(error.message.contains("folder of the SQLite file"), "{}", error.message);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let scene = Scene::new();
    let refusal = |sink: SqliteSink<Pair>| TwoPhaseSink::validate(&sink).unwrap_err().message;
    let table = |name: &str| SqliteSink::<Pair>::table(scene.file(), name);
    assert!(refusal(table("t")).contains("no columns"));
    assert!(refusal(table("tidegate_ledger").column("a", |p| p.0)).contains("cannot be used"));
    assert!(refusal(scene.log().column("CENTS", |p| p.1)).contains("given twice"));
    assert!(refusal(scene.log().overwrite_by("nobody")).contains("not among the columns"));
    assert!(refusal(scene.log().primary_key("cents").add_by("user_id")).contains("primary key is (cents)"));
    assert!(refusal(scene.log().column("note", |_| "x").add_by("user_id")).contains("cannot be added up"));
    assert!(refusal(scene.log().column("n", |_| None::<i64>).primary_key("n")).contains("may be NULL"));
    assert!(!scene.file().exists(), "nothing is made by looking");
}

/// On a thread that has given up the rights of root, if this is root: root may write everywhere.
fn without_rights<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    use rustix::process::{Uid, getuid};
    use rustix::thread::set_thread_res_uid;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if getuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            run()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_folder_or_file_that_cannot_be_written_is_refused_before_anything_runs() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let set_mode =
        |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let validated = || {
        let sink = scene.log();
        without_rights(move || TwoPhaseSink::validate(&sink))
    };
    // So that nobody can look in, whoever runs the test.
    set_mode(scene.folder.path(), 0o777);
    validated().unwrap();
    set_mode(scene.folder.path(), 0o555);
    let error = validated().unwrap_err();
    assert!(!error.restartable && text(error).contains("and others beside it"));
    assert!(!scene.file().exists(), "nothing was made");
    set_mode(scene.folder.path(), 0o777);
    Connection::open(scene.file()).unwrap().execute("CREATE TABLE other (a)", []).unwrap();
    set_mode(&scene.file(), 0o444);
    let error = validated().unwrap_err();
    assert!(!error.restartable, "{}", error.message);
}
