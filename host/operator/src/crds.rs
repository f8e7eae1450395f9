//! `mortise crds`: the CustomResourceDefinitions, printed from the Rust types.

use std::process::ExitCode;

use anyhow::bail;

use crate::cli::CrdsArguments;
use crate::output::print_text;

pub(crate) fn run(arguments: &CrdsArguments) -> anyhow::Result<ExitCode> {
    let wanted = arguments.name.as_deref().map(str::to_lowercase);
    let mut text = String::new();
    for crd in apis::crd::all() {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let kind = crd.spec.names.kind.to_lowercase();
        if wanted
            .as_ref()
            .is_none_or(|word| name.contains(word) || kind.contains(word))
        {
            text.push_str("---\n");
            text.push_str(&apis::crd::yaml(&crd)?);
        }
    }
    if text.is_empty() {
        let word = wanted.unwrap_or_default();
        bail!("no CRD is called `{word}`; `mortise crds` prints them all");
    }
    print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}
