//! What a component says of itself, and of a configuration, before it may decide: its `lifecycle`.
//!
//! Texts are cut and lists are bounded here: nothing of a guest is kept at the length that it chose.

use super::Module;
use crate::guest::call::{Grant, call, issues_text};
use crate::guest::call_failure::CallFailure;
use crate::guest::limits::short;
use crate::interface::exchange::Descriptor;
use crate::load_error::LoadError;
use crate::schema::SCHEMA_BYTES_MAX;

/// Warnings about a configuration that are told.
const WARNINGS_MAX: usize = 8;
/// Needs of a descriptor that are looked at.
const NEEDS_MAX: usize = 16;

impl Module {
    /// Asks who it is.
    pub(crate) fn describe(&self, grant: Grant<'_>) -> Result<Descriptor, LoadError> {
        let described = call(self, grant, |session| {
            session.ask(|guest, at| guest.describe(at).map(Ok))
        });
        let descriptor = described.result.and_then(checked_descriptor);
        descriptor.map_err(|failure| LoadError::Tried {
            during: "describe",
            failure,
        })
    }

    /// Tries a configuration; gives warnings.
    pub(crate) fn validate(
        &self,
        config: &str,
        grant: Grant<'_>,
    ) -> Result<Vec<String>, LoadError> {
        let validated = call(self, grant, |session| {
            session.ask(|guest, at| guest.validate(at, config).map(Ok))
        });
        let answer = validated.result.map_err(|failure| LoadError::Tried {
            during: "validate",
            failure,
        })?;
        match answer {
            Ok(warnings) => Ok(warnings
                .iter()
                .take(WARNINGS_MAX)
                .map(|it| issues_text(std::slice::from_ref(it)))
                .collect()),
            Err(issues) => Err(LoadError::Config(issues_text(&issues))),
        }
    }
}

/// Who a guest says it is, with its texts cut.
fn checked_descriptor(descriptor: Descriptor) -> Result<Descriptor, CallFailure> {
    let Descriptor {
        name,
        version,
        summary,
        config_schema,
        deterministic,
        needs,
        sdk,
    } = descriptor;
    if config_schema.len() > SCHEMA_BYTES_MAX {
        return Err(CallFailure::InvalidAnswer(format!(
            "its config-schema has {} bytes and may have {SCHEMA_BYTES_MAX}",
            config_schema.len()
        )));
    }
    Ok(Descriptor {
        name: short(name),
        version: short(version),
        summary: short(summary),
        config_schema,
        deterministic,
        needs: needs.into_iter().take(NEEDS_MAX).map(short).collect(),
        sdk: short(sdk),
    })
}
