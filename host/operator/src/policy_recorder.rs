//! Writes what policies were asked and answered to a file, for `mortise policy replay`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use policy::{RecordedLine, Recorder};

/// A recording ends here: nobody watches its size.
const BYTES_MAX: usize = 1 << 30;
/// Quick: it is on the decision path.
const LEVEL: i32 = 1;

/// A file of zstd frames, one a line, so that a killed process leaves all but its last.
pub(crate) struct FileRecorder {
    out: Mutex<Option<(File, usize)>>,
}

impl FileRecorder {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(Self {
            out: Mutex::new(Some((file, 0))),
        })
    }
}

impl Recorder for FileRecorder {
    fn record(&self, line: &RecordedLine) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((file, written)) = out.as_mut() else {
            return;
        };
        let kept = serde_json::to_string(line)
            .map_err(std::io::Error::from)
            .and_then(|text| zstd::encode_all(format!("{text}\n").as_bytes(), LEVEL))
            .and_then(|frame| file.write_all(&frame).map(|()| frame.len()));
        match kept {
            Ok(bytes) => *written += bytes,
            Err(error) => {
                tracing::warn!(%error, "calls of policies are no longer recorded");
                *out = None;
                return;
            }
        }
        if *written > BYTES_MAX {
            tracing::warn!(bytes = *written, "the recording of policies is full");
            *out = None;
        }
    }
}
