//! AWSNodeTemplate, and the provider block inside a Provisioner, as EC2NodeClass.
//!
//! A class that v1 would not take is left out, and the report says which fields are wanting. Answers to the AWS
//! provider's `pkg/apis/v1alpha1/provider.go`.

use apis::labels;
use serde_json::{Map, Value, json};

use crate::fields::{Fields, put};
use crate::kind::ALPHA;
use crate::report::{Fate, ObjectOrigin};
use crate::selectors::{Finds, terms};
use crate::{Converter, ami, identity, metadata};

/// EC2NodeClass that an object was converted to.
#[derive(Debug)]
pub(crate) struct ConvertedClass<'a> {
    pub(crate) fields: Fields<'a>,
    /// The cluster that a provider block of 0.3 and 0.4 named.
    pub(crate) cluster: Option<String>,
}

pub(crate) fn convert(work: &mut Converter<'_>, origin: &ObjectOrigin, object: &Value) {
    let metadata = metadata::kept(work, origin, object);
    let fields = Fields::new(origin, "spec", object["spec"].clone());
    let block = ConvertedClass {
        fields,
        cluster: None,
    };
    if let Some(spec) = spec(work, block) {
        work.make(origin, ALPHA, class(&metadata, &spec));
    }
}

/// Makes an EC2NodeClass of metadata and spec.
pub(crate) fn class(metadata: &Value, spec: &Map<String, Value>) -> Value {
    let version = format!("{}/v1", labels::AWS_GROUP);
    json!({"apiVersion": version, "kind": "EC2NodeClass", "metadata": metadata, "spec": spec})
}

/// The spec of a class. None where v1 would not take it, which is reported.
pub(crate) fn spec(
    work: &mut Converter<'_>,
    class: ConvertedClass<'_>,
) -> Option<Map<String, Value>> {
    let (mut fields, cluster) = (class.fields, class.cluster);
    let origin = fields.origin;
    fields.drop(
        &["apiVersion", "kind"],
        "the class has its own",
        &mut work.report,
    );
    if !has_no_launch_template(work, &mut fields) {
        return None;
    }
    let mut spec = Map::new();
    let family = fields.text("amiFamily").unwrap_or_else(|| "AL2".to_owned());
    let selector = fields.map("amiSelector");
    let images = terms(
        work,
        origin,
        &fields.path("amiSelector"),
        selector,
        Finds::Images,
    );
    let profile = fields.text("instanceProfile");
    let mut whole = ami::select(work, origin, &family, images, &mut spec);
    whole &= identity::settle(work, origin, profile, &mut spec);
    let cluster = cluster.or_else(|| work.cluster_name());
    for (field, of_v1, finds) in [
        ("subnetSelector", "subnetSelectorTerms", Finds::Subnets),
        (
            "securityGroupSelector",
            "securityGroupSelectorTerms",
            Finds::SecurityGroups,
        ),
    ] {
        let path = fields.path(field);
        let selector = fields.map(field);
        let mut found = terms(work, origin, &path, selector, finds);
        if found.is_empty() {
            found = of_the_cluster(work, origin, &path, cluster.as_deref());
        }
        whole &= !found.is_empty();
        put(&mut spec, of_v1, found.into());
    }
    for field in [
        "userData",
        "context",
        "detailedMonitoring",
        "blockDeviceMappings",
    ] {
        if let Some(value) = fields.take(field) {
            put(&mut spec, field, value);
        }
    }
    let tags = fields.map("tags").into_iter();
    let tags: Map<String, Value> = tags.map(|(key, value)| (key, value.into())).collect();
    put(&mut spec, "tags", tags.into());
    let options = fields.take("metadataOptions");
    put(
        &mut spec,
        "metadataOptions",
        hop_limit(work, origin, options),
    );
    work.settings.apply(&mut work.report, origin, &mut spec);
    fields.finish(&mut work.report);
    whole.then_some(spec)
}

/// Classes with a launch template of their own said everything in it.
fn has_no_launch_template(work: &mut Converter<'_>, fields: &mut Fields<'_>) -> bool {
    for field in ["launchTemplate", "launchTemplateName"] {
        if let Some(name) = fields.text(field) {
            let what = format!("v1 launches by no launch template of yours (`{name}`)");
            let way_out = "write amiSelectorTerms, amiFamily, instanceProfile or role, securityGroupSelectorTerms, \
                           blockDeviceMappings, metadataOptions and userData of it (aws ec2 \
                           describe-launch-template-versions) as amiSelector, instanceProfile, securityGroupSelector.. \
                           in place of the field, and convert again";
            let entry = fields.origin.note(Fate::LeftOut, &fields.path(field), what);
            work.report.push(entry.or(way_out));
            return false;
        }
    }
    true
}

/// What 0.3 and 0.4 looked for when nothing was selected.
pub(crate) fn of_the_cluster(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    path: &str,
    cluster: Option<&str>,
) -> Vec<Value> {
    let Some(cluster) = cluster else {
        let what = "nothing is selected, and v1 wants a selector";
        let way_out =
            "select by a tag, or pass --cluster-name for what is tagged kubernetes.io/cluster/NAME";
        work.report
            .push(origin.note(Fate::LeftOut, path, what).or(way_out));
        return Vec::new();
    };
    let tag = format!("kubernetes.io/cluster/{cluster}");
    let what = format!("nothing was selected: what has the tag {tag}");
    work.report.push(origin.note(Fate::Added, path, what));
    vec![json!({"tags": {tag: "*"}})]
}

/// The hop limit of v1beta1 and before was 2 where nobody said it; that of v1 is 1.
pub(crate) fn hop_limit(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    options: Option<Value>,
) -> Value {
    let field = "httpPutResponseHopLimit";
    let options = options.filter(Value::is_object);
    let mut options = options.unwrap_or_else(|| json!({}));
    if options.get(field).is_none_or(Value::is_null) {
        options[field] = 2.into();
        let what = "2, which was the default; that of v1 is 1, which keeps pods from the instance's credentials";
        let way_out = "take it out where no pod asks the metadata service";
        let path = format!("spec.metadataOptions.{field}");
        work.report
            .push(origin.note(Fate::Added, &path, what).or(way_out));
    }
    options
}
