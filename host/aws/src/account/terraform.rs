//! What an installation needs as a configuration of Terraform and OpenTofu, in their JSON syntax: to be kept as
//! `mortise.tf.json`, alone or beside files in the other syntax.
//!
//! Account, region and partition are those of the provider, and the cluster is a variable. Which
//! rights there are is not decided here.

use serde_json::{Map, Value, json};

use super::documents::{
    AccountParts, EventRule, NODE_POLICIES, QUEUE_RETENTION_SECONDS, RULE_TARGET, controller_role,
    node_policy_arn,
};
use super::names::INSTALLATION_NAME_MAX;
use super::naming::AccountNames;
use super::needs::AccountOptions;
use super::statement::{PolicyStatement, StatementCondition, StatementPrincipal};

/// Names of resources within the configuration.
const CONTROLLER: &str = "mortise_controller";
const CONTROLLER_TRUST: &str = "mortise_controller_trust";
const NODES: &str = "mortise_nodes";
const NODES_TRUST: &str = "mortise_nodes_trust";
const QUEUE: &str = "mortise_interruptions";

/// Configuration of Terraform, as JSON.
pub fn terraform(options: &AccountOptions) -> Value {
    let names = AccountNames {
        partition: "${data.aws_partition.mortise.partition}".to_owned(),
        dns_suffix: "${data.aws_partition.mortise.dns_suffix}".to_owned(),
        // Has the same name in all versions of the provider.
        region: "${data.aws_region.mortise.id}".to_owned(),
        account: "${data.aws_caller_identity.mortise.account_id}".to_owned(),
        cluster: "${var.mortise_cluster_name}".to_owned(),
        node_role: options.node_role("${var.mortise_cluster_name}"),
    };
    let parts = AccountParts::new(options, &names);
    let mut documents = json!({
        CONTROLLER: document(&parts.controller_policy),
        CONTROLLER_TRUST: document(&parts.controller_trust),
    });
    let mut resources = controller(&names);
    let mut outputs = json!({
        "mortise_controller_role_arn": {"value": format!("${{aws_iam_role.{CONTROLLER}.arn}}")},
    });
    if let Some(trust) = &parts.node_trust {
        documents[NODES_TRUST] = document(trust);
        let attached = &mut resources["aws_iam_role_policy_attachment"];
        attached[NODES] = node_policies(&names);
        resources["aws_iam_role"][NODES] = role(&names.node_role, NODES_TRUST);
        outputs["mortise_node_role_arn"] =
            json!({"value": format!("${{aws_iam_role.{NODES}.arn}}")});
        outputs["mortise_node_role_name"] =
            json!({"value": format!("${{aws_iam_role.{NODES}.name}}")});
    }
    if options.has_queue {
        documents[QUEUE] = document(&parts.queue_policy);
        resources.extend(queue(&parts, &names));
        let name = format!("${{aws_sqs_queue.{QUEUE}.name}}");
        outputs["mortise_interruption_queue_name"] = json!({"value": name});
    }
    json!({
        "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws", "version": ">= 5.0"}}},
        "variable": {"mortise_cluster_name": cluster_variable(options)},
        "data": {
            "aws_caller_identity": {"mortise": {}},
            "aws_partition": {"mortise": {}},
            "aws_region": {"mortise": {}},
            "aws_iam_policy_document": documents,
        },
        "resource": resources,
        "output": outputs,
    })
}

fn cluster_variable(options: &AccountOptions) -> Value {
    let pattern = format!(
        "^[0-9A-Za-z][0-9A-Za-z_-]{{0,{}}}$",
        INSTALLATION_NAME_MAX - 1
    );
    let condition = format!("${{can(regex(\"{pattern}\", var.mortise_cluster_name))}}");
    json!({
        "type": "string",
        "description": "Name of the cluster",
        "default": options.cluster_name.to_string(),
        "validation": {
            "condition": condition,
            "error_message": format!("A name of at most {INSTALLATION_NAME_MAX} letters, digits, hyphens and underscores."),
        },
    })
}

fn role(name: &str, trust: &str) -> Value {
    let trust = format!("${{data.aws_iam_policy_document.{trust}.json}}");
    json!({"name": name, "assume_role_policy": trust})
}

fn controller(names: &AccountNames) -> Map<String, Value> {
    let name = controller_role(names);
    let policy = json!({
        "name": name,
        "policy": format!("${{data.aws_iam_policy_document.{CONTROLLER}.json}}"),
    });
    let attachment = json!({
        "role": format!("${{aws_iam_role.{CONTROLLER}.name}}"),
        "policy_arn": format!("${{aws_iam_policy.{CONTROLLER}.arn}}"),
    });
    let resources = [
        ("aws_iam_role", role(&name, CONTROLLER_TRUST)),
        ("aws_iam_policy", policy),
        ("aws_iam_role_policy_attachment", attachment),
    ];
    let resources = resources.into_iter();
    resources
        .map(|(kind, it)| (kind.to_owned(), json!({CONTROLLER: it})))
        .collect()
}

/// One resource for each policy that AWS has for nodes.
fn node_policies(names: &AccountNames) -> Value {
    let quoted = NODE_POLICIES.map(|it| format!("\"{it}\""));
    json!({
        "for_each": format!("${{toset([{}])}}", quoted.join(", ")),
        "role": format!("${{aws_iam_role.{NODES}.name}}"),
        "policy_arn": node_policy_arn("${each.value}", names),
    })
}

fn queue(parts: &AccountParts, names: &AccountNames) -> Map<String, Value> {
    let id = |rule: &EventRule| format!("mortise_{}", rule.suffix);
    let rules = parts.rules.iter().map(|it| {
        let pattern = it.pattern().to_string();
        let rule = json!({"name": it.name(names), "event_pattern": pattern});
        (id(it), rule)
    });
    let targets = parts.rules.iter().map(|it| {
        let target = json!({
            "rule": format!("${{aws_cloudwatch_event_rule.{}.name}}", id(it)),
            "target_id": RULE_TARGET,
            "arn": format!("${{aws_sqs_queue.{QUEUE}.arn}}"),
        });
        (id(it), target)
    });
    let queue = json!({
        "name": names.cluster,
        "message_retention_seconds": QUEUE_RETENTION_SECONDS,
        "sqs_managed_sse_enabled": true,
    });
    let policy = json!({
        "queue_url": format!("${{aws_sqs_queue.{QUEUE}.url}}"),
        "policy": format!("${{data.aws_iam_policy_document.{QUEUE}.json}}"),
    });
    Map::from_iter([
        ("aws_sqs_queue".to_owned(), json!({QUEUE: queue})),
        ("aws_sqs_queue_policy".to_owned(), json!({QUEUE: policy})),
        ("aws_cloudwatch_event_rule".to_owned(), rules.collect()),
        ("aws_cloudwatch_event_target".to_owned(), targets.collect()),
    ])
}

/// A document as Terraform puts it together.
fn document(statements: &[PolicyStatement]) -> Value {
    let statements: Vec<Value> = statements.iter().map(statement).collect();
    json!({"statement": statements})
}

fn statement(statement: &PolicyStatement) -> Value {
    let PolicyStatement {
        sid,
        effect,
        principal,
        actions,
        resources,
        conditions,
    } = statement;
    let mut block = json!({"sid": sid, "effect": effect.name(), "actions": actions});
    let principals = match principal {
        StatementPrincipal::Bearer => None,
        StatementPrincipal::Service(name) => Some(("Service", name.as_str())),
        StatementPrincipal::Federated(arn) => Some(("Federated", arn.as_str())),
        StatementPrincipal::Anyone => Some(("*", "*")),
    };
    if let Some((kind, identifier)) = principals {
        block["principals"] = json!({"type": kind, "identifiers": [identifier]});
    }
    if !resources.is_empty() {
        block["resources"] = json!(resources);
    }
    if !conditions.is_empty() {
        block["condition"] = conditions.iter().map(condition).collect();
    }
    block
}

fn condition(condition: &StatementCondition) -> Value {
    let StatementCondition {
        operator,
        key,
        values,
    } = condition;
    json!({"test": operator, "variable": key, "values": values})
}
