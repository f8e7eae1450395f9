//! What one field demands of another: the CEL rules of every kind, as flat tables of path, rule and message.
//!
//! The rules keep to functions that every CEL has (`matches`, `has`, the list macros), and each must stay within
//! the cost that the API server grants: bound what it ranges over. Answers to the `XValidation` markers of
//! Karpenter's types and to the AWS provider's `hack/validation`.

use crate::labels;

/// One rule at one place of a schema.
#[derive(Debug)]
pub(super) struct Rule {
    /// Where, such as `spec.requirements[].key`.
    pub(super) path: &'static str,
    /// What must hold, in CEL.
    pub(super) rule: String,
    /// What the user reads when it does not.
    pub(super) message: String,
}

fn rule(path: &'static str, rule: impl Into<String>, message: impl Into<String>) -> Rule {
    Rule {
        path,
        rule: rule.into(),
        message: message.into(),
    }
}

pub(super) fn node_pool() -> Vec<Rule> {
    let requirements = "spec.template.spec.requirements";
    let mut rules = vec![
        rule(
            "spec",
            "has(self.replicas) == has(oldSelf.replicas)",
            "replicas cannot be added or removed: a NodePool stays static or dynamic for its life",
        ),
        rule(
            "spec",
            "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || \
             (size(self.limits) == 1 && 'nodes' in self.limits)",
            "limits: a static NodePool (replicas set) takes only the limit 'nodes'",
        ),
        rule(
            "spec",
            "!has(self.replicas) || !has(self.weight)",
            "weight is not supported on a static NodePool (replicas set)",
        ),
        rule(
            "spec.disruption.budgets",
            "self.all(x, has(x.schedule) == has(x.duration))",
            "budgets: 'schedule' must be set with 'duration'",
        ),
        rule(
            "spec.template.spec.nodeClassRef",
            "self.group == oldSelf.group",
            "nodeClassRef.group is immutable",
        ),
        rule(
            "spec.template.spec.nodeClassRef",
            "self.kind == oldSelf.kind",
            "nodeClassRef.kind is immutable",
        ),
    ];
    rules.extend(requirement_list(requirements));
    rules.push(min_values(requirements));
    let exempt_aws = aws_exempt(&[]);
    rules.extend(restricted(
        "spec.template.spec.requirements[].key",
        Subject::Key,
        true,
        &exempt_aws,
    ));
    rules.extend(restricted(
        "spec.template.metadata.labels",
        Subject::MapKeys,
        true,
        &exempt_aws,
    ));
    rules
}

pub(super) fn node_claim() -> Vec<Rule> {
    let mut rules = vec![rule("spec", "self == oldSelf", "spec is immutable")];
    rules.extend(requirement_list("spec.requirements"));
    rules.push(min_values("spec.requirements"));
    rules.extend(restricted(
        "spec.requirements[].key",
        Subject::Key,
        false,
        &aws_exempt(&[]),
    ));
    rules
}

pub(super) fn node_overlay() -> Vec<Rule> {
    let mut rules = vec![
        rule(
            "spec",
            "!has(self.price) || !has(self.priceAdjustment)",
            "cannot set both 'price' and 'priceAdjustment'",
        ),
        rule(
            "spec.capacity",
            "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
            "capacity: cpu, memory, ephemeral-storage and pods cannot be overlaid",
        ),
        rule(
            "spec.requirements",
            "self.all(x, x.operator != 'NotIn' || (has(x.values) && x.values.size() != 0))",
            "requirements with operator 'NotIn' must have a value defined",
        ),
    ];
    rules.extend(requirement_list("spec.requirements"));
    // What only a launched node has cannot tell instance types apart.
    let launched_only = [
        labels::INSTANCE_TENANCY,
        labels::CAPACITY_RESERVATION_ID,
        labels::CAPACITY_RESERVATION_TYPE,
        labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
        labels::PLACEMENT_GROUP_ID,
        labels::PLACEMENT_GROUP_PARTITION,
    ];
    rules.extend(restricted(
        "spec.requirements[].key",
        Subject::Key,
        false,
        &aws_exempt(&launched_only),
    ));
    rules
}

pub(super) fn capacity_buffer() -> Vec<Rule> {
    vec![
        rule(
            "spec",
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "podTemplateRef needs replicas or limits",
        ),
        rule(
            "spec",
            "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "podTemplateRef and scalableRef exclude each other",
        ),
    ]
}

/// Rules that the requirement lists of all kinds share.
fn requirement_list(path: &'static str) -> [Rule; 2] {
    [
        rule(
            path,
            "self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() != 0))",
            "requirements with operator 'In' must have a value defined",
        ),
        rule(
            path,
            "self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || \
             (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",
            "requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",
        ),
    ]
}

fn min_values(path: &'static str) -> Rule {
    rule(
        path,
        "self.all(x, x.operator != 'In' || !has(x.minValues) || \
         (has(x.values) && x.values.size() >= x.minValues))",
        "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    )
}

/// What a restricted-label rule looks at.
#[derive(Clone, Copy)]
enum Subject {
    /// The string itself.
    Key,
    /// Every key of the map.
    MapKeys,
}

impl Subject {
    /// `condition` says what must hold of `KEY`.
    fn rule(self, condition: &str) -> String {
        match self {
            Self::Key => condition.replace("KEY", "self"),
            Self::MapKeys => format!("self.all(x, {})", condition.replace("KEY", "x")),
        }
    }
}

/// Labels of the provider that users may name, without those of `except`.
fn aws_exempt(except: &[&str]) -> Vec<&'static str> {
    labels::WELL_KNOWN_AWS
        .into_iter()
        .chain([labels::EC2_NODE_CLASS])
        .filter(|label| label.starts_with(labels::AWS_GROUP) && !except.contains(label))
        .collect()
}

/// The restricted-label rules. Karpenter tests the domain by its suffix, so `notkarpenter.sh` falls under them too.
fn restricted(
    path: &'static str,
    subject: Subject,
    bans_node_pool: bool,
    exempt_aws: &[&str],
) -> Vec<Rule> {
    let domain = |domain: &str, exempt: &[&str]| {
        let exempt = exempt
            .iter()
            .map(|label| format!("'{label}'"))
            .collect::<Vec<_>>()
            .join(", ");
        let pattern = domain.replace('.', "[.]");
        rule(
            path,
            subject.rule(&format!(
                "KEY in [{exempt}] || !KEY.matches('^[^/]*{pattern}(/|$)')"
            )),
            format!("label domain \"{domain}\" is restricted"),
        )
    };
    let key = |key: &str| {
        rule(
            path,
            subject.rule(&format!("KEY != '{key}'")),
            format!("label \"{key}\" is restricted"),
        )
    };
    let mut rules = vec![domain(
        labels::GROUP,
        &[labels::CAPACITY_TYPE, labels::NODEPOOL],
    )];
    if bans_node_pool {
        rules.push(key(labels::NODEPOOL));
    }
    rules.push(key(labels::HOSTNAME));
    rules.push(domain(labels::AWS_GROUP, exempt_aws));
    rules
}

pub(super) fn ec2_node_class() -> Vec<Rule> {
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

fn family_of_alias(family: &str) -> Rule {
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
fn subnet_and_group_terms() -> [Rule; 7] {
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

fn ami_terms() -> [Rule; 7] {
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

fn reservations_and_placement() -> [Rule; 4] {
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

fn devices() -> [Rule; 6] {
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

fn tags() -> Vec<Rule> {
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
