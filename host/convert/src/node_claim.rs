//! Machine of v1alpha5 and NodeClaim of v1beta1 as NodeClaim of v1, where the caller asked for it.
//!
//! A claim that is applied launches an instance: it does not adopt the one that the old object had.

use apis::labels;
use serde_json::{Map, Value, json};

use crate::fields::{Fields, put};
use crate::kind::{ALPHA, BETA, PRESENT};
use crate::node_pool::node_spec;
use crate::report::{Fate, ObjectOrigin};
use crate::requirements::RequirementList;
use crate::{Converter, metadata};

/// Label of a Machine's Provisioner.
const PROVISIONER_NAME: &str = "karpenter.sh/provisioner-name";

pub(crate) fn machine(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    if !is_wanted(work, origin) {
        return;
    }
    let mut metadata = metadata::kept(work, origin, object);
    let labels = metadata.get_mut("labels").and_then(Value::as_object_mut);
    let pool = labels.and_then(|it| it.remove(PROVISIONER_NAME));
    if let Some(pool) = pool {
        let what = format!("label {}", labels::NODEPOOL);
        let field = format!("metadata.labels.{PROVISIONER_NAME}");
        work.report.push(origin.note(Fate::Changed, &field, what));
        metadata["labels"][labels::NODEPOOL] = pool;
    }
    let mut fields = Fields::new(origin, "spec", object["spec"].clone());
    let mut requirements = RequirementList::default();
    let written = fields.list("requirements");
    requirements.take(work, origin, "spec.requirements", written);
    let mut reference = fields.inner("machineTemplateRef");
    reference.drop(
        &["apiVersion", "kind"],
        "the class is an EC2NodeClass",
        &mut work.report,
    );
    let class = reference
        .text("name")
        .unwrap_or_else(|| "default".to_owned());
    let mut spec = Map::new();
    spec.insert("requirements".to_owned(), requirements.into_value());
    let reference = json!({"group": labels::AWS_GROUP, "kind": "EC2NodeClass", "name": class});
    spec.insert("nodeClassRef".to_owned(), reference);
    for field in ["taints", "startupTaints", "resources"] {
        put(&mut spec, field, fields.take(field).unwrap_or_default());
    }
    fields.drop(
        &["kubelet"],
        "the kubelet is configured by the class",
        &mut work.report,
    );
    fields.finish(&mut work.report);
    work.make(origin, ALPHA, claim(&metadata, &spec));
}

pub(crate) fn beta(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    if !is_wanted(work, origin) {
        return;
    }
    let metadata = metadata::kept(work, origin, object);
    let mut fields = Fields::new(origin, "spec", object["spec"].clone());
    fields.drop(
        &["kubelet"],
        "the kubelet is configured by the class",
        &mut work.report,
    );
    let mut spec = node_spec(work, &mut fields)
        .as_object()
        .cloned()
        .unwrap_or_default();
    put(
        &mut spec,
        "resources",
        fields.take("resources").unwrap_or_default(),
    );
    fields.finish(&mut work.report);
    work.make(origin, BETA, claim(&metadata, &spec));
}

pub(crate) fn present(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    if is_wanted(work, origin) {
        let mut object = object.clone();
        metadata::clean(work, origin, &mut object);
        work.make(origin, PRESENT, object);
    }
}

fn claim(metadata: &Value, spec: &Map<String, Value>) -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec})
}

fn is_wanted(work: &mut Converter<'_>, origin: &ObjectOrigin) -> bool {
    if work.options.node_claims {
        let what = "applied to a cluster it launches a new instance; the old one is not adopted";
        let way_out = "drain and delete the old node once the new one is ready";
        work.report
            .push(origin.note(Fate::ToDo, "", what).or(way_out));
        return true;
    }
    let what = "not asked for: applied to a cluster, its claim would launch an instance";
    let way_out = "pools bring nodes when pods need them; --node-claims converts it all the same";
    work.report
        .push(origin.note(Fate::Dropped, "", what).or(way_out));
    false
}
