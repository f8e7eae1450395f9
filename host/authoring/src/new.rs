//! `mortise policy new`: a folder with a policy that works, its cases and its manifest.
//!
//! All kinds and languages start from one policy each, so that a folder in one language explains the others.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use policy::{PolicyKind, rule_variables};

use super::vendored::{self, VendorStamp};
use super::{program, say, target, templates};
use crate::arguments::NewArguments;
use crate::language::Language;

pub(super) fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let NewArguments {
        folder,
        lang,
        kind,
        namespace,
    } = arguments;
    let kind = PolicyKind::from(*kind);
    let name = name(folder)?;
    if folder.exists() && fs::read_dir(folder)?.next().is_some() {
        bail!("{} is there already and not empty", folder.display());
    }
    let new = New {
        folder,
        name: &name,
        kind,
    };
    new.write(target::CASES, templates::cases(kind))?;
    new.vendored(*lang)?;
    new.write(target::MANIFEST, new.manifest(namespace, *lang).as_str())?;
    let program = program();
    let steps = match lang {
        Language::Expr => [
            format!("{program} test {}", folder.display()),
            format!(
                "kubectl apply -f {}",
                folder.join(target::MANIFEST).display()
            ),
        ],
        Language::Rust | Language::Js | Language::C | Language::Go => {
            new.sources(*lang)?;
            let folder = folder.display();
            [
                format!("{program} build {folder} && {program} test {folder}"),
                format!("{program} pack {folder} | kubectl apply --server-side -f -"),
            ]
        }
    };
    say(&format!(
        "{} holds a {} policy and its cases. Next:\n  {}\n  {}",
        folder.display(),
        kind.as_str(),
        steps[0],
        steps[1]
    ));
    Ok(ExitCode::SUCCESS)
}

/// The last part of the path, as Kubernetes and cargo take it.
fn name(folder: &Path) -> anyhow::Result<String> {
    let name = folder
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    let is_name = name.starts_with(|it: char| it.is_ascii_lowercase())
        && !name.ends_with('-')
        && name
            .chars()
            .all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-');
    if !is_name {
        bail!("{name:?} names no policy; use lower-case letters, digits and hyphens");
    }
    Ok(name.to_owned())
}

struct New<'a> {
    folder: &'a Path,
    name: &'a str,
    kind: PolicyKind,
}

impl New<'_> {
    fn write(&self, file: &str, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let path = self.folder.join(file);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        }
        fs::write(&path, content).with_context(|| path.display().to_string())
    }

    /// A template with the name of the policy, and of its type in Rust.
    fn write_named(&self, file: &str, template: &str) -> anyhow::Result<()> {
        let words = self.name.split('-');
        let type_name: String = words
            .map(|word| {
                let (first, rest) = word.split_at(word.len().min(1));
                first.to_uppercase() + rest
            })
            .collect();
        let text = template
            .replace("POLICY_NAME", self.name)
            .replace("POLICY_TYPE", &type_name);
        self.write(file, text)
    }

    fn manifest(&self, namespace: &str, lang: Language) -> String {
        let (name, kind) = (self.name, self.kind.as_str());
        let head = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  \
             labels: {{mortise.dev/policy: {kind}}}\n  annotations: {{mortise.dev/mode: enforce}}\n"
        );
        if lang != Language::Expr {
            return format!(
                "# The component is policy.wasm beside this file; `mortise policy pack` puts it in.\n{head}"
            );
        }
        let rule = templates::rule(self.kind);
        format!(
            "{head}data:\n  rule: |\n    {}\n{}",
            rule.trim(),
            vocabulary(self.kind)
        )
    }

    fn sources(&self, lang: Language) -> anyhow::Result<()> {
        match lang {
            Language::Expr => {}
            Language::Rust => {
                self.write_named("Cargo.toml", templates::rust::CARGO)?;
                self.write_named("src/lib.rs", templates::rust::source(self.kind))?;
                self.write(".gitignore", "/target\n")?;
            }
            Language::Js => {
                self.write_named("package.json", templates::js::PACKAGE)?;
                self.write_named("policy.js", templates::js::source(self.kind))?;
                self.write(".gitignore", "/node_modules\n")?;
            }
            Language::Go => {
                self.write_named("go.mod", templates::go::MODULE)?;
                self.write_named("policy.go", templates::go::source(self.kind))?;
                self.write(".gitignore", "/target\n")?;
            }
            Language::C => {
                self.write_named("policy.c", templates::c::source(self.kind))?;
            }
        }
        Ok(())
    }

    /// The SDK, and the stamp by which `upgrade` knows it.
    fn vendored(&self, lang: Language) -> anyhow::Result<()> {
        let files = vendored::files(lang);
        for (file, content) in &files {
            self.write(file, content)?;
        }
        if !files.is_empty() {
            self.write(vendored::STAMP, VendorStamp::of(&files).text())?;
        }
        Ok(())
    }
}

/// What the rule may name, as comments.
fn vocabulary(kind: PolicyKind) -> String {
    let variables = rule_variables(kind);
    let width = variables.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::from(
        "# The rule is an expression in CEL; data.config holds settings, which it reads as config.NAME. It may name\n",
    );
    for variable in variables {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "#   {:<width$}  {}: {}",
            variable.name, variable.type_name, variable.about
        );
    }
    text
}
