//! Reads the files of cases and runs them all.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use scheduling::problem::Packing;
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, solve};

use crate::case::{Case, CaseFile, PackingWord};
use crate::{check, world};

/// How a case went.
#[derive(Debug)]
pub struct Outcome {
    /// File and name of the case.
    pub name: String,
    /// What was wrong, if anything was.
    pub fault: Option<String>,
}

/// Runs every case of a folder whose name contains all the words.
pub fn all(folder: &Path, words: &[String]) -> Result<Vec<Outcome>> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|it| it == "yaml"));
    files.retain(|path| path.file_stem().is_some_and(|it| it != "types"));
    files.sort();
    let mut outcomes = Vec::new();
    for path in files {
        let theme = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let file: CaseFile = read(&path)?;
        let is_chosen = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
        let mut add = |name: &str, run: &dyn Fn() -> Result<()>| {
            let name = format!("{theme}: {name}");
            if is_chosen(&name) {
                let fault = run().err().map(|error| format!("{error:#}"));
                outcomes.push(Outcome { name, fault });
            }
        };
        for (index, value) in file.cases.iter().enumerate() {
            let name = value["name"]
                .as_str()
                .map_or_else(|| format!("case {index}"), str::to_owned);
            add(&name, &|| {
                let case: Case = serde_json::from_value(value.clone())?;
                one(&case)
            });
        }
        for row in &file.requirements {
            add(&row.name(), &|| row.check());
        }
        for row in &file.tolerations {
            add(&row.name(), &|| row.check());
        }
        for row in &file.ports {
            add(&row.name(), &|| row.check());
        }
        for row in &file.eviction_costs {
            add(&row.name, &|| row.check());
        }
        for row in &file.scheduler_configs {
            add(&row.name, &|| row.check());
        }
        for row in &file.requests {
            add(&row.name, &|| row.check());
        }
    }
    Ok(outcomes)
}

fn read(path: &Path) -> Result<CaseFile> {
    let text = fs::read_to_string(path)?;
    let value: serde_json::Value = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    serde_json::from_value(value).with_context(|| path.display().to_string())
}

/// Runs a case under the packings it is about.
pub fn one(case: &Case) -> Result<()> {
    let packings: &[Packing] = match case.when.packing {
        Some(PackingWord::Karpenter) => &[Packing::Karpenter],
        Some(PackingWord::Cost) => &[Packing::Cost],
        None => &[Packing::Karpenter, Packing::Cost],
    };
    let mut faults = Vec::new();
    for packing in packings {
        let world = world::build(case, *packing)?;
        let solution = solve(&world.problem, &PriceRank, &Interrupt::never());
        let found = check::faults(&case.expect, &world, &solution)?;
        if !found.is_empty() {
            let told = check::tell(&world, &solution);
            faults.push(format!(
                "  packing {packing:?}:\n    {}\n{told}",
                found.join("\n    ")
            ));
        }
    }
    anyhow::ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}
