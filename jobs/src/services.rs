//! Real servers for scenarios and tests: MariaDB, Oracle's MySQL, Kafka, S3, started by `scripts/services`.
//!
//! Owns: one instance of a server, from its start to its end; what its script tells about it.
//! Does not own: how a server is installed and started (the scripts).
//! Runs on: the calling thread; every method waits for the script.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceKind {
    /// MariaDB 10.11.
    MariaDb,
    /// Oracle's MySQL.
    MySql,
    /// Apache Kafka, one node.
    Kafka,
    /// SeaweedFS, which speaks S3.
    S3,
}

impl ServiceKind {
    fn script(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb.sh",
            Self::MySql => "mysql.sh",
            Self::Kafka => "kafka.sh",
            Self::S3 => "s3.sh",
        }
    }
}

/// A script of `scripts/services` that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// It could not be started.
    #[error("cannot start {}; set TIDEGATE_SERVICES to the folder scripts/services of a clone", script.display())]
    NoScript {
        /// Its path.
        script: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{} {verb} failed:\n{said}", script.display())]
    Failed {
        /// Its path.
        script: PathBuf,
        /// What it was asked to do.
        verb: String,
        /// What it printed.
        said: String,
    },
    /// It does not tell where the server is.
    #[error("{} start did not tell {variable}", script.display())]
    Untold {
        /// Its path.
        script: PathBuf,
        /// What is missing.
        variable: &'static str,
    },
}

/// A running server. One made by [`Service::own`] ends, with its data, when this is dropped.
#[derive(Debug)]
pub struct Service {
    kind: ServiceKind,
    script: PathBuf,
    instance: String,
    options: Vec<(String, String)>,
    told: BTreeMap<String, String>,
    is_own: bool,
}

impl Service {
    /// The server that all who ask for this instance share, started if it does not run. It is left running.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn shared(kind: ServiceKind) -> Result<Self, ServiceError> {
        let instance = std::env::var("SERVICES_INSTANCE").unwrap_or_else(|_| "default".to_owned());
        Self::started(kind, instance, Vec::new(), false)
    }

    /// A server of one's own, which may be killed; `options` are environment variables of its script.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn own(kind: ServiceKind, name: &str, options: &[(&str, &str)]) -> Result<Self, ServiceError> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::started(kind, format!("{name}-{}", std::process::id()), options, true)
    }

    fn started(
        kind: ServiceKind,
        instance: String,
        options: Vec<(String, String)>,
        is_own: bool,
    ) -> Result<Self, ServiceError> {
        let folder = std::env::var_os("TIDEGATE_SERVICES")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/services"), PathBuf::from);
        let script = folder.join(kind.script());
        let mut service = Self { kind, script, instance, options, told: BTreeMap::new(), is_own };
        service.start()?;
        Ok(service)
    }

    /// Starts it, if it does not run, and waits until it answers.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn start(&mut self) -> Result<(), ServiceError> {
        let output = self.run("start", &[] as &[&str])?;
        self.told = told(&String::from_utf8_lossy(&output.stdout));
        Ok(())
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn kill(&self) -> Result<(), ServiceError> {
        self.run("kill", &[] as &[&str]).map(drop)
    }

    /// An orderly stop.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn stop(&self) -> Result<(), ServiceError> {
        self.run("stop", &[] as &[&str]).map(drop)
    }

    /// SIGSTOP.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn pause(&self) -> Result<(), ServiceError> {
        self.run("pause", &[] as &[&str]).map(drop)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn resume(&self) -> Result<(), ServiceError> {
        self.run("resume", &[] as &[&str]).map(drop)
    }

    /// Any verb of the script, with what it prints.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn run(&self, verb: &str, arguments: &[impl AsRef<OsStr>]) -> Result<Output, ServiceError> {
        let output = Command::new(&self.script)
            .arg(verb)
            .args(arguments)
            .env("SERVICES_INSTANCE", &self.instance)
            .envs(self.options.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ServiceError::NoScript { script: self.script.clone(), source })?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ServiceError::Failed { script: self.script.clone(), verb: verb.to_owned(), said })
    }

    /// `mysql://user:password@host:port/database` of a MariaDB or MySQL.
    ///
    /// # Errors
    /// [`ServiceError::Untold`].
    pub fn mysql_url(&self) -> Result<&str, ServiceError> {
        self.variable(if self.kind == ServiceKind::MySql { "MYSQL8_URL" } else { "MYSQL_URL" })
    }

    /// `host:port` of a Kafka broker.
    ///
    /// # Errors
    /// [`ServiceError::Untold`].
    pub fn bootstrap(&self) -> Result<&str, ServiceError> {
        self.variable("KAFKA_BOOTSTRAP")
    }

    /// What the script tells under this name.
    ///
    /// # Errors
    /// [`ServiceError::Untold`].
    pub fn variable(&self, variable: &'static str) -> Result<&str, ServiceError> {
        let untold = || ServiceError::Untold { script: self.script.clone(), variable };
        self.told.get(variable).map(String::as_str).ok_or_else(untold)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.is_own {
            // Nothing is left to be told; the script says itself what went wrong.
            drop(self.run("drop", &[] as &[&str]));
        }
    }
}

/// Reads `export A=1 B='2 3'` lines.
fn told(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("export ")) {
        for word in line.split(' ') {
            if let Some((name, value)) = word.split_once('=') {
                found.insert(name.to_owned(), value.trim_matches('\'').to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_exports_is_read() {
        let found = told("export URL=mysql://u:p@h:1/d SOCKET='/a/b'\nnoise\nexport KAFKA=h:2\n");
        assert_eq!(found["URL"], "mysql://u:p@h:1/d");
        assert_eq!(found["SOCKET"], "/a/b");
        assert_eq!(found["KAFKA"], "h:2");
        assert_eq!(found.len(), 3);
    }
}
