//! Everything that an installation needs of an account: for people and scripts as one document, and for the forms that
//! are deployed as parts.
//!
//! Knows no form: how a part is written is the business of `cloudformation.rs` and `terraform.rs`.

use serde_json::{Map, Value, json};

use super::actions::ActionOrigin;
use super::controller_policy::{controller_policy, needed};
use super::names::{AccountPlace, CONTROLLER_ROLE_PREFIX};
use super::naming::AccountNames;
use super::needs::{AccountOptions, ControllerTrust};
use super::scopes::QUEUE_ARN;
use super::statement::{
    PolicyStatement, StatementCondition, StatementEffect, StatementPrincipal, policy_document,
};

/// What nodes do on their own: join, give pods addresses, pull images, and be reached without SSH.
pub(super) const NODE_POLICIES: [&str; 4] = [
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
];

/// Seconds for which a message waits; what is older is known otherwise.
pub(super) const QUEUE_RETENTION_SECONDS: u32 = 300;

/// The only target of a rule.
pub(super) const RULE_TARGET: &str = "queue";

/// What EventBridge sends to the queue.
pub(super) struct EventRule {
    /// Follows the name of the cluster.
    pub(super) suffix: &'static str,
    source: &'static str,
    detail_type: &'static str,
}

impl EventRule {
    const fn new(suffix: &'static str, source: &'static str, detail_type: &'static str) -> Self {
        Self {
            suffix,
            source,
            detail_type,
        }
    }

    /// Name of the rule in the account.
    pub(super) fn name(&self, names: &AccountNames) -> String {
        format!("{}-{}", names.cluster, self.suffix)
    }

    /// What EventBridge is to send, in its own words.
    pub(super) fn pattern(&self) -> Value {
        json!({"source": [self.source], "detail-type": [self.detail_type]})
    }
}

/// One for each kind of message that [`crate::interruption`] reads.
pub(super) static RULES: [EventRule; 5] = [
    EventRule::new("spot", "aws.ec2", "EC2 Spot Instance Interruption Warning"),
    EventRule::new(
        "rebalance",
        "aws.ec2",
        "EC2 Instance Rebalance Recommendation",
    ),
    EventRule::new("state", "aws.ec2", "EC2 Instance State-change Notification"),
    EventRule::new(
        "reservation",
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
    EventRule::new("health", "aws.health", "AWS Health Event"),
];

pub(super) fn controller_role(names: &AccountNames) -> String {
    format!("{CONTROLLER_ROLE_PREFIX}{}", names.cluster)
}

pub(super) fn node_policy_arn(policy: &str, names: &AccountNames) -> String {
    names.fill(&format!("arn:{{partition}}:iam::aws:policy/{policy}"))
}

/// What an installation is made of, with names in place.
pub(super) struct AccountParts {
    pub(super) controller_trust: Vec<PolicyStatement>,
    pub(super) controller_policy: Vec<PolicyStatement>,
    /// Whom the role of the nodes trusts; none where that role is there already.
    pub(super) node_trust: Option<Vec<PolicyStatement>>,
    /// Who may send to the queue.
    pub(super) queue_policy: Vec<PolicyStatement>,
    /// Rules that feed the queue; none without one.
    pub(super) rules: &'static [EventRule],
}

impl AccountParts {
    pub(super) fn new(options: &AccountOptions, names: &AccountNames) -> Self {
        let named = |statements: Vec<PolicyStatement>| {
            let statements = statements.into_iter();
            statements.map(|it| it.named(names)).collect()
        };
        Self {
            controller_trust: named(vec![controller_trust(&options.trust)]),
            controller_policy: named(controller_policy(options)),
            node_trust: match &options.node_role {
                None => Some(named(vec![node_trust()])),
                Some(_) => None,
            },
            queue_policy: named(queue_policy()),
            rules: if options.has_queue { &RULES } else { &[] },
        }
    }
}

fn node_trust() -> PolicyStatement {
    PolicyStatement {
        sid: "Instances",
        effect: StatementEffect::Allow,
        principal: StatementPrincipal::Service("ec2.{dns-suffix}".to_owned()),
        actions: vec!["sts:AssumeRole"],
        resources: vec![],
        conditions: vec![],
    }
}

fn controller_trust(trust: &ControllerTrust) -> PolicyStatement {
    let equals = |key: String, value: String| StatementCondition {
        operator: "StringEquals",
        key,
        values: vec![value],
    };
    let (principal, actions, conditions) = match trust {
        ControllerTrust::PodIdentity => {
            let service = StatementPrincipal::Service("pods.eks.amazonaws.com".to_owned());
            (service, vec!["sts:AssumeRole", "sts:TagSession"], vec![])
        }
        ControllerTrust::Token {
            issuer,
            service_account,
        } => {
            let issuer = &issuer.0;
            let arn = format!("arn:{{partition}}:iam::{{account}}:oidc-provider/{issuer}");
            let subject = format!(
                "system:serviceaccount:{}:{}",
                service_account.namespace, service_account.name
            );
            let conditions = vec![
                equals(format!("{issuer}:sub"), subject),
                equals(format!("{issuer}:aud"), "sts.amazonaws.com".to_owned()),
            ];
            let federated = StatementPrincipal::Federated(arn);
            (federated, vec!["sts:AssumeRoleWithWebIdentity"], conditions)
        }
    };
    PolicyStatement {
        sid: "Controller",
        effect: StatementEffect::Allow,
        principal,
        actions,
        resources: vec![],
        conditions,
    }
}

/// The rules alone may send, those of no other account either, and nobody without TLS.
fn queue_policy() -> Vec<PolicyStatement> {
    let rule = "arn:{partition}:events:{region}:{account}:rule/{cluster}";
    let rules = RULES.iter().map(|it| format!("{rule}-{}", it.suffix));
    let send = PolicyStatement {
        sid: "Send",
        effect: StatementEffect::Allow,
        principal: StatementPrincipal::Service("events.amazonaws.com".to_owned()),
        actions: vec!["sqs:SendMessage"],
        resources: vec![QUEUE_ARN.to_owned()],
        conditions: vec![StatementCondition {
            operator: "ArnEquals",
            key: "aws:SourceArn".to_owned(),
            values: rules.collect(),
        }],
    };
    let refuse_plain_http = PolicyStatement {
        sid: "RefusePlainHttp",
        effect: StatementEffect::Deny,
        principal: StatementPrincipal::Anyone,
        actions: vec!["sqs:*"],
        resources: vec![QUEUE_ARN.to_owned()],
        conditions: vec![StatementCondition {
            operator: "Bool",
            key: "aws:SecureTransport".to_owned(),
            values: vec!["false".to_owned()],
        }],
    };
    vec![send, refuse_plain_http]
}

/// All of it by its names, as one document; `actions` says what each action is for, and whether it is a call or only
/// wanted by AWS for one, so that nobody looks for it in CloudTrail.
pub fn documents(options: &AccountOptions, place: &AccountPlace) -> Value {
    let names = AccountNames::literal(options, place);
    let AccountParts {
        controller_trust,
        controller_policy,
        node_trust,
        queue_policy,
        rules,
    } = AccountParts::new(options, &names);
    let mut all = json!({
        "actions": purposes(options),
        "controllerRole": {
            "name": controller_role(&names),
            "trustPolicy": policy_document(&controller_trust),
            "policy": policy_document(&controller_policy),
        },
    });
    if let Some(trust) = node_trust {
        all["nodeRole"] = json!({
            "name": names.node_role,
            "trustPolicy": policy_document(&trust),
            "managedPolicies": NODE_POLICIES.map(|it| node_policy_arn(it, &names)),
        });
    }
    if options.has_queue {
        all["queue"] = json!({
            "name": names.cluster,
            // As SQS wants attributes: texts all.
            "attributes": {
                "MessageRetentionPeriod": QUEUE_RETENTION_SECONDS.to_string(),
                "SqsManagedSseEnabled": "true",
            },
            "policy": policy_document(&queue_policy),
        });
        let target = names.fill(QUEUE_ARN);
        let rules = rules.iter().map(|it| {
            let targets = json!([{"Id": RULE_TARGET, "Arn": target}]);
            json!({"name": it.name(&names), "eventPattern": it.pattern(), "targets": targets})
        });
        all["rules"] = rules.collect();
    }
    all
}

fn purposes(options: &AccountOptions) -> Map<String, Value> {
    let needed = needed(options);
    let purposes = needed.map(|it| {
        let is_called = it.origin == ActionOrigin::Called;
        let purpose = json!({"isCalled": is_called, "purpose": it.purpose});
        (it.name.to_owned(), purpose)
    });
    purposes.collect()
}
