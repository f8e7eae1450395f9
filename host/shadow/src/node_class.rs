//! EC2NodeClasses and NodePools as the simulated account has them.
//!
//! A class names subnets, security groups, images, roles and reservations of an account that the shadow does not have.
//! What it says of nodes (disks, kubelet, user data, tags) stays; what it selects becomes the simulated account's own.

use std::collections::BTreeSet;

use apis::labels::{
    AWS_GROUP, EC2_NODE_CLASS_HASH_ANNOTATION, EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
};
use serde_json::{Value, json};

use crate::account::Account;
use crate::object::key_of;

/// Name of the EC2NodeClass that stands in where a NodePool has none that means anything to EC2.
pub(crate) const STAND_IN: &str = "mortise-shadow";
/// Labels that only nodes of Karpenter's kwok provider have begin so.
const KWOK_LABELS: &str = "karpenter.kwok.sh/";
/// Families whose images the simulated account publishes.
const FAMILIES: [&str; 5] = [
    "al2023",
    "bottlerocket",
    "windows2019",
    "windows2022",
    "windows2025",
];

/// What stands in for what the cluster has and the account has not.
#[derive(Debug)]
pub struct StandIn {
    /// Cluster whose discovery tag the account's subnets carry.
    pub cluster_name: String,
    /// Names of the classes that there are.
    classes: BTreeSet<String>,
    notes: BTreeSet<String>,
}

impl StandIn {
    /// For a cluster of this name in the account.
    pub fn new(cluster_name: &str) -> Self {
        Self {
            cluster_name: cluster_name.to_owned(),
            classes: BTreeSet::new(),
            notes: BTreeSet::new(),
        }
    }

    /// Differences from the cluster, one sentence each.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    pub(crate) fn note(&mut self, sentence: String) {
        self.notes.insert(sentence);
    }

    /// A class as the account has it.
    pub fn class(&mut self, mut class: Value, account: &Account) -> Value {
        let name = key_of(&class).name;
        self.classes.insert(name.clone());
        let discovery = json!({"karpenter.sh/discovery": self.cluster_name});
        let subnets = class["status"]["subnets"].as_array().into_iter().flatten();
        let zones: BTreeSet<&str> = subnets.filter_map(|it| it["zone"].as_str()).collect();
        let zones = zones
            .into_iter()
            .filter(|zone| account.zones.iter().any(|it| it == zone));
        let mut subnets: Vec<Value> = zones
            .map(|zone| json!({"tags": {"Name": format!("{}-private-{zone}", self.cluster_name)}}))
            .collect();
        if subnets.is_empty() {
            subnets.push(json!({"tags": discovery}));
        }
        let family = family(&class["spec"]);
        let alias = FAMILIES.iter().find(|it| **it == family);
        let spec = &mut class["spec"];
        if alias.is_none() {
            self.notes.insert(format!(
                "EC2NodeClass {name} boots images of the family {family}; in the shadow they are al2023's"
            ));
            remove(spec, &["userData"]);
        }
        if !spec["capacityReservationSelectorTerms"].is_null() {
            self.notes.insert(format!(
                "EC2NodeClass {name} selects capacity reservations, which the simulated account does not have"
            ));
        }
        remove(
            spec,
            &[
                "amiFamily",
                "instanceProfile",
                "capacityReservationSelectorTerms",
                "placementGroupSelector",
                "context",
            ],
        );
        spec["subnetSelectorTerms"] = subnets.into();
        spec["securityGroupSelectorTerms"] = json!([{"tags": discovery}]);
        spec["amiSelectorTerms"] =
            json!([{"alias": format!("{}@latest", alias.unwrap_or(&"al2023"))}]);
        spec["role"] = "mortise-shadow".into();
        remove(&mut class, &["status"]);
        // The account's controllers write them anew, and by that tell that the class is resolved.
        remove(
            &mut class["metadata"]["annotations"],
            &[
                EC2_NODE_CLASS_HASH_ANNOTATION,
                EC2_NODE_CLASS_HASH_VERSION_ANNOTATION,
            ],
        );
        class
    }

    /// The class that stands in: the one given, under the name by which it is referred to.
    pub fn given(&mut self, mut class: Value, account: &Account) -> Value {
        class["metadata"]["name"] = STAND_IN.into();
        remove(
            &mut class["metadata"],
            &["namespace", "uid", "ownerReferences"],
        );
        self.class(class, account)
    }

    /// A NodePool whose class is one of the account's.
    pub(crate) fn pool(&mut self, mut pool: Value) -> Value {
        let name = key_of(&pool).name;
        let spec = &mut pool["spec"]["template"]["spec"];
        let class = &spec["nodeClassRef"];
        let (kind, class_name) = (
            class["kind"].as_str().unwrap_or_default().to_owned(),
            class["name"].as_str().unwrap_or_default().to_owned(),
        );
        let is_ec2 = kind == "EC2NodeClass" && class["group"] == AWS_GROUP;
        if is_ec2 && self.classes.contains(&class_name) {
            return pool;
        }
        self.notes.insert(format!(
            "NodePool {name} refers to the {kind} {class_name}, which the shadow does not have; \
             an EC2NodeClass of the simulated account stands in (another one: --nodeclass FILE)"
        ));
        spec["nodeClassRef"] =
            json!({"group": AWS_GROUP, "kind": "EC2NodeClass", "name": STAND_IN});
        if let Some(requirements) = spec["requirements"].as_array_mut() {
            let before = requirements.len();
            requirements.retain(|it| {
                let key = it["key"].as_str().unwrap_or_default();
                !key.starts_with(KWOK_LABELS)
            });
            if requirements.len() < before {
                self.notes.insert(format!(
                    "NodePool {name} asks for labels {KWOK_LABELS}*, which no instance of EC2 has; they are left out"
                ));
            }
        }
        pool
    }
}

/// The family of a class, as its alias or its field says it, in lower case.
fn family(spec: &Value) -> String {
    let mut terms = spec["amiSelectorTerms"].as_array().into_iter().flatten();
    let alias = terms.find_map(|it| it["alias"].as_str());
    let of_alias = alias.and_then(|alias| alias.split('@').next());
    let family = of_alias.or_else(|| spec["amiFamily"].as_str());
    family.unwrap_or("custom").to_lowercase()
}

fn remove(object: &mut Value, fields: &[&str]) {
    if let Some(map) = object.as_object_mut() {
        for field in fields {
            map.remove(*field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::ZoneMarket;
    use crate::gathered::Gathered;

    fn account() -> Account {
        let market = ZoneMarket {
            is_sold_in: &|_| true,
            zone_id: &|_, _| String::new(),
        };
        Account::of(&Gathered::default(), &market)
    }

    #[test]
    fn a_class_keeps_what_it_says_of_nodes_and_selects_of_the_account() {
        let mut stand_in = StandIn::new("s");
        let class = json!({
            "metadata": {"name": "web", "annotations": {EC2_NODE_CLASS_HASH_ANNOTATION: "1", "kept": "x"}},
            "spec": {
                "amiSelectorTerms": [{"alias": "bottlerocket@v1.30.0"}], "instanceProfile": "p",
                "subnetSelectorTerms": [{"id": "subnet-1"}], "kubelet": {"maxPods": 20}, "tags": {"a": "b"},
            },
            "status": {"subnets": [{"id": "subnet-1", "zone": "us-east-1b"}, {"zone": "us-east-1z"}]},
        });
        let class = stand_in.class(class, &account());
        assert_eq!(
            class["spec"],
            json!({
                "amiSelectorTerms": [{"alias": "bottlerocket@latest"}], "role": "mortise-shadow",
                "subnetSelectorTerms": [{"tags": {"Name": "s-private-us-east-1b"}}],
                "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "s"}}],
                "kubelet": {"maxPods": 20}, "tags": {"a": "b"},
            })
        );
        assert_eq!(class["metadata"]["annotations"], json!({"kept": "x"}));
        assert!(class["status"].is_null());
        assert_eq!(stand_in.notes().count(), 0);
    }

    #[test]
    fn images_that_the_account_does_not_publish_are_said() {
        let mut stand_in = StandIn::new("s");
        let class = json!({"metadata": {"name": "own"}, "spec": {
            "amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}], "userData": "#!/bin/bash",
        }});
        let class = stand_in.class(class, &account());
        assert_eq!(
            class["spec"]["amiSelectorTerms"],
            json!([{"alias": "al2023@latest"}])
        );
        assert!(class["spec"]["userData"].is_null());
        assert_eq!(
            stand_in.notes().collect::<Vec<_>>(),
            ["EC2NodeClass own boots images of the family custom; in the shadow they are al2023's"]
        );
    }

    #[test]
    fn a_pool_of_another_provider_gets_the_class_that_stands_in() {
        let mut stand_in = StandIn::new("s");
        let pool = json!({"metadata": {"name": "p"}, "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [
                {"key": "karpenter.kwok.sh/instance-family", "operator": "In", "values": ["c"]},
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            ],
        }}}});
        let pool = stand_in.pool(pool);
        let spec = &pool["spec"]["template"]["spec"];
        assert_eq!(spec["nodeClassRef"]["name"], STAND_IN);
        assert_eq!(spec["requirements"].as_array().unwrap().len(), 1);
        assert_eq!(stand_in.notes().count(), 2);
    }
}
