//! The book: what it says is tried. Commands run, objects are those that an API server would take, tables hold what
//! the code holds, links lead somewhere.
//!
//! A block of commands runs in the order of its page, in a folder with `charts`, `policies` and `tests` of the project
//! and the files that blocks before it are named after; a block `text output` holds what it prints. Words after the
//! fence say why one does not run here: `needs-cluster`, where another test runs it on a cluster of its own;
//! `needs-runtime`, `needs-account`, `needs-internet`, `builds`, or `run-by:` with the test that runs it.

mod commands;
mod objects;
mod on_a_cluster;
mod page;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use page::Page;
use tests::workspace_root;

/// The page that lists the others.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Links that lead out of the project. Nobody asks the internet here: whoever adds one has looked at it.
const OUTSIDE: [&str; 6] = [
    "https://cel.dev",
    "https://docs.getmoto.org",
    "https://just.systems",
    "https://karpenter.sh",
    "https://karpenter.sh/v1.0/upgrading/v1-migration/",
    "https://keepachangelog.com/en/1.1.0/",
];

/// `a/b/../c` as `a/c`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// What is wrong with a link.
fn fault(page: &Page, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match target {
        "" => page.path.clone(),
        target => normal(&page.path.parent().unwrap().join(target)),
    };
    if !workspace_root().join(&target).exists() {
        return Some(format!("{}: {link}: there is no such file", page.name()));
    }
    if !anchor.is_empty() && !Page::read(&target).anchors().contains(anchor) {
        return Some(format!("{}: {link}: there is no such heading", page.name()));
    }
    None
}

#[test]
fn links_lead_somewhere() {
    let pages = Page::book().into_iter().chain(Page::others());
    let mut links = 0;
    let mut faults = Vec::new();
    for page in pages {
        for link in page.links() {
            links += 1;
            faults.extend(fault(&page, &link));
        }
    }
    assert!(links > 50, "{links} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_that_lead_out_are_those_that_were_looked_at() {
    let pages = Page::book().into_iter().chain(Page::others());
    let links = pages.flat_map(|page| page.links());
    let outside: BTreeSet<String> = links.filter(|it| it.contains("://")).collect();
    assert_eq!(outside, OUTSIDE.map(str::to_owned).into());
}

#[test]
fn files_of_the_reader_begin_with_their_name() {
    for page in Page::book() {
        // The words after a fence are not shown.
        let blocks = page.blocks.iter().filter(|it| it.language == "yaml");
        for (block, file) in blocks.filter_map(|it| Some((it, it.file()?))) {
            let is_named = block.text.lines().next() == Some(&format!("# {file}"));
            assert!(is_named, "{}:{}: no `# {file}`", page.name(), block.line);
        }
    }
}

#[test]
fn the_book_has_every_page_once() {
    let book = Page::book();
    let summary = book.iter().find(|it| it.path == Path::new(SUMMARY));
    let listed = summary.unwrap().links();
    let distinct: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), distinct.len(), "{listed:?}");
    let pages = book.iter().filter(|it| it.path != Path::new(SUMMARY));
    let names = pages.map(|it| it.path.file_name().unwrap().to_string_lossy().into_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), distinct);
    let config = fs::read_to_string(workspace_root().join("docs/book.toml")).unwrap();
    assert!(config.contains("src = \".\""), "{config}");
}

#[test]
fn every_page_has_an_example() {
    for page in Page::book() {
        let is_summary = page.path == Path::new(SUMMARY);
        assert!(is_summary || !page.blocks.is_empty(), "{}", page.name());
    }
}
