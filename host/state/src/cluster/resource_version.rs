//! Which of two copies of an object is the newer one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Versions of one cluster grow (KEP-5504); one that is no number counts as the newest.
pub(super) fn resource_version(of: &ObjectMeta) -> u64 {
    let version = of.resource_version.as_deref();
    version.and_then(|it| it.parse().ok()).unwrap_or(u64::MAX)
}
