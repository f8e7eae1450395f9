//! Prints the table of outcome ids, for `OUTCOMES.md`.

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() {
    print!("{}", state::ledger::OutcomeId::document());
}
