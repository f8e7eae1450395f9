//! NodePool of v1beta1 as that of v1.
//!
//! Answers to Karpenter's `pkg/apis/v1beta1/nodepool_conversion.go`.

use apis::labels;
use serde_json::{Map, Value, json};

use crate::fields::{Fields, put};
use crate::kind::BETA;
use crate::report::{Fate, ObjectOrigin};
use crate::{Converter, metadata};

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let metadata = metadata::kept(work, origin, object);
    let mut fields = Fields::new(origin, "spec", object["spec"].clone());
    let mut template = fields.inner("template");
    let mut inner = template.inner("spec");
    let mut node = node_spec(work, &mut inner);
    inner.finish(&mut work.report);
    let mut disruption = fields.inner("disruption");
    if let Some(after) = disruption.take("expireAfter") {
        let what = "spec.template.spec.expireAfter";
        work.report
            .push(origin.note(Fate::Changed, "spec.disruption.expireAfter", what));
        node["expireAfter"] = after;
    }
    let mut spec = Map::new();
    let settled = consolidation(work, &mut disruption);
    put(&mut spec, "disruption", settled);
    disruption.finish(&mut work.report);
    for field in ["limits", "weight"] {
        put(&mut spec, field, fields.take(field).unwrap_or_default());
    }
    let mut made = Map::new();
    put(
        &mut made,
        "metadata",
        template.take("metadata").unwrap_or_default(),
    );
    made.insert("spec".to_owned(), node);
    spec.insert("template".to_owned(), made.into());
    template.finish(&mut work.report);
    fields.finish(&mut work.report);
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec});
    work.make(origin, BETA, pool);
}

fn consolidation(work: &mut Converter<'_>, disruption: &mut Fields<'_>) -> Value {
    let mut made = Map::new();
    let policy = disruption.text("consolidationPolicy");
    let after = disruption.text("consolidateAfter");
    if policy.as_deref() == Some("WhenUnderutilized") {
        let what = "WhenEmptyOrUnderutilized";
        work.report.push(disruption.origin.note(
            Fate::Changed,
            &disruption.path("consolidationPolicy"),
            what,
        ));
        made.insert("consolidationPolicy".to_owned(), what.into());
    } else if let Some(policy) = policy {
        made.insert("consolidationPolicy".to_owned(), policy.into());
    }
    let after = after.unwrap_or_else(|| {
        let what = "0s: v1 wants it said";
        work.report.push(disruption.origin.note(
            Fate::Added,
            &disruption.path("consolidateAfter"),
            what,
        ));
        "0s".to_owned()
    });
    made.insert("consolidateAfter".to_owned(), after.into());
    put(
        &mut made,
        "budgets",
        disruption.take("budgets").unwrap_or_default(),
    );
    made.into()
}

/// What pools and claims have alike. Leaves in `fields` what v1 does not have.
pub(crate) fn node_spec(work: &mut Converter<'_>, fields: &mut Fields<'_>) -> Value {
    let mut node = Map::new();
    node.insert(
        "requirements".to_owned(),
        fields.list("requirements").into(),
    );
    for field in ["taints", "startupTaints", "terminationGracePeriod"] {
        put(&mut node, field, fields.take(field).unwrap_or_default());
    }
    let mut reference = fields.inner("nodeClassRef");
    let version = reference.text("apiVersion");
    let group = version
        .as_deref()
        .and_then(|it| it.split_once('/'))
        .map(|(group, _)| group.to_owned());
    if version.is_some() {
        let what = "its group alone, as nodeClassRef.group";
        work.report.push(
            fields
                .origin
                .note(Fate::Changed, &reference.path("apiVersion"), what),
        );
    }
    let group = reference
        .text("group")
        .or(group)
        .unwrap_or_else(|| labels::AWS_GROUP.to_owned());
    let kind = reference
        .text("kind")
        .unwrap_or_else(|| "EC2NodeClass".to_owned());
    let name = reference.text("name").unwrap_or_default();
    reference.finish(&mut work.report);
    node.insert(
        "nodeClassRef".to_owned(),
        json!({"group": group, "kind": kind, "name": name}),
    );
    if let Some(kubelet) = fields
        .take("kubelet")
        .filter(|it| it.as_object().is_some_and(|it| !it.is_empty()))
    {
        let what = "spec.kubelet of its EC2NodeClass";
        work.report.push(
            fields
                .origin
                .note(Fate::Changed, &fields.path("kubelet"), what),
        );
        work.kubelets.push((fields.origin.index, kubelet));
    }
    node.into()
}
