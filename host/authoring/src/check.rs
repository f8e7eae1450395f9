//! `mortise policy check`: bound as a cluster binds it, then asked rounds made up at random.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use policy::binding_keys::{AUTHORITY_ANNOTATION, POLICY_LABEL};
use policy::{BindingSource, BindingState, Conformance, Inspection, PolicyHost, Setting};
use serde_json::{Value, json};

use super::vendored::{SDK_VERSION, VendorStamp, Version};
use super::{exit_code, program, say, settings, target, unhurried_host, upgrade};
use crate::Output;
use crate::arguments::CheckArguments;
use crate::language::Language;

pub(super) fn run(arguments: &CheckArguments) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let mut checked = Vec::new();
    for argument in &arguments.policies {
        for source in target::sources(&host, argument, arguments.kind.map(Into::into))? {
            let mut found = check(&host, &source, arguments.rounds);
            found.notes.extend(age_of_folder(argument));
            checked.push(found);
        }
    }
    let is_good = checked.iter().all(CheckedPolicy::is_good);
    match arguments.output {
        Output::Text => checked.iter().for_each(|it| say(&it.text())),
        Output::Json => {
            let all: Vec<Value> = checked.iter().map(CheckedPolicy::json).collect();
            say(&serde_json::to_string_pretty(&all)?);
        }
    }
    Ok(exit_code(is_good))
}

/// Result of a check; `refusal` is a word and a sentence.
struct CheckedPolicy {
    name: String,
    kind: String,
    digest: Option<String>,
    size: Option<Size>,
    exports: Vec<String>,
    imports: Vec<String>,
    settings: Vec<Setting>,
    message: String,
    /// Remarks that are no faults.
    notes: Vec<String>,
    conformance: Vec<Conformance>,
    refusal: Option<(String, String)>,
}

struct Size {
    bytes: usize,
    packed_bytes: usize,
}

fn check(host: &PolicyHost, source: &BindingSource, rounds: u32) -> CheckedPolicy {
    let component = target::unpacked(source);
    let inspection = component
        .as_ref()
        .and_then(|bytes| host.inspect(bytes).ok());
    let status = host.apply(source);
    let mut checked = CheckedPolicy {
        name: source.name.clone(),
        kind: source.labels.get(POLICY_LABEL).cloned().unwrap_or_default(),
        digest: status.digest.clone(),
        size: component.map(|bytes| Size {
            bytes: bytes.len(),
            packed_bytes: zstd::encode_all(&bytes[..], super::pack::LEVEL).map_or(0, |it| it.len()),
        }),
        exports: inspection
            .as_ref()
            .map_or_else(Vec::new, |it| it.exports.clone()),
        notes: inspection.as_ref().and_then(age).into_iter().collect(),
        settings: inspection
            .as_ref()
            .map_or_else(Vec::new, |it| settings::of(&it.descriptor)),
        imports: inspection.map_or_else(Vec::new, |it| it.imports),
        message: message(source, &status.message),
        conformance: Vec::new(),
        refusal: None,
    };
    if status.state == BindingState::Ready {
        match host.conformance(&source.key(), rounds) {
            Ok(found) => checked.conformance = found,
            Err(error) => checked.refusal = Some(("NotConformant".to_owned(), error.to_string())),
        }
    } else {
        checked.refusal = Some((status.reason, status.message));
    }
    host.remove_binding(&source.key());
    checked
}

/// Whether the component was built with an SDK before this program's: the interface that it exports tells, and its
/// descriptor.
fn age(inspection: &Inspection) -> Option<String> {
    let exports = inspection.exports.iter();
    let of_interface = exports.filter_map(|it| it.rsplit_once('@')?.1.parse().ok());
    let of_sdk = inspection.descriptor.sdk.rsplit(' ').next();
    let of_sdk = of_sdk.and_then(|it| it.parse().ok());
    let version: Version = of_interface.chain(of_sdk).min()?;
    (version < SDK_VERSION).then(|| {
        format!(
            "built with SDK {version}, this program has {SDK_VERSION}: `{program} upgrade FOLDER`, then `{program} build FOLDER`",
            program = program()
        )
    })
}

/// Whether the folder carries an SDK before this program's.
fn age_of_folder(argument: &str) -> Option<String> {
    let folder = Path::new(argument);
    let lang = upgrade::language(folder).ok()?;
    let stamp = VendorStamp::read(folder, lang).ok()?;
    (lang != Language::Expr && stamp.version < SDK_VERSION).then(|| {
        format!(
            "carries SDK {}, this program has {SDK_VERSION}: `{} upgrade {argument}`",
            stamp.version,
            program()
        )
    })
}

/// What the policy says of itself, and what it needs beside the binding.
fn message(source: &BindingSource, says: &str) -> String {
    let authority = source.annotations.get(AUTHORITY_ANNOTATION);
    if authority.is_some_and(|it| it.trim() == "replace") {
        return format!("{says}; a controller binds it with --allow-policy-authority-replace only");
    }
    says.to_owned()
}

impl CheckedPolicy {
    fn is_good(&self) -> bool {
        self.refusal.is_none()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {key:<12} {value}");
        };
        if let Some(digest) = &self.digest {
            line("digest", digest);
        }
        if let Some(size) = &self.size {
            line(
                "size",
                &format!("{} bytes, {} packed", size.bytes, size.packed_bytes),
            );
        }
        if !self.exports.is_empty() {
            line("exports", &self.exports.join(", "));
            line("imports", &self.imports.join(", "));
        }
        for note in &self.notes {
            line("note", note);
        }
        if self.is_good() {
            line("says", &self.message);
            line("samples", "asked twice and in a fresh instance, it agrees");
        }
        for setting in &self.settings {
            line("setting", &settings::text(setting));
        }
        for trial in &self.conformance {
            let share = trial.fuel_most as f64 / trial.fuel_limit as f64 * 100.0;
            line(
                trial.kind.as_str(),
                &format!(
                    "{} made-up rounds answered, at most {share:.1} % of the fuel",
                    trial.rounds
                ),
            );
            for note in &trial.notes {
                line("note", note);
            }
        }
        let verdict = match &self.refusal {
            None => "passes".to_owned(),
            Some((reason, message)) => format!("refused, {reason}: {message}"),
        };
        format!("{} ({}): {verdict}\n{text}", self.name, self.kind)
    }

    fn json(&self) -> Value {
        let conformance: Vec<Value> = self
            .conformance
            .iter()
            .map(|it| {
                json!({
                    "kind": it.kind.as_str(),
                    "rounds": it.rounds,
                    "fuelMost": it.fuel_most,
                    "fuelLimit": it.fuel_limit,
                    "notes": it.notes,
                })
            })
            .collect();
        json!({
            "name": self.name,
            "kind": self.kind,
            "passes": self.is_good(),
            "reason": self.refusal.as_ref().map(|(reason, _)| reason),
            "message": self.refusal.as_ref().map_or(&self.message, |(_, message)| message),
            "digest": self.digest,
            "bytes": self.size.as_ref().map(|size| size.bytes),
            "packedBytes": self.size.as_ref().map(|size| size.packed_bytes),
            "exports": self.exports,
            "imports": self.imports,
            "notes": self.notes,
            "settings": self.settings.iter().map(settings::json).collect::<Vec<_>>(),
            "conformance": conformance,
        })
    }
}
