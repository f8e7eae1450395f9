//! `mortise policy run`: what a policy says of the questions of a recording, or of those that a running controller
//! asked last, as tables.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use policy::binding_keys::MODE_ANNOTATION;
use policy::{
    AllowedNodes, BindingState, JudgedMove, LaidOut, LaidOutResult, ObjectKey, OrderedNode,
    PolicyHost, PolicyKind, RankedClaim, RecordedLine, RecordedQuestion,
};

use super::records::RecordedFile;
use super::{exit_code, say, target, unhurried_host};
use crate::Output;
use crate::cluster::{ClusterAccess, ControllerAddress};
use crate::kind_name::KindName;

/// As much of a controller's recording as is fetched: it may be large, and the latest questions are at its end.
const TAIL_BYTES: u32 = 16 << 20;
/// Names of excluded offerings that are told for a reason.
const EXCLUDED_MAX: usize = 4;

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// What to ask
    #[arg(value_name = "POLICY", default_value = ".")]
    policy: String,

    /// Ask about the decisions of this recording. Default: of the running controller, which must record
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,

    #[command(flatten)]
    controller: ControllerAddress,

    /// How many decisions of each kind, the latest ones
    #[arg(long, value_name = "N", default_value_t = 3)]
    last: usize,

    /// Only what is about this NodePool
    #[arg(long, value_name = "NAME")]
    nodepool: Option<String>,

    /// Rows of each table; JSON has all of them
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// Kind of a component that could be of several
    #[arg(long, value_enum)]
    kind: Option<KindName>,

    /// What to print
    #[arg(short = 'o', long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub(super) fn run(
    arguments: &RunArguments,
    cluster: Option<ClusterAccess>,
) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let mut source = target::source(&host, &arguments.policy, arguments.kind.map(Into::into))?;
    // Whatever share of the cluster it is for: all of it is asked.
    source.annotations.remove(MODE_ANNOTATION);
    let status = host.apply(&source);
    if status.state != BindingState::Ready {
        bail!(
            "{} is refused: {}: {}",
            arguments.policy,
            status.reason,
            status.message
        );
    }
    let mut lines = records(arguments, cluster)?;
    let questions = latest(&mut lines, &host, &source.key(), arguments);
    lines.end()?;
    let found: Vec<LaidOut> = questions
        .iter()
        .filter_map(|it| host.lay_out(&source.key(), it))
        .map(|it| match &arguments.nodepool {
            Some(name) => it.only(name),
            None => it,
        })
        .collect();
    if found.is_empty() {
        bail!(
            "nothing there is a question for {}: is it of another kind, or for other NodePools?",
            arguments.policy
        );
    }
    match arguments.output {
        Output::Json => say(&serde_json::to_string_pretty(&found)?),
        Output::Text => found.iter().for_each(|it| say(&text(it, arguments.rows))),
    }
    let has_failed = |it: &LaidOut| matches!(it.result, LaidOutResult::Failure(_));
    Ok(exit_code(!found.iter().any(has_failed)))
}

fn records(
    arguments: &RunArguments,
    cluster: Option<ClusterAccess>,
) -> anyhow::Result<RecordedFile> {
    if let Some(file) = &arguments.records {
        return RecordedFile::read(file);
    }
    let Some(cluster) = cluster else {
        bail!("this program reaches no controller; name a recording with --records");
    };
    let bytes = (cluster.recording)(&arguments.controller, TAIL_BYTES)?;
    let name = "the recording of the controller".to_owned();
    Ok(RecordedFile::of(name, [bytes]))
}

/// The latest questions that the policy has an answer to, oldest first.
fn latest(
    lines: &mut RecordedFile,
    host: &PolicyHost,
    key: &ObjectKey,
    arguments: &RunArguments,
) -> Vec<RecordedQuestion> {
    let mut kept: BTreeMap<PolicyKind, VecDeque<(u64, RecordedQuestion)>> = BTreeMap::new();
    let mut number = 0;
    for line in lines.by_ref() {
        let RecordedLine::Call(call) = line else {
            continue;
        };
        let question = match &arguments.nodepool {
            Some(name) => call.question.about(name),
            None => Some(call.question),
        };
        let Some(question) = question else { continue };
        let kept = kept.entry(question.kind()).or_default();
        // A chain asks each of its policies the same.
        let is_known = kept
            .iter()
            .rev()
            .take(4)
            .any(|(_, it)| it.is_same_round(&question));
        if is_known || !host.is_asked(key, &question) {
            continue;
        }
        number += 1;
        kept.push_back((number, question));
        if kept.len() > arguments.last {
            kept.pop_front();
        }
    }
    let mut all: Vec<(u64, RecordedQuestion)> = kept.into_values().flatten().collect();
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, it)| it).collect()
}

fn text(question: &LaidOut, rows: usize) -> String {
    let seconds = i64::try_from(question.now_seconds).unwrap_or_default();
    let at = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    let mut text = format!("{} {} at {at}\n", question.kind, question.decision_id);
    // Writing to a String cannot fail.
    let _ = match &question.result {
        LaidOutResult::Claims(all) => all.iter().try_for_each(|it| claim(&mut text, it, rows)),
        LaidOutResult::Nodes(all) => nodes(&mut text, all, rows),
        LaidOutResult::Moves(all) => limited(&mut text, all, rows, judged),
        LaidOutResult::Allowances(all) => limited(&mut text, all, usize::MAX, allowance),
        LaidOutResult::Failure(failure) => writeln!(text, "  no answer: {failure}"),
    };
    for line in &question.log {
        let _ = writeln!(text, "  log {line}");
    }
    text
}

fn limited<T>(
    text: &mut String,
    all: &[T],
    rows: usize,
    line: impl Fn(&mut String, &T) -> std::fmt::Result,
) -> std::fmt::Result {
    all.iter().take(rows).try_for_each(|it| line(text, it))?;
    match all.len().saturating_sub(rows) {
        0 => Ok(()),
        more => writeln!(text, "    and {more} more"),
    }
}

fn claim(text: &mut String, claim: &RankedClaim, rows: usize) -> std::fmt::Result {
    let RankedClaim {
        node_pool,
        stage,
        pods,
        offerings,
        note,
    } = claim;
    writeln!(text, "  NodePool {node_pool}, {stage:?}, {pods} pods")?;
    writeln!(text, "      score     prior      list  offering")?;
    let (out, ranked): (Vec<_>, Vec<_>) = offerings.iter().partition(|it| it.excluded.is_some());
    limited(text, &ranked, rows, |text, it| {
        let name = format!("{} {} {}", it.instance_type, it.zone, it.capacity_type);
        let (score, prior, price) = (it.score, it.prior, it.price);
        writeln!(text, "  {score:>9.5} {prior:>9.5} {price:>9.5}  {name}")
    })?;
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for offering in out {
        let reason = offering.excluded.as_deref().unwrap_or_default();
        let name = format!(
            "{} {} {}",
            offering.instance_type, offering.zone, offering.capacity_type
        );
        reasons.entry(reason).or_default().push(name);
    }
    for (reason, names) in reasons {
        let listed: Vec<&str> = names
            .iter()
            .take(EXCLUDED_MAX)
            .map(String::as_str)
            .collect();
        let more = match names.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        writeln!(text, "  excluded, {reason}: {}{more}", listed.join(", "))?;
    }
    match note {
        Some(note) => writeln!(text, "  note {note}"),
        None => Ok(()),
    }
}

fn nodes(text: &mut String, all: &[OrderedNode], rows: usize) -> std::fmt::Result {
    writeln!(text, "  the order in which nodes are tried")?;
    limited(text, all, rows, |text, it| {
        let skipped = if it.key < 0.0 { ", not tried" } else { "" };
        writeln!(
            text,
            "  {:>9.3}  {} of {}{skipped}",
            it.key, it.name, it.node_pool
        )
    })
}

fn judged(text: &mut String, judged_move: &JudgedMove) -> std::fmt::Result {
    let coming = match (judged_move.new_nodes, judged_move.replacement.as_str()) {
        (0, _) => String::new(),
        (new, "") => format!(" by {new} nodes"),
        (new, what) => format!(" by {new} {what}"),
    };
    writeln!(
        text,
        "  {:?}, score {:.4}: {:?} {}{coming}; {:.5} -> {:.5} USD/h (effective {:.5} -> {:.5}), {} pods move; {}",
        judged_move.verdict,
        judged_move.score,
        judged_move.kind,
        judged_move.remove.join(", "),
        judged_move.cost_before,
        judged_move.cost_after,
        judged_move.effective_before,
        judged_move.effective_after,
        judged_move.pods_moved,
        judged_move.reason
    )
}

fn allowance(text: &mut String, allowance: &AllowedNodes) -> std::fmt::Result {
    let number = |it: Option<u32>| it.map_or_else(|| "-".to_owned(), |it| it.to_string());
    writeln!(
        text,
        "  {} {:<13} declared {:>4}, allowed {:>4}  {}",
        allowance.node_pool,
        allowance.reason,
        number(allowance.declared),
        number(allowance.allowed),
        allowance.why
    )
}
