//! `mortise why`: asks the ledger of a running controller about one object.
//!
//! Changes nothing there.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use state::ledger::{Subject, Why};

use crate::cli::WhyArguments;
use crate::http::LEDGER_PATH;
use crate::output::print;
use crate::running_controller::ask;

pub(crate) fn run(arguments: &WhyArguments) -> anyhow::Result<ExitCode> {
    if Subject::parse(&arguments.kind, &arguments.name).is_none() {
        bail!(
            "`{}` is none of node, pod, claim or nodepool",
            arguments.kind
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let path = format!(
        "{LEDGER_PATH}?kind={}&name={}",
        arguments.kind,
        arguments.name.replace('/', "%2F")
    );
    let json = runtime.block_on(ask(&arguments.controller, &path))?;
    let why: Why = serde_json::from_slice(&json).with_context(|| {
        let json = String::from_utf8_lossy(&json);
        format!("the controller answered something else: {json}")
    })?;
    print(arguments.output, &why, || why.to_string())?;
    Ok(if why.steps.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
