//! A page of the book as its tests see it: headings, links, tables and fenced blocks. Knows no more of Markdown than
//! these pages use.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tests::workspace_root;

/// A file in Markdown.
pub(crate) struct Page {
    /// Its path below the root of the project.
    pub(crate) path: PathBuf,
    /// Its lines outside fenced blocks.
    prose: Vec<String>,
    /// Its headings, signs and all, with their lines from 1.
    pub(crate) headings: Vec<(usize, String)>,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block.
pub(crate) struct Block {
    /// Where it opens, from 1.
    pub(crate) line: usize,
    /// The first word after the fence.
    pub(crate) language: String,
    /// The words after that.
    pub(crate) words: Vec<String>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }

    pub(crate) fn is_shell(&self) -> bool {
        ["sh", "bash", "shell", "console"].contains(&self.language.as_str())
    }

    /// The file that the reader is to make of it.
    pub(crate) fn file(&self) -> Option<&str> {
        let mut names = self.words.iter().map(String::as_str);
        names.find(|it| it.contains('.') && !it.starts_with("run-by:"))
    }
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(workspace_root().join(path)).unwrap();
        let mut page = Self {
            path: path.to_owned(),
            prose: Vec::new(),
            headings: Vec::new(),
            blocks: Vec::new(),
        };
        let mut open: Option<(String, Block)> = None;
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            let fence: String = trimmed.chars().take_while(|it| *it == '`').collect();
            match open.take() {
                Some((opened, block)) if trimmed == opened => page.blocks.push(block),
                Some((opened, mut block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                    open = Some((opened, block));
                }
                None if fence.len() >= 3 => {
                    let mut words = trimmed[fence.len()..].split_whitespace();
                    let block = Block {
                        line: number + 1,
                        language: words.next().unwrap_or_default().to_owned(),
                        words: words.map(str::to_owned).collect(),
                        text: String::new(),
                    };
                    open = Some((fence, block));
                }
                None => {
                    if line.starts_with('#') {
                        page.headings.push((number + 1, line.to_owned()));
                    }
                    page.prose.push(line.to_owned());
                }
            }
        }
        assert!(open.is_none(), "{}: a block has no end", path.display());
        page
    }

    /// Pages of the book, by path.
    pub(crate) fn book() -> Vec<Self> {
        let entries = fs::read_dir(workspace_root().join("docs")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_page = |it: &String| Path::new(it).extension().is_some_and(|it| it == "md");
        let pages: BTreeSet<String> = names.filter(is_page).collect();
        assert!(pages.len() > 5, "{pages:?}");
        let paths = pages.iter().map(|it| Path::new("docs").join(it));
        paths.map(|path| Self::read(&path)).collect()
    }

    /// Pages that people read first, outside the book.
    pub(crate) fn others() -> Vec<Self> {
        let paths = [
            "README.md",
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "STYLE.md",
            "policies/README.md",
        ];
        paths.map(|it| Self::read(Path::new(it))).into()
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The table rows as cells, headings left out.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let lines = self.prose.iter().map(String::as_str);
        let rows = lines.filter(|line| line.starts_with("| ") && !line.starts_with("| -"));
        rows.map(|row| {
            let row = row.trim().trim_matches('|').replace("\\|", "\u{0}");
            let cells = row.split('|');
            let cells = cells.map(|cell| cell.trim().replace('\u{0}', "|"));
            cells.collect()
        })
        .collect()
    }

    /// Headings of a level with the blocks that follow them, up to the next heading of any.
    pub(crate) fn topics(&self, level: &str) -> Vec<(&str, Vec<&Block>)> {
        let mut topics = Vec::new();
        for (index, (start, heading)) in self.headings.iter().enumerate() {
            let end = self.headings.get(index + 1).map_or(usize::MAX, |it| it.0);
            if let Some(topic) = heading.strip_prefix(level) {
                let blocks = self.blocks.iter();
                let blocks = blocks.filter(|it| (*start..end).contains(&it.line));
                topics.push((topic, blocks.collect()));
            }
        }
        topics
    }

    /// Where links may go to within it.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let headings = self.headings.iter();
        let headings = headings.map(|(_, line)| line.trim_start_matches('#').trim());
        headings.map(anchor).collect()
    }

    /// Targets of links, with anchors, as they are written.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose = without_code(&self.prose.join("\n"));
        let targets = prose.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split(')').next());
        targets.map(str::to_owned).collect()
    }
}

/// What of a text is not between backticks.
fn without_code(text: &str) -> String {
    // Where the text of a link is code its end is code, too: `]` follows the backtick, so that the target is kept.
    text.split('`').step_by(2).collect()
}

/// The anchor of a heading, on GitHub as in mdBook.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        it if it.is_alphanumeric() => Some(it.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[test]
fn anchors_are_those_of_github() {
    let cases = [
        ("Rights on AWS", "rights-on-aws"),
        (
            "`mortise why`: what was decided",
            "mortise-why-what-was-decided",
        ),
    ];
    for (heading, expected) in cases {
        assert_eq!(anchor(heading), expected);
    }
}
