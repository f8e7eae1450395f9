//! What `calls.md` says of each call is so.

use std::fs;

use tests::workspace_root;

/// A row of the table.
struct Row {
    call: String,
    made_by: String,
    has_it: bool,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(workspace_root().join("tests/moto/calls.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut cell = || cells.next().unwrap_or_default().replace('`', "");
        Row {
            call: cell(),
            made_by: cell(),
            has_it: cell() == "has it",
        }
    });
    rows.collect()
}

/// Holds a test to its rows of the table, and prints how often each call was made.
pub(crate) fn assert_made(test: &str, asked: &[String]) {
    let mut missing = Vec::new();
    for Row { call, made_by, .. } in rows() {
        let count = asked.iter().filter(|it| **it == call).count();
        if made_by == test {
            eprintln!("{count:>5} {call}");
            if count == 0 {
                missing.push(call);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "{test} did not make {missing:?}; {asked:?}"
    );
}

#[test]
fn every_call_is_made_and_most_are_answered() {
    let rows = rows();
    let answered = rows.iter().filter(|it| it.has_it).count();
    assert_eq!((rows.len(), answered), (32, 30));
    assert!(
        rows.iter()
            .all(|it| ["life", "refused", "controller"].contains(&it.made_by.as_str()))
    );
}
