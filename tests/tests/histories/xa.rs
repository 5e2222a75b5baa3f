//! `mysql_xa.json` on the XA model, in the manner of both servers.

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_engine::sim::xa_database::{Flavor, Reply, SessionId, Statement, XaServer};

/// No session is closed for idleness.
const IDLE_TIMEOUT: u64 = u64::MAX / 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "asked")]
    _asked: String,
    pub(super) cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) only: Option<String>,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Code {
    Both(u16),
    Each { mariadb: u16, mysql: u16 },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verb {
    Connect,
    Close,
    Start,
    Ledger,
    Write,
    End,
    Prepare,
    Commit,
    Rollback,
    Recover,
    FindLedger,
    Visible,
    Deadlock,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) session: String,
    #[serde(rename = "do")]
    pub(super) verb: Verb,
    pub(super) xid: Option<String>,
    pub(super) key: Option<u64>,
    pub(super) code: Option<Code>,
    #[serde(default)]
    pub(super) waits: bool,
    pub(super) found: Option<bool>,
    pub(super) expect: Option<Vec<serde_json::Value>>,
}

struct Replay {
    server: XaServer<String, u64>,
    flavor: Flavor,
    sessions: BTreeMap<String, SessionId>,
}

impl Replay {
    fn expected(&self, step: &Step) -> Reply<String> {
        let code = match &step.code {
            None => 0,
            Some(Code::Both(code)) => *code,
            Some(Code::Each { mariadb, mysql }) => match self.flavor {
                Flavor::MariaDb => *mariadb,
                Flavor::MySql => *mysql,
            },
        };
        let texts =
            |list: &Vec<serde_json::Value>| list.iter().map(|v| v.as_str().unwrap().to_owned()).collect();
        match (code, step.waits, step.found, &step.expect) {
            (0, true, ..) => Reply::Waits,
            (0, _, Some(found), _) => Reply::Found(found),
            (0, _, _, Some(listed)) => Reply::Listed(texts(listed)),
            (0, ..) => Reply::Ok,
            (code, ..) => Reply::Error(tidegate_engine::sim::xa_database::XaError(code)),
        }
    }

    fn step(&mut self, step: &Step) {
        let xid = || step.xid.clone().unwrap();
        if matches!(step.verb, Verb::Connect) {
            let session = self.server.connect(0);
            self.sessions.insert(step.session.clone(), session);
            return;
        }
        let session = self.sessions[&step.session];
        let statement = match step.verb {
            Verb::Connect => return,
            Verb::Close => return self.server.close(session),
            Verb::Deadlock => return self.server.deadlock(session),
            Verb::Visible => {
                let seen: Vec<_> =
                    self.server.committed().iter().flat_map(|(_, rows)| rows.clone()).collect();
                let expect: Vec<_> = step.expect.iter().flatten().map(|v| v.as_u64().unwrap()).collect();
                return assert_eq!(seen, expect);
            }
            Verb::Start => Statement::Start(xid()),
            Verb::Ledger => Statement::WriteLedger,
            Verb::Write => Statement::Write(step.key, step.key.unwrap()),
            Verb::End => Statement::End,
            Verb::Prepare => Statement::Prepare,
            Verb::Commit => Statement::Commit(xid()),
            Verb::Rollback => Statement::Rollback(xid()),
            Verb::Recover => Statement::Recover,
            Verb::FindLedger => Statement::ReadLedger(xid()),
        };
        let expected = self.expected(step);
        assert_eq!(self.server.execute(session, statement, 0), expected, "{step:?}");
    }
}

#[test]
fn the_xa_model_answers_as_both_servers_did() {
    let history: History = super::read("mysql_xa.json");
    assert!(history.cases.len() >= 10, "{} cases", history.cases.len());
    for case in &history.cases {
        for (flavor, name) in [(Flavor::MariaDb, "mariadb"), (Flavor::MySql, "mysql")] {
            if case.only.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            println!("{} ({name})", case.name);
            let server = XaServer::new(flavor, IDLE_TIMEOUT);
            let mut replay = Replay { server, flavor, sessions: BTreeMap::new() };
            for step in &case.steps {
                println!("  {step:?}");
                replay.step(step);
            }
        }
    }
}
