//! EC2NodeClass of v1beta1 as that of v1: images, and the hop limit whose default has changed.
//!
//! Answers to the AWS provider's `pkg/apis/v1beta1/ec2nodeclass_conversion.go`.

use serde_json::Value;

use crate::aws_node_template::{class, hop_limit};
use crate::kind::BETA;
use crate::report::ObjectOrigin;
use crate::{Converter, ami, identity, metadata};

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let metadata = metadata::kept(work, origin, object);
    let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
    let family = spec
        .remove("amiFamily")
        .and_then(|it| it.as_str().map(str::to_owned));
    let terms = match spec.remove("amiSelectorTerms") {
        Some(Value::Array(terms)) => terms,
        Some(_) | None => Vec::new(),
    };
    let family = family.unwrap_or_else(|| "AL2".to_owned());
    let profile = spec
        .remove("instanceProfile")
        .and_then(|it| it.as_str().map(str::to_owned));
    let mut whole = ami::select(work, origin, &family, terms, &mut spec);
    whole &= identity::settle(work, origin, profile, &mut spec);
    let options = spec.remove("metadataOptions");
    spec.insert(
        "metadataOptions".to_owned(),
        hop_limit(work, origin, options),
    );
    if whole {
        work.make(origin, BETA, class(&metadata, &spec));
    }
}
