//! Prints the table of outcome ids, for `OUTCOMES.md`, or a page with its tables of what to do made anew.

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() -> std::io::Result<()> {
    match std::env::args().nth(1) {
        None => print!("{}", state::ledger::OutcomeId::document()),
        Some(page) => {
            let page = std::fs::read_to_string(page)?;
            print!("{}", state::ledger::OutcomeId::advise(&page));
        }
    }
    Ok(())
}
