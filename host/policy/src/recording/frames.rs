//! A recording as bytes: each line is a zstd frame of its own. So what a killed process leaves, the end of a recording
//! and several one after the other can all be read: where a frame is cut, the next one begins with its mark.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::RecordedLine;

/// Level of compression, a quick one: writing is on the decision path.
const LEVEL: i32 = 1;
/// Bytes at the start of every frame.
const MARK: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

impl RecordedLine {
    /// The line as a recording holds it.
    pub fn to_frame(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        zstd::encode_all(&text[..], LEVEL)
    }
}

/// The files of a recording, older first: a ring of two, of which the older one may not be there. Each can be read
/// alone.
pub fn recording_files(file: &Path) -> [PathBuf; 2] {
    let mut older = file.as_os_str().to_owned();
    older.push(".old");
    [older.into(), file.to_owned()]
}

/// The lines of a recording, unpacked one by one: all of them may be much more than there is room for.
pub struct RecordedLines {
    bytes: Vec<u8>,
    at: usize,
    /// Of the last frame.
    texts: VecDeque<String>,
    unreadable: u64,
}

impl RecordedLines {
    /// Of the bytes of a file, or of a part of one.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            at: 0,
            texts: VecDeque::new(),
            unreadable: 0,
        }
    }

    /// Frames so far that were cut off or broken, and were left out.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// The next whole frame.
    fn frame(&mut self) -> Option<String> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let start = rest.windows(MARK.len()).position(|it| it == MARK)?;
            let frame = rest.get(start..)?;
            if let Some((text, bytes)) = unpacked(frame) {
                self.at += start + bytes;
                return Some(text);
            }
            self.unreadable += 1;
            self.at += start + MARK.len();
        }
    }
}

impl Iterator for RecordedLines {
    type Item = Result<RecordedLine, serde_json::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(text) = self.texts.pop_front() else {
                let frame = self.frame()?;
                self.texts = frame.lines().map(str::to_owned).collect();
                continue;
            };
            match serde_json::from_str(&text) {
                // A frame that is put together of two says nothing.
                Err(error) if !error.is_data() => self.unreadable += 1,
                read => return Some(read),
            }
        }
    }
}

/// The text of one frame, and how long the frame is.
fn unpacked(frame: &[u8]) -> Option<(String, usize)> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame)
        .ok()?
        .single_frame();
    let mut text = String::new();
    decoder.read_to_string(&mut text).ok()?;
    let rest = decoder.finish();
    Some((text, frame.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::super::RecordedPolicy;
    use super::*;

    fn line(name: &str) -> RecordedLine {
        let digest = |byte: u8| format!("sha256:{}", format!("{byte:02x}").repeat(32));
        RecordedLine::Policy(RecordedPolicy {
            name: name.to_owned(),
            digest: digest(1),
            config_digest: digest(2),
            config: r#"{"a":1}"#.to_owned(),
            rule: None,
            needs: Vec::new(),
            facts: [].into(),
        })
    }

    fn names(bytes: &[u8]) -> (Vec<String>, u64) {
        let mut lines = RecordedLines::of(bytes.to_vec());
        let names = lines.by_ref().map(|line| match line.unwrap() {
            RecordedLine::Policy(policy) => policy.name,
            RecordedLine::Call(_) => unreachable!("nobody was asked"),
        });
        (names.collect(), lines.unreadable())
    }

    #[test]
    fn wherever_a_recording_is_cut_the_whole_frames_are_read() {
        let frames: Vec<Vec<u8>> = ["one", "two", "three"]
            .iter()
            .map(|it| line(it).to_frame().unwrap())
            .collect();
        let whole = frames.concat();
        assert_eq!(names(&whole).0, ["one", "two", "three"]);
        assert_eq!(names(&whole).1, 0);
        for cut in 1..frames[0].len() {
            // The head is missing.
            let read = names(whole.get(cut..).unwrap());
            assert_eq!(read.0, ["two", "three"], "{cut}");
            // A process was killed, and its successor went on.
            let killed = [&frames[1][..], &frames[0][..cut], &frames[2][..]].concat();
            let read = names(&killed);
            assert_eq!(read.0, ["two", "three"], "{cut}");
        }
        assert!(names(b"no recording").0.is_empty());
    }
}
