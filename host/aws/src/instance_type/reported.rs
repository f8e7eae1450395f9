//! Memory of instance types as nodes report it: how much firmware and kernel keep is known only afterwards.
//!
//! The least that a node with the same images reported counts; nothing of it is written anywhere. Answers to the
//! discovered capacity of Karpenter's `pkg/providers/instancetype/instancetype.go`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use apis::Ec2NodeClass;
use jiff::{SignedDuration, Timestamp};
use locks::lock;

use crate::cache::{fingerprint, make_room};

/// How long a report counts after the last node that bore it out.
const REPORT_TTL: SignedDuration = SignedDuration::from_hours(60 * 24);
/// Sets of images of which reports are kept; the one that was reported of the longest ago makes room.
const SETS_MAX: usize = 256;

/// Memory that nodes with one set of images reported of their types.
#[derive(Clone, Default)]
pub(crate) struct ReportedMemory {
    /// Of the set, whether anything was reported or not: the first report makes no other shape either.
    images: u64,
    /// Changes with every report that changes an amount; 0 where nothing was reported.
    pub(super) revision: u64,
    bytes: Arc<BTreeMap<String, i64>>,
}

/// The key of a shape is made of this text. A further report makes no other shape, it changes a type of this one.
impl fmt::Debug for ReportedMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.images)
    }
}

impl ReportedMemory {
    /// Memory of a type in bytes, where a node reported it.
    pub(super) fn bytes(&self, instance_type: &str) -> Option<i64> {
        self.bytes.get(instance_type).copied()
    }
}

#[derive(Debug, Default)]
struct ImageSet {
    revision: u64,
    reported_at: Timestamp,
    /// By type: bytes, and when a node reported so little last.
    reports: BTreeMap<String, (i64, Timestamp)>,
    bytes: Arc<BTreeMap<String, i64>>,
}

/// All that was reported, by the images of the class.
#[derive(Debug, Default)]
pub(super) struct MemoryReports(Mutex<BTreeMap<u64, ImageSet>>);

impl MemoryReports {
    /// What counts for a class as it is now.
    pub(super) fn of(&self, node_class: &Ec2NodeClass) -> ReportedMemory {
        let images = images_key(node_class);
        let (revision, bytes) = lock(&self.0)
            .get(&images)
            .map(|set| (set.revision, Arc::clone(&set.bytes)))
            .unwrap_or_default();
        ReportedMemory {
            images,
            revision,
            bytes,
        }
    }

    /// Takes down what a node with the images of the class reported; answers whether that changes anything.
    pub(super) fn note(
        &self,
        node_class: &Ec2NodeClass,
        instance_type: &str,
        bytes: i64,
        now: Timestamp,
    ) -> bool {
        let key = images_key(node_class);
        let mut sets = lock(&self.0);
        make_room(&mut sets, &key, SETS_MAX, |set| set.reported_at);
        let set = sets.entry(key).or_default();
        set.reported_at = now;
        set.reports
            .retain(|_, (_, at)| now.duration_since(*at) < REPORT_TTL);
        let known = set.reports.get(instance_type);
        if known.is_none_or(|(least, _)| bytes <= *least) {
            set.reports.insert(instance_type.to_owned(), (bytes, now));
        }
        let counts = set
            .reports
            .iter()
            .map(|(name, (bytes, _))| (name.clone(), *bytes));
        let counts: BTreeMap<String, i64> = counts.collect();
        let has_changed = counts != *set.bytes;
        if has_changed {
            set.revision += 1;
            set.bytes = Arc::new(counts);
        }
        has_changed
    }
}

/// Nodes of other images may keep another share of the memory for themselves.
fn images_key(node_class: &Ec2NodeClass) -> u64 {
    let images = node_class.status.iter().flat_map(|status| &status.amis);
    let mut ids: Vec<&str> = images.map(|ami| ami.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    fingerprint(ids)
}

#[cfg(test)]
mod tests {
    use apis::ec2nodeclass::Ami;

    use super::*;

    fn class(images: &[&str]) -> Ec2NodeClass {
        let mut class = Ec2NodeClass::default();
        let ami = |id: &&str| Ami {
            id: (*id).to_owned(),
            ..Ami::default()
        };
        class.status.get_or_insert_default().amis = images.iter().map(ami).collect();
        class
    }

    #[test]
    fn the_least_that_was_reported_counts_for_these_images_until_nobody_bears_it_out() {
        let (reports, start) = (MemoryReports::default(), Timestamp::UNIX_EPOCH);
        let (ours, same, others) = (
            class(&["ami-a", "ami-b"]),
            class(&["ami-b", "ami-a"]),
            class(&["ami-a"]),
        );
        // Days, what a node reports, and what counts then.
        let told = [
            (0, 500, 500),
            (1, 400, 400),
            (2, 450, 400),
            (30, 400, 400),
            (89, 450, 400),
            (91, 470, 470),
        ];
        for (days, bytes, counts) in told {
            let now = start + SignedDuration::from_hours(24 * days);
            reports.note(&ours, "m5.large", bytes, now);
            assert_eq!(
                reports.of(&same).bytes("m5.large"),
                Some(counts),
                "day {days}"
            );
        }
        assert_eq!(reports.of(&ours).bytes("c5.large"), None);
        assert_eq!(reports.of(&others).bytes("m5.large"), None);
        let revision = |class| reports.of(class).revision;
        let before = revision(&ours);
        assert!(!reports.note(&ours, "m5.large", 470, start + REPORT_TTL));
        assert_eq!((revision(&ours), revision(&others)), (before, 0));
    }
}
