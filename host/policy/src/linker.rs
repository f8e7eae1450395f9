//! Everything a guest is granted: a log, and nothing else.

use wasmtime::component::Linker;
use wasmtime::{Engine, Result};

use crate::guest_state::State;
use crate::interface;

pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    interface::add_to_linker(&mut linker)?;
    Ok(linker)
}
