//! Writes the definition of every kind into a folder: `cargo run -p apis --example crds -- charts/mortise/crds`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("usage: crds FOLDER")?);
    fs::create_dir_all(&folder)?;
    for crd in apis::crd::all() {
        fs::write(
            folder.join(apis::crd::file_name(&crd)),
            apis::crd::yaml(&crd)?,
        )?;
    }
    Ok(())
}
