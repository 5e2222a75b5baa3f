//! One plain connection to one broker: a request goes out, its answer comes back.
//!
//! A message is its length (4 bytes, big endian), a header with a correlation number, a body.
//!
//! Owns: the socket, the correlation number, which versions the broker offers. Does not own: time limits (see [`super::WireClient`]),
//! codes inside an answer. Runs on: tokio.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;

use bytes::{Buf, BytesMut};
use kafka_protocol::messages::{ApiKey, ApiVersionsRequest, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use tidegate_engine::broker::BrokerCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{WireError, WireRequest};

/// An answer is not longer than this; the longest ones list transactions.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How this client calls itself in a broker's log.
const CLIENT_ID: &str = "tidegate";

/// Versions of each request that a broker offers, by API key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedVersions(BTreeMap<i16, (i16, i16)>);

impl OfferedVersions {
    /// Of one request. `None`: the broker does not know it.
    pub fn of(&self, key: ApiKey) -> Option<RangeInclusive<i16>> {
        self.0.get(&(key as i16)).map(|(oldest, newest)| *oldest..=*newest)
    }

    /// Of `EndTxn`; no version that there is, if it is not offered.
    pub fn end_txn(&self) -> RangeInclusive<i16> {
        self.of(ApiKey::EndTxn).unwrap_or(-1..=-1)
    }

    /// The newest version that is offered and known.
    pub(super) fn choose(&self, key: ApiKey, known: &RangeInclusive<i16>) -> Option<i16> {
        let (oldest, newest) = self.0.get(&(key as i16))?;
        let version = (*newest).min(*known.end());
        (version >= *oldest && version >= *known.start()).then_some(version)
    }
}

/// See the module. One whose request failed is not used again.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    address: String,
    correlation: i32,
    pub(super) offered: OfferedVersions,
}

impl Connection {
    /// Connects and asks what the broker offers.
    pub(super) async fn open(address: &str) -> Result<Self, WireError> {
        let lost =
            |source| WireError::NoAnswer { request: "connecting", address: address.to_owned(), source };
        let stream = TcpStream::connect(address).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let mut connection =
            Self { stream, address: address.to_owned(), correlation: 0, offered: OfferedVersions::default() };
        // Version 0 is offered by every broker, and its answer is the only one that needs no version to be known.
        let answer = connection.call(&ApiVersionsRequest::default(), 0).await?;
        if answer.error_code != 0 {
            let code = BrokerCode(answer.error_code);
            return Err(WireError::Refused { request: "ApiVersions", address: address.to_owned(), code });
        }
        let keys = answer.api_keys.iter().map(|key| (key.api_key, (key.min_version, key.max_version)));
        connection.offered = OfferedVersions(keys.collect());
        Ok(connection)
    }

    /// Sends a request in this version and reads its answer.
    pub(super) async fn call<R: WireRequest>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, WireError> {
        let name = R::NAME;
        self.correlation = self.correlation.wrapping_add(1);
        let message =
            encode(request, version, self.correlation).map_err(|reason| self.malformed(name, &reason))?;
        let mut answer = self.exchange(&message).await.map_err(|source| WireError::NoAnswer {
            request: name,
            address: self.address.clone(),
            source,
        })?;
        let header =
            ResponseHeader::decode(&mut answer, <R::Response as HeaderVersion>::header_version(version))
                .map_err(|reason| self.malformed(name, &reason))?;
        if header.correlation_id != self.correlation {
            let reason = format!("request {} is answered as {}", self.correlation, header.correlation_id);
            return Err(self.malformed(name, &reason));
        }
        R::Response::decode(&mut answer, version).map_err(|reason| self.malformed(name, &reason))
    }

    async fn exchange(&mut self, message: &[u8]) -> io::Result<BytesMut> {
        self.stream.write_all(message).await?;
        let length = usize::try_from(self.stream.read_i32().await?).unwrap_or(usize::MAX);
        if length > ANSWER_BYTES_MAX {
            let message = format!(
                "it begins an answer of {length} bytes, which no Kafka broker does: something else listens there"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut answer = BytesMut::zeroed(length);
        self.stream.read_exact(&mut answer).await?;
        Ok(answer)
    }

    fn malformed(&self, request: &'static str, reason: &impl ToString) -> WireError {
        WireError::Malformed { request, address: self.address.clone(), reason: reason.to_string() }
    }
}

/// A request with length and header.
fn encode<R: WireRequest>(request: &R, version: i16, correlation: i32) -> Result<BytesMut, String> {
    let mut header = RequestHeader::default();
    header.request_api_key = R::KEY as i16;
    header.request_api_version = version;
    header.correlation_id = correlation;
    header.client_id = Some(StrBytes::from_static_str(CLIENT_ID));
    let mut message = BytesMut::zeroed(size_of::<i32>());
    header.encode(&mut message, R::header_version(version)).map_err(|e| e.to_string())?;
    request.encode(&mut message, version).map_err(|e| e.to_string())?;
    let length = i32::try_from(message.len() - size_of::<i32>()).map_err(|e| e.to_string())?;
    message[..size_of::<i32>()].copy_from_slice(&length.to_be_bytes());
    debug_assert!(message.remaining() > size_of::<i32>(), "a message has a header");
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_both_know_is_used() {
        let offered = OfferedVersions(BTreeMap::from([(26, (0, 5)), (9, (8, 10))]));
        assert_eq!(offered.choose(ApiKey::EndTxn, &(0..=4)), Some(4));
        assert_eq!(offered.choose(ApiKey::EndTxn, &(0..=9)), Some(5));
        assert_eq!(offered.choose(ApiKey::OffsetFetch, &(7..=7)), None);
        assert_eq!(offered.choose(ApiKey::EndTxn, &(6..=7)), None);
        assert_eq!(offered.choose(ApiKey::ListTransactions, &(0..=1)), None);
        assert_eq!(offered.of(ApiKey::EndTxn), Some(0..=5));
    }

    #[test]
    fn a_message_begins_with_its_length_key_version_and_number() {
        let message = encode(&ApiVersionsRequest::default(), 0, 7).unwrap();
        let length = u8::try_from(message.len() - 4).unwrap();
        assert_eq!(message[..12], [0, 0, 0, length, 0, 18, 0, 0, 0, 0, 0, 7]);
    }
}
