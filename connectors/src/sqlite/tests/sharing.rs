//! Several sinks, subtasks and threads on one file.

use std::sync::Arc;

use tidegate_engine::api::{ClaimWatch, ConnectorContext};
use tidegate_engine::clock::ManualClock;
use tidegate_engine::io::{NoWake, TokioIo};

use super::*;

const EPOCHS: u64 = 4;
const ROWS: u64 = 1_500;

async fn write_epochs(sink: SqliteSink<Pair>, context: TwoPhaseContext) {
    let mut committer = sink.open_committer(context.clone()).await.unwrap();
    let mut writer = sink.open_writer(context.clone()).await.unwrap();
    for epoch in 0..EPOCHS {
        let name = TransactionName { opened_after: CheckpointId(epoch), ..context.name.clone() };
        let rows: Vec<Pair> = (0..ROWS).map(|row| (row % 10, 1)).collect();
        for batch in rows.chunks(400) {
            writer.write(&name, Batch::of(batch.to_vec())).await.unwrap();
        }
        let committable = writer.prepare().await.unwrap().unwrap();
        let item = Prepared { name, closed_by: CheckpointId(epoch + 1), committable };
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::Committed);
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::AlreadyCommitted);
    }
}

#[test]
fn three_subtasks_of_two_sinks_on_threads_lose_and_double_nothing() {
    let scene = Scene::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let sum = SqliteSink::table(scene.file(), "s")
        .column("user_id", |pair: &Pair| pair.0)
        .column("cents", |pair: &Pair| pair.1)
        .add_by("user_id");
    let connector = ConnectorContext {
        clock: ManualClock::shared(),
        io: TokioIo::shared(runtime.handle().clone()),
        waker: Arc::new(NoWake),
        checkpoint_timeout: std::time::Duration::from_secs(60),
        claim: ClaimWatch::unclaimed(),
    };
    let tasks: Vec<_> = [("log", scene.log()), ("sum", sum)]
        .into_iter()
        .flat_map(|(uid, sink)| (0..3).map(move |subtask| (uid, sink.clone(), subtask)))
        .map(|(uid, sink, subtask)| {
            let mut name = name(0, 1);
            name.scope.uid = uid.into();
            name.subtask = subtask;
            let connector = connector.clone();
            runtime.spawn(write_epochs(
                sink,
                TwoPhaseContext {
                    connector,
                    subtask,
                    parallelism: 3,
                    places: 4,
                    restored_attempt: AttemptId(0),
                    name,
                },
            ))
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    let per_user = i64::try_from(3 * EPOCHS * ROWS / 10).unwrap();
    let expected: Vec<Pair> = (0..10).map(|user| (user, per_user)).collect();
    assert_eq!(rows_of(&scene.file(), "SELECT user_id, cents FROM s ORDER BY user_id"), expected);
    let counted = "SELECT user_id, count(*) FROM t GROUP BY user_id ORDER BY user_id";
    assert_eq!(rows_of(&scene.file(), counted), expected);
    assert_eq!(count(&scene.file(), "tidegate_ledger"), 24);
    assert_eq!(staging_tables(&scene.file()), 0);
}
