//! `#[state(...)]` on types, variants and fields.
//!
//! Owns: which settings exist and where they may stand.
//! Does not own: what they generate.
//! Runs on: the compiler.

use syn::{Attribute, LitInt, LitStr, Result};

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Place {
    Type,
    Variant,
    Field,
}

/// The settings of one place.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) version: Option<u32>,
    pub(crate) renamed_from: Vec<String>,
    pub(crate) default: bool,
    pub(crate) opaque: bool,
}

impl Settings {
    pub(crate) fn read(attributes: &[Attribute], place: Place) -> Result<Self> {
        let mut settings = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("state")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("renamed_from") {
                    settings.renamed_from.push(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("version") && place == Place::Type {
                    let version = meta.value()?.parse::<LitInt>()?;
                    settings.version = Some(version.base10_parse()?);
                    if settings.version == Some(0) {
                        return Err(meta.error("versions begin at 1"));
                    }
                } else if meta.path.is_ident("default") && place == Place::Field {
                    settings.default = true;
                } else if meta.path.is_ident("opaque") && place == Place::Field {
                    settings.opaque = true;
                } else {
                    return Err(meta.error(match place {
                        Place::Type => "on a type: version = N, renamed_from = \"Old\"",
                        Place::Variant => "on a variant: renamed_from = \"Old\"",
                        Place::Field => "on a field: default, opaque, renamed_from = \"old\"",
                    }));
                }
                Ok(())
            })?;
        }
        Ok(settings)
    }

    /// The present name, then former ones.
    pub(crate) fn names(&self, present: &str) -> Vec<String> {
        std::iter::once(present.to_owned()).chain(self.renamed_from.iter().cloned()).collect()
    }
}
