//! Whether a running instance still is what its class asks for.
//!
//! Pure: judges values handed in; `provider/drifted.rs` asks for them. Answers to Karpenter's
//! `pkg/cloudprovider/drift.go` of the AWS provider.

use std::collections::BTreeSet;

use apis::conditions::reason;
use apis::{CapacityType, Ec2NodeClass, Ec2NodeClassStatus, NodeClaim, labels};
use cloudprovider::CloudProviderError;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use scheduling::instance_type::InstanceType;

use crate::ami::ami_for;
use crate::instance::Instance;
use crate::placement_group::PlacementGroup;

/// The class was changed.
const NODE_CLASS_DRIFT: &str = "NodeClassDrift";
/// The class now boots another image.
const AMI_DRIFT: &str = "AMIDrift";
/// The class now has other security groups.
const SECURITY_GROUP_DRIFT: &str = "SecurityGroupDrift";
/// The class no longer has the instance's subnet.
const SUBNET_DRIFT: &str = "SubnetDrift";
/// The class no longer has the instance's reservation.
pub(crate) const CAPACITY_RESERVATION_DRIFT: &str = "CapacityReservationDrift";
/// The class now has another placement group.
const PLACEMENT_GROUP_DRIFT: &str = "PlacementGroupDrift";

/// Whether the class was changed since the claim was made. Silent unless both hashes are of one version.
pub(crate) fn static_drift(claim: &NodeClaim, class: &Ec2NodeClass) -> Option<&'static str> {
    let of_claim = HashOfClass::borne_by(&claim.metadata)?;
    let of_class = HashOfClass::borne_by(&class.metadata)?;
    let is_comparable = of_claim.version == of_class.version;
    (is_comparable && of_claim.hash != of_class.hash).then_some(NODE_CLASS_DRIFT)
}

/// Whether the claim's type would now boot another image.
pub(crate) fn ami_drift(
    claim: &NodeClaim,
    class: &Ec2NodeClass,
    instance_type: &InstanceType,
) -> Result<Option<&'static str>, CloudProviderError> {
    let amis = &resolved(class)?.amis;
    if amis.is_empty() {
        return Err(CloudProviderError::Other(
            "the class has no images".to_owned(),
        ));
    }
    let status = claim.status.as_ref();
    let current = status.and_then(|status| status.image_id.as_deref());
    let chosen = ami_for(amis, instance_type).map(|ami| ami.id.as_str());
    Ok((chosen != current).then_some(AMI_DRIFT))
}

/// Whether the instance lies outside of what the class now resolves to.
pub(crate) fn instance_drift(
    class: &Ec2NodeClass,
    instance: &Instance,
) -> Result<Option<&'static str>, CloudProviderError> {
    let status = resolved(class)?;
    if status.security_groups.is_empty() || status.subnets.is_empty() {
        return Err(CloudProviderError::Other(
            "the class has no subnets or security groups".to_owned(),
        ));
    }
    let wanted: BTreeSet<&str> = status
        .security_groups
        .iter()
        .map(|group| group.id.as_str())
        .collect();
    let actual: BTreeSet<&str> = instance
        .security_group_ids
        .iter()
        .map(String::as_str)
        .collect();
    if wanted != actual {
        return Ok(Some(SECURITY_GROUP_DRIFT));
    }
    if !status
        .subnets
        .iter()
        .any(|subnet| Some(&subnet.id) == instance.subnet_id.as_ref())
    {
        return Ok(Some(SUBNET_DRIFT));
    }
    if instance.capacity_type == CapacityType::Reserved {
        let id = instance.capacity_reservation_id.as_deref();
        if !status
            .capacity_reservations
            .iter()
            .any(|reservation| Some(reservation.id.as_str()) == id)
        {
            return Ok(Some(CAPACITY_RESERVATION_DRIFT));
        }
    }
    Ok(None)
}

/// Whether the instance stands in another placement group than the class names.
pub(crate) fn placement_drift(
    claim: &NodeClaim,
    placement_group: Option<&PlacementGroup>,
) -> Option<&'static str> {
    let labels = claim.metadata.labels.as_ref();
    let label = labels.and_then(|it| it.get(labels::PLACEMENT_GROUP_ID));
    let is_another = label.map(String::as_str) != placement_group.map(|it| it.id.as_str());
    is_another.then_some(PLACEMENT_GROUP_DRIFT)
}

/// What the class resolves to, once somebody has looked at it.
fn resolved(class: &Ec2NodeClass) -> Result<&Ec2NodeClassStatus, CloudProviderError> {
    class.status.as_ref().ok_or_else(|| {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        CloudProviderError::NotYet {
            reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: format!("what {name} resolves to is not known yet"),
        }
    })
}

/// The hash of a class's spec as an object bears it, and the version of how it was made.
struct HashOfClass<'a> {
    hash: &'a str,
    version: &'a str,
}

impl<'a> HashOfClass<'a> {
    fn borne_by(metadata: &'a ObjectMeta) -> Option<Self> {
        let annotations = metadata.annotations.as_ref()?;
        Some(Self {
            hash: annotations.get(labels::EC2_NODE_CLASS_HASH_ANNOTATION)?,
            version: annotations.get(labels::EC2_NODE_CLASS_HASH_VERSION_ANNOTATION)?,
        })
    }
}
