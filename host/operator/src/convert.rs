//! `mortise convert`: objects of older Karpenters and groups of Cluster Autoscaler as objects of v1.
//!
//! Reads, asks an API server in process whether it would take what came of it, and prints. What becomes of what is
//! decided in the crate `convert`. Asks no cluster.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::convert::{Conversion, ConversionInput, ConversionOptions, convert, to_list, to_yaml};
use anyhow::Context as _;
use api_server::{ApiServer, Resource, WriteOptions};
use jiff::Timestamp;
use serde_json::Value;

use crate::cli::{ConvertArguments, ObjectsOutput};
use crate::output::print_text;

/// Exit code 0 when everything was converted, 1 when something was left out or lost, 2 when the input cannot be used.
pub(crate) fn run(arguments: &ConvertArguments) -> anyhow::Result<ExitCode> {
    let mut input = ConversionInput::default();
    for path in &arguments.files {
        read(path, &mut input)?;
    }
    if input.sources.is_empty() && input.unread.is_empty() {
        anyhow::bail!("no object was given");
    }
    let options = ConversionOptions {
        cluster_name: arguments.cluster_name.clone(),
        role: arguments.role.clone(),
        instance_profile: arguments.instance_profile.clone(),
        ami_alias: arguments.ami_alias.clone(),
        node_claims: arguments.node_claims,
    };
    let server = server()?;
    let conversion = convert(&input, &options, &|object| refusal(&server, object));
    write(arguments, conversion)
}

fn write(arguments: &ConvertArguments, conversion: Conversion) -> anyhow::Result<ExitCode> {
    let Conversion {
        objects,
        values,
        report,
    } = conversion;
    match &arguments.report {
        Some(file) => fs::write(file, report.to_string())
            .with_context(|| format!("writing {}", file.display()))?,
        None => eprint!("{report}"),
    }
    if let Some(file) = arguments.values.as_deref().filter(|_| !values.is_null()) {
        let text = to_yaml(&[values]).map_err(anyhow::Error::msg)?;
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    match arguments.output {
        ObjectsOutput::Yaml => print_text(&to_yaml(&objects).map_err(anyhow::Error::msg)?)?,
        ObjectsOutput::Json => {
            print_text(&format!("{:#}\n", to_list(objects)))?;
        }
    }
    Ok(if report.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Adds what a file, a folder of them or standard input holds.
pub(crate) fn read(path: &Path, input: &mut ConversionInput) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("reading standard input")?;
        input.add("standard input", &text);
        return Ok(());
    }
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = manifests(path)?;
    }
    for file in files {
        let name = file.display().to_string();
        let text = fs::read_to_string(&file).with_context(|| format!("reading {name}"))?;
        input.add(&name, &text);
    }
    Ok(())
}

fn manifests(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let extension = path.extension().and_then(|it| it.to_str());
        if extension.is_some_and(|it| ["yaml", "yml", "json"].contains(&it)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A server that knows our definitions and holds nothing.
fn server() -> anyhow::Result<ApiServer> {
    let server = ApiServer::new(1, Arc::new(|| Timestamp::UNIX_EPOCH));
    for definition in apis::crd::all() {
        server
            .install_crd(&definition)
            .map_err(|status| anyhow::anyhow!("installing the definitions: {status}"))?;
    }
    Ok(server)
}

/// Why a cluster would not take the object, if so: asked by a dry run, so that none stands in the way of another.
fn refusal(server: &ApiServer, object: &Value) -> Option<String> {
    let definition = apis::crd::all()
        .into_iter()
        .find(|it| object["kind"] == it.spec.names.kind.as_str())?;
    let resource = Resource::new(definition.spec.group, definition.spec.names.plural);
    let dry_run = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let taken = server.create_with(&resource, "", object.clone(), &dry_run);
    taken.err().map(|status| status.to_string())
}
