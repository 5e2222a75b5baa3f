//! Users without a right that a sink needs: refused at submit, with the right's name, and nothing is left on the server.

use tidegate::connectors::mysql::{MysqlUrl, ServerKind};
use tidegate::engine::api::TwoPhaseSink;
use tidegate_jobs::services::{Service, ServiceKind};

use super::scene::{Scene, on_both};

/// Runs statements as root.
fn as_root(scene: &Scene, sql: &str) {
    let kind = match scene.kind {
        ServerKind::MariaDb => ServiceKind::MariaDb,
        ServerKind::MySql => ServiceKind::MySql,
    };
    let service = Service::shared(kind).unwrap();
    tokio::task::block_in_place(|| service.run("root", &["-e", sql]).unwrap());
}

/// A user of this scene's own, who has these rights on its database.
struct User<'a> {
    scene: &'a Scene,
    name: String,
}

impl<'a> User<'a> {
    fn new(scene: &'a Scene, number: usize, rights: &str, may_recover: bool) -> Self {
        let name = format!("{}_{number}", &scene.job_name()[..12]);
        let database = scene.url.database();
        as_root(
            scene,
            &format!(
                "CREATE USER '{name}'@'%' IDENTIFIED BY 'p'; GRANT {rights} ON {database}.* TO '{name}'@'%'"
            ),
        );
        if may_recover && scene.kind == ServerKind::MySql {
            as_root(scene, &format!("GRANT XA_RECOVER_ADMIN ON *.* TO '{name}'@'%'"));
        }
        Self { scene, name }
    }

    fn url(&self) -> MysqlUrl {
        self.scene.url.clone().with_login(&self.name, "p")
    }
}

impl Drop for User<'_> {
    fn drop(&mut self) {
        as_root(self.scene, &format!("DROP USER '{}'@'%'", self.name));
    }
}

/// The sinks in two phases, of a table that is appended to, and of one that is added to.
async fn looked_at(scene: &Scene, url: &MysqlUrl, sink: &str) -> Result<Vec<String>, String> {
    let at = |table| scene.sink_at(url, table);
    let (context, sums) = (scene.preflight(1), at("s").add_by("user_id"));
    let looked = match sink {
        "append" => at("t").preflight(context).await,
        "add" => sums.preflight(context).await,
        "staging" => at("t").staging().preflight(context).await,
        other => panic!("{other}"),
    };
    looked.map_err(|error| {
        assert!(!error.restartable, "{}", error.full_text());
        error.full_text()
    })
}

#[test]
fn a_missing_right_is_told_at_submit_with_its_name() {
    const ALL: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP";
    // Rights, sink, what the refusal says. The ledger is not there for the first two.
    let cases = [
        ("SELECT, INSERT, UPDATE, DELETE, DROP", "append", ["tidegate_ledger", "CREATE"]),
        ("SELECT, CREATE, DROP", "append", ["the rights on the table t", "INSERT"]),
        (ALL, "append", ["", ""]),
        (ALL, "add", ["", ""]),
        (ALL, "staging", ["", ""]),
        ("SELECT, INSERT, DELETE", "append", ["", ""]),
        ("SELECT, INSERT, DELETE, CREATE, DROP", "add", ["the rights on the table s", "UPDATE"]),
        ("SELECT, INSERT, CREATE", "append", ["the rights on the table tidegate_ledger", "DELETE"]),
        ("SELECT, INSERT, UPDATE, DELETE, DROP", "staging", ["the rights on staging tables", "CREATE"]),
        ("SELECT, INSERT, UPDATE, DELETE, CREATE", "staging", ["the rights on staging tables", "DROP"]),
    ];
    on_both(async |scene| {
        scene.table().await;
        scene.keyed_table().await;
        for (number, (rights, sink, words)) in cases.into_iter().enumerate() {
            let user = User::new(&scene, number, rights, true);
            let looked = looked_at(&scene, &user.url(), sink).await;
            if words[0].is_empty() {
                assert_eq!(looked, Ok(Vec::new()), "{rights}, {sink}");
                continue;
            }
            let said = looked.expect_err(rights);
            for word in words.iter().chain(&["a right is missing", "GRANT the right"]) {
                assert!(said.contains(word), "{rights}, {sink}: \"{word}\" is not in: {said}");
            }
        }
    });
}

/// Rights on the tables that are there, and none on those to come.
#[test]
fn a_missing_right_on_staging_tables_is_told_at_submit_also_where_rights_are_granted_table_by_table() {
    on_both(async |scene| {
        scene.table().await;
        drop(scene.committer(&scene.sink("t"), 1).await);
        let user = User::new(&scene, 0, "CREATE, DROP", true);
        for table in ["t", "tidegate_ledger"] {
            let (name, database) = (&user.name, scene.url.database());
            as_root(
                &scene,
                &format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.{table} TO '{name}'@'%'"),
            );
        }
        let said = looked_at(&scene, &user.url(), "staging").await.unwrap_err();
        for word in ["the rights on staging tables", "INSERT", "a right is missing"] {
            assert!(said.contains(word), "\"{word}\" is not in: {said}");
        }
    });
}

#[test]
fn a_mysql_user_who_may_not_list_branches_is_told_what_to_grant_and_prepares_none() {
    on_both(async |scene| {
        scene.table().await;
        let user = User::new(&scene, 0, "ALL", false);
        let looked = looked_at(&scene, &user.url(), "append").await;
        match scene.kind {
            ServerKind::MariaDb => assert_eq!(looked, Ok(Vec::new())),
            ServerKind::MySql => {
                let said = looked.unwrap_err();
                assert!(said.contains("1401") && said.contains("GRANT XA_RECOVER_ADMIN ON *.*"), "{said}");
                let ledger: Vec<(u64,)> = scene.ask("SELECT COUNT(*) FROM tidegate_ledger").await;
                assert_eq!(ledger, [(0,)]);
            }
        }
        // A trial that was prepared would hold the ledger.
        let mut connection = scene.connect().await;
        connection.run("locking", "ALTER TABLE tidegate_ledger COMMENT 'free'").await.unwrap();
        connection.close().await;
        // Without XA it needs no such right.
        assert_eq!(looked_at(&scene, &user.url(), "staging").await, Ok(Vec::new()));
    });
}
