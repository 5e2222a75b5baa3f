//! What the states of the connectors in this crate belong to, for people.
//!
//! A checkpoint knows a state by the name of its type. Whoever starts a job with another sink or source than before does not know that name.
//!
//! Owns: the words. Does not own: the types. Runs on: anywhere. Pure.

/// The sink or source to which a state of this type belongs; `None`: to none of this crate.
#[must_use]
pub fn state_kind(type_name: &str) -> Option<&'static str> {
    Some(match type_name {
        "XaBranch" => "a MySQL sink, mode xa",
        "StagedTable" => "a MySQL sink, mode staging",
        "StagedRows" => "a SQLite sink",
        "BrokerCommittable" => "a Kafka sink",
        "WrittenParts" | "WrittenPart" => "a sink of files",
        "FileSplit" | "FilesAssigned" => "a source of files",
        "KafkaSplit" | "KafkaAssigned" => "a Kafka source",
        "DatagenSplit" | "DatagenProgress" => "a source of made-up records",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of<T>() -> Option<&'static str> {
        state_kind(std::any::type_name::<T>().rsplit("::").next().unwrap())
    }

    #[test]
    fn the_states_of_all_connectors_are_known_by_the_names_of_their_types() {
        assert!(kind_of::<tidegate_engine::broker::BrokerCommittable>().unwrap().contains("Kafka"));
        assert!(kind_of::<tidegate_engine::parts::WrittenParts>().unwrap().contains("files"));
        assert!(kind_of::<crate::file::FileSplit>().unwrap().contains("files"));
        assert!(kind_of::<crate::datagen::DatagenSplit>().unwrap().contains("made-up"));
        #[cfg(feature = "mysql")]
        assert!(kind_of::<crate::mysql::XaBranch>().unwrap().ends_with("xa"));
        #[cfg(feature = "mysql")]
        assert!(kind_of::<crate::mysql::StagedTable>().unwrap().ends_with("staging"));
        #[cfg(feature = "rdkafka")]
        assert!(kind_of::<crate::kafka::KafkaSplit>().unwrap().contains("Kafka source"));
        assert_eq!(state_kind("Totals"), None);
    }
}
