//! The settings file: TOML, a key for each setting.
//!
//! Owns: reading it, and which keys it may have. Does not own: what a value means (it is read as the flag's would be).
//! Runs on: the main thread, while flags are read.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::nearest::nearest;

/// What is wrong with a settings file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsFileError {
    /// It cannot be read.
    #[error("the settings file {} cannot be read: {source}; see that it exists and that this user may read it", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is no TOML.
    #[error("the settings file {} is not TOML: {}", file.display(), source.to_string().trim_end())]
    NotToml {
        /// The file.
        file: PathBuf,
        /// What the parser says, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A key that is no setting.
    #[error(
        "{}{}: {key:?} is no setting{}",
        file.display(),
        line.map_or_else(String::new, |line| format!(":{line}")),
        match nearest {
            Some(nearest) => format!("; did you mean {nearest:?}?"),
            None => "; run --help lists them".to_owned(),
        }
    )]
    UnknownKey {
        /// The file.
        file: PathBuf,
        /// Where, if the key stands at the beginning of a line.
        line: Option<usize>,
        /// As given.
        key: String,
        /// What looks like it.
        nearest: Option<String>,
    },
    /// A value of a shape that no setting has.
    #[error("{}: {key}: a setting is text, a number, or true or false, not {shape}", file.display())]
    Shape {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// What it is.
        shape: &'static str,
    },
    /// A value that the setting refuses.
    #[error("{}: {message}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// What the flag of this name would say.
        message: String,
    },
}

/// Reads a settings file: for each key its value, as a flag would have it. `known` are the keys that there are.
pub(super) fn read(file: &Path, known: &[String]) -> Result<BTreeMap<String, String>, SettingsFileError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| SettingsFileError::Read { file: file.to_owned(), source })?;
    parse(file, &text, known)
}

fn parse(file: &Path, text: &str, known: &[String]) -> Result<BTreeMap<String, String>, SettingsFileError> {
    let table: Table = toml::from_str(text)
        .map_err(|source| SettingsFileError::NotToml { file: file.to_owned(), source: Box::new(source) })?;
    let mut values = BTreeMap::new();
    for (key, value) in table {
        if !known.contains(&key) {
            let line =
                text.lines().position(|line| line.trim_start().trim_start_matches('[').starts_with(&key));
            let nearest = nearest(&key, known.iter().map(String::as_str)).map(str::to_owned);
            let (file, line) = (file.to_owned(), line.map(|line| line + 1));
            return Err(SettingsFileError::UnknownKey { file, line, key, nearest });
        }
        let flag = as_flag(&value).map_err(|shape| SettingsFileError::Shape {
            file: file.to_owned(),
            key: key.clone(),
            shape,
        })?;
        values.insert(key, flag);
    }
    Ok(values)
}

/// A value as it would stand behind a flag. A table is a name with parts: `{ strategy = "fixed-delay", attempts = 3 }`.
fn as_flag(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(is) => Ok(is.to_string()),
        Value::Table(table) => {
            let strategy = table.get("strategy").and_then(Value::as_str).ok_or("a table without strategy")?;
            let parts = table.iter().filter(|(part, _)| *part != "strategy");
            parts
                .map(|(part, value)| Ok(format!("{part}={}", as_flag(value)?)))
                .try_fold(strategy.to_owned(), |flag, part: Result<String, &'static str>| {
                    Ok(format!("{flag},{}", part?))
                })
        }
        Value::Array(_) => Err("a list"),
        Value::Float(_) => Err("a number with a fraction"),
        Value::Datetime(_) => Err("a date"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<BTreeMap<String, String>, String> {
        let known = ["parallelism", "checkpoint-interval", "restart", "json"].map(str::to_owned);
        parse(Path::new("s.toml"), text, &known).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_taken_as_flags_have_them() {
        let text = "parallelism = 3\njson = true\ncheckpoint-interval = \"1s\"\n\n[restart]\nstrategy = \"fixed-delay\"\nattempts = 2\n";
        let values = parsed(text).unwrap();
        assert_eq!(values["parallelism"], "3");
        assert_eq!(values["json"], "true");
        assert_eq!(values["restart"], "fixed-delay,attempts=2");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_what_looks_like_it() {
        let error = parsed("json = true\ncheckpoint_interval = \"1s\"\n").unwrap_err();
        let expected =
            "s.toml:2: \"checkpoint_interval\" is no setting; did you mean \"checkpoint-interval\"?";
        assert_eq!(error, expected);
        assert!(parsed("colour = 1").unwrap_err().contains("run --help"));
        assert!(parsed("json = [1]").unwrap_err().contains("a list"));
        let error = parsed("json = ").unwrap_err();
        assert!(error.contains("not TOML") && !error.ends_with('\n'), "{error:?}");
    }
}
