//! Which requests are sent here, and what answers each.
//!
//! Owns: the list, names for people. Does not own: messages and their encoding (the crate `kafka-protocol`). Runs on: plain data.

use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    DescribeTransactionsRequest, DescribeTransactionsResponse, EndTxnRequest, EndTxnResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, InitProducerIdRequest, InitProducerIdResponse,
    ListGroupsRequest, ListGroupsResponse, ListOffsetsRequest, ListOffsetsResponse, ListTransactionsRequest,
    ListTransactionsResponse, MetadataRequest, MetadataResponse, OffsetCommitRequest, OffsetCommitResponse,
    OffsetFetchRequest, OffsetFetchResponse, ProduceRequest, ProduceResponse, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion};

/// A request of the Kafka protocol.
pub trait WireRequest: Encodable + HeaderVersion + Sync {
    /// Its key.
    const KEY: ApiKey;
    /// Its name, for people.
    const NAME: &'static str;
    /// What answers it.
    type Response: Decodable + HeaderVersion + Send;
}

macro_rules! wire_requests {
    ($($key:ident: $request:ident => $response:ident),* $(,)?) => {
        $(impl WireRequest for $request {
            const KEY: ApiKey = ApiKey::$key;
            const NAME: &'static str = stringify!($key);
            type Response = $response;
        })*
    };
}

wire_requests! {
    ApiVersions: ApiVersionsRequest => ApiVersionsResponse,
    Metadata: MetadataRequest => MetadataResponse,
    ListOffsets: ListOffsetsRequest => ListOffsetsResponse,
    DescribeConfigs: DescribeConfigsRequest => DescribeConfigsResponse,
    FindCoordinator: FindCoordinatorRequest => FindCoordinatorResponse,
    InitProducerId: InitProducerIdRequest => InitProducerIdResponse,
    AddPartitionsToTxn: AddPartitionsToTxnRequest => AddPartitionsToTxnResponse,
    AddOffsetsToTxn: AddOffsetsToTxnRequest => AddOffsetsToTxnResponse,
    TxnOffsetCommit: TxnOffsetCommitRequest => TxnOffsetCommitResponse,
    EndTxn: EndTxnRequest => EndTxnResponse,
    ListGroups: ListGroupsRequest => ListGroupsResponse,
    OffsetCommit: OffsetCommitRequest => OffsetCommitResponse,
    OffsetFetch: OffsetFetchRequest => OffsetFetchResponse,
    ListTransactions: ListTransactionsRequest => ListTransactionsResponse,
    DescribeTransactions: DescribeTransactionsRequest => DescribeTransactionsResponse,
    Produce: ProduceRequest => ProduceResponse,
}
