//! `mortise policy upgrade`: puts this program's SDK into a folder, and leaves the author's own files alone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::vendored::{self, Files, SDK_VERSION, STAMP, VendorStamp, Version};
use super::{program, say, target, templates};
use crate::arguments::UpgradeArguments;
use crate::language::Language;

/// The interface before which names of records and functions were others.
const RENAMED: Version = Version([0, 2, 0]);

pub(super) fn run(arguments: &UpgradeArguments) -> anyhow::Result<ExitCode> {
    let UpgradeArguments { folder, force } = arguments;
    let lang = language(folder)?;
    if lang == Language::Expr {
        say("A rule carries no SDK: there is nothing to upgrade.");
        return Ok(ExitCode::SUCCESS);
    }
    let files = vendored::files(lang);
    let stamp = VendorStamp::read(folder, lang)?;
    if stamp.version > SDK_VERSION {
        bail!(
            "{} carries SDK {}, and this program {SDK_VERSION}: upgrade the program",
            folder.display(),
            stamp.version
        );
    }
    let plan = UpgradePlan::of(folder, &stamp, &files)?;
    if !plan.changed.is_empty() && !force {
        bail!(
            "changed by hand in {}: {}; move the changes to files of your own, or give --force to lose them",
            folder.display(),
            plan.changed.join(", ")
        );
    }
    plan.apply(folder, &files)?;
    let new = VendorStamp::of(&files);
    if plan.is_empty() && stamp == new && folder.join(STAMP).exists() {
        say(&format!(
            "{} carries SDK {SDK_VERSION} already.",
            folder.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let path = folder.join(STAMP);
    fs::write(&path, new.text()).with_context(|| path.display().to_string())?;
    say(&describe(folder, &plan, stamp.version, lang));
    Ok(ExitCode::SUCCESS)
}

/// What a folder is written in: its files tell.
pub(super) fn language(folder: &Path) -> anyhow::Result<Language> {
    let has = |file: &str| folder.join(file).exists();
    if has("Cargo.toml") {
        Ok(Language::Rust)
    } else if has("package.json") {
        Ok(Language::Js)
    } else if has("policy.c") {
        Ok(Language::C)
    } else if has("go.mod") {
        Ok(Language::Go)
    } else if has(target::MANIFEST) {
        Ok(Language::Expr)
    } else {
        bail!(
            "{} holds no policy; `{} new` makes one",
            folder.display(),
            program()
        )
    }
}

/// What is to be done, by path in the folder.
#[derive(Debug, Default)]
struct UpgradePlan {
    replaced: Vec<String>,
    added: Vec<String>,
    removed: Vec<String>,
    /// Of those, what is neither as it was given nor as it is to be.
    changed: Vec<String>,
}

impl UpgradePlan {
    fn of(folder: &Path, stamp: &VendorStamp, files: &Files) -> anyhow::Result<Self> {
        let mut plan = Self::default();
        let paths: BTreeSet<&String> = stamp.digests.keys().chain(files.keys()).collect();
        for file in paths {
            let found = read(&folder.join(file))?;
            let wanted = files.get(file);
            if found.as_ref() == wanted {
                continue;
            }
            let given = stamp.digests.get(file);
            let as_given = |it: &Vec<u8>| given == Some(&vendored::digest(it));
            if found.as_ref().is_some_and(|it| !as_given(it)) {
                plan.changed.push(file.clone());
            }
            let list = match (&found, wanted) {
                (Some(_), Some(_)) => &mut plan.replaced,
                (Some(_), None) => &mut plan.removed,
                (None, _) => &mut plan.added,
            };
            list.push(file.clone());
        }
        Ok(plan)
    }

    fn is_empty(&self) -> bool {
        self.replaced.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// The stamp comes last: a run that was cut off is done again.
    fn apply(&self, folder: &Path, files: &Files) -> anyhow::Result<()> {
        for file in self.replaced.iter().chain(&self.added) {
            let path = folder.join(file);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
            }
            let content = files.get(file).map(Vec::as_slice).unwrap_or_default();
            fs::write(&path, content).with_context(|| path.display().to_string())?;
        }
        for file in &self.removed {
            let path = folder.join(file);
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn describe(folder: &Path, plan: &UpgradePlan, from: Version, lang: Language) -> String {
    let folder = folder.display();
    let mut lines = vec![if from == SDK_VERSION {
        format!("{folder}: SDK {SDK_VERSION}, as this program has it")
    } else {
        format!("{folder}: SDK {from} -> {SDK_VERSION}")
    }];
    let UpgradePlan {
        replaced,
        added,
        removed,
        changed: _,
    } = plan;
    for (word, files) in [
        ("replaced", replaced),
        ("added", added),
        ("removed", removed),
    ] {
        if !files.is_empty() {
            lines.push(format!("  {word:<9} {}", files.join(" ")));
        }
    }
    if from < RENAMED {
        lines.push("What the source must say otherwise now, as far as it does:".to_owned());
        lines.push(templates::since_0_1(lang).trim_end().to_owned());
    }
    let program = program();
    lines.push(format!(
        "Next:\n  {program} build {folder} && {program} test {folder} && {program} check {folder}"
    ));
    lines.join("\n")
}
