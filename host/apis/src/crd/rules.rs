//! What one field demands of another: the CEL rules of every kind, as flat tables of path, rule and message.
//!
//! The rules keep to functions that every CEL has (`matches`, `has`, the list macros), and each must stay within
//! the cost that the API server grants: bound what it ranges over. Answers to the `XValidation` markers of
//! Karpenter's types and to the AWS provider's `hack/validation`.

pub(super) mod ec2_node_class;
pub(super) mod rule;

use self::rule::{ValidationRule, rule};
use crate::labels;

pub(super) fn node_pool() -> Vec<ValidationRule> {
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
        RuleSubject::Key,
        true,
        &exempt_aws,
    ));
    rules.extend(restricted(
        "spec.template.metadata.labels",
        RuleSubject::MapKeys,
        true,
        &exempt_aws,
    ));
    rules
}

pub(super) fn node_claim() -> Vec<ValidationRule> {
    let mut rules = vec![rule("spec", "self == oldSelf", "spec is immutable")];
    rules.extend(requirement_list("spec.requirements"));
    rules.push(min_values("spec.requirements"));
    rules.extend(restricted(
        "spec.requirements[].key",
        RuleSubject::Key,
        false,
        &aws_exempt(&[]),
    ));
    rules
}

pub(super) fn node_overlay() -> Vec<ValidationRule> {
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
        RuleSubject::Key,
        false,
        &aws_exempt(&launched_only),
    ));
    rules
}

pub(super) fn capacity_buffer() -> Vec<ValidationRule> {
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
fn requirement_list(path: &'static str) -> [ValidationRule; 2] {
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

fn min_values(path: &'static str) -> ValidationRule {
    rule(
        path,
        "self.all(x, x.operator != 'In' || !has(x.minValues) || \
         (has(x.values) && x.values.size() >= x.minValues))",
        "requirements with 'minValues' must have at least that many values specified in the 'values' field",
    )
}

/// What a restricted-label rule looks at.
#[derive(Clone, Copy)]
enum RuleSubject {
    /// The string itself.
    Key,
    /// Every key of the map.
    MapKeys,
}

impl RuleSubject {
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
    subject: RuleSubject,
    bans_node_pool: bool,
    exempt_aws: &[&str],
) -> Vec<ValidationRule> {
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
