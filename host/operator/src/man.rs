//! `mortise man`: manual pages from the same text as `--help`.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::cli::{ManArguments, MortiseCli};
use crate::output::print_text;

pub(crate) fn run(arguments: &ManArguments) -> anyhow::Result<ExitCode> {
    let command = MortiseCli::command();
    if let Some(folder) = &arguments.folder {
        let written = || format!("{}: the pages cannot be written", folder.display());
        fs::create_dir_all(folder).with_context(written)?;
        clap_mangen::generate_to(command, folder).with_context(written)?;
    } else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        print_text(&String::from_utf8_lossy(&page))?;
    }
    Ok(ExitCode::SUCCESS)
}
