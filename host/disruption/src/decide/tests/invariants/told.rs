//! A story's cluster as its lines tell it, read a second time without anything that decides.

use std::collections::BTreeMap;

use apis::duration::GoDuration;
use apis::nodepool::Budget;
use jiff::{SignedDuration, Timestamp};

use super::super::world::TYPES;

/// What the lines say, by name.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Told {
    pub(super) pools: BTreeMap<String, Vec<String>>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) pods: BTreeMap<String, Pod>,
    /// PodDisruptionBudgets: evictions allowed, and whose pods.
    pub(super) pdbs: BTreeMap<String, (i32, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) instance_type: String,
    pub(super) capacity_type: String,
    pub(super) zone: String,
    pub(super) flags: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Pod {
    pub(super) node: String,
    pub(super) cpu_millis: i64,
    pub(super) flags: Vec<String>,
}

/// The value of `KEY=VALUE`.
fn value<'a>(flags: &'a [String], key: &str) -> Option<&'a str> {
    let of = |it: &'a String| it.strip_prefix(key)?.strip_prefix('=');
    flags.iter().find_map(of)
}

impl Told {
    pub(in super::super) fn of(text: &str) -> Self {
        let mut told = Self::default();
        for line in text.lines() {
            told.line(line);
        }
        if told.pools.is_empty() {
            told.line("pool web");
        }
        told
    }

    /// One more line.
    pub(in super::super) fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        match words.as_slice() {
            ["pool", name, rest @ ..] => {
                self.pools.insert((*name).to_owned(), owned(rest));
            }
            ["node", name, instance_type, capacity_type, zone, flags @ ..] => {
                let node = Node {
                    instance_type: (*instance_type).to_owned(),
                    capacity_type: (*capacity_type).to_owned(),
                    zone: (*zone).to_owned(),
                    flags: owned(flags),
                };
                self.nodes.insert((*name).to_owned(), node);
            }
            ["pod", name, node, cpu, flags @ ..] => {
                let pod = Pod {
                    node: (*node).to_owned(),
                    cpu_millis: cpu.parse().unwrap(),
                    flags: owned(flags),
                };
                self.pods.insert((*name).to_owned(), pod);
            }
            ["pdb", name, allowed, rest @ ..] => {
                let app = (*rest.first().unwrap_or(&"web")).to_owned();
                let allowed = allowed.parse().unwrap();
                self.pdbs.insert((*name).to_owned(), (allowed, app));
            }
            ["gone", "pod", name] => drop(self.pods.remove(*name)),
            ["gone", "node", name] => drop(self.nodes.remove(*name)),
            ["gone", "pool", name] => drop(self.pools.remove(*name)),
            ["gone", "pdb", name] => drop(self.pdbs.remove(*name)),
            [] | ["reservation" | "rebooted" | "failed" | "failed-drift", ..] => {}
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn setting(&self, pool: &str, key: &str) -> Option<&str> {
        value(self.pools.get(pool)?, key)
    }

    pub(super) fn on<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a String, &'a Pod)> {
        self.pods.iter().filter(move |(_, pod)| pod.node == node)
    }

    /// What keeps the pod from being evicted by anything but the end of its node.
    pub(super) fn protection(&self, name: &str, pod: &Pod, now: Timestamp) -> Option<String> {
        if pod.is_protected(now) {
            return Some(format!("I06: pod {name} is protected by do-not-disrupt"));
        }
        let over: Vec<_> = self.pdbs.iter().filter(|it| it.1.1 == pod.app()).collect();
        match over.as_slice() {
            [] => None,
            [(_, (allowed, _))] if *allowed > 0 => None,
            [(pdb, _)] => Some(format!("I05: pdb {pdb} lets no pod {name} go")),
            _ => Some(format!("I05: pod {name} is in several budgets")),
        }
    }

    /// Nodes of a pool that may be in disruption for a reason; `None` without a bound.
    pub(super) fn allowed(&self, pool: &str, reason: &str, now: Timestamp) -> Option<u32> {
        let total = self
            .nodes
            .values()
            .filter(|it| it.pool() == pool && it.counts())
            .count();
        let total = u32::try_from(total).unwrap();
        let one = self
            .setting(pool, "budget")
            .map(|it| format!(r#"[{{"nodes":"{it}"}}]"#));
        let many = self.setting(pool, "budgets").map(|it| it.replace('_', " "));
        let declared: Vec<Budget> = serde_json::from_str(&one.or(many)?).unwrap();
        let allowed = |budget: &Budget| {
            let is_meant = budget
                .reasons
                .as_ref()
                .is_none_or(|all| all.iter().any(|it| it.to_string() == reason));
            match is_open(budget, now) {
                // Whatever it was meant for.
                None => Some(0),
                Some(is_open) if is_open && is_meant => Some(nodes(&budget.nodes, total)),
                Some(_) => None,
            }
        };
        declared.iter().filter_map(allowed).min()
    }

    /// Nodes of a pool that are not there for its pods already.
    pub(super) fn consuming(&self, pool: &str, reason: &str) -> u32 {
        let is_sick = |it: &Node| reason != "Unhealthy" && !it.is_ready();
        let of_pool = self
            .nodes
            .values()
            .filter(|it| it.pool() == pool && it.counts());
        let gone = of_pool.filter(|it| it.has("marked") || is_sick(it)).count();
        u32::try_from(gone).unwrap()
    }
}

impl Node {
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    pub(super) fn pool(&self) -> &str {
        value(&self.flags, "pool").unwrap_or("web")
    }

    pub(super) fn cpu_millis(&self) -> i64 {
        cpus(&self.instance_type) * 1000
    }

    pub(super) fn price_per_hour(&self) -> f64 {
        price(&self.instance_type, &self.capacity_type)
    }

    /// Whether it is one of its pool's nodes for budgets.
    fn counts(&self) -> bool {
        !self.has("uninitialized") && !self.has("claim-only")
    }

    fn is_ready(&self) -> bool {
        let is_sick = |it: &String| {
            it.starts_with("sick=Ready:False") || it.starts_with("sick=Ready:Unknown")
        };
        !self.has("not-ready") && !self.flags.iter().any(is_sick)
    }
}

impl Pod {
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    pub(super) fn app(&self) -> &str {
        value(&self.flags, "app").unwrap_or("web")
    }

    pub(super) fn zone(&self) -> Option<&str> {
        value(&self.flags, "zone").or_else(|| value(&self.flags, "volume"))
    }

    /// Its owner says that losing it costs nothing.
    pub(super) fn is_worthless(&self) -> bool {
        value(&self.flags, "cost").is_some_and(|it| it.parse::<i64>().unwrap() <= -134_217_728)
    }

    /// Every pod started at eleven.
    fn is_protected(&self, now: Timestamp) -> bool {
        let started: Timestamp = "2026-11-20T11:00:00Z".parse().unwrap();
        match value(&self.flags, "do-not-disrupt") {
            None => false,
            Some("true") => true,
            Some(text) => text.parse::<GoDuration>().is_ok_and(|it| {
                let lasts = it.to_signed_duration();
                lasts > SignedDuration::ZERO && now < started + lasts
            }),
        }
    }
}

pub(super) fn cpus(instance_type: &str) -> i64 {
    TYPES.iter().find(|it| it.0 == instance_type).unwrap().1
}

/// The dearest that a launch of the type comes to.
pub(super) fn price(instance_type: &str, capacity_type: &str) -> f64 {
    let on_demand = TYPES.iter().find(|it| it.0 == instance_type).unwrap().2;
    match capacity_type {
        "spot" => on_demand * 0.4,
        "reserved" => 0.000_001,
        _ => on_demand,
    }
}

fn nodes(text: &str, total: u32) -> u32 {
    match text.strip_suffix('%') {
        Some(share) => (total * share.parse::<u32>().unwrap()).div_ceil(100),
        None => text.parse().unwrap(),
    }
}

/// Whether the budget is in force, minute for minute; `None` when nobody can tell.
fn is_open(budget: &Budget, now: Timestamp) -> Option<bool> {
    let Some(schedule) = &budget.schedule else {
        return Some(true);
    };
    let text = if schedule == "@daily" {
        "0 0 * * *"
    } else {
        schedule
    };
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return None;
    };
    let starts = |at: Timestamp| {
        let it = at.to_zoned(jiff::tz::TimeZone::UTC);
        let of_week = it.weekday().to_sunday_zero_offset();
        [
            (minute, it.minute()),
            (hour, it.hour()),
            (day, it.day()),
            (month, it.month()),
            (weekday, of_week),
        ]
        .iter()
        .all(|(field, value)| matches(field, *value))
    };
    let minutes = budget.duration?.to_signed_duration().as_mins();
    let this_minute = now - SignedDuration::from_secs(now.as_second() % 60);
    let before = |it: i64| this_minute - SignedDuration::from_mins(it);
    if (0..minutes).any(|it| starts(before(it))) {
        return Some(true);
    }
    // A start that never comes is a mistake, and a mistake closes the pool.
    (0..366 * 24 * 60)
        .any(|it| starts(before(it)))
        .then_some(false)
}

fn matches(field: &str, value: i8) -> bool {
    match field.split_once('-') {
        Some((from, to)) => (from.parse().unwrap()..=to.parse().unwrap()).contains(&value),
        None => field == "*" || field.parse() == Ok(value),
    }
}
