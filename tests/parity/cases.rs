//! Runs every case below `cases/`, one line each. Words on the command line select by part of the name.

use std::process::ExitCode;

#[expect(
    clippy::print_stdout,
    reason = "a test runner reports on standard output"
)]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let outcomes = match parity::run::all(std::path::Path::new("cases"), &words) {
        Ok(outcomes) => outcomes,
        Err(error) => {
            println!("cannot read the cases: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = 0;
    for outcome in &outcomes {
        match &outcome.fault {
            None => println!("case {} ... ok", outcome.name),
            Some(fault) => {
                failed += 1;
                println!("case {} ... FAILED\n{fault}", outcome.name);
            }
        }
    }
    println!("{} cases, {failed} failed", outcomes.len());
    if failed == 0 && !(outcomes.is_empty() && words.is_empty()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
