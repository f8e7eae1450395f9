//! The rules of EC2NodeClasses.

use crate::crd::rules::rule::{ValidationRule, rule};
use crate::labels;

pub(in crate::crd) fn ec2_node_class() -> Vec<ValidationRule> {
    let mut rules = vec![rule(
        "spec",
        "has(self.role) != has(self.instanceProfile)",
        "must specify exactly one of ['role', 'instanceProfile']",
    )];
    rules.extend(FAMILIES_WITH_ALIAS.map(family_of_alias));
    rules.push(rule(
        "spec",
        "has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
        "must specify amiFamily if amiSelectorTerms does not contain an alias",
    ));
    rules.extend(subnet_and_group_terms());
    rules.extend(ami_terms());
    rules.extend(reservations_and_placement());
    rules.extend(devices());
    rules.extend(tags());
    rules
}

const FAMILIES_WITH_ALIAS: [&str; 6] = [
    "AL2",
    "AL2023",
    "Bottlerocket",
    "Windows2019",
    "Windows2022",
    "Windows2025",
];

fn family_of_alias(family: &str) -> ValidationRule {
    let alias = family.to_lowercase();
    rule(
        "spec",
        format!(
            "!has(self.amiFamily) || self.amiFamily in ['Custom', '{family}'] || \
             !self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.matches('^{alias}(@|$)'))"
        ),
        format!("if set, amiFamily must be '{family}' or 'Custom' when using an alias of {family}"),
    )
}

/// The "excludes" rules hold unless every term breaks them. Karpenter has them so, and admits the same lists.
fn subnet_and_group_terms() -> [ValidationRule; 7] {
    let (subnets, groups) = (
        "spec.subnetSelectorTerms",
        "spec.securityGroupSelectorTerms",
    );
    [
        rule(
            subnets,
            "self.size() != 0",
            "subnetSelectorTerms cannot be empty",
        ),
        rule(
            subnets,
            "self.all(x, has(x.tags) || has(x.id))",
            "subnetSelectorTerms: expected at least one, got none, ['tags', 'id']",
        ),
        rule(
            subnets,
            "!self.all(x, has(x.id) && has(x.tags))",
            "subnetSelectorTerms: 'id' is mutually exclusive with the other fields of a term",
        ),
        rule(
            groups,
            "self.size() != 0",
            "securityGroupSelectorTerms cannot be empty",
        ),
        rule(
            groups,
            "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
            "securityGroupSelectorTerms: expected at least one, got none, ['tags', 'id', 'name']",
        ),
        rule(
            groups,
            "!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
            "securityGroupSelectorTerms: 'id' is mutually exclusive with the other fields of a term",
        ),
        rule(
            groups,
            "!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
            "securityGroupSelectorTerms: 'name' is mutually exclusive with the other fields of a term",
        ),
    ]
}

fn ami_terms() -> [ValidationRule; 7] {
    let (terms, alias) = ("spec.amiSelectorTerms", "spec.amiSelectorTerms[].alias");
    [
        rule(
            alias,
            "self.matches('^[a-zA-Z0-9]+@.+$')",
            "'alias' is improperly formatted, must match the format 'family@version'",
        ),
        rule(
            alias,
            "self.matches('^(al2|al2023|bottlerocket|windows2019|windows2022|windows2025)(@|$)')",
            "alias: family is not supported, must be one of 'al2', 'al2023', 'bottlerocket', 'windows2019', \
             'windows2022', 'windows2025'",
        ),
        rule(
            alias,
            "!self.matches('^windows20(19|22|25)(@|$)') || self.matches('^[^@]*@latest(@|$)')",
            "alias: windows families may only specify version 'latest'",
        ),
        rule(
            terms,
            "self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
            "amiSelectorTerms: expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
        ),
        rule(
            terms,
            "!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",
            "amiSelectorTerms: 'id' is mutually exclusive with 'alias', 'tags', 'name' and 'owner'",
        ),
        rule(
            terms,
            "!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",
            "amiSelectorTerms: 'alias' is mutually exclusive with 'id', 'tags', 'name' and 'owner'",
        ),
        rule(
            terms,
            "!(self.exists(x, has(x.alias)) && self.size() != 1)",
            "amiSelectorTerms: 'alias' is mutually exclusive with other terms",
        ),
    ]
}

fn reservations_and_placement() -> [ValidationRule; 4] {
    let (reservations, placement) = (
        "spec.capacityReservationSelectorTerms",
        "spec.placementGroupSelector",
    );
    [
        rule(
            reservations,
            "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
            "capacityReservationSelectorTerms: expected at least one, got none, ['tags', 'id', \
             'instanceMatchCriteria']",
        ),
        rule(
            reservations,
            "!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
            "capacityReservationSelectorTerms: 'id' is mutually exclusive with the other fields of a term",
        ),
        rule(
            placement,
            "has(self.name) || has(self.id)",
            "placementGroupSelector: expected at least one, got none, ['name', 'id']",
        ),
        rule(
            placement,
            "!(has(self.name) && has(self.id))",
            "placementGroupSelector: 'name' and 'id' are mutually exclusive",
        ),
    ]
}

fn devices() -> [ValidationRule; 6] {
    let (volumes, ebs) = ("spec.blockDeviceMappings", "spec.blockDeviceMappings[].ebs");
    let interfaces = "spec.networkInterfaces";
    [
        rule(
            volumes,
            "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
            "blockDeviceMappings: must have only one with rootVolume",
        ),
        rule(
            ebs,
            "has(self.snapshotID) || has(self.volumeSize)",
            "ebs: snapshotID or volumeSize must be defined",
        ),
        rule(
            ebs,
            "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
            "ebs: snapshotID must be set when volumeInitializationRate is set",
        ),
        rule(
            interfaces,
            "self.size() == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && \
             x.interfaceType == 'interface')",
            "networkInterfaces must include a primary interface (card 0, device 0) with interfaceType='interface'",
        ),
        rule(
            interfaces,
            "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && \
             x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || \
             self.filter(y, x.networkCardIndex == y.networkCardIndex && \
             y.interfaceType == 'efa-only').size() == 1))",
            "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and at most one \
             efa-only interface per network card",
        ),
        rule(
            "spec.connectionTracking",
            "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
            "connectionTracking: at least one timeout must be set",
        ),
    ]
}

fn tags() -> Vec<ValidationRule> {
    let mut rules = vec![
        rule(
            "spec.tags",
            "self.all(k, k != '')",
            "tags: empty keys aren't supported",
        ),
        rule(
            "spec.tags",
            "self.all(k, !k.startsWith('kubernetes.io/cluster'))",
            "tags: a key starting with kubernetes.io/cluster is restricted",
        ),
    ];
    for key in [
        labels::EKS_CLUSTER_NAME_TAG,
        labels::NODEPOOL,
        labels::NODECLAIM_TAG,
        labels::EC2_NODE_CLASS,
    ] {
        rules.push(rule(
            "spec.tags",
            format!("self.all(k, k != '{key}')"),
            format!("tags: the key {key} is restricted"),
        ));
    }
    rules
}
