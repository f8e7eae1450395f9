//! `mortise policy build`: from sources to a component. What language it is shows in the files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use policy::PolicyKind;
use policy::binding_keys::POLICY_LABEL;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::{say, target, templates, toolchain, upgrade};
use crate::arguments::BuildArguments;
use crate::language::Language;
use crate::manifests::Manifests;

/// Memory that a guest in C may use without growing it: the shadow stack.
const C_STACK_BYTES: &str = "-Wl,-z,stack-size=65536";
/// Where a module of Go imports what its runtime asks for.
const GO_WASI: &str = "wasi_snapshot_preview1";

pub(super) fn run(arguments: &BuildArguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let component = match upgrade::language(folder)? {
        Language::Rust => of_rust(folder)?,
        Language::Js => of_js(folder)?,
        Language::C => of_c(folder)?,
        Language::Go => of_go(folder)?,
        Language::Expr => {
            say("A rule is its own source: there is nothing to build.");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let out = arguments
        .out
        .clone()
        .unwrap_or_else(|| folder.join(target::COMPONENT));
    fs::write(&out, &component).with_context(|| out.display().to_string())?;
    let packed = zstd::encode_all(&component[..], super::pack::LEVEL)?.len();
    say(&format!(
        "{}: {} bytes, {packed} packed",
        out.display(),
        component.len()
    ));
    Ok(ExitCode::SUCCESS)
}

fn of_rust(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let target_dir =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    let target_dir = absolute(&target_dir)?;
    run_tool(
        toolchain::cargo_build(&target_dir)?.current_dir(folder),
        "cargo",
    )?;
    let name = package_name(folder)?.replace('-', "_");
    let module = toolchain::modules_folder(&target_dir).join(format!("{name}.wasm"));
    let module = fs::read(&module)
        .with_context(|| format!("{}: is its crate-type cdylib?", module.display()))?;
    encoded(&module)
}

fn package_name(folder: &Path) -> anyhow::Result<String> {
    let output = Command::new("cargo")
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(folder)
        .output()
        .context("cargo does not run")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)
        .context("cargo metadata does not say what the package is called")?;
    let name = metadata["packages"][0]["name"].as_str();
    Ok(name.context("the package has no name")?.to_owned())
}

fn of_js(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let tool = "node_modules/componentize-qjs/bin/componentize-qjs";
    if !folder.join(tool).exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"])
            .current_dir(folder);
        run_tool(&mut npm, "npm (it comes with Node)")?;
    }
    let out = folder.join("target");
    fs::create_dir_all(&out)?;
    let mut node = Command::new("node");
    node.current_dir(folder)
        .args([
            tool,
            "--wit",
            "wit",
            "--js",
            "policy.js",
            "--module-root",
            ".",
        ])
        .args(["--stub-wasi", "--opt-size", "--sync", "--minify"])
        .args(["--world", world(folder)?, "--output", "target/policy.wasm"]);
    run_tool(&mut node, "node")?;
    Ok(fs::read(out.join(target::COMPONENT))?)
}

/// A core module without a library, made a component of the world that the manifest's kind has.
fn of_c(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let out = folder.join("target");
    fs::create_dir_all(&out)?;
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(clang);
    command
        .current_dir(folder)
        .args([
            "--target=wasm32-unknown-unknown",
            "-O2",
            "-nostdlib",
            "-ffreestanding",
        ])
        .args([
            "-Wall",
            "-Wextra",
            "-Wl,--no-entry",
            C_STACK_BYTES,
            "-Wl,--strip-all",
        ])
        .args(["policy.c", "-o", "target/module.wasm"]);
    run_tool(
        &mut command,
        "clang (it needs the target wasm32, and wasm-ld beside it)",
    )?;
    let module = with_interface(folder, &out.join("module.wasm"))?;
    encoded(&module)
}

/// A core module of Go's runtime, whose questions to WASI are answered inside the component: a host has no WASI.
fn of_go(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let out = folder.join("target");
    fs::create_dir_all(&out)?;
    let mut command = go_command();
    command
        .current_dir(folder)
        .args(["-buildmode=c-shared", "-o", "target/module.wasm", "."]);
    run_tool(
        &mut command,
        "go (1.24 or later; without it, tinygo is looked for, or what TINYGO names)",
    )?;
    let module = with_interface(folder, &out.join("module.wasm"))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .adapter(GO_WASI, templates::go::WASI)?
        .encode()
        .context("the module does not fit the interface")
}

/// Go itself; TinyGo, whose components are a tenth of the size, where it is named or the only one.
fn go_command() -> Command {
    let named = env::var_os("TINYGO");
    let has = |name: &str| Command::new(name).arg("version").output().is_ok();
    if named.is_none() && (has("go") || !has("tinygo")) {
        let mut go = Command::new("go");
        // Nothing is fetched: all that the folder needs is in it.
        go.envs([
            ("GOOS", "wasip1"),
            ("GOARCH", "wasm"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
            ("GOWORK", "off"),
        ]);
        go.args(["build", "-trimpath", "-ldflags=-s -w"]);
        return go;
    }
    let mut tinygo = Command::new(named.unwrap_or_else(|| "tinygo".into()));
    tinygo.args(["build", "-target=wasip1", "-opt=2", "-no-debug"]);
    tinygo
}

/// The module with the interface of the folder's kind, as the encoder wants to be told.
fn with_interface(folder: &Path, module: &Path) -> anyhow::Result<Vec<u8>> {
    let mut module = fs::read(module).with_context(|| module.display().to_string())?;
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder.join("wit"))?;
    let world = resolve.select_world(&[package], Some(world(folder)?))?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    Ok(module)
}

fn encoded(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .encode()
        .context("the module does not fit the interface")
}

/// The world of the kind that the manifest names.
fn world(folder: &Path) -> anyhow::Result<&'static str> {
    let manifest = folder.join(target::MANIFEST);
    let manifests = Manifests::read(
        std::slice::from_ref(&manifest),
        &std::collections::BTreeMap::new(),
    );
    let labels = manifests
        .documents
        .first()
        .map(|document| document.object["metadata"]["labels"][POLICY_LABEL].clone());
    let label = labels.as_ref().and_then(serde_json::Value::as_str);
    Ok(match label {
        Some(label) if label == PolicyKind::Rank.as_str() => "rank-policy",
        Some(label) if label == PolicyKind::Consolidation.as_str() => "consolidation-policy",
        Some(label) if label == PolicyKind::Budgets.as_str() => "budget-policy",
        Some("full") => "full-policy",
        _ => bail!(
            "{} does not say which kind of policy it is",
            manifest.display()
        ),
    })
}

fn run_tool(command: &mut Command, name: &str) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{name} does not run; is it installed?"))?;
    if !status.success() {
        bail!("{name} failed: {status}");
    }
    Ok(())
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}
