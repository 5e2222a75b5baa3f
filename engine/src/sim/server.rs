//! What a scenario writes to: one of the models, behind one face.
//!
//! Owns: which kind it is, and what the scheduler and the judge may ask of any of them. Does not own: the models.
//! Runs on: the simulation's thread.

use super::broker_client::SharedBroker;
use super::database::{CommittedRows, Database};
use super::file_sink::FileSinkSettings;
use super::file_system::FileSystem;
use super::options::ServerKind;
use super::rng::Rng;
use super::xa_client::SharedXa;
use super::xa_database::Flavor;
use crate::checkpoint::CheckpointConfig;
use crate::operator::TransactionName;

/// Where a scenario's output goes; it outlives the processes.
#[derive(Clone, Debug)]
pub enum Server {
    /// Staged transactions.
    Staged(Database),
    /// XA branches.
    Xa(SharedXa),
    /// Part files.
    Files(FileSystem, FileSinkSettings),
    /// Transactions of a log broker.
    Broker(SharedBroker),
}

impl Server {
    pub(super) fn draw(rng: &mut Rng, only: Option<ServerKind>) -> Self {
        match (rng.below(8), only) {
            (0, None) | (0..=3, Some(ServerKind::Xa)) => Self::Xa(SharedXa::new(Flavor::MariaDb)),
            (1, None) | (_, Some(ServerKind::Xa)) => Self::Xa(SharedXa::new(Flavor::MySql)),
            (2..=3, None) | (_, Some(ServerKind::Broker)) => {
                Self::Broker(SharedBroker::draw(&mut rng.fork()))
            }
            (4..=5, None) | (_, Some(ServerKind::Files)) => {
                Self::Files(FileSystem::default(), FileSinkSettings::draw(rng))
            }
            (_, None | Some(ServerKind::Staged)) => Self::Staged(Database::default()),
        }
    }

    pub(super) fn for_job(self, checkpoints: &CheckpointConfig) -> Self {
        match self {
            Self::Broker(broker) => Self::Broker(broker.for_job(checkpoints)),
            other => other,
        }
    }

    /// Time has passed.
    pub fn settle(&self, now: u64) {
        match self {
            Self::Staged(_) | Self::Files(..) => {}
            Self::Xa(xa) => xa.settle(now),
            Self::Broker(broker) => broker.settle(now),
        }
    }

    /// When it does something by itself.
    pub fn next_due(&self) -> Option<u64> {
        match self {
            Self::Staged(_) | Self::Files(..) => None,
            Self::Xa(xa) => xa.next_due(),
            Self::Broker(broker) => broker.next_due(),
        }
    }

    /// Within this time it ends what nobody ends, where that hides output from readers.
    pub fn hides_for_us(&self) -> Option<u64> {
        match self {
            Self::Staged(_) | Self::Files(..) | Self::Xa(_) => None,
            Self::Broker(broker) => Some(broker.timeout_us()),
        }
    }

    /// Committed records that a reader does not see yet.
    pub fn hidden(&self) -> usize {
        match self {
            Self::Staged(_) | Self::Files(..) | Self::Xa(_) => 0,
            Self::Broker(broker) => broker.hidden(),
        }
    }

    /// Everything committed, in order.
    pub fn committed(&self) -> Vec<CommittedRows> {
        match self {
            Self::Staged(database) => database.committed(),
            Self::Xa(xa) => xa.committed(),
            Self::Files(files, _) => files.committed(),
            Self::Broker(broker) => broker.committed(),
        }
    }

    /// Names of everything open or prepared.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        match self {
            Self::Staged(database) => database.left_overs(),
            Self::Xa(xa) => xa.left_overs(),
            Self::Files(files, _) => files.left_overs(),
            Self::Broker(broker) => broker.left_overs(),
        }
    }

    /// Names of everything prepared.
    pub fn prepared(&self) -> Vec<TransactionName> {
        match self {
            Self::Staged(database) => database.prepared(),
            Self::Xa(xa) => xa.prepared(),
            Self::Files(files, _) => files.prepared(),
            Self::Broker(broker) => broker.prepared(),
        }
    }

    /// Somebody rolls a prepared transaction back by hand.
    pub fn roll_back_by_hand(&self, name: &TransactionName) {
        match self {
            Self::Staged(database) => database.roll_back(name),
            Self::Xa(xa) => {
                xa.roll_back_by_hand(name);
            }
            Self::Files(files, _) => files.remove_by_hand(name),
            Self::Broker(broker) => broker.roll_back_by_hand(name),
        }
    }
}
