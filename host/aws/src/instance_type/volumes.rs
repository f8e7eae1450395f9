//! How many volumes of pods a new node takes, before its CSI driver says so itself.
//!
//! Pure. What EC2 does not tell has no limit here. Karpenter has no counterpart yet; the arithmetic is that of the EBS
//! CSI driver, which publishes the truth once the node is there.

use std::collections::BTreeMap;

use apis::names::EBS_DRIVER;

use super::facts::{EbsAttachments, InstanceTypeFacts};
use super::shape::ClassShape;

/// Volumes that pods may have by CSI driver.
pub(super) fn attachment_limits(
    info: &InstanceTypeFacts,
    shape: &ClassShape,
) -> BTreeMap<String, u32> {
    let Some(EbsAttachments { most, is_shared }) = info.ebs_attachments else {
        return BTreeMap::new();
    };
    let of_node = shape.block_device_mappings.len().max(1);
    // Interfaces and local disks hang on the same bus there. The driver counts the interfaces at its start: the first.
    let others = if is_shared {
        shape.network_interfaces.len().max(1) + info.disks.count
    } else {
        0
    };
    let taken = i32::try_from(of_node + others).unwrap_or(i32::MAX);
    let left = u32::try_from(most.saturating_sub(taken)).unwrap_or_default();
    BTreeMap::from([(EBS_DRIVER.to_owned(), left)])
}

#[cfg(test)]
mod tests {
    use apis::Ec2NodeClass;
    use aws_sdk_ec2::types::{DiskInfo, EbsInfo, InstanceStorageInfo, InstanceTypeInfo};

    use super::super::facts::SharedLists;
    use super::*;
    use crate::options::AwsOptions;

    #[test]
    fn what_hangs_on_the_bus_before_pods_come_is_taken_off() {
        let shape = ClassShape::of(
            &Ec2NodeClass::default(),
            None,
            &AwsOptions::new("demo", "us-east-1"),
        );
        let info = |most: Option<i32>, kind: &str, disks: i32| {
            let ebs = EbsInfo::builder()
                .set_maximum_ebs_attachments(most)
                .attachment_limit_type(kind.into());
            let disk = DiskInfo::builder().count(disks).build();
            let storage = InstanceStorageInfo::builder().disks(disk).build();
            let info = InstanceTypeInfo::builder()
                .ebs_info(ebs.build())
                .instance_storage_info(storage)
                .build();
            InstanceTypeFacts::of(&info, &mut SharedLists::new())
        };
        let cases = [
            (info(None, "shared", 0), None),
            (info(Some(28), "shared", 0), Some(26)),
            (info(Some(28), "shared", 4), Some(22)),
            (info(Some(32), "dedicated", 4), Some(31)),
            (info(Some(1), "shared", 0), Some(0)),
        ];
        for (info, want) in cases {
            let limits = attachment_limits(&info, &shape);
            assert_eq!(limits.get(EBS_DRIVER).copied(), want, "{info:?}");
        }
    }
}
