//! Cases from a recording: what a policy was asked in a cluster, cut to the rows that matter, with what it answered as
//! the expectation.
//!
//! A case that is cut is put to the policy again where its code is at hand: where it answers otherwise with fewer rows,
//! the case keeps them all, and one that still does not hold is left out.

mod rows;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use hooks::binding::BindingSource;
use hooks::binding::keys::{
    BUILTIN_KEY, CALENDARS_KEY, INTERRUPTION_RATES_KEY, POLICY_LABEL, TIME_ZONES_KEY,
    WORKLOAD_LABELS_ANNOTATION,
};
use hooks::policy_use::PolicyKind;
use serde_json::{Map, Value, json};

use super::Cases;
use crate::builtin::{self, BUILTINS};
use crate::digest::digest;
use crate::host::PolicyHost;
use crate::recording::{
    RecordedAnswer, RecordedCall, RecordedLine, RecordedPolicy, RecordedQuestion,
};

/// Rows of a table that a case keeps: the best, and as many of those that are ruled out.
const ROWS_MAX: usize = 6;

/// Why there are no cases.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCases {
    /// Several policies answered, of these names.
    #[error("the recording has answers of {0}; say whose are meant with --name NAME")]
    Several(String),
    /// The policy that is meant did not answer.
    #[error("the recording has no answer of {name}; it has those of {known}")]
    Unknown {
        /// Name of the policy that is meant.
        name: String,
        /// Names of the policies that answered.
        known: String,
    },
    /// Nothing that it answered makes a case.
    #[error("none of the answers of {name} makes a case: {why}")]
    None {
        /// Name of the policy.
        name: String,
        /// About the last of them.
        why: String,
    },
}

/// Cases made of a recording, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCases {
    /// Name of the policy.
    pub name: String,
    /// YAML for `mortise policy test`.
    pub text: String,
    /// How many there are.
    pub cases: usize,
    /// Why others were left out.
    pub left_out: Vec<String>,
    /// Whether they were put to the policy again.
    pub is_tried: bool,
}

/// One case while it is made.
struct Draft {
    /// Parts of the question that were left out, for people.
    comments: Vec<String>,
    fields: Map<String, Value>,
}

/// How many rows are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Few,
    None,
}

impl Cut {
    fn rows(self) -> usize {
        match self {
            Self::Few => ROWS_MAX,
            Self::None => usize::MAX,
        }
    }
}

impl PolicyHost {
    /// Cases of the latest answers of a policy; without a name, of the only one that is no default.
    pub fn cases_of(
        &self,
        lines: impl IntoIterator<Item = RecordedLine>,
        name: Option<&str>,
        last: usize,
    ) -> Result<RecordedCases, NoCases> {
        let mut policies = BTreeMap::new();
        let mut calls: BTreeMap<String, VecDeque<Box<RecordedCall>>> = BTreeMap::new();
        for line in lines {
            match line {
                RecordedLine::Policy(policy) => {
                    policies.insert(policy.identity(), policy);
                }
                RecordedLine::Call(call) if makes_a_case(&call) => {
                    let calls = calls.entry(call.name.clone()).or_default();
                    calls.push_back(call);
                    if calls.len() > last {
                        calls.pop_front();
                    }
                }
                RecordedLine::Call(_) => {}
            }
        }
        let name = meant(&calls, name)?;
        let mut made = RecordedCases {
            name: name.clone(),
            text: String::new(),
            cases: 0,
            left_out: Vec::new(),
            is_tried: true,
        };
        for call in calls.remove(&name).unwrap_or_default() {
            if let Some(policy) = policies.get(&call.identity()) {
                self.add(&mut made, &call, policy);
            }
        }
        if made.cases == 0 {
            let why = made.left_out.pop().unwrap_or_default();
            return Err(NoCases::None { name, why });
        }
        Ok(made)
    }

    fn add(&self, made: &mut RecordedCases, call: &RecordedCall, policy: &RecordedPolicy) {
        if let Some(needs) = policy.needs.iter().find(|it| *it == "workloads") {
            let of = format!("{}: cases of {needs} are not made", call.decision_id);
            made.left_out.push(of);
            return;
        }
        let source = source_of(policy, call.question.kind());
        made.is_tried &= source.is_some();
        let few = drafts(call, Cut::Few);
        let all = drafts(call, Cut::None);
        for (few, all) in few.into_iter().zip(all) {
            let texts = [few, all].map(|draft| text(draft, policy, call));
            let kept = texts.iter().find(|it| match &source {
                Some(source) => self.passes(it, source),
                None => Cases::parse(it).is_ok(),
            });
            match kept {
                Some(text) => {
                    made.text.push_str(text);
                    made.cases += 1;
                }
                None => made.left_out.push(format!(
                    "{}: what the policy answered hung on more than a case can tell",
                    call.decision_id
                )),
            }
        }
    }

    fn passes(&self, text: &str, source: &BindingSource) -> bool {
        Cases::parse(text).is_ok_and(|cases| {
            let outcomes = cases.run(self, source);
            outcomes.iter().all(|it| it.faults.is_empty())
        })
    }
}

/// Orders of nodes hang on every node there was, and a case about a failure would expect it.
fn makes_a_case(call: &RecordedCall) -> bool {
    let is_question = match &call.question {
        RecordedQuestion::Rank { round, .. } => {
            !round.claims.is_empty() && !round.table.price.is_empty()
        }
        RecordedQuestion::Order { .. } => false,
        RecordedQuestion::Judge { moves, .. } => !moves.is_empty(),
        RecordedQuestion::Allow { round } => !round.pools.is_empty(),
    };
    is_question && call.answer.is_ok()
}

fn meant(
    calls: &BTreeMap<String, VecDeque<Box<RecordedCall>>>,
    name: Option<&str>,
) -> Result<String, NoCases> {
    let known: Vec<&str> = calls.keys().map(String::as_str).collect();
    if let Some(name) = name {
        return if known.contains(&name) {
            Ok(name.to_owned())
        } else {
            Err(NoCases::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            })
        };
    }
    let is_default = |it: &&&str| {
        PolicyKind::ALL
            .iter()
            .any(|kind| builtin::default_of(*kind) == **it)
    };
    let own: Vec<&&str> = known.iter().filter(|it| !is_default(it)).collect();
    match (own.as_slice(), known.as_slice()) {
        ([name], _) => Ok((**name).to_owned()),
        ([], [name]) => Ok((*name).to_owned()),
        _ => Err(NoCases::Several(known.join(", "))),
    }
}

fn drafts(call: &RecordedCall, cut: Cut) -> Vec<Draft> {
    match (&call.question, &call.answer) {
        (RecordedQuestion::Rank { round, prior }, Ok(RecordedAnswer::Rank(rankings))) => {
            let claims = round.claims.iter().zip(rankings);
            let drafts =
                claims.map(|(claim, ranking)| rows::rank(round, prior, claim, ranking, cut.rows()));
            drafts.collect()
        }
        (RecordedQuestion::Judge { round, moves }, Ok(RecordedAnswer::Judge(verdicts))) => {
            vec![rows::judge(round, moves, verdicts, cut.rows())]
        }
        (RecordedQuestion::Allow { round }, Ok(RecordedAnswer::Allow { items, .. })) => {
            vec![rows::allow(round, items, cut.rows())]
        }
        // An order is no case of its own, and a call that failed, or was answered otherwise, is none.
        (
            RecordedQuestion::Rank { .. }
            | RecordedQuestion::Order { .. }
            | RecordedQuestion::Judge { .. }
            | RecordedQuestion::Allow { .. },
            Ok(_) | Err(_),
        ) => Vec::new(),
    }
}

/// A binding of the policy, where its code is at hand.
fn source_of(policy: &RecordedPolicy, kind: PolicyKind) -> Option<BindingSource> {
    let mut source = BindingSource {
        namespace: "recorded".to_owned(),
        name: policy.name.clone(),
        labels: [(POLICY_LABEL.to_owned(), kind.as_str().to_owned())].into(),
        ..BindingSource::default()
    };
    if let Some(rule) = &policy.rule {
        let keys = rule.keys().into_iter().filter(|(_, text)| !text.is_empty());
        let keys = keys.map(|(key, text)| (key.to_owned(), text.to_owned()));
        source.data.extend(keys);
    } else {
        let mut known = BUILTINS.iter();
        let builtin = known.find(|it| digest(it.component()) == policy.digest)?;
        let name = builtin.name.to_owned();
        source.data.insert(BUILTIN_KEY.to_owned(), name);
    }
    Some(source)
}

/// A case in YAML: one line a field and a row, so that changes can be read.
fn text(draft: Draft, policy: &RecordedPolicy, call: &RecordedCall) -> String {
    let Draft {
        comments,
        mut fields,
    } = draft;
    put_context(&mut fields, policy, call);
    let name = fields.remove("name").unwrap_or_default();
    let expect = fields.remove("expect").unwrap_or_default();
    let mut text = String::new();
    for comment in comments {
        line(&mut text, format_args!("# {comment}"));
    }
    line(&mut text, format_args!("- name: {name}"));
    for (key, value) in fields.into_iter().chain([("expect".to_owned(), expect)]) {
        match &value {
            Value::Array(rows) if rows.iter().all(Value::is_object) && !rows.is_empty() => {
                line(&mut text, format_args!("  {key}:"));
                for row in rows {
                    line(&mut text, format_args!("    - {row}"));
                }
            }
            Value::Object(parts) if key == "expect" => {
                line(&mut text, format_args!("  expect:"));
                for (key, value) in parts {
                    line(&mut text, format_args!("    {key}: {value}"));
                }
            }
            _ => line(&mut text, format_args!("  {key}: {value}")),
        }
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

/// Moment, settings, facts and memory.
fn put_context(fields: &mut Map<String, Value>, policy: &RecordedPolicy, call: &RecordedCall) {
    let (cluster, seed) = match &call.question {
        RecordedQuestion::Rank { round, .. } => (&round.cluster, round.seed),
        RecordedQuestion::Order { round } | RecordedQuestion::Judge { round, .. } => {
            (&round.context.cluster, round.context.seed)
        }
        RecordedQuestion::Allow { round } => (&round.context.cluster, round.context.seed),
    };
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    if let Some(now) = crate::call_context::moment(call.question.now_seconds()) {
        put("now", json!(now.to_string()));
    }
    put("cluster", json!(cluster));
    put("seed", json!(seed));
    if let Ok(config) = serde_json::from_str::<Value>(&policy.config) {
        put("config", config);
    }
    let list = |text: &str| json!(text.split(',').map(str::trim).collect::<Vec<_>>());
    let document = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap_or_default();
    for (key, text) in &policy.facts {
        match key.as_str() {
            TIME_ZONES_KEY => put("timeZones", list(text)),
            WORKLOAD_LABELS_ANNOTATION => put("workloadLabels", list(text)),
            CALENDARS_KEY => put("calendars", document(text)),
            INTERRUPTION_RATES_KEY => put("interruptionRates", document(text)),
            _ => None,
        };
    }
    if let Some(memory) = std::str::from_utf8(&call.memory)
        .ok()
        .filter(|it| !it.is_empty())
    {
        put("memory", json!(memory));
    }
}
