//! Encodes each world of `wit/` for the custom section by which a component says what it implements.
//!
//! The bindings come from one `generate!` over all interfaces (its macros share one namespace, so there
//! can be no second), and that one announces only the world it was given. Here are the other worlds.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use wit_component::StringEncoding;
use wit_parser::Resolve;

const WORLDS: [&str; 4] = [
    "rank-policy",
    "consolidation-policy",
    "budget-policy",
    "full-policy",
];

fn main() -> Result<(), Box<dyn Error>> {
    let wit = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../wit");
    println!("cargo::rerun-if-changed={}", wit.display());
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(&wit)?;
    let out = env::var("OUT_DIR")?;
    for name in WORLDS {
        let world = resolve.select_world(&[package], Some(name))?;
        let section = wit_component::metadata::encode(&resolve, world, StringEncoding::UTF8, None)?;
        fs::write(Path::new(&out).join(name), section)?;
    }
    Ok(())
}
