//! Log lines of a test, kept for it to read.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use locks::lock;

/// A writer of a log; clones write into the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoggedLines(Arc<Mutex<Vec<u8>>>);

impl LoggedLines {
    pub(crate) fn text(&self) -> String {
        let bytes = lock(&self.0);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for LoggedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = lock(&self.0);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
