//! Prints a page of the book with its tables of metrics made anew.

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn main() -> std::io::Result<()> {
    for page in std::env::args().skip(1) {
        let page = std::fs::read_to_string(page)?;
        print!("{}", controllers::metrics_page(&page));
    }
    Ok(())
}
