//! Everything a guest is granted: a log, and nothing else.

use wasmtime::component::Linker;
use wasmtime::{Engine, Result};

use crate::guest::guest_state::GuestState;
use crate::interface;

pub(crate) fn linker(engine: &Engine) -> Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    interface::add_to_linker(&mut linker)?;
    Ok(linker)
}
