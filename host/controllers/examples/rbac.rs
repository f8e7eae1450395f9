//! Writes the rules of the chart's roles:
//! `cargo run -p controllers --example rbac -- charts/mortise/templates/_rules.tpl`.

use std::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args_os().nth(1).ok_or("usage: rbac FILE")?;
    fs::write(file, controllers::rbac::template())?;
    Ok(())
}
