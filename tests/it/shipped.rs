//! What ships beside the program: completions, man pages, and the manifest of the kubectl plugin.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::{has_program, run, workspace_root};

/// What `.github/workflows/release.yml` fills in.
const FILLED: [(&str, &str); 4] = [
    ("REPOSITORY", "somebody/mortise"),
    ("VERSION", "1.2.3"),
    ("SHA256_AMD64", "aa"),
    ("SHA256_ARM64", "bb"),
];

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The verbs that `--help` lists.
fn verbs() -> Vec<String> {
    let help = run(["--help"]).stdout();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let verbs = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    verbs.map(|line| words(line)[0].to_owned()).collect()
}

#[test]
fn every_verb_is_completed_and_has_its_page() {
    let folder = std::env::temp_dir().join(format!("mortise-man-{}", std::process::id()));
    let written = run(["man", folder.to_str().unwrap()]);
    assert!(written.is_success(), "{}", written.stderr());
    let scripts =
        ["bash", "zsh", "fish"].map(|shell| (shell, run(["completions", shell]).stdout()));
    let verbs = verbs();
    assert!(verbs.len() > 8, "{verbs:?}");
    for verb in verbs.iter().filter(|it| *it != "help") {
        for (shell, script) in &scripts {
            assert!(script.contains(verb.as_str()), "{shell}: {verb}");
        }
        let page = fs::read_to_string(folder.join(format!("mortise-{verb}.1")));
        assert!(
            page.is_ok_and(|page| page.contains(".SH SYNOPSIS")),
            "{verb}"
        );
    }
    assert!(run(["man"]).stdout().contains(".TH mortise 1"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_program_says_what_it_is_for() {
    let page = run(["man"]).stdout();
    assert!(
        page.contains("A node autoscaler for Kubernetes on EC2"),
        "{page}"
    );
    let help = run(["--help"]).stdout();
    assert!(
        help.starts_with("A node autoscaler for Kubernetes on EC2"),
        "{help}"
    );
    for verb in ["why", "simulate", "doctor"] {
        let help = run([verb, "--help"]).stdout();
        assert!(!help.contains("live view"), "{verb}: {help}");
    }
    assert!(run(["demo", "--help"]).stdout().contains("live view"));
}

#[test]
fn a_shell_reads_its_completions() {
    for shell in ["bash", "zsh", "fish"] {
        if !has_program(shell, "--version") {
            continue;
        }
        let mut child = Command::new(shell)
            .arg("-n")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let script = run(["completions", shell]).stdout();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(script.as_bytes())
            .unwrap();
        assert!(child.wait().unwrap().success(), "{shell}");
    }
}

#[test]
fn the_plugin_is_what_a_release_uploads() {
    let read = |path: &str| fs::read_to_string(workspace_root().join(path)).unwrap();
    let (mut text, workflow) = (
        read(".github/krew.yaml"),
        read(".github/workflows/release.yml"),
    );
    for (place, value) in FILLED {
        assert!(
            workflow.contains(&format!("s|{place}|")),
            "nobody fills in {place}"
        );
        text = text.replace(place, value);
    }
    let plugin: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        plugin["metadata"]["name"], "mortise",
        "kubectl-mortise on the PATH"
    );
    assert_eq!(plugin["spec"]["version"], "v1.2.3");
    let platforms = plugin["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for (platform, sum) in platforms.iter().zip(["aa", "bb"]) {
        let arch = platform["selector"]["matchLabels"]["arch"]
            .as_str()
            .unwrap();
        let uri = platform["uri"].as_str().unwrap();
        let archive = format!("mortise-linux-{arch}.tar.gz");
        assert!(
            uri.ends_with(&format!(
                "somebody/mortise/releases/download/v1.2.3/{archive}"
            )),
            "{uri}"
        );
        assert_eq!(platform["sha256"], sum);
        assert_eq!(platform["bin"], "mortise");
    }
}
