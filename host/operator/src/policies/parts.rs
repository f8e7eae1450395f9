//! Parts of policies in a decision, for `mortise why`: the host remembers its latest calls, and they are told beside
//! the ledger, of which they are no part.

use policy::{CallRecord, PolicyHost};
use state::ledger::PolicyPart;

/// Lines of a log that are told, and how much of each.
const LINES_MAX: usize = 8;
const LINE_BYTES_MAX: usize = 200;

/// One for each policy that was asked, in the order of the chain; a policy that was asked several times has one.
pub(crate) fn of(host: &PolicyHost, decision_id: &str) -> Vec<PolicyPart> {
    let mut parts: Vec<PolicyPart> = Vec::new();
    if decision_id.is_empty() {
        return parts;
    }
    for call in host.calls_of(decision_id) {
        let part = part(call);
        let is_same = |it: &&mut PolicyPart| {
            (&it.kind, &it.name, &it.digest, &it.config_digest)
                == (&part.kind, &part.name, &part.digest, &part.config_digest)
        };
        match parts.iter_mut().find(is_same) {
            Some(known) => join(known, part),
            None => parts.push(part),
        }
    }
    for part in &mut parts {
        let more = part.log.len().saturating_sub(LINES_MAX);
        part.log.drain(..more);
    }
    parts
}

fn part(call: CallRecord) -> PolicyPart {
    let CallRecord {
        kind,
        decision_id: _,
        name,
        digest,
        config_digest,
        outcome,
        fuel: _,
        duration: _,
        log,
        log_lines_dropped: _,
        shadow,
        mode,
        order,
        changed,
    } = call;
    let changed = match shadow {
        Some(shadow) if shadow.disagreements > 0 => {
            format!(
                "only watched; it would answer otherwise {} times",
                shadow.disagreements
            )
        }
        Some(_) => "only watched, and agrees".to_owned(),
        None => changed,
    };
    PolicyPart {
        kind,
        name,
        digest,
        config_digest,
        mode: mode.to_string(),
        order,
        outcome,
        changed,
        log: log.into_iter().map(cut).collect(),
    }
}

/// A failure of one call must not be hidden by the success of another.
fn join(known: &mut PolicyPart, later: PolicyPart) {
    if known.outcome.is_ok() {
        known.outcome = later.outcome;
    }
    if !later.changed.is_empty() {
        known.changed = later.changed;
    }
    known.log.extend(later.log);
}

fn cut(mut line: String) -> String {
    if line.len() > LINE_BYTES_MAX {
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        line.push_str("..");
    }
    line
}
