//! Volumes on a node, against how many the drivers attach.
//!
//! Answers to `VolumeUsage` of Karpenter's `scheduling/volumeusage.go`.

use std::collections::{BTreeMap, BTreeSet};

/// Volumes by driver; the same one is attached once, however many pods use it.
pub(crate) type AttachedVolumes = BTreeMap<String, BTreeSet<String>>;

/// Whether a node that has some volumes takes the wanted ones, too. A driver without a limit takes any number.
pub(crate) fn attaches(
    limits: &BTreeMap<String, u32>,
    there: &AttachedVolumes,
    wanted: &AttachedVolumes,
) -> bool {
    wanted.iter().all(|(driver, wanted)| {
        let Some(limit) = limits.get(driver) else {
            return true;
        };
        let count = there
            .get(driver)
            .map_or(wanted.len(), |there| there.union(wanted).count());
        count <= *limit as usize
    })
}

/// Adds the wanted volumes to those of a node.
pub(crate) fn attach(there: &mut AttachedVolumes, wanted: &AttachedVolumes) {
    for (driver, volumes) in wanted {
        let of_driver = there.entry(driver.clone()).or_default();
        of_driver.extend(volumes.iter().cloned());
    }
}
