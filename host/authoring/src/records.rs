//! Recordings for the verbs that read one: both files of a ring in their order, or what a controller serves.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use policy::{RecordedLine, RecordedLines, recording_files};

/// The lines of a recording, older first. What went wrong is told by [`end`](Self::end).
pub(super) struct RecordedFile {
    name: String,
    parts: VecDeque<RecordedLines>,
    lines: u64,
    unreadable: u64,
    fault: Option<anyhow::Error>,
}

impl RecordedFile {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let name = file.display().to_string();
        let [older, newer] = recording_files(file);
        let newer = fs::read(newer).with_context(|| name.clone())?;
        // Only a recording that was longer than its newer file has an older one.
        let older = fs::read(older).ok();
        Ok(Self::of(name, older.into_iter().chain([newer])))
    }

    /// Of bytes from elsewhere.
    pub(super) fn of(name: String, parts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self {
            name,
            parts: parts.into_iter().map(RecordedLines::of).collect(),
            lines: 0,
            unreadable: 0,
            fault: None,
        }
    }

    /// Whether all of it could be read. Half a frame is what a killed process leaves, and no reason to fail.
    pub(super) fn end(self) -> anyhow::Result<()> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.lines == 0 {
            bail!(
                "{} holds no call of a policy; `mortise demo --policy-records FILE` and the controller write recordings",
                self.name
            );
        }
        if self.unreadable > 0 {
            eprintln!(
                "{}: {} frames are cut off and were left out",
                self.name, self.unreadable
            );
        }
        Ok(())
    }
}

impl Iterator for RecordedFile {
    type Item = RecordedLine;

    fn next(&mut self) -> Option<RecordedLine> {
        loop {
            let part = self.parts.front_mut()?;
            match part.next() {
                Some(Ok(line)) => {
                    self.lines += 1;
                    return Some(line);
                }
                Some(Err(error)) => {
                    let place = format!("{}, line {}", self.name, self.lines + 1);
                    self.fault = Some(anyhow::Error::new(error).context(place));
                    self.parts.clear();
                }
                None => {
                    self.unreadable += part.unreadable();
                    self.parts.pop_front();
                }
            }
        }
    }
}
