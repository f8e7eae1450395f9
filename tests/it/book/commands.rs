//! Commands of the book: each page is a script, and what cannot run here is at least a command that there is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::{has_program, mortise, workspace_root};

use super::page::{Block, Page};

/// The word of blocks that a cluster is needed for, which [`super::on_a_cluster`] runs.
pub(crate) const CLUSTER: &str = "needs-cluster";
/// Why a block does not run here.
const NEEDS: [&str; 5] = [
    CLUSTER,
    "needs-runtime",
    "needs-account",
    "needs-internet",
    "builds",
];
/// The test that runs a block, a file beside this one.
const RUN_BY: &str = "run-by:";
/// What a page may take.
const SECONDS_MAX: &str = "300";
/// Programs without which a page is passed over, each with an argument that shows whether it is there.
pub(crate) const PROGRAMS: [(&str, &str); 2] = [("kubectl", "help"), ("helm", "version")];
/// Topics that the handbook has at least.
const TOPICS_MIN: usize = 26;
/// Folders of the project that commands may name.
const FOLDERS: [&str; 4] = ["charts", "docs", "policies", "tests"];

pub(crate) fn runs_elsewhere(block: &Block) -> bool {
    let is_reason = |it: &String| NEEDS.contains(&it.as_str()) || it.starts_with(RUN_BY);
    block.words.iter().any(is_reason)
}

pub(crate) fn has_all<'a>(
    mut programs: impl Iterator<Item = &'a (&'static str, &'static str)>,
) -> bool {
    programs.all(|(it, argument)| has_program(it, argument))
}

/// Pages whose commands are tried.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages = Page::book();
    pages.push(Page::read(Path::new("README.md")));
    pages
}

/// A folder that goes when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// An empty one for that page; what it is for tells apart those that there are at once.
    pub(crate) fn new(page: &Page, purpose: &str) -> Self {
        let name = page.path.file_stem().unwrap().to_string_lossy();
        let path = format!("mortise-{name}-{purpose}-{}", std::process::id());
        let path = std::env::temp_dir().join(path);
        fs::create_dir_all(path.join("bin")).unwrap();
        symlink(mortise(), path.join("bin/mortise")).unwrap();
        for folder in FOLDERS {
            symlink(workspace_root().join(folder), path.join(folder)).unwrap();
        }
        Self(path)
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let file = self.0.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Writes what blocks of the page are files for.
    pub(crate) fn write_files(&self, page: &Page) {
        let is_file = |it: &&Block| !it.is_shell() && !it.has_word("output");
        for block in page.blocks.iter().filter(is_file) {
            if let Some(file) = block.file() {
                self.write(file, &block.text);
            }
        }
    }

    /// What the script prints, errors among the rest; processes that it leaves behind end with it.
    fn run(&self, script: &str) -> Result<String, String> {
        Self::finish(script, self.command())
    }

    /// The same where the folder is the home of who runs it, whose kubeconfig is where kubectl looks for it.
    pub(crate) fn run_as_home(&self, script: &str) -> Result<String, String> {
        let mut command = self.command();
        command.env("HOME", &self.0);
        Self::finish(script, command)
    }

    /// A program that ends in time, in the folder.
    fn command(&self) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("timeout");
        command
            .current_dir(&self.0)
            .env("PATH", format!("{}:{path}", self.0.join("bin").display()))
            .env_remove("KUBECONFIG");
        command
    }

    fn finish(script: &str, mut command: Command) -> Result<String, String> {
        let script = format!(
            "set -eo pipefail; exec 2>&1; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
        );
        let output = command.args([SECONDS_MAX, "bash", "-c", &script]).output();
        let output = output.unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            Ok(printed)
        } else {
            Err(format!("{}\n{printed}", output.status))
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether the pieces between dots of a line follow each other in what was printed.
fn is_like(printed: &str, line: &str) -> bool {
    let mut rest = printed;
    line.split("..").all(|piece| match rest.find(piece.trim()) {
        Some(place) => {
            rest = &rest[place + piece.trim().len()..];
            true
        }
        None => false,
    })
}

/// The first line of a block of output that was not printed, in the order of the page.
pub(crate) fn missing(printed: &str, blocks: &[&Block]) -> Option<String> {
    let mut lines = printed.lines();
    let wanted = blocks.iter().flat_map(|block| block.text.lines());
    let mut wanted = wanted.filter(|line| !line.trim().is_empty());
    let missing = wanted.find(|line| !lines.any(|printed| is_like(printed, line)));
    missing.map(str::to_owned)
}

/// What comes of the page, where it has anything to run.
fn follow(page: &Page) -> Result<(), String> {
    let (mut script, mut outputs) = (String::new(), Vec::new());
    let folder = Folder::new(page, "here");
    folder.write_files(page);
    for block in page.blocks.iter().filter(|it| !runs_elsewhere(it)) {
        if block.is_shell() {
            script.push_str(&block.text);
        } else if block.has_word("output") {
            outputs.push(block);
        }
    }
    if !has_all(PROGRAMS.iter().filter(|(it, _)| script.contains(it))) {
        return Ok(());
    }
    let printed = folder.run(&script)?;
    match missing(&printed, &outputs) {
        Some(line) => Err(format!("not printed: {line}\nin:\n{printed}")),
        None => Ok(()),
    }
}

#[test]
fn commands_of_the_book_do_what_it_says() {
    let mut faults = Vec::new();
    for page in pages() {
        let fault = follow(&page).err();
        faults.extend(fault.map(|it| format!("{}: {it}", page.name())));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn every_topic_of_the_handbook_has_an_example_that_is_tried() {
    let page = Page::read(Path::new("docs/handbook.md"));
    let topics = page.topics("### ");
    assert!(topics.len() >= TOPICS_MIN, "{} topics", topics.len());
    // Commands run here or on a cluster; objects and values are held against the definitions and the chart.
    let is_tried = |block: &&Block| {
        let is_run = block.is_shell() && !block.has_word("needs-account");
        is_run || block.language == "yaml"
    };
    for (topic, blocks) in topics {
        assert!(blocks.iter().any(is_tried), "{topic} has no example");
    }
}

#[test]
fn commands_that_others_run_are_theirs() {
    let mut found = 0;
    for page in pages() {
        let words = page.blocks.iter().flat_map(|block| &block.words);
        for test in words.filter_map(|word| word.strip_prefix(RUN_BY)) {
            let file = workspace_root().join("tests/it").join(test);
            let source = fs::read_to_string(&file).unwrap_or_default();
            assert!(source.contains(&page.name()), "{}: {test}", page.name());
            found += 1;
        }
    }
    assert!(found > 0);
}

/// The text of `--help` of the verbs, by verb.
#[derive(Default)]
struct Help(BTreeMap<Vec<String>, String>);

impl Help {
    fn of(&mut self, verb: &[String]) -> &str {
        self.0.entry(verb.to_vec()).or_insert_with(|| {
            let output = Command::new(mortise()).args(verb).arg("--help").output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        })
    }

    /// What is wrong with a command, as far as its verb and its flags go.
    fn fault(&mut self, command: &str) -> Option<String> {
        let words = command.split_whitespace().map(str::to_owned);
        let words: Vec<String> = words.skip(1).collect();
        let length = if words.first().is_some_and(|it| it == "policy") {
            2
        } else {
            1
        };
        let verb = &words[..length.min(words.len())];
        let help = self.of(verb);
        if help.is_empty() {
            return Some(format!("{command}: there is no such verb"));
        }
        let flags = words.iter().filter(|it| it.starts_with("--"));
        let mut names = flags.filter_map(|it| it.split('=').next());
        let unknown = names
            .find(|it| !help.contains(&format!("{it} ")) && !help.contains(&format!("{it}\n")));
        unknown.map(|flag| format!("{command}: {flag} is not known"))
    }
}

/// The calls of `mortise` in a script, each with its flags.
fn calls(script: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().filter_map(|line| line.split(" #").next());
    let commands = lines.flat_map(|line| line.split(['|', ';', '&', '$']));
    let commands = commands.map(|it| it.trim().trim_start_matches(['(', ' ']).to_owned());
    commands.filter(|it| it.starts_with("mortise ")).collect()
}

#[test]
fn commands_that_do_not_run_here_are_commands_all_the_same() {
    let (mut help, mut faults, mut found) = (Help::default(), Vec::new(), 0);
    for page in pages() {
        let shell = page.blocks.iter().filter(|it| it.is_shell());
        for block in shell.filter(|it| runs_elsewhere(it)) {
            let parsed = Command::new("bash")
                .args(["-n", "-c", &block.text])
                .output();
            let parsed = parsed.unwrap();
            let place = format!("{}:{}", page.name(), block.line);
            assert!(parsed.status.success(), "{place}: {parsed:?}");
            for call in calls(&block.text) {
                found += 1;
                let fault = help.fault(&call);
                faults.extend(fault.map(|it| format!("{place}: {it}")));
            }
        }
    }
    assert!(found > 5, "{found} calls were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn blocks_of_commands_say_who_runs_them() {
    for page in pages() {
        for block in page.blocks.iter().filter(|it| it.is_shell()) {
            let place = format!("{}:{}", page.name(), block.line);
            assert_eq!(block.language, "sh", "{place}");
            let is_known = |it: &String| NEEDS.contains(&it.as_str()) || it.starts_with(RUN_BY);
            assert!(
                block.words.iter().all(is_known),
                "{place}: {:?}",
                block.words
            );
        }
    }
}
