//! As whom nodes run: the role or instance profile of a class, from the class, the settings or the caller.
//!
//! Makes no names up: a class for which nobody says it is left out.

use serde_json::{Map, Value};

use crate::Converter;
use crate::report::{Fate, ObjectOrigin};

/// Puts `instanceProfile` or `role` into a spec. False where nobody says one, which is reported.
pub(crate) fn settle(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    profile: Option<String>,
    spec: &mut Map<String, Value>,
) -> bool {
    if spec.contains_key("role") {
        return true;
    }
    let (field, value, whence) = if let Some(profile) = profile {
        ("instanceProfile", profile, None)
    } else if let Some(profile) = work.settings.instance_profile.clone() {
        (
            "instanceProfile",
            profile,
            Some("aws.defaultInstanceProfile of the settings"),
        )
    } else if let Some(role) = work.options.role.clone() {
        ("role", role, Some("--role"))
    } else if let Some(profile) = work.options.instance_profile.clone() {
        ("instanceProfile", profile, Some("--instance-profile"))
    } else {
        let what =
            "nobody says the role or the instance profile of the nodes, and v1 wants one of them";
        let way_out = "pass --role or --instance-profile, or give the ConfigMap karpenter-global-settings along";
        work.report.push(
            origin
                .note(Fate::LeftOut, "spec.instanceProfile", what)
                .or(way_out),
        );
        return false;
    };
    if let Some(whence) = whence {
        let what = format!("{value}, of {whence}");
        work.report
            .push(origin.note(Fate::Added, &format!("spec.{field}"), what));
    }
    spec.insert(field.to_owned(), value.into());
    true
}
