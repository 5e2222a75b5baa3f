//! What a writer's future does next: a command of its slot, or what the writer wanted to be called for.
//!
//! Owns: the wait for whichever comes first. Does not own: commands, and what is due. Runs on: [`crate::io::Io`].

use std::pin::pin;

use futures::future::{Either, select};
use tokio::sync::mpsc;

use crate::api::ConnectorContext;
use crate::clock::Moment;

/// See the module.
pub(super) enum Next<C> {
    Command(C),
    /// The writer wanted to be called now.
    Due,
    /// The slot went away.
    Gone,
}

/// Waits for the next command, or until the writer is due. A slot that is never silent does not keep the writer waiting.
pub(super) async fn next<C>(
    commands: &mut mpsc::Receiver<C>,
    due: Option<Moment>,
    context: &ConnectorContext,
) -> Next<C> {
    let of = |command: Option<C>| command.map_or(Next::Gone, Next::Command);
    let Some(due) = due else { return of(commands.recv().await) };
    let left = due.saturating_sub(context.clock.now());
    if left.is_zero() {
        return Next::Due;
    }
    match select(pin!(commands.recv()), context.io.sleep(left)).await {
        Either::Left((command, _)) => of(command),
        Either::Right(_) => Next::Due,
    }
}
