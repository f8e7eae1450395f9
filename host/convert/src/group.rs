//! Groups that Cluster Autoscaler scales, as AWS' CLI prints them, as a NodePool and an EC2NodeClass each.
//!
//! What stands in a launch template is taken from it where it was given along, and is reported where it was not.

use apis::labels;
use serde_json::{Map, Value, json};

use crate::aws_node_template::{class, of_the_cluster};
use crate::fields::put;
use crate::kind::GROUP;
use crate::object_name::object_name;
use crate::report::{Fate, ObjectOrigin};
use crate::requirements::RequirementList;
use crate::{Converter, identity};

pub(crate) mod auto_scaling;
pub(crate) mod managed;

/// Node group of either kind before it is written as objects.
#[derive(Debug, Default)]
struct NodeGroup {
    name: String,
    cluster: Option<String>,
    labels: Map<String, Value>,
    taints: Vec<Value>,
    requirements: RequirementList,
    nodes_max: Option<i64>,
    nodes_min: i64,
    budget: Option<String>,
    expire_after: Option<String>,
    subnets: Vec<String>,
    /// `amiSelectorTerms`, and the family where no alias tells it.
    images: Vec<Value>,
    family: Option<String>,
    class: Map<String, Value>,
}

impl NodeGroup {
    /// Says what a pool cannot keep of a group.
    fn note(&self, work: &mut Converter<'_>, origin: &ObjectOrigin, name: &str) {
        if name != self.name {
            let what = format!(
                "{name}: names of objects have small letters, digits and dashes alone, 63 at most"
            );
            work.report.push(origin.note(Fate::Changed, "name", what));
        }
        if self.nodes_min > 0 {
            let what = format!(
                "a pool keeps no nodes without pods ({} were kept)",
                self.nodes_min
            );
            let way_out = "give what must always run its requests, or use a CapacityBuffer or a pool with replicas";
            work.report
                .push(origin.note(Fate::Lost, "minSize", what).or(way_out));
        }
        let what = "WhenEmptyOrUnderutilized after 10m, as Cluster Autoscaler's scale-down-unneeded-time by default";
        work.report
            .push(origin.note(Fate::Added, "spec.disruption", what));
    }

    fn make(self, work: &mut Converter<'_>, origin: &ObjectOrigin) {
        let name = object_name(&self.name);
        self.note(work, origin, &name);
        let mut disruption =
            json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10m"});
        if let Some(nodes) = &self.budget {
            disruption["budgets"] = json!([{"nodes": nodes}]);
        }
        let mut node = Map::new();
        let reference = json!({"group": labels::AWS_GROUP, "kind": "EC2NodeClass", "name": name});
        node.insert("nodeClassRef".to_owned(), reference);
        let expires = self
            .expire_after
            .clone()
            .unwrap_or_else(|| "Never".to_owned());
        node.insert("expireAfter".to_owned(), expires.into());
        put(&mut node, "taints", self.taints.clone().into());
        let mut template = Map::new();
        if !self.labels.is_empty() {
            template.insert("metadata".to_owned(), json!({"labels": self.labels}));
        }
        let mut spec = json!({"disruption": disruption});
        if let Some(nodes) = self.nodes_max {
            spec["limits"] = json!({"nodes": nodes.to_string()});
        }
        let Self {
            requirements,
            subnets,
            images,
            family,
            cluster,
            class: mut class_spec,
            ..
        } = self;
        node.insert("requirements".to_owned(), requirements.into_value());
        template.insert("spec".to_owned(), node.into());
        spec["template"] = template.into();
        let metadata = json!({"name": name});
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec});
        work.make(origin, GROUP, pool);

        let mut whole = identity::settle(work, origin, None, &mut class_spec);
        whole &= images_of(work, origin, images, &mut class_spec);
        put(
            &mut class_spec,
            "amiFamily",
            family.map(Value::from).unwrap_or_default(),
        );
        let ids: Vec<Value> = subnets.iter().map(|id| json!({"id": id})).collect();
        let cluster = cluster.or_else(|| work.cluster_name());
        for (field, terms) in [
            ("subnetSelectorTerms", ids),
            ("securityGroupSelectorTerms", Vec::new()),
        ] {
            let mut terms = terms;
            if terms.is_empty() && !class_spec.contains_key(field) {
                terms = of_the_cluster(work, origin, &format!("spec.{field}"), cluster.as_deref());
                whole &= !terms.is_empty();
            }
            put(&mut class_spec, field, terms.into());
        }
        work.settings
            .apply(&mut work.report, origin, &mut class_spec);
        if whole {
            work.make(origin, GROUP, class(&metadata, &class_spec));
        }
    }
}

fn images_of(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    images: Vec<Value>,
    spec: &mut Map<String, Value>,
) -> bool {
    let given = work.options.ami_alias.clone();
    let images = match (images.is_empty(), given) {
        (false, _) => images,
        (true, Some(alias)) => {
            let what = format!("{alias}, of --ami-alias");
            work.report
                .push(origin.note(Fate::Added, "spec.amiSelectorTerms", what));
            vec![json!({"alias": alias})]
        }
        (true, None) => {
            let what = "the images stand in a launch template";
            let way_out = "pass --ami-alias, such as al2023@latest";
            work.report.push(
                origin
                    .note(Fate::LeftOut, "spec.amiSelectorTerms", what)
                    .or(way_out),
            );
            return false;
        }
    };
    spec.insert("amiSelectorTerms".to_owned(), images.into());
    true
}

/// Says what stands in a launch template that is not looked into.
fn launch_template(work: &mut Converter<'_>, origin: &ObjectOrigin, field: &str, template: &Value) {
    let name = ["name", "LaunchTemplateName", "id", "LaunchTemplateId"]
        .into_iter()
        .find_map(|it| template[it].as_str());
    if let Some(name) = name {
        let what = format!(
            "what launch template {name} says of volumes, user data, metadata options and tags"
        );
        let way_out =
            "see `aws ec2 describe-launch-template-versions`, and write it into the EC2NodeClass";
        work.report
            .push(origin.note(Fate::Lost, field, what).or(way_out));
    }
}

/// Tags of a group for its class, without those that belong to AWS, Kubernetes and Karpenter.
fn own_tags(tags: impl Iterator<Item = (String, String)>) -> Value {
    let foreign = [
        "aws:",
        "eks:",
        "kubernetes.io/cluster",
        "k8s.io/",
        "karpenter.sh/",
        "karpenter.k8s.aws/",
    ];
    let own = tags.filter(|(key, _)| !foreign.iter().any(|it| key.starts_with(it)));
    own.map(|(key, value)| (key, Value::from(value)))
        .collect::<Map<_, _>>()
        .into()
}
