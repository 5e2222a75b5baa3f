//! The servers of the scenarios: given, or started and ended with their data.
//!
//! Owns: their addresses. Does not own: how one is started (`tidegate_jobs::services`, `scripts/services`).
//! Runs on: the main thread, which waits.

use super::{ScenarioArgs, ScenarioError};
use crate::address::servers::MysqlAddress;
use tidegate_jobs::services::{Service, ServiceKind};

/// Name of the instances started here.
const INSTANCE: &str = "orders-scenario";

/// See the module.
#[derive(Debug)]
pub(crate) struct Servers {
    /// `host:port` of the broker.
    pub(crate) bootstrap: String,
    /// The database.
    pub(crate) mysql: MysqlAddress,
    /// Ended when dropped.
    _started: Vec<Service>,
}

impl Servers {
    /// Takes those that the flags name, and starts those that they do not.
    ///
    /// # Errors
    /// [`ScenarioError::Service`].
    pub(crate) fn of(args: &ScenarioArgs) -> Result<Self, ScenarioError> {
        let mut started = Vec::new();
        let bootstrap = match &args.kafka {
            Some(bootstrap) => bootstrap.clone(),
            None => {
                let service = start(ServiceKind::Kafka, args)?;
                let bootstrap = service.bootstrap()?.to_owned();
                started.push(service);
                bootstrap
            }
        };
        let mysql = match &args.mysql {
            Some(mysql) => mysql.clone(),
            None => {
                let service = start(ServiceKind::MariaDb, args)?;
                let mysql = service.mysql_url()?.parse()?;
                started.push(service);
                mysql
            }
        };
        Ok(Self { bootstrap, mysql, _started: started })
    }
}

fn start(kind: ServiceKind, args: &ScenarioArgs) -> Result<Service, ScenarioError> {
    super::say(args.json, &format!("  starting    {kind:?}, by scripts/services\n"));
    Ok(Service::own(kind, INSTANCE, &[])?)
}
