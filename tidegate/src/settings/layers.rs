//! Flags over environment over settings file over defaults.
//!
//! The first reading of the command line knows of each value whether a flag or a variable gave it. Where neither did and the file has
//! the key, the file's value is put in its place, and all of it is read once more, so that every layer is checked by the same words.
//!
//! Owns: the order of the layers, and where each value came from. Does not own: the settings ([`super::SettingValues`]), the file's
//! form ([`super::file`]). Runs on: the main thread, while flags are read.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde::Serialize;

use super::SettingValues;
use super::file::{self, SettingsFileError};
use crate::nearest::nearest;
use crate::without_passwords::without_passwords;

/// Variables that are no settings.
const OTHER_VARIABLES: [&str; 3] = ["TIDEGATE_LOG", "TIDEGATE_FAULT", "TIDEGATE_RUNTIME_DIR"];

/// Settings of a run, of all layers. Flatten them into a command line of your own, or let [`crate::launch`] do it.
#[derive(Debug, Clone)]
pub struct RunSettings {
    values: SettingValues,
    effective: Vec<EffectiveSetting>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A flag on the command line.
    Flag,
    /// An environment variable.
    Environment,
    /// The settings file.
    File,
    /// Nobody gave one.
    Default,
}

/// A setting as it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectiveSetting {
    /// Its name: the flag without `--`, the key in the file.
    pub name: String,
    /// Its value as it was written; `None` if there is neither one nor a default.
    pub value: Option<String>,
    /// Where it comes from.
    pub from: Origin,
}

impl Deref for RunSettings {
    type Target = SettingValues;

    fn deref(&self) -> &SettingValues {
        &self.values
    }
}

impl DerefMut for RunSettings {
    fn deref_mut(&mut self) -> &mut SettingValues {
        &mut self.values
    }
}

impl RunSettings {
    /// Every setting with its value, and where that came from.
    pub fn effective(&self) -> &[EffectiveSetting] {
        &self.effective
    }

    /// Warns of variables that look like a mistyped setting.
    pub(crate) fn warn_of_mistyped_variables() {
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for (name, like) in Self::mistyped_variables(variables) {
            tracing::warn!("{name} is no setting and changes nothing; did you mean {like}?");
        }
    }

    /// Variables that look like a mistyped setting, each with the one that it looks like: `TIDEGATE_PARALELISM`.
    pub(crate) fn mistyped_variables(names: impl Iterator<Item = String>) -> Vec<(String, String)> {
        let command = SettingValues::augment_args(Command::new("settings"));
        let variables = command.get_arguments().filter_map(|arg| arg.get_env());
        let known: Vec<String> = variables.map(|name| name.to_string_lossy().into_owned()).collect();
        let ours = |name: &String| name.starts_with("TIDEGATE_") && !known.contains(name);
        let pair = |name: String| {
            let like = nearest(&name, known.iter().map(String::as_str))?.to_owned();
            (!OTHER_VARIABLES.contains(&name.as_str())).then_some((name, like))
        };
        names.filter(ours).filter_map(pair).collect()
    }

    fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = SettingValues::augment_args(Command::new("settings").no_binary_name(true));
        let known: Vec<(String, String)> = command
            .get_arguments()
            .filter_map(|arg| Some((arg.get_id().to_string(), arg.get_long()?.to_owned())))
            .filter(|(_, name)| name != "help")
            .collect();
        let mut from_file = match matches.get_one::<std::path::PathBuf>("settings") {
            Some(file) => read_file(&command, file, &known).map_err(refused)?,
            None => BTreeMap::new(),
        };
        let (mut line, mut effective) = (Vec::new(), Vec::new());
        for (id, name) in known {
            let given = matches.get_raw(&id).and_then(|mut values| values.next());
            let given = given.map(|value| value.to_string_lossy().into_owned());
            let in_file = from_file.remove(&name);
            let (value, from) = match matches.value_source(&id) {
                Some(ValueSource::CommandLine) => (given, Origin::Flag),
                Some(ValueSource::EnvVariable) => (given, Origin::Environment),
                _ => match in_file {
                    Some(value) => (Some(value), Origin::File),
                    None => (given, Origin::Default),
                },
            };
            if let (Some(value), true) = (&value, from != Origin::Default) {
                line.push(format!("--{name}={value}"));
            }
            effective.push(EffectiveSetting { name, value, from });
        }
        let mut read = command.try_get_matches_from(line)?;
        let values = SettingValues::from_arg_matches_mut(&mut read)?;
        for setting in effective.iter_mut().filter(|setting| setting.name == "restart") {
            setting.value = Some(values.restart_strategy().to_string());
        }
        Ok(Self { values, effective })
    }
}

/// The file's values, each of which its flag would take.
fn read_file(
    command: &Command,
    file: &Path,
    known: &[(String, String)],
) -> Result<BTreeMap<String, String>, SettingsFileError> {
    let keys: Vec<String> = known.iter().map(|(_, name)| name.clone()).filter(|n| n != "settings").collect();
    let values = file::read(file, &keys)?;
    for (key, value) in &values {
        if let Err(error) = command.clone().try_get_matches_from([format!("--{key}={value}")]) {
            let message = match error.get(ContextKind::InvalidValue) {
                Some(_) => format!("{key} = {value:?}: {}", why(&error)),
                None => format!("{key} = {value:?} is not understood"),
            };
            let message = without_passwords(&message).into_owned();
            return Err(SettingsFileError::Value { file: file.to_owned(), message });
        }
    }
    Ok(values)
}

/// What clap says, without the flag's name and the usage.
fn why(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match error.get(ContextKind::ValidValue) {
        Some(valid) => format!("possible are {valid}"),
        None => "it does not fit".to_owned(),
    }
}

fn refused(error: SettingsFileError) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n"))
}

impl FromArgMatches for RunSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::of(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::of(matches)?;
        Ok(())
    }
}

impl Args for RunSettings {
    fn augment_args(command: Command) -> Command {
        SettingValues::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingValues::augment_args_for_update(command)
    }
}
