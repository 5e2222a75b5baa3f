//! Requests about a cluster: its brokers, a topic's partitions, a broker's settings.
//!
//! Owns: their shape. Does not own: what is required of them. Runs on: tokio.

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    BrokerId, DescribeConfigsRequest, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::BrokerCode;

use super::WireError;
use super::client::WireClient;

/// Resources of this type are brokers.
const BROKER_RESOURCE: i8 = 4;
/// The topic, or the partition, is unknown.
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;

/// A broker of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterBroker {
    /// Its number.
    pub id: i32,
    /// `host:port`, as it tells clients.
    pub address: String,
}

impl WireClient {
    /// All brokers that are up.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn brokers(&mut self) -> Result<Vec<ClusterBroker>, WireError> {
        let answer = self.metadata(Vec::new()).await?;
        let broker = |it: kafka_protocol::messages::metadata_response::MetadataResponseBroker| {
            ClusterBroker { id: it.node_id.0, address: format!("{}:{}", it.host, it.port) }
        };
        Ok(answer.brokers.into_iter().map(broker).collect())
    }

    /// How many partitions a topic has. `None`: there is no such topic. It is not made by being asked for.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn partitions_of(&mut self, topic: &str) -> Result<Option<usize>, WireError> {
        let mut wanted = MetadataRequestTopic::default();
        wanted.name = Some(TopicName(StrBytes::from_string(topic.to_owned())));
        let answer = self.metadata(vec![wanted]).await?;
        match answer.topics.into_iter().next() {
            None => Ok(None),
            Some(found) if found.error_code == UNKNOWN_TOPIC_OR_PARTITION => Ok(None),
            Some(found) if found.error_code != 0 => Err(WireError::Refused {
                request: "Metadata",
                address: topic.to_owned(),
                code: BrokerCode(found.error_code),
            }),
            Some(found) => Ok(Some(found.partitions.len())),
        }
    }

    async fn metadata(&mut self, topics: Vec<MetadataRequestTopic>) -> Result<MetadataResponse, WireError> {
        let mut request = MetadataRequest::default();
        request.topics = Some(topics);
        request.allow_auto_topic_creation = false;
        self.call_any(4..=9, &request).await
    }

    /// One setting of a broker. `None`: it has none of that name, or does not tell.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn broker_setting(
        &mut self,
        broker: &ClusterBroker,
        name: &'static str,
    ) -> Result<Option<String>, WireError> {
        let mut resource = DescribeConfigsResource::default();
        resource.resource_type = BROKER_RESOURCE;
        resource.resource_name = StrBytes::from_string(BrokerId(broker.id).0.to_string());
        resource.configuration_keys = Some(vec![StrBytes::from_static_str(name)]);
        let mut request = DescribeConfigsRequest::default();
        request.resources = vec![resource];
        let answer = self.call(&broker.address, 1..=4, &request).await?;
        let Some(result) = answer.results.into_iter().next() else { return Ok(None) };
        if result.error_code != 0 {
            let (address, code) = (broker.address.clone(), BrokerCode(result.error_code));
            return Err(WireError::Refused { request: "DescribeConfigs", address, code });
        }
        let found = result.configs.into_iter().find(|setting| setting.name.as_str() == name);
        Ok(found.and_then(|setting| setting.value).map(|value| value.to_string()))
    }
}
