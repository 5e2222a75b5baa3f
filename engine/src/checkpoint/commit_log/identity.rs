//! `log/id`: whose folder this is, and the random id of its log.
//!
//! Owns: the object's content and how it comes into being. Does not own: its envelope (see [`super::bytes`]).
//! Runs on: the I/O side, once per start.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::bytes::{EnvelopeError, IDENTITY_MAGIC, open, seal};
use super::client::LogClient;
use super::entry::{NonceSource, number_in};
use super::error::LogError;
use super::retry::Pauses;
use super::store::{LogStore, PutResult};
use crate::ids::{JobName, LogId};
use crate::io::SharedIo;

/// Where it lies below the checkpoint folder.
pub const IDENTITY_PATH: &str = "log/id";
/// A start gives up after this many failed tries; nothing is decided yet.
pub(super) const START_TRIES_MAX: u32 = 6;

/// Content of `log/id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    job: JobName,
    log_id: LogId,
}

impl<S: LogStore> LogClient<S> {
    /// Opens the job's log in this store, or begins one.
    ///
    /// # Errors
    /// [`LogError::WrongJob`] in another job's folder, [`LogError::NoIdentity`] and [`LogError::Unreadable`] in a damaged
    /// one, [`LogError::Store`] if it cannot be reached.
    pub async fn open(
        store: S,
        io: SharedIo,
        job: JobName,
        nonces: &mut NonceSource,
    ) -> Result<Self, LogError> {
        let mut pauses = Pauses::default();
        loop {
            let failed = match read(&store).await {
                Ok(Some(identity)) => return Self::of(store, io, job, identity),
                Ok(None) => match begin(&store, &job, nonces).await {
                    Ok(()) => continue,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if pauses.taken() + 1 >= START_TRIES_MAX || !matches!(failed, LogError::Store { .. }) {
                return Err(failed);
            }
            io.sleep(pauses.next()).await;
        }
    }

    /// Opens the log that an earlier attempt of this process has claimed. One that is not there any more is not begun anew.
    ///
    /// # Errors
    /// [`LogError::FolderReplaced`], or [`LogError::Store`] if it cannot be reached.
    pub async fn reopen(store: S, io: SharedIo, job: JobName, log_id: LogId) -> Result<Self, LogError> {
        let client = Self { store, io, job, log_id };
        client.check_folder().await?;
        Ok(client)
    }

    /// Whether the folder is still the one that was claimed.
    pub(super) async fn check_folder(&self) -> Result<(), LogError> {
        let Some(found) = self.replaced().await? else { return Ok(()) };
        let (folder, job) = (self.store.url().to_owned(), self.job.clone());
        Err(LogError::FolderReplaced { folder, job, found })
    }

    fn of(store: S, io: SharedIo, job: JobName, identity: Identity) -> Result<Self, LogError> {
        if identity.job != job {
            return Err(LogError::WrongJob { folder: store.url().to_owned(), owner: identity.job, job });
        }
        Ok(Self { store, io, job, log_id: identity.log_id })
    }
}

async fn read(store: &impl LogStore) -> Result<Option<Identity>, LogError> {
    let failed = |source| failed(store, "read", source);
    let Some(bytes) = store.get(IDENTITY_PATH).await.map_err(failed)? else { return Ok(None) };
    let identity = open(IDENTITY_MAGIC, &bytes).map_err(|source| LogError::Unreadable {
        path: IDENTITY_PATH.to_owned(),
        folder: store.url().to_owned(),
        source,
    })?;
    Ok(Some(identity))
}

/// Whose log it is now, and its random id.
pub(super) async fn read_id(store: &impl LogStore) -> Result<Option<(JobName, LogId)>, LogError> {
    Ok(read(store).await?.map(|identity| (identity.job, identity.log_id)))
}

/// Whose log it is, and its random id, from the content of `log/id`.
///
/// # Errors
/// What is wrong with its bytes.
pub fn read_identity(bytes: &[u8]) -> Result<(JobName, LogId), EnvelopeError> {
    open::<Identity>(IDENTITY_MAGIC, bytes).map(|identity| (identity.job, identity.log_id))
}

/// Creates the identity unless another start was faster; the caller reads it back in either case.
async fn begin(store: &impl LogStore, job: &JobName, nonces: &mut NonceSource) -> Result<(), LogError> {
    let listed = store.list("").await.map_err(|source| failed(store, "list", source))?;
    let entry = listed.iter().any(|path| number_in(path).is_some());
    let file = listed.into_iter().find(|path| is_of_a_checkpoint(path));
    if entry || file.is_some() {
        // Another start may have been here since the identity was looked for.
        if read(store).await?.is_some() {
            return Ok(());
        }
        let folder = store.url().to_owned();
        return Err(match file {
            Some(path) if !entry => LogError::LogGone { folder, path },
            _ => LogError::NoIdentity { folder },
        });
    }
    let identity = Identity { job: job.clone(), log_id: LogId(nonces.draw().to_string()) };
    match store.create(IDENTITY_PATH, Bytes::from(seal(IDENTITY_MAGIC, &identity))).await {
        Ok(PutResult::Created | PutResult::AlreadyExists) => Ok(()),
        Err(source) => Err(failed(store, "create", source)),
    }
}

/// Whether a path lies in a folder `<checkpoint>-<attempt>/`.
fn is_of_a_checkpoint(path: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let folder = path.split_once('/').and_then(|(folder, _)| folder.split_once('-'));
    folder.is_some_and(|(checkpoint, attempt)| digits(checkpoint) && digits(attempt))
}

fn failed(store: &impl LogStore, doing: &'static str, source: super::StoreError) -> LogError {
    LogError::Store { doing, path: IDENTITY_PATH.to_owned(), folder: store.url().to_owned(), source }
}
