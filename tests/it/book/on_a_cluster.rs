//! Blocks of the book that need a cluster, on one that is theirs alone: `MORTISE_TEST_OWN_KUBECONFIG` names a control
//! plane with kwok for kubelets, of which nothing is left as it was.
//!
//! A page is one script. What it stands on is data (`tests/book/pages.yaml`): what comes before which block, and what
//! is shortened.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tests::workspace_root;

use super::commands::{CLUSTER, Folder, PROGRAMS, has_all, missing, pages, runs_elsewhere};
use super::page::{Block, Page};

const KUBECONFIG: &str = "MORTISE_TEST_OWN_KUBECONFIG";
/// Chooses one page, for whoever works at it.
const ONLY: &str = "MORTISE_TEST_PAGE";
/// Two nodes for pods of charts.
const START: &str =
    "clean || cat clean.log; for node in system-1 system-2; do fake_node $node >/dev/null; done";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chapter {
    page: String,
    /// Whether what needs no cluster runs as well, since blocks that do go on from there.
    #[serde(default)]
    everything: bool,
    /// What is to run before the block with that text in it.
    #[serde(default)]
    before: BTreeMap<String, String>,
    /// What is written instead of a text.
    #[serde(default)]
    instead: BTreeMap<String, String>,
}

fn chapters() -> Vec<Chapter> {
    let text = fs::read_to_string(workspace_root().join("tests/book/pages.yaml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

impl Chapter {
    fn runs(&self, block: &Block) -> bool {
        let is_here = self.everything && !runs_elsewhere(block);
        block.is_shell() && (block.has_word(CLUSTER) || is_here)
    }

    /// What is to be printed on the way.
    fn outputs<'a>(&self, page: &'a Page) -> Vec<&'a Block> {
        let is_ours = |it: &&Block| self.everything && !runs_elsewhere(it) || it.has_word(CLUSTER);
        let outputs = page.blocks.iter().filter(|it| it.has_word("output"));
        outputs.filter(is_ours).collect()
    }

    /// The script of a page: what each block stands on, its place, and the block.
    fn script(&self, page: &Page) -> String {
        let prelude = workspace_root().join("tests/book/prelude.sh");
        let mut script = format!(". {}\n{START}\n", prelude.display());
        for block in page.blocks.iter().filter(|it| self.runs(it)) {
            let mut text = block.text.clone();
            let before = self.before.iter().filter(|(mark, _)| text.contains(*mark));
            for (_, lines) in before {
                script.push_str(lines);
                script.push('\n');
            }
            for (from, to) in &self.instead {
                text = text.replace(from, to);
            }
            let place = format!("{}:{}", page.name(), block.line);
            script.extend(["echo '== ", &place, "'\n", &text]);
        }
        script
    }
}

/// How a page ended: whoever reads of several faults wants to see that of each.
fn end(told: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = told.lines().collect();
    let (left_out, shown) = lines.split_at(lines.len().saturating_sub(LINES));
    let first = left_out.first().unwrap_or(&"");
    format!("{first}\n{}", shown.join("\n"))
}

#[test]
fn what_pages_stand_on_is_of_use() {
    let chapters = chapters();
    for page in pages() {
        let needs_one = page.blocks.iter().any(|it| it.has_word(CLUSTER));
        let chapter = chapters.iter().find(|it| it.page == page.name());
        assert_eq!(needs_one, chapter.is_some(), "{}", page.name());
        let Some(chapter) = chapter else { continue };
        let blocks: Vec<&Block> = page.blocks.iter().filter(|it| chapter.runs(it)).collect();
        for text in chapter.before.keys().chain(chapter.instead.keys()) {
            let found = blocks.iter().filter(|it| it.text.contains(text)).count();
            assert_eq!(found, 1, "{}: {text:?}", page.name());
        }
    }
}

#[test]
fn commands_of_the_book_do_what_it_says_on_a_cluster() {
    let Ok(kubeconfig) = std::env::var(KUBECONFIG) else {
        eprintln!("skipped: {KUBECONFIG} names no cluster that is for the book alone");
        return;
    };
    if !has_all(PROGRAMS.iter()) {
        return;
    }
    let only = std::env::var(ONLY).ok();
    let mut faults = Vec::new();
    for chapter in chapters() {
        if only.as_ref().is_some_and(|it| *it != chapter.page) {
            continue;
        }
        let page = Page::read(Path::new(&chapter.page));
        let folder = Folder::new(&page, "cluster");
        folder.write_files(&page);
        folder.write(".kube/config", &fs::read_to_string(&kubeconfig).unwrap());
        let said = folder.run_as_home(&chapter.script(&page));
        if only.is_some() {
            eprintln!("{said:?}");
        }
        let fault = match &said {
            Ok(printed) => missing(printed, &chapter.outputs(&page))
                .map(|line| format!("not printed: {line}\nin:\n{}", end(printed))),
            Err(told) => Some(end(told)),
        };
        faults.extend(fault.map(|it| format!("{}: {it}", chapter.page)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
