//! A broker that offers what it is told to, and knows one topic, from the n-th question about a topic on.
//!
//! Owns: its socket and the connections to it, which end when it is dropped. Does not own: a log, transactions: what it does not
//! offer it does not answer. Runs on: a thread for each connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, MetadataRequest, MetadataResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

/// Requests with their oldest and newest version.
pub(crate) type Offered = &'static [(ApiKey, i16, i16)];

const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;

struct Behaviour {
    offered: Offered,
    known_from: usize,
    /// Brokers of its cluster beside itself.
    others: Vec<SocketAddr>,
    address: SocketAddr,
    looks: AtomicUsize,
    ended: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

/// See the module.
pub(crate) struct FakeBroker {
    behaviour: Arc<Behaviour>,
    listening: Option<JoinHandle<()>>,
}

impl FakeBroker {
    /// `known_from`: the question about a topic, from 1, from which on the topic is known.
    pub(crate) fn start(offered: Offered, known_from: usize, others: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let behaviour = Arc::new(Behaviour {
            offered,
            known_from,
            others,
            address: listener.local_addr().unwrap(),
            looks: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            connections: Mutex::default(),
        });
        let own = Arc::clone(&behaviour);
        let listening = thread::spawn(move || {
            let clients = listener.incoming().map_while(Result::ok);
            for client in clients.take_while(|_| !own.ended.load(Ordering::SeqCst)) {
                own.connections.lock().unwrap().push(client.try_clone().unwrap());
                let own = Arc::clone(&own);
                thread::spawn(move || drop(own.serve(client)));
            }
        });
        Self { behaviour, listening: Some(listening) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.behaviour.address
    }

    /// How often a topic was asked for.
    pub(crate) fn looks(&self) -> usize {
        self.behaviour.looks.load(Ordering::SeqCst)
    }
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.behaviour.ended.store(true, Ordering::SeqCst);
        // It looks when somebody comes.
        drop(TcpStream::connect(self.behaviour.address));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        for connection in self.behaviour.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl Behaviour {
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let mut request = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
            client.read_exact(&mut request)?;
            let Some(answer) = self.answer(Bytes::from(request)) else { return Ok(()) };
            client.write_all(&u32::try_from(answer.len()).unwrap().to_be_bytes())?;
            client.write_all(&answer)?;
        }
    }

    /// `None`: it is not offered, and the connection ends.
    fn answer(&self, mut request: Bytes) -> Option<BytesMut> {
        let (key, version) = (request.slice(0..).get_i16(), request.slice(2..).get_i16());
        let key = ApiKey::try_from(key).ok()?;
        let header = RequestHeader::decode(&mut request, key.request_header_version(version)).ok()?;
        match key {
            ApiKey::ApiVersions if version == 0 => {
                let mut answer = ApiVersionsResponse::default();
                answer.api_keys = self
                    .offered
                    .iter()
                    .map(|&(key, oldest, newest)| {
                        let mut offered = ApiVersion::default();
                        (offered.api_key, offered.min_version, offered.max_version) =
                            (key as i16, oldest, newest);
                        offered
                    })
                    .collect();
                encoded(&header, &answer, version)
            }
            ApiKey::Metadata => {
                let asked = MetadataRequest::decode(&mut request, version).ok()?;
                encoded(&header, &self.metadata(&asked), version)
            }
            _ => None,
        }
    }

    fn metadata(&self, asked: &MetadataRequest) -> MetadataResponse {
        let mut answer = MetadataResponse::default();
        answer.brokers = std::iter::once(&self.address)
            .chain(&self.others)
            .zip(1..)
            .map(|(at, id)| {
                let mut broker = MetadataResponseBroker::default();
                broker.node_id = BrokerId(id);
                (broker.host, broker.port) =
                    (StrBytes::from_string(at.ip().to_string()), i32::from(at.port()));
                broker
            })
            .collect();
        answer.topics = asked
            .topics
            .iter()
            .flatten()
            .map(|wanted| {
                let mut topic = MetadataResponseTopic::default();
                topic.name = wanted.name.clone();
                if self.looks.fetch_add(1, Ordering::SeqCst) + 1 < self.known_from {
                    topic.error_code = UNKNOWN_TOPIC_OR_PARTITION;
                    return topic;
                }
                topic.topic_id = "00000000-0000-0000-0000-000000000007".parse().unwrap();
                topic.topic_authorized_operations = i32::MIN;
                let mut partition = MetadataResponsePartition::default();
                partition.leader_id = BrokerId(1);
                topic.partitions = vec![partition];
                topic
            })
            .collect();
        answer
    }
}

fn encoded<R: Encodable + HeaderVersion>(
    header: &RequestHeader,
    answer: &R,
    version: i16,
) -> Option<BytesMut> {
    let mut bytes = BytesMut::new();
    let mut own = ResponseHeader::default();
    own.correlation_id = header.correlation_id;
    own.encode(&mut bytes, R::header_version(version)).ok()?;
    answer.encode(&mut bytes, version).ok()?;
    Some(bytes)
}
