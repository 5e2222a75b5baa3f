//! The scripted history: what two real servers answered, statement by statement. Connectors replay the same script on real ones.

use super::*;

type Server = XaServer<&'static str, u64>;

const KEY: Option<u64> = Some(7);

fn server(flavor: Flavor) -> Server {
    XaServer::new(flavor, 1_000)
}

fn ok(server: &mut Server, session: SessionId, statements: Vec<Statement<&'static str, u64>>) {
    for statement in statements {
        assert_eq!(server.execute(session, statement.clone(), 0), Reply::Ok, "{statement:?}");
    }
}

/// A branch with one row of key 7 and a ledger row, prepared by a session that is still open.
fn prepared(server: &mut Server, x: &'static str) -> SessionId {
    use Statement::{End, Prepare, Start, Write, WriteLedger};
    let session = server.connect(0);
    ok(server, session, vec![Start(x), WriteLedger, Write(KEY, 1), End, Prepare]);
    session
}

fn commit(server: &mut Server, session: SessionId, x: &'static str) -> Reply<&'static str> {
    server.execute(session, Statement::Commit(x), 0)
}

const NOTA: Reply<&'static str> = Reply::Error(XaError::NOT_A_BRANCH);
const RMFAIL: Reply<&'static str> = Reply::Error(XaError::WRONG_STATE);

#[test]
fn a_prepared_branch_survives_its_client_and_another_one_commits_it() {
    for flavor in [Flavor::MariaDb, Flavor::MySql] {
        let mut s = server(flavor);
        let writer = prepared(&mut s, "a");
        s.close(writer);
        let other = s.connect(0);
        assert_eq!(s.execute(other, Statement::Recover, 0), Reply::Listed(vec!["a"]));
        assert_eq!(s.committed(), []);
        assert_eq!(commit(&mut s, other, "a"), Reply::Ok);
        assert_eq!(s.committed(), [("a", vec![1])]);
    }
}

#[test]
fn while_the_preparing_session_lives_mariadb_lists_the_branch_and_answers_1397() {
    let mut s = server(Flavor::MariaDb);
    let writer = prepared(&mut s, "a");
    let other = s.connect(0);
    assert_eq!(s.execute(other, Statement::Recover, 0), Reply::Listed(vec!["a"]));
    assert_eq!(commit(&mut s, other, "a"), NOTA);
    assert_eq!(s.execute(writer, Statement::Start("b"), 0), RMFAIL);
    s.close(writer); // KILL
    assert_eq!(commit(&mut s, other, "a"), Reply::Ok);

    let mut s = server(Flavor::MySql);
    let writer = prepared(&mut s, "a");
    let other = s.connect(0);
    assert_eq!(s.execute(writer, Statement::Start("b"), 0), Reply::Ok);
    assert_eq!(commit(&mut s, other, "a"), Reply::Ok);
}

#[test]
fn a_prepared_branch_keeps_its_rows_locked_and_invisible() {
    for flavor in [Flavor::MariaDb, Flavor::MySql] {
        let mut s = server(flavor);
        let writer = prepared(&mut s, "a");
        s.close(writer);
        let (next, other) = (s.connect(0), s.connect(0));
        ok(&mut s, next, vec![Statement::Start("b")]);
        assert_eq!(s.execute(next, Statement::Write(KEY, 2), 0), Reply::Waits);
        assert_eq!(s.execute(next, Statement::Write(Some(8), 2), 0), Reply::Ok);
        assert_eq!(commit(&mut s, other, "a"), Reply::Ok);
        assert_eq!(s.execute(next, Statement::Write(KEY, 2), 0), Reply::Ok);
    }
}

#[test]
fn an_unprepared_branch_ends_with_its_session_and_nobody_else_can_end_it() {
    for flavor in [Flavor::MariaDb, Flavor::MySql] {
        let mut s = server(flavor);
        let (writer, other) = (s.connect(0), s.connect(0));
        ok(&mut s, writer, vec![Statement::Start("a"), Statement::Write(KEY, 1), Statement::End]);
        assert_eq!(commit(&mut s, other, "a"), NOTA);
        assert_eq!(s.execute(other, Statement::Rollback("a"), 0), NOTA);
        s.close(writer);
        assert_eq!(s.branches(), Vec::<&str>::new());
    }
}

#[test]
fn one_of_many_committers_wins_and_the_ledger_tells_the_others() {
    for flavor in [Flavor::MariaDb, Flavor::MySql] {
        let mut s = server(flavor);
        let writer = prepared(&mut s, "a");
        s.close(writer);
        let committers = [s.connect(0), s.connect(0), s.connect(0), s.connect(0)];
        assert_eq!(s.execute(committers[1], Statement::ReadLedger("a"), 0), Reply::Waits);
        let answers: Vec<_> = committers.iter().map(|c| commit(&mut s, *c, "a")).collect();
        assert_eq!(answers, [Reply::Ok, NOTA, NOTA, NOTA]);
        assert_eq!(s.execute(committers[1], Statement::ReadLedger("a"), 0), Reply::Found(true));
        assert_eq!(commit(&mut s, committers[0], "unknown"), NOTA);
        assert_eq!(s.execute(committers[0], Statement::ReadLedger("unknown"), 0), Reply::Found(false));
    }
}

#[test]
fn a_branch_rolled_back_by_hand_answers_1397_and_has_no_ledger_row() {
    let mut s = server(Flavor::MariaDb);
    let writer = prepared(&mut s, "a");
    s.close(writer);
    assert!(s.roll_back_by_hand(&"a"));
    let other = s.connect(0);
    assert_eq!(commit(&mut s, other, "a"), NOTA);
    assert_eq!(s.execute(other, Statement::ReadLedger("a"), 0), Reply::Found(false));
}

#[test]
fn an_empty_branch_commits_on_mysql_and_answers_1402_on_mariadb() {
    for (flavor, answer) in
        [(Flavor::MySql, Reply::Ok), (Flavor::MariaDb, Reply::Error(XaError::ROLLED_BACK))]
    {
        let mut s = server(flavor);
        let (writer, other) = (s.connect(0), s.connect(0));
        ok(&mut s, writer, vec![Statement::Start("a"), Statement::End, Statement::Prepare]);
        s.close(writer);
        assert_eq!(s.execute(other, Statement::Recover, 0), Reply::Listed(vec!["a"]));
        assert_eq!(commit(&mut s, other, "a"), answer);
    }
}

#[test]
fn a_live_name_cannot_be_started_and_nothing_commits_inside_a_branch() {
    for (flavor, answer) in [(Flavor::MariaDb, Reply::Error(XaError::OUTSIDE)), (Flavor::MySql, RMFAIL)] {
        let mut s = server(flavor);
        let writer = prepared(&mut s, "a");
        s.close(writer);
        let other = s.connect(0);
        assert_eq!(s.execute(other, Statement::Start("a"), 0), Reply::Error(XaError::DUPLICATE));
        ok(&mut s, other, vec![Statement::Start("b")]);
        assert_eq!(commit(&mut s, other, "a"), answer);
    }
}

#[test]
fn after_a_deadlock_only_a_rollback_works() {
    for (flavor, answer) in [(Flavor::MariaDb, RMFAIL), (Flavor::MySql, Reply::Error(XaError::DEADLOCKED))] {
        let mut s = server(flavor);
        let writer = s.connect(0);
        ok(&mut s, writer, vec![Statement::Start("a"), Statement::Write(KEY, 1)]);
        s.deadlock(writer);
        assert_eq!(s.execute(writer, Statement::Write(KEY, 1), 0), RMFAIL);
        assert_eq!(s.execute(writer, Statement::End, 0), answer);
        assert_eq!(s.execute(writer, Statement::Rollback("a"), 0), Reply::Ok);
        assert_eq!(s.execute(writer, Statement::Start("a"), 0), Reply::Ok);
    }
}

#[test]
fn an_idle_session_is_closed_and_its_prepared_branch_stays() {
    let mut s = server(Flavor::MariaDb);
    let writer = prepared(&mut s, "a");
    let other = s.connect(900);
    s.close_idle(1_001);
    assert!(!s.is_open(writer));
    assert_eq!(commit(&mut s, writer, "a"), Reply::Error(XaError::GONE));
    assert_eq!(commit(&mut s, other, "a"), Reply::Ok);
}
