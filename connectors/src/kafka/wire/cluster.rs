//! Requests about a cluster: its brokers, settings of brokers and topics, what a client may do with a topic.
//!
//! Owns: their shape. Does not own: what is required of them. Runs on: tokio.

use std::collections::BTreeMap;

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{DescribeConfigsRequest, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::BrokerCode;

use super::WireError;
use super::client::WireClient;

/// Resources of this type are topics.
const TOPIC_RESOURCE: i8 = 2;
/// Resources of this type are brokers.
const BROKER_RESOURCE: i8 = 4;
/// The topic is not this client's to see, or to use so.
pub const TOPIC_DENIED: BrokerCode = BrokerCode(29);
/// The operation of reading, among those of [`WireClient::topic_operations`].
pub const READ: i32 = 1 << 3;
/// The operation of writing, among those of [`WireClient::topic_operations`].
pub const WRITE: i32 = 1 << 4;

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

    async fn metadata(&mut self, topics: Vec<MetadataRequestTopic>) -> Result<MetadataResponse, WireError> {
        let mut request = MetadataRequest::default();
        request.topics = Some(topics);
        request.allow_auto_topic_creation = false;
        let answer = self.call_any(4..=9, &request).await?;
        self.note_brokers(answer.brokers.iter().map(|it| format!("{}:{}", it.host, it.port)));
        Ok(answer)
    }

    /// What this client may do with a topic: a bit for each operation, as [`READ`] and [`WRITE`]. `None`: the broker does not tell.
    ///
    /// # Errors
    /// [`WireError`]; code 29 where it may not even see it.
    pub async fn topic_operations(&mut self, topic: &str) -> Result<Option<i32>, WireError> {
        let mut wanted = MetadataRequestTopic::default();
        wanted.name = Some(TopicName(StrBytes::from_string(topic.to_owned())));
        let mut request = MetadataRequest::default();
        request.topics = Some(vec![wanted]);
        request.allow_auto_topic_creation = false;
        request.include_topic_authorized_operations = true;
        let answer = self.call_any(8..=12, &request).await?;
        let Some(found) = answer.topics.into_iter().next() else { return Ok(None) };
        match found.error_code {
            0 => Ok(Some(found.topic_authorized_operations).filter(|told| *told != i32::MIN)),
            code => {
                let (request, address) = ("Metadata", topic.to_owned());
                Err(WireError::Refused { request, address, code: BrokerCode(code) })
            }
        }
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
        let request = describe_configs(BROKER_RESOURCE, broker.id.to_string(), &[name]);
        let answer = self.call(&broker.address, 1..=4, &request).await?;
        let found = settings_of(answer.results, &broker.address)?;
        Ok(found.into_iter().find(|(found, _)| found == name).map(|(_, value)| value))
    }

    /// Settings of a topic by these names, as they hold for it: its own, or else its brokers'. What it does not tell is left out.
    ///
    /// # Errors
    /// [`WireError`]; codes 29 and 30 where this client may not see them.
    pub async fn topic_settings(
        &mut self,
        topic: &str,
        names: &[&'static str],
    ) -> Result<BTreeMap<String, String>, WireError> {
        let request = describe_configs(TOPIC_RESOURCE, topic.to_owned(), names);
        let answer = self.call_any(1..=4, &request).await?;
        settings_of(answer.results, topic)
    }
}

fn describe_configs(resource_type: i8, name: String, settings: &[&'static str]) -> DescribeConfigsRequest {
    let mut resource = DescribeConfigsResource::default();
    resource.resource_type = resource_type;
    resource.resource_name = StrBytes::from_string(name);
    resource.configuration_keys = Some(settings.iter().map(|it| StrBytes::from_static_str(it)).collect());
    let mut request = DescribeConfigsRequest::default();
    request.resources = vec![resource];
    request
}

/// Settings of the one resource that was asked about.
fn settings_of(
    results: Vec<DescribeConfigsResult>,
    address: &str,
) -> Result<BTreeMap<String, String>, WireError> {
    let Some(result) = results.into_iter().next() else { return Ok(BTreeMap::new()) };
    if result.error_code != 0 {
        let (address, code) = (address.to_owned(), BrokerCode(result.error_code));
        return Err(WireError::Refused { request: "DescribeConfigs", address, code });
    }
    let told = result.configs.into_iter().filter_map(|it| Some((it.name.to_string(), it.value?.to_string())));
    Ok(told.collect())
}
