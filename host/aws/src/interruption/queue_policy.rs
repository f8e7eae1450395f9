//! Who may send to an interruption queue, as its policy has it.
//!
//! Whoever may can have nodes taken away. Changes no policy. Reads the JSON of resource policies as the reference of
//! IAM's policy elements describes it; answers to no file of Karpenter.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

/// Of conditions, those on keys that begin so are about who sends; others, such as TLS, leave it open.
const SENDER_KEYS: [&str; 3] = ["aws:source", "aws:principal", "aws:userid"];
const EVERYBODY: &str = "*";

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Policy {
    statement: OneOrMany<Statement>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Statement {
    effect: String,
    principal: Value,
    /// Principals that the statement leaves out; it is for everybody else.
    not_principal: Option<Value>,
    action: OneOrMany<String>,
    /// Actions that the statement leaves out; it is for every other.
    not_action: Option<OneOrMany<String>>,
    /// By operator, by key.
    condition: BTreeMap<String, BTreeMap<String, Value>>,
}

/// IAM writes a list of one without brackets.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl<T> OneOrMany<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Self::Many(all) => all,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}

/// Principals that are neither of this account nor a service of AWS and may send whatever they are: `*` for everybody.
/// None where another statement keeps strangers out, or where the text is no policy.
pub(super) fn strangers(policy: &str, account: &str) -> BTreeSet<String> {
    let policy: Policy = serde_json::from_str(policy).unwrap_or_default();
    let about_sending = || {
        let statements = policy.statement.as_slice().iter();
        statements.filter(|it| it.is_about_sending())
    };
    let is_guard = |it: &Statement| it.effect == "Deny" && it.depends_on_sender();
    if about_sending().any(is_guard) {
        return BTreeSet::new();
    }
    let open = about_sending().filter(|it| it.effect == "Allow" && !it.depends_on_sender());
    let principals = open.flat_map(Statement::principals);
    let is_own = |it: &String| !account.is_empty() && it.contains(account);
    principals.filter(|it| !is_own(it)).collect()
}

impl Statement {
    fn is_about_sending(&self) -> bool {
        let is_named = |actions: &OneOrMany<String>| {
            let mut actions = actions.as_slice().iter();
            actions.any(|it| covers(&it.to_ascii_lowercase(), "sqs:sendmessage"))
        };
        match &self.not_action {
            Some(left_out) => !is_named(left_out),
            None => is_named(&self.action),
        }
    }

    fn depends_on_sender(&self) -> bool {
        let keys = self.condition.values().flat_map(BTreeMap::keys);
        let mut keys = keys.map(|it| it.to_ascii_lowercase());
        keys.any(|key| SENDER_KEYS.iter().any(|it| key.starts_with(it)))
    }

    /// Accounts, users and roles; not services of AWS.
    fn principals(&self) -> Vec<String> {
        if self.not_principal.is_some() {
            return vec![EVERYBODY.to_owned()];
        }
        let named = match &self.principal {
            Value::String(one) => return vec![one.clone()],
            Value::Object(kinds) => kinds.get("AWS"),
            _ => None,
        };
        let named = named.map(OneOrMany::<String>::deserialize);
        let named = named.and_then(Result::ok).unwrap_or_default();
        named.as_slice().to_vec()
    }
}

/// Whether a pattern of an action, in which `*` stands for anything, is met by the action.
fn covers(pattern: &str, action: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == action,
        Some((before, "")) => action.starts_with(before),
        Some((before, after)) => {
            let rest = action.strip_prefix(before);
            rest.is_some_and(|rest| (0..=rest.len()).any(|at| covers(after, &rest[at..])))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACCOUNT: &str = "111122223333";

    fn warnings(statements: &Value) -> Vec<String> {
        let policy = json!({"Version": "2012-10-17", "Statement": statements});
        strangers(&policy.to_string(), ACCOUNT)
            .into_iter()
            .collect()
    }

    #[test]
    fn a_queue_for_services_of_aws_and_its_own_account_is_open_to_nobody_else() {
        let services = json!({"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]});
        let send = json!("sqs:SendMessage");
        let plain = json!({"Bool": {"aws:SecureTransport": "false"}});
        for statements in [
            json!([]),
            json!([
                {"Effect": "Allow", "Principal": services, "Action": send},
                {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Condition": plain},
            ]),
            json!({"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": send}),
            json!({"Effect": "Allow", "Principal": {"AWS": format!("arn:aws:iam::{ACCOUNT}:root")}, "Action": "*"}),
            json!({"Effect": "Allow", "Principal": "*", "Action": "sqs:ReceiveMessage"}),
            json!({"Effect": "Allow", "Principal": "*", "NotAction": ["sqs:Send*"]}),
            json!({"Effect": "Allow", "Principal": "*", "Action": send,
                "Condition": {"ArnLike": {"aws:SourceArn": format!("arn:aws:events:*:{ACCOUNT}:*")}}}),
            json!([
                {"Effect": "Allow", "Principal": "*", "Action": send},
                {"Effect": "Deny", "Principal": "*", "Action": send,
                    "Condition": {"StringNotEquals": {"aws:PrincipalAccount": ACCOUNT}}},
            ]),
        ] {
            assert_eq!(warnings(&statements), [""; 0], "{statements:#}");
        }
    }

    #[test]
    fn who_else_may_send_is_named() {
        let foreign = "arn:aws:iam::999900001111:role/sender";
        let tls = json!({"Bool": {"aws:SecureTransport": "true"}});
        for (statement, expected) in [
            (json!({"Principal": "*", "Action": "sqs:SendMessage"}), "*"),
            (json!({"Principal": {"AWS": "*"}, "Action": ["sqs:*"]}), "*"),
            (
                json!({"Principal": {"AWS": ["*"]}, "Action": "SQS:Send*"}),
                "*",
            ),
            (
                json!({"Principal": "*", "Action": "*", "Condition": tls}),
                "*",
            ),
            (
                json!({"NotPrincipal": {"AWS": ACCOUNT}, "Action": "sqs:*Message"}),
                "*",
            ),
            (
                json!({"Principal": "*", "NotAction": "sqs:DeleteQueue"}),
                "*",
            ),
            (
                json!({"Principal": {"AWS": [ACCOUNT, foreign]}, "Action": "sqs:SendMessage"}),
                foreign,
            ),
        ] {
            let mut statement = statement;
            statement["Effect"] = json!("Allow");
            assert_eq!(warnings(&statement), [expected], "{statement:#}");
        }
    }

    #[test]
    fn what_is_no_policy_tells_nothing() {
        for text in ["", "{", "[]", "{\"Statement\": 7}"] {
            assert!(strangers(text, ACCOUNT).is_empty(), "{text}");
        }
    }
}
