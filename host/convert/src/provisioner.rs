//! Provisioner of v1alpha3 to v1alpha5 as NodePool, and its provider block as EC2NodeClass.
//!
//! What the webhook of its time filled in is written out. Answers to Karpenter's `pkg/apis/v1alpha5/provisioner.go`.

use apis::labels;
use serde_json::{Map, Value, json};

use crate::aws_node_template::{self, ConvertedClass};
use crate::fields::{Fields, put};
use crate::kind::{ALPHA, Age};
use crate::object_name::with_suffix;
use crate::report::{Fate, ObjectOrigin};
use crate::requirements::{RequirementList, template_labels};
use crate::{Converter, metadata};

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value, age: Age) {
    let metadata = metadata::kept(work, origin, object);
    let name = metadata["name"].as_str().unwrap_or_default().to_owned();
    let mut fields = Fields::new(origin, "spec", object["spec"].clone());
    let (class, capacity_types) = node_class(work, &mut fields, &name, age);
    let labels = template_labels(work, origin, "spec.labels", fields.map("labels"));
    let mut requirements = RequirementList::default();
    if !capacity_types.is_empty() {
        let what = format!("a requirement on {}", labels::CAPACITY_TYPE);
        work.report
            .push(origin.note(Fate::Changed, "spec.provider.capacityTypes", what));
        requirements.one_of(labels::CAPACITY_TYPE, &capacity_types);
    }
    if age < Age::V1Alpha5 {
        flat_fields(work, &mut fields, &mut requirements);
    }
    let written = fields.list("requirements");
    requirements.take(work, origin, "spec.requirements", written);
    let why = "a Provisioner had them by default, a NodePool has not";
    requirements.add_defaults(work, origin, &labels, why);

    let mut template_metadata = Map::new();
    put(&mut template_metadata, "labels", labels);
    put(
        &mut template_metadata,
        "annotations",
        annotations(work, origin, fields.map("annotations")),
    );
    let mut template = json!({"requirements": requirements.into_value()});
    template["nodeClassRef"] =
        json!({"group": labels::AWS_GROUP, "kind": "EC2NodeClass", "name": class});
    for field in ["taints", "startupTaints"] {
        if let Some(taints) = fields.take(field) {
            template[field] = taints;
        }
    }
    let mut spec = Map::new();
    let disruption = disruption(work, &mut fields, &mut template);
    put(&mut spec, "disruption", disruption);
    put(&mut spec, "limits", limits(work, &mut fields));
    put(
        &mut spec,
        "weight",
        fields.take("weight").unwrap_or_default(),
    );
    kubelet(work, &mut fields);
    fields.finish(&mut work.report);
    let mut inner = Map::new();
    put(&mut inner, "metadata", template_metadata.into());
    inner.insert("spec".to_owned(), template);
    spec.insert("template".to_owned(), inner.into());
    let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec});
    work.make(origin, ALPHA, pool);
}

/// Name of the class, which is made here where the Provisioner had a provider block, and the capacity types of 0.3.
fn node_class(
    work: &mut Converter<'_>,
    fields: &mut Fields<'_>,
    pool: &str,
    age: Age,
) -> (String, Vec<String>) {
    let origin = fields.origin;
    let mut reference = fields.inner("providerRef");
    reference.drop(
        &["apiVersion", "kind"],
        "the class is an EC2NodeClass",
        &mut work.report,
    );
    let named = reference.text("name");
    reference.finish(&mut work.report);
    if let Some(name) = named {
        return (name, Vec::new());
    }
    // In 0.2 and 0.3 the cluster stood beside the provider.
    let mut cluster = fields.inner("cluster");
    let mut provider = fields.inner("provider");
    let is_taken = work.class_names.iter().any(|it| it == pool);
    let name = if is_taken {
        with_suffix(pool, "-provider")
    } else {
        pool.to_owned()
    };
    let what = format!("EC2NodeClass/{name}");
    work.report
        .push(origin.note(Fate::Changed, "spec.provider", what));
    let mut inside = provider.inner("cluster");
    let cluster_name = inside.text("name").or_else(|| cluster.text("name"));
    for mut cluster in [inside, cluster] {
        let fields = ["name", "endpoint", "caBundle"];
        cluster.drop(
            &fields,
            "a setting of the controller (CLUSTER_NAME, CLUSTER_ENDPOINT)",
            &mut work.report,
        );
        cluster.finish(&mut work.report);
    }
    let mut moved = Vec::new();
    if age < Age::V1Alpha5 {
        moved.extend(
            ["capacityType", "capacityTypes"]
                .into_iter()
                .flat_map(|it| provider.texts(it)),
        );
    }
    let block = ConvertedClass {
        fields: provider,
        cluster: cluster_name,
    };
    if let Some(spec) = aws_node_template::spec(work, block) {
        let class = aws_node_template::class(&json!({"name": name}), &spec);
        work.make(origin, ALPHA, class);
    }
    (name, moved)
}

/// What v1alpha3 and v1alpha4 said beside requirements.
fn flat_fields(
    work: &mut Converter<'_>,
    fields: &mut Fields<'_>,
    requirements: &mut RequirementList,
) {
    for (names, key) in [
        (["instanceTypes", "instanceType"], labels::INSTANCE_TYPE),
        (["zones", "zone"], labels::TOPOLOGY_ZONE),
        (["architecture", "architectures"], labels::ARCH),
        (["operatingSystem", "operatingSystems"], labels::OS),
    ] {
        for name in names {
            let values = fields.texts(name);
            if !values.is_empty() {
                let what = format!("a requirement on {key}");
                work.report
                    .push(fields.origin.note(Fate::Changed, &fields.path(name), what));
                requirements.one_of(key, &values);
            }
        }
    }
}

/// Annotations of nodes under their present names.
fn annotations(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    written: Vec<(String, String)>,
) -> Value {
    let mut kept = Map::new();
    for (key, value) in written {
        let present = match key.as_str() {
            "karpenter.sh/do-not-evict" | "karpenter.sh/do-not-consolidate" => {
                labels::DO_NOT_DISRUPT_ANNOTATION
            }
            other => other,
        };
        if present != key {
            work.report.push(origin.note(
                Fate::Changed,
                "spec.annotations",
                format!("{key} is {present} now"),
            ));
        }
        kept.insert(present.to_owned(), value.into());
    }
    kept.into()
}

fn disruption(work: &mut Converter<'_>, fields: &mut Fields<'_>, template: &mut Value) -> Value {
    let origin = fields.origin;
    let expires = fields.number("ttlSecondsUntilExpired");
    template["expireAfter"] = if let Some(seconds) = expires {
        let what = format!("spec.template.spec.expireAfter: {seconds}s");
        work.report
            .push(origin.note(Fate::Changed, "spec.ttlSecondsUntilExpired", what));
        format!("{seconds}s").into()
    } else {
        let what = "Never: nodes did not expire by default, those of v1 do after 720h";
        work.report
            .push(origin.note(Fate::Added, "spec.template.spec.expireAfter", what));
        "Never".into()
    };
    let mut consolidation = fields.inner("consolidation");
    let consolidates = consolidation.text("enabled").as_deref() == Some("true");
    consolidation.finish(&mut work.report);
    let old = fields.number("ttlSecondsAfterUnderutilized");
    let empty = fields.number("ttlSecondsAfterEmpty");
    if old.is_some() && empty.is_some() {
        let what = "beside ttlSecondsAfterEmpty, which is its later name";
        work.report
            .push(origin.note(Fate::Dropped, "spec.ttlSecondsAfterUnderutilized", what));
    }
    let empty = empty.map(|it| ("spec.ttlSecondsAfterEmpty", it));
    let empty = empty.or_else(|| old.map(|it| ("spec.ttlSecondsAfterUnderutilized", it)));
    let (field, policy, after) = match (consolidates, empty) {
        (true, Some((field, _))) => {
            let what = "beside consolidation, which removes empty nodes at once";
            work.report.push(origin.note(Fate::Dropped, field, what));
            (
                "spec.consolidation.enabled",
                "WhenEmptyOrUnderutilized",
                "0s".to_owned(),
            )
        }
        (true, None) => (
            "spec.consolidation.enabled",
            "WhenEmptyOrUnderutilized",
            "0s".to_owned(),
        ),
        (false, Some((field, seconds))) => (field, "WhenEmpty", format!("{seconds}s")),
        (false, None) => {
            let what = "consolidationPolicy: WhenEmpty, consolidateAfter: Never: no node was removed by default";
            work.report
                .push(origin.note(Fate::Added, "spec.disruption", what));
            return json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"});
        }
    };
    let what = format!("spec.disruption: consolidationPolicy: {policy}, consolidateAfter: {after}");
    work.report.push(origin.note(Fate::Changed, field, what));
    json!({"consolidationPolicy": policy, "consolidateAfter": after})
}

fn limits(work: &mut Converter<'_>, fields: &mut Fields<'_>) -> Value {
    let mut limits = fields.inner("limits");
    let resources = limits.take("resources").unwrap_or_default();
    limits.finish(&mut work.report);
    resources
}

fn kubelet(work: &mut Converter<'_>, fields: &mut Fields<'_>) {
    let mut kubelet = fields.inner("kubeletConfiguration");
    let why = "containerd runs containers everywhere";
    kubelet.drop(&["containerRuntime"], why, &mut work.report);
    let index = fields.origin.index;
    let left = kubelet.into_left();
    if !left.is_empty() {
        let what = "spec.kubelet of its EC2NodeClass";
        work.report.push(
            fields
                .origin
                .note(Fate::Changed, "spec.kubeletConfiguration", what),
        );
        work.kubelets.push((index, left.into()));
    }
}
