//! Helm and kubectl, on charts of the project and on a real API server where one is named.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Names the kubeconfig of a cluster that tests may change.
const KUBECONFIG: &str = "MORTISE_TEST_KUBECONFIG";

/// The kubeconfig of the cluster for tests; says what is skipped where there is none.
pub fn test_cluster(what: &str) -> Option<String> {
    let found = std::env::var(KUBECONFIG).ok();
    if found.is_none() {
        eprintln!("skipped: {KUBECONFIG} names no cluster to try {what} on");
    }
    found
}

/// kubectl with the arguments and an input: what it printed, as `Err` where it failed.
pub fn kubectl(kubeconfig: &str, arguments: &[&str], input: &str) -> Result<String, String> {
    finished(kubectl_command(kubeconfig, arguments), input).map(|said| said.printed)
}

/// Which 1.x of Kubernetes the API server is of.
///
/// # Panics
///
/// When it does not say so.
#[expect(clippy::expect_used, reason = "a test cannot go on without it")]
pub fn minor_version(kubeconfig: &str) -> u32 {
    let told = kubectl(kubeconfig, &["get", "--raw", "/version"], "");
    let told = told.expect("the API server tells its version");
    let told: Value = serde_json::from_str(&told).unwrap_or_default();
    let minor = told["minor"].as_str().unwrap_or_default();
    // Providers mark what is not upstream's.
    let minor = minor.trim_end_matches('+').parse();
    minor.expect("a minor version is a number")
}

/// The same as [`kubectl`] with the warnings of the API server.
pub fn kubectl_with_warnings(
    kubeconfig: &str,
    arguments: &[&str],
    input: &str,
) -> Result<String, String> {
    let said = finished(kubectl_command(kubeconfig, arguments), input)?;
    Ok(said.printed + &said.warned)
}

fn kubectl_command(kubeconfig: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.args(["--kubeconfig", kubeconfig]).args(arguments);
    command
}

/// Helm with the arguments and the input (values, for `--values -`): what it printed, as `Err` where it failed.
pub fn helm(folder: &Path, arguments: &[&str], input: &str) -> Result<String, String> {
    let mut command = Command::new("helm");
    command.current_dir(folder).args(arguments);
    finished(command, input).map(|said| said.printed)
}

struct Said {
    printed: String,
    warned: String,
}

fn finished(mut command: Command, input: &str) -> Result<Said, String> {
    let started = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| error.to_string())?;
    if let Some(mut stdin) = child.stdin.take() {
        // Who ends early does not read it all.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, warned) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() {
        Ok(Said { printed, warned })
    } else {
        Err(warned + &printed)
    }
}
