//! Brokers that answer late.

use std::time::Duration;

use futures::future::join_all;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::operator::CommitOutcome;
use tidegate_jobs::tcp_proxy::{Direction, TcpProxy};

use crate::proxy::Place;
use crate::subtask::{Subtask, sink};
use crate::topic::{Topic, eventually};

const LATE: Duration = Duration::from_secs(1);
const SUBTASKS: u32 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_right_after_the_first_record_loses_none_when_acknowledgements_come_a_second_late() {
    let place = Place::take().await;
    let proxy = TcpProxy::start_at(place.listen, place.target).unwrap();
    let topic = Topic::new(1);
    let proxied = Topic { bootstrap: place.listen.to_string(), ..topic.clone() };
    // One after the other they would need minutes.
    let mut subtasks = Vec::new();
    for subtask in 0..SUBTASKS {
        let recovered = Subtask::recover(sink(&proxied), &proxied, (subtask, SUBTASKS), 1, &[]);
        subtasks.push(recovered.await.unwrap());
    }
    eventually("every subtask has a producer", || topic.transactional_ids() >= SUBTASKS as usize);
    proxy.delay(Direction::ToClient, LATE);
    let clock = SystemClock::new();
    let each = subtasks.iter_mut().zip(0..).map(|(subtask, number)| async move {
        let transaction = subtask.prepared(1, [number]).await;
        subtask.commit(&transaction).await
    });
    // When the records are there, their acknowledgements are under way, late; what follows need not be.
    let written = topic.clone();
    let lifting = tokio::task::spawn_blocking(move || {
        eventually("the records are written", || written.written().len() >= SUBTASKS as usize);
        proxy.delay(Direction::ToClient, Duration::ZERO);
        proxy
    });
    let outcomes = join_all(each).await;
    let proxy = lifting.await.unwrap();
    let done = [CommitOutcome::Committed, CommitOutcome::AlreadyCommitted];
    assert!(outcomes.iter().all(|outcome| done.contains(outcome)), "{outcomes:?}");
    assert!(clock.now() >= LATE, "they did come late");
    topic.expect(0..u64::from(SUBTASKS));
    assert_eq!(topic.open_transactions(), [""; 0]);
    // The next test finds the address free.
    proxy.refuse().unwrap();
}
