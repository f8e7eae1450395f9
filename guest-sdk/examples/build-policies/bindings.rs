//! The bindings of the SDK as plain code, for policies outside this repository.

use std::fs;
use std::path::Path;

use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_component::StringEncoding;
use wit_parser::Resolve;

use super::Result;

const WORLDS: [&str; 4] = [
    "rank-policy",
    "consolidation-policy",
    "budget-policy",
    "full-policy",
];

const HEAD: &str = "\
//! The ABI of the interface, generated.

#![allow(
    missing_docs,
    unreachable_pub,
    elided_lifetimes_in_paths,
    clippy::all,
    clippy::pedantic,
    reason = \"generated\"
)]

";

const WORLDS_MODULE: &str = "
/// The encoded worlds.
pub mod worlds {
    pub const RANK: &[u8] = include_bytes!(\"worlds/rank-policy\");
    pub const CONSOLIDATION: &[u8] = include_bytes!(\"worlds/consolidation-policy\");
    pub const BUDGETS: &[u8] = include_bytes!(\"worlds/budget-policy\");
    pub const FULL: &[u8] = include_bytes!(\"worlds/full-policy\");

    pub const fn section<const N: usize>(world: &[u8]) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(world);
        bytes
    }
}
";

/// Writes `bindings.rs.in` and the encoded worlds.
pub(crate) fn write(repository: &Path) -> Result<()> {
    let folder = repository.join("guest-sdk/templates/rust");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(repository.join("wit"))?;
    fs::create_dir_all(folder.join("worlds"))?;
    for name in WORLDS {
        let world = resolve.select_world(&[package], Some(name))?;
        let section = wit_component::metadata::encode(&resolve, world, StringEncoding::UTF8, None)?;
        fs::write(folder.join("worlds").join(name), section)?;
    }
    let options = wit_bindgen_rust::Opts {
        format: true,
        pub_export_macro: true,
        export_macro_name: Some("export_everything".to_owned()),
        default_bindings_module: Some("guest_sdk::__private::types".to_owned()),
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        ..wit_bindgen_rust::Opts::default()
    };
    let mut files = Files::default();
    let world = resolve.select_world(&[package], Some("full-policy"))?;
    options.build().generate(&mut resolve, world, &mut files)?;
    let (_, generated) = files.iter().next().ok_or("nothing was generated")?;
    let generated = String::from_utf8(generated.to_vec())?;
    fs::write(
        folder.join("bindings.rs.in"),
        [HEAD, &generated, WORLDS_MODULE].concat(),
    )?;
    Ok(())
}
