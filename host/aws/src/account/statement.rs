//! Statements of policies, and the documents that IAM and SQS read. Knows nothing of what is allowed to whom.
//!
//! The words are those of AWS' policy language.

use serde_json::{Map, Value, json};

use super::naming::AccountNames;

/// The version of the language; there has been no other since.
const POLICY_VERSION: &str = "2012-10-17";

/// Whom a statement is about, where the policy is not one of a role's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatementPrincipal {
    /// Whoever bears the policy.
    Bearer,
    /// A service of AWS.
    Service(String),
    /// Who is vouched for by a provider of identities, by its ARN.
    Federated(String),
    /// Anyone at all.
    Anyone,
}

/// Whether a statement allows its actions or forbids them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementEffect {
    Allow,
    Deny,
}

impl StatementEffect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
        }
    }
}

/// Condition under which a statement counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatementCondition {
    /// How values are compared, such as `StringEquals`.
    pub(super) operator: &'static str,
    /// Key of the request that is compared.
    pub(super) key: String,
    /// Of which one must be met.
    pub(super) values: Vec<String>,
}

/// One statement of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PolicyStatement {
    /// Name of the statement.
    pub(super) sid: &'static str,
    pub(super) effect: StatementEffect,
    pub(super) principal: StatementPrincipal,
    /// As IAM names them, such as `ec2:RunInstances`.
    pub(super) actions: Vec<&'static str>,
    /// None in what a role trusts, which is about the role itself.
    pub(super) resources: Vec<String>,
    /// Of which all must be met.
    pub(super) conditions: Vec<StatementCondition>,
}

impl PolicyStatement {
    /// The statement with names in place of the words between braces.
    pub(super) fn named(self, names: &AccountNames) -> Self {
        let fill = |texts: Vec<String>| texts.iter().map(|it| names.fill(it)).collect();
        let conditions = self.conditions.into_iter().map(|it| StatementCondition {
            key: names.fill(&it.key),
            values: fill(it.values),
            ..it
        });
        Self {
            principal: match self.principal {
                StatementPrincipal::Service(name) => StatementPrincipal::Service(names.fill(&name)),
                StatementPrincipal::Federated(arn) => {
                    StatementPrincipal::Federated(names.fill(&arn))
                }
                other @ (StatementPrincipal::Bearer | StatementPrincipal::Anyone) => other,
            },
            resources: fill(self.resources),
            conditions: conditions.collect(),
            ..self
        }
    }

    fn to_json(&self) -> Value {
        let Self {
            sid,
            effect,
            principal,
            actions,
            resources,
            conditions,
        } = self;
        let mut statement = json!({"Sid": sid, "Effect": effect.name(), "Action": actions});
        let principal = match principal {
            StatementPrincipal::Bearer => None,
            StatementPrincipal::Service(name) => Some(json!({"Service": name})),
            StatementPrincipal::Federated(arn) => Some(json!({"Federated": arn})),
            StatementPrincipal::Anyone => Some(json!("*")),
        };
        if let Some(principal) = principal {
            statement["Principal"] = principal;
        }
        if !resources.is_empty() {
            statement["Resource"] = one_or_many(resources);
        }
        if !conditions.is_empty() {
            statement["Condition"] = conditions_by_operator(conditions);
        }
        statement
    }
}

/// Conditions by operator and key.
fn conditions_by_operator(conditions: &[StatementCondition]) -> Value {
    let mut tests = Map::new();
    for StatementCondition {
        operator,
        key,
        values,
    } in conditions
    {
        let keys = tests.entry(*operator).or_insert_with(|| json!({}));
        keys[key] = one_or_many(values);
    }
    Value::Object(tests)
}

fn one_or_many(values: &[String]) -> Value {
    match values {
        [one] => json!(one),
        many => json!(many),
    }
}

/// The document of a policy.
pub(super) fn policy_document(statements: &[PolicyStatement]) -> Value {
    let statements: Vec<Value> = statements.iter().map(PolicyStatement::to_json).collect();
    json!({"Version": POLICY_VERSION, "Statement": statements})
}
