//! What an installation needs as a template of CloudFormation, in JSON.
//!
//! One template does for every account, region and partition, and the cluster is a parameter. Which rights
//! there are is not decided here.

use serde_json::{Map, Value, json};

use super::documents::{
    AccountParts, EventRule, NODE_POLICIES, QUEUE_RETENTION_SECONDS, RULE_TARGET, controller_role,
    node_policy_arn,
};
use super::names::INSTALLATION_NAME_MAX;
use super::naming::AccountNames;
use super::needs::AccountOptions;
use super::statement::{PolicyStatement, policy_document};

/// Names of what the template makes.
const CONTROLLER_POLICY: &str = "ControllerPolicy";
const CONTROLLER_ROLE: &str = "ControllerRole";
const NODE_ROLE: &str = "NodeRole";
const QUEUE: &str = "InterruptionQueue";
const QUEUE_POLICY: &str = "InterruptionQueuePolicy";

/// Template of CloudFormation, as JSON.
pub fn cloudformation(options: &AccountOptions) -> Value {
    let names = AccountNames {
        partition: "${AWS::Partition}".to_owned(),
        dns_suffix: "${AWS::URLSuffix}".to_owned(),
        region: "${AWS::Region}".to_owned(),
        account: "${AWS::AccountId}".to_owned(),
        cluster: "${ClusterName}".to_owned(),
        node_role: options.node_role("${ClusterName}"),
    };
    let parts = AccountParts::new(options, &names);
    let mut resources = controller(&parts, &names);
    let mut outputs = json!({
        "ControllerRoleArn": {"Value": attribute(CONTROLLER_ROLE, "Arn")},
    });
    if let Some(trust) = &parts.node_trust {
        resources.insert(NODE_ROLE.to_owned(), nodes(trust, &names));
        outputs["NodeRoleArn"] = json!({"Value": attribute(NODE_ROLE, "Arn")});
        outputs["NodeRoleName"] = json!({"Value": {"Ref": NODE_ROLE}});
    }
    if options.has_queue {
        resources.extend(queue(&parts, &names));
        outputs["InterruptionQueueName"] = json!({"Value": attribute(QUEUE, "QueueName")});
    }
    json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "What Mortise needs for a cluster: roles, policies, and the queue of interruptions with its rules",
        "Parameters": {
            "ClusterName": {
                "Type": "String",
                "Description": "Name of the cluster",
                "Default": options.cluster_name.to_string(),
                "MaxLength": INSTALLATION_NAME_MAX,
                "AllowedPattern": "[0-9A-Za-z][0-9A-Za-z_-]*",
            },
        },
        "Resources": resources,
        "Outputs": outputs,
    })
}

fn controller(parts: &AccountParts, names: &AccountNames) -> Map<String, Value> {
    let controller = json!({
        "RoleName": substituted(&controller_role(names)),
        "AssumeRolePolicyDocument": substituted_in(policy_document(&parts.controller_trust)),
    });
    // The cluster's name is in keys of the document, where CloudFormation puts nothing in unless the whole is a text.
    let document = policy_document(&parts.controller_policy).to_string();
    let policy = json!({
        "ManagedPolicyName": substituted(&controller_role(names)),
        "PolicyDocument": substituted(&document),
        "Roles": [{"Ref": CONTROLLER_ROLE}],
    });
    Map::from_iter([
        (
            CONTROLLER_POLICY.to_owned(),
            resource("AWS::IAM::ManagedPolicy", &policy),
        ),
        (
            CONTROLLER_ROLE.to_owned(),
            resource("AWS::IAM::Role", &controller),
        ),
    ])
}

fn nodes(trust: &[PolicyStatement], names: &AccountNames) -> Value {
    let properties = json!({
        "RoleName": substituted(&names.node_role),
        "AssumeRolePolicyDocument": substituted_in(policy_document(trust)),
        "ManagedPolicyArns": NODE_POLICIES.map(|it| substituted(&node_policy_arn(it, names))),
    });
    resource("AWS::IAM::Role", &properties)
}

fn queue(parts: &AccountParts, names: &AccountNames) -> Map<String, Value> {
    let queue = json!({
        "QueueName": substituted(&names.cluster),
        "MessageRetentionPeriod": QUEUE_RETENTION_SECONDS,
        "SqsManagedSseEnabled": true,
    });
    let policy = json!({
        "Queues": [{"Ref": QUEUE}],
        "PolicyDocument": substituted_in(policy_document(&parts.queue_policy)),
    });
    let rules = parts.rules.iter().map(|it| {
        let properties = json!({
            "Name": substituted(&it.name(names)),
            "EventPattern": it.pattern(),
            "Targets": [{"Id": RULE_TARGET, "Arn": attribute(QUEUE, "Arn")}],
        });
        (rule_id(it), resource("AWS::Events::Rule", &properties))
    });
    let mut resources: Map<String, Value> = rules.collect();
    resources.insert(QUEUE.to_owned(), resource("AWS::SQS::Queue", &queue));
    let policy = resource("AWS::SQS::QueuePolicy", &policy);
    resources.insert(QUEUE_POLICY.to_owned(), policy);
    resources
}

/// `spot` as `SpotRule`.
fn rule_id(rule: &EventRule) -> String {
    let (first, rest) = rule.suffix.split_at(1);
    format!("{}{rest}Rule", first.to_uppercase())
}

fn resource(kind: &str, properties: &Value) -> Value {
    json!({"Type": kind, "Properties": properties})
}

fn attribute(resource: &str, name: &str) -> Value {
    json!({"Fn::GetAtt": [resource, name]})
}

/// A text in which CloudFormation puts what it knows; a parameter alone is referred to.
fn substituted(text: &str) -> Value {
    let inner = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    match inner {
        Some(name) if !name.contains('{') => json!({"Ref": name}),
        Some(_) | None if text.contains("${") => json!({"Fn::Sub": text}),
        Some(_) | None => json!(text),
    }
}

/// A document in whose texts, keys left out, CloudFormation puts what it knows.
fn substituted_in(document: Value) -> Value {
    match document {
        Value::String(text) => substituted(&text),
        Value::Array(items) => items.into_iter().map(substituted_in).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            fields.map(|(key, it)| (key, substituted_in(it))).collect()
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}
