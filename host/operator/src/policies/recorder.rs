//! Writes what policies were asked and answered to a file, for those who replay it.
//!
//! The recording is a ring of two files: what was written first goes when its room is needed. Each file tells of every
//! policy that its calls name, so that it can be read alone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context as _;
use locks::lock;
use policy::{
    CallRecorder, PolicyIdentity, RecordedCall, RecordedLine, RecordedPolicy, recording_files,
};

/// Sixteenths of the room that each of the two files takes: a volume of that size is never full.
const SIXTEENTHS: u64 = 7;
/// Less than this holds no round of a large cluster.
const BYTES_MIN: u64 = 1 << 20;

/// A recording that is being written.
pub(crate) struct FileRecorder {
    /// Nothing once writing has failed.
    ring: Mutex<Option<Ring>>,
}

struct Ring {
    files: [PathBuf; 2],
    bytes_max: u64,
    newer: File,
    written: u64,
    /// Policies that the newer file tells of, by digests.
    introduced: BTreeSet<PolicyIdentity>,
}

impl FileRecorder {
    /// A recording of its own, in the place of what there was.
    pub(crate) fn create(file: &Path, bytes: u64) -> anyhow::Result<Self> {
        for old in recording_files(file) {
            remove(&old).with_context(|| old.display().to_string())?;
        }
        Self::resume(file, bytes)
    }

    /// Goes on with a recording: what the process before has written last stays as the older file.
    pub(crate) fn resume(file: &Path, bytes: u64) -> anyhow::Result<Self> {
        let files = recording_files(file);
        let why = || {
            format!(
                "{}: the recording of policies cannot be written",
                file.display()
            )
        };
        if fs::metadata(file).is_ok_and(|it| it.len() > 0) {
            fs::rename(file, &files[0]).with_context(why)?;
        }
        let newer = File::create(file).with_context(why)?;
        let ring = Ring {
            files,
            bytes_max: bytes / 16 * SIXTEENTHS,
            newer,
            written: 0,
            introduced: BTreeSet::new(),
        };
        Ok(Self {
            ring: Mutex::new(Some(ring)),
        })
    }

    /// The files as they stand, older first, with as many bytes as are whole.
    pub(crate) fn open(&self) -> io::Result<Vec<(File, u64)>> {
        let ring = lock(&self.ring);
        let Some(ring) = ring.as_ref() else {
            return Err(io::Error::other("calls of policies are no longer recorded"));
        };
        let mut open = Vec::new();
        match File::open(&ring.files[0]) {
            Ok(older) => {
                let bytes = older.metadata()?.len();
                open.push((older, bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        open.push((File::open(&ring.files[1])?, ring.written));
        Ok(open)
    }
}

impl CallRecorder for FileRecorder {
    fn record(&self, call: Box<RecordedCall>, policy: &dyn Fn() -> RecordedPolicy) {
        let mut ring = lock(&self.ring);
        let Some(open) = ring.as_mut() else { return };
        if let Err(error) = open.record(call, policy) {
            tracing::warn!(%error, "calls of policies are no longer recorded");
            *ring = None;
        }
    }
}

impl Ring {
    fn record(
        &mut self,
        call: Box<RecordedCall>,
        policy: &dyn Fn() -> RecordedPolicy,
    ) -> io::Result<()> {
        let identity = call.identity();
        let call = RecordedLine::Call(call).to_frame()?;
        let mut introduction = Vec::new();
        let is_full = self.written > 0 && self.written + bytes_of(&call) > self.bytes_max;
        if is_full || !self.introduced.contains(&identity) {
            introduction = RecordedLine::Policy(policy()).to_frame()?;
        }
        let frames = [introduction, call].concat();
        // There is no room for it at all, and the next call may be smaller.
        if bytes_of(&frames) > self.bytes_max {
            return Ok(());
        }
        if is_full || self.written + bytes_of(&frames) > self.bytes_max {
            self.turn()?;
        }
        self.newer.write_all(&frames)?;
        self.written += bytes_of(&frames);
        self.introduced.insert(identity);
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let [older, newer] = &self.files;
        fs::rename(newer, older)?;
        self.newer = File::create(newer)?;
        self.written = 0;
        self.introduced.clear();
        Ok(())
    }
}

/// Reads the room that a recording may take: a quantity of Kubernetes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = apis::quantity::parse_millis(text).map(|millis| millis / 1000);
    match bytes.map(u64::try_from) {
        Ok(Ok(bytes)) if bytes >= BYTES_MIN => Ok(bytes),
        _ => Err(format!(
            "`{text}` is not a size of 1Mi or more, such as 256Mi"
        )),
    }
}

fn bytes_of(frames: &[u8]) -> u64 {
    u64::try_from(frames.len()).unwrap_or(u64::MAX)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use hooks::disruption::{BudgetRound, Context};
    use policy::{RecordedAnswer, RecordedLines, RecordedQuestion};

    use super::*;

    /// Texts that do not pack: a ring is filled quickly.
    fn noise(seed: u64, letters: u64) -> String {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let letter = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'a' + u8::try_from(state % 26).unwrap())
        };
        (0..letters).map(letter).collect()
    }

    fn call(number: u64, policy: &str, letters: u64) -> Box<RecordedCall> {
        let context = Context {
            cluster: noise(number, letters),
            ..Context::default()
        };
        Box::new(RecordedCall {
            decision_id: number.to_string(),
            name: policy.to_owned(),
            digest: policy.to_owned(),
            config_digest: String::new(),
            is_shadow: false,
            fuel: 0,
            memory: Vec::new(),
            question: RecordedQuestion::Allow {
                round: BudgetRound {
                    context,
                    ..BudgetRound::default()
                },
            },
            answer: Ok(RecordedAnswer::Order(Vec::new())),
            remembers: None,
        })
    }

    fn policy(name: &str) -> RecordedPolicy {
        RecordedPolicy {
            name: name.to_owned(),
            digest: name.to_owned(),
            config_digest: String::new(),
            config: String::new(),
            rule: None,
            needs: Vec::new(),
            facts: [].into(),
        }
    }

    /// Numbers of the calls of a file, each of which must be told of before.
    fn numbers(bytes: Vec<u8>) -> Vec<u64> {
        let mut known = BTreeSet::new();
        let mut numbers = Vec::new();
        for line in RecordedLines::of(bytes) {
            match line.unwrap() {
                RecordedLine::Policy(policy) => {
                    assert!(known.insert(policy.name), "told twice");
                }
                RecordedLine::Call(call) => {
                    assert!(
                        known.contains(&call.name),
                        "{} was not introduced",
                        call.name
                    );
                    numbers.push(call.decision_id.parse().unwrap());
                }
            }
        }
        numbers
    }

    #[test]
    fn a_ring_keeps_the_latest_within_its_room_and_each_file_reads_alone() {
        let folder = std::env::temp_dir().join(format!("mortise-ring-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("records");
        let recorder = FileRecorder::create(&file, BYTES_MIN).unwrap();
        for number in 0..300 {
            let name = if number % 7 == 0 { "rare" } else { "often" };
            recorder.record(call(number, name, 10_000), &|| policy(name));
        }
        // One that has no room at all is left out, and the others go on.
        recorder.record(call(300, "often", 2 << 20), &|| policy("often"));
        recorder.record(call(301, "often", 10), &|| policy("often"));
        let [older, newer] = recording_files(&file).map(|it| fs::read(it).unwrap());
        assert!(older.len() + newer.len() <= 1 << 20);
        assert!(older.len() > 400 << 10, "{}", older.len());
        let (older, newer) = (numbers(older), numbers(newer));
        let mut all = older.clone();
        all.extend(&newer);
        assert!(all.len() > 60, "{}", all.len());
        let latest: Vec<u64> = (0..302).filter(|it| *it != 300).collect();
        assert!(latest.ends_with(&all), "{all:?}");
        let open: u64 = recorder
            .open()
            .unwrap()
            .iter()
            .map(|(_, bytes)| bytes)
            .sum();
        assert!(open > 400 << 10);
        // A process that starts again goes on, and one that begins anew does not.
        drop(recorder);
        let resumed = FileRecorder::resume(&file, BYTES_MIN).unwrap();
        resumed.record(call(400, "often", 10), &|| policy("often"));
        let [older, newer_now] = recording_files(&file).map(|it| numbers(fs::read(it).unwrap()));
        assert_eq!((older, newer_now), (newer, vec![400]));
        let anew = FileRecorder::create(&file, BYTES_MIN).unwrap();
        assert_eq!(anew.open().unwrap().len(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn room_is_a_quantity() {
        assert_eq!(parse_bytes("256Mi"), Ok(256 << 20));
        assert_eq!(parse_bytes("1G"), Ok(1_000_000_000));
        for text in ["", "256", "-1Gi", "much"] {
            assert!(
                parse_bytes(text).unwrap_err().contains("such as 256Mi"),
                "{text}"
            );
        }
    }
}
