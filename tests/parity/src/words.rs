//! The small language of the cases: requirements, taints, tolerations, spreads, affinities and ports in one line.
//!
//! Each function turns words into the JSON that a user would have written in full.

use anyhow::{Context as _, Result, bail};
use apis::labels;
use serde_json::{Value, json};

/// The label behind a short name; other names stand for themselves.
pub fn key(short: &str) -> &str {
    match short {
        "zone" => labels::TOPOLOGY_ZONE,
        "region" => labels::TOPOLOGY_REGION,
        "host" => labels::HOSTNAME,
        "type" => labels::INSTANCE_TYPE,
        "arch" => labels::ARCH,
        "os" => labels::OS,
        "capacity" => labels::CAPACITY_TYPE,
        "pool" => labels::NODEPOOL,
        "cpu" => labels::INSTANCE_CPU,
        "memory" => labels::INSTANCE_MEMORY,
        "family" => labels::INSTANCE_FAMILY,
        "size" => labels::INSTANCE_SIZE,
        "generation" => labels::INSTANCE_GENERATION,
        "reservation" => labels::CAPACITY_RESERVATION_ID,
        other => other,
    }
}

/// `zone In a b`, `zone=a`, `type Exists min=2`.
pub fn requirement(words: &str) -> Result<Value> {
    let tokens: Vec<&str> = words.split_whitespace().collect();
    if let [one] = tokens.as_slice()
        && let Some((short, value)) = one.split_once('=')
    {
        return Ok(json!({"key": key(short), "operator": "In", "values": [value]}));
    }
    let [short, operator, values @ ..] = tokens.as_slice() else {
        bail!("requirement {words:?} needs a key and an operator");
    };
    let mut requirement = json!({"key": key(short), "operator": operator});
    let mut kept = Vec::new();
    for value in values {
        match value.strip_prefix("min=") {
            Some(number) => {
                let number: i64 = number.parse().with_context(|| format!("in {words:?}"))?;
                requirement["minValues"] = json!(number);
            }
            None => kept.push(*value),
        }
    }
    if !kept.is_empty() {
        requirement["values"] = json!(kept);
    }
    Ok(requirement)
}

/// Requirements of one term.
pub fn term(list: &[String]) -> Result<Value> {
    let expressions: Vec<Value> = list
        .iter()
        .map(|it| requirement(it))
        .collect::<Result<_>>()?;
    Ok(json!({"matchExpressions": expressions}))
}

/// One term as a list of words, or several as a list of lists.
pub fn terms(value: &Value) -> Result<Vec<Value>> {
    let Some(list) = value.as_array() else {
        if value.is_null() {
            return Ok(Vec::new());
        }
        bail!("node affinity is a list, not {value}");
    };
    if list.iter().all(Value::is_array) {
        list.iter().map(|it| term(&strings(it)?)).collect()
    } else {
        Ok(vec![term(&strings(value)?)?])
    }
}

/// A list of strings.
pub fn strings(value: &Value) -> Result<Vec<String>> {
    serde_json::from_value(value.clone()).with_context(|| format!("expected words, not {value}"))
}

/// `key=value:NoSchedule` or `key:NoSchedule`.
pub fn taint(words: &str) -> Result<Value> {
    let (left, effect) = words
        .rsplit_once(':')
        .with_context(|| format!("taint {words:?} needs an effect"))?;
    Ok(match left.split_once('=') {
        Some((key, value)) => json!({"key": key, "value": value, "effect": effect}),
        None => json!({"key": left, "effect": effect}),
    })
}

/// `key=value:NoSchedule`, `key:NoSchedule` (any value), `key` (any effect), `*` (everything), `key<5:NoSchedule`,
/// `key>5:NoSchedule`.
pub fn toleration(words: &str) -> Value {
    let (left, effect) = match words.rsplit_once(':') {
        Some((left, effect)) => (left, Some(effect)),
        None => (words, None),
    };
    let compared = [('=', "Equal"), ('<', "Lt"), ('>', "Gt")];
    let mut toleration = compared
        .iter()
        .find_map(|(sign, operator)| {
            let (key, value) = left.split_once(*sign)?;
            Some(json!({"key": key, "operator": operator, "value": value}))
        })
        .unwrap_or_else(|| match left {
            "*" => json!({"operator": "Exists"}),
            key => json!({"key": key, "operator": "Exists"}),
        });
    if let Some(effect) = effect {
        toleration["effect"] = json!(effect);
    }
    toleration
}

/// `zone`, then any of `skew=2`, `anyway`, `min=3`, `affinity=Ignore`, `taints=Honor`, `keys=a,b` and a selector. The
/// selector is `label=value`, `any` for all pods, `nobody` for none; the pods of the same `app` when absent.
pub fn spread(words: &str, app: &str) -> Result<Value> {
    let mut tokens = words.split_whitespace();
    let short = tokens.next().context("empty spread")?;
    let mut spread = json!({
        "maxSkew": 1,
        "topologyKey": key(short),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    });
    let mut selects = Selector::default();
    for token in tokens {
        let number = |text: &str| -> Result<Value> {
            Ok(json!(
                text.parse::<i32>()
                    .with_context(|| format!("in {words:?}"))?
            ))
        };
        match token.split_once('=') {
            Some(("skew", text)) => spread["maxSkew"] = number(text)?,
            Some(("min", text)) => spread["minDomains"] = number(text)?,
            Some(("affinity", policy)) => spread["nodeAffinityPolicy"] = json!(policy),
            Some(("taints", policy)) => spread["nodeTaintsPolicy"] = json!(policy),
            Some(("keys", keys)) => {
                spread["matchLabelKeys"] = json!(keys.split(',').collect::<Vec<_>>());
            }
            None if token == "anyway" => spread["whenUnsatisfiable"] = json!("ScheduleAnyway"),
            Some(_) | None => selects.token(token)?,
        }
    }
    selects.put(&mut spread);
    Ok(spread)
}

/// `zone app=db`; `self` for the pods of the same `app`, `any`, `nobody`; `in=ns1,ns2` names namespaces,
/// `in:team=x` selects them, `in:*` is all of them; `keys=a` and `notkeys=a` are label keys to match or not.
pub fn affinity_term(words: &str, app: &str) -> Result<Value> {
    let mut tokens = words.split_whitespace();
    let short = tokens.next().context("empty affinity")?;
    let mut term = json!({"topologyKey": key(short)});
    let mut selects = Selector::default();
    for token in tokens {
        let list = |text: &str| json!(text.split(',').collect::<Vec<_>>());
        if token == "self" {
            selects.labels.push(("app".to_owned(), app.to_owned()));
        } else if token == "in:*" {
            term["namespaceSelector"] = json!({});
        } else if let Some(selected) = token.strip_prefix("in:") {
            let (name, value) = selected
                .split_once('=')
                .with_context(|| format!("in {words:?}"))?;
            term["namespaceSelector"] = json!({"matchLabels": {name: value}});
        } else if let Some(names) = token.strip_prefix("in=") {
            term["namespaces"] = list(names);
        } else if let Some(keys) = token.strip_prefix("keys=") {
            term["matchLabelKeys"] = list(keys);
        } else if let Some(keys) = token.strip_prefix("notkeys=") {
            term["mismatchLabelKeys"] = list(keys);
        } else {
            selects.token(token)?;
        }
    }
    selects.put(&mut term);
    Ok(term)
}

/// A weight, then the words of an affinity term.
pub fn weighted_term(words: &str, app: &str) -> Result<Value> {
    let (weight, rest) = words
        .split_once(' ')
        .with_context(|| format!("preference {words:?} needs a weight"))?;
    let weight: i32 = weight.parse().with_context(|| format!("in {words:?}"))?;
    Ok(json!({"weight": weight, "podAffinityTerm": affinity_term(rest, app)?}))
}

/// `80`, `53/UDP`, `10.0.0.1:80`.
pub fn port(words: &str) -> Result<Value> {
    let (rest, protocol) = words.split_once('/').unwrap_or((words, "TCP"));
    let (address, number) = match rest.rsplit_once(':') {
        Some((address, number)) => (Some(address), number),
        None => (None, rest),
    };
    let number: u16 = number.parse().with_context(|| format!("port {words:?}"))?;
    let mut port = json!({"containerPort": number, "hostPort": number, "protocol": protocol});
    if let Some(address) = address {
        port["hostIP"] = json!(address);
    }
    Ok(port)
}

/// Which pods a constraint looks at.
#[derive(Default)]
struct Selector {
    labels: Vec<(String, String)>,
    is_any: bool,
    is_nobody: bool,
}

impl Selector {
    fn token(&mut self, token: &str) -> Result<()> {
        match (token, token.split_once('=')) {
            ("any", _) => self.is_any = true,
            ("nobody", _) => self.is_nobody = true,
            (_, Some((name, value))) => self.labels.push((name.to_owned(), value.to_owned())),
            (_, None) => bail!("cannot read {token:?}"),
        }
        Ok(())
    }

    fn put(self, target: &mut Value) {
        if self.is_nobody {
            if let Some(fields) = target.as_object_mut() {
                fields.remove("labelSelector");
            }
        } else if self.is_any {
            target["labelSelector"] = json!({});
        } else if !self.labels.is_empty() {
            let labels: serde_json::Map<String, Value> = self
                .labels
                .into_iter()
                .map(|(name, value)| (name, Value::String(value)))
                .collect();
            target["labelSelector"] = json!({"matchLabels": labels});
        }
    }
}
