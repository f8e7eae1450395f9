//! Rounds, ConfigMaps and hosts for the tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use policy::{
    BindingSource, CallLimits, CallRecorder, Limits, ObjectKey, PolicyHost, RecordedCall,
    RecordedLine, RecordedPolicy,
};
use scheduling::ranking::{ClaimView, NO_SYMBOL, OfferingTable, RankRound};

/// What was recorded.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) Mutex<Vec<RecordedLine>>);

impl CallRecorder for Lines {
    fn record(&self, call: Box<RecordedCall>, policy: &dyn Fn() -> RecordedPolicy) {
        let mut lines = self.0.lock().unwrap();
        lines.push(RecordedLine::Policy(policy()));
        lines.push(RecordedLine::Call(call));
    }
}

/// A host of one's own, with generous limits of time: only fuel may decide in a test.
pub(crate) fn host() -> PolicyHost {
    let patient = |limits: CallLimits| CallLimits {
        deadline: limits.deadline * 100,
        ..limits
    };
    let limits = Limits::default();
    PolicyHost::new(Limits {
        rank: patient(limits.rank),
        ..limits
    })
    .unwrap()
}

/// The component of a built-in, as somebody would pack it into a ConfigMap.
pub(crate) fn component(name: &str) -> Vec<u8> {
    std::fs::read(format!("builtin/{name}.wasm")).unwrap()
}

/// A ConfigMap of the given kind.
pub(crate) fn config_map(name: &str, kind: &str) -> BindingSource {
    BindingSource {
        namespace: "mortise".to_owned(),
        name: name.to_owned(),
        labels: BTreeMap::from([("mortise.dev/policy".to_owned(), kind.to_owned())]),
        ..BindingSource::default()
    }
}

/// A ConfigMap that names a built-in.
pub(crate) fn builtin(name: &str, kind: &str, builtin: &str) -> BindingSource {
    let mut source = config_map(name, kind);
    source.data.insert("builtin".to_owned(), builtin.to_owned());
    source
}

/// A ConfigMap that carries a component.
pub(crate) fn module(name: &str, kind: &str, component: Vec<u8>) -> BindingSource {
    let mut source = config_map(name, kind);
    source
        .binary_data
        .insert("policy.wasm".to_owned(), component);
    source
}

pub(crate) fn annotated(mut source: BindingSource, key: &str, value: &str) -> BindingSource {
    source
        .annotations
        .insert(format!("mortise.dev/{key}"), value.to_owned());
    source
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: "mortise".to_owned(),
        name: name.to_owned(),
    }
}

/// An amd64 offering at 0.10 and an arm64 one at 0.11, for the pools `web` and `batch`.
pub(crate) fn round() -> RankRound {
    static ROUND: OnceLock<RankRound> = OnceLock::new();
    ROUND.get_or_init(new_round).clone()
}

fn new_round() -> RankRound {
    let words = [
        "web",
        "batch",
        "amd64",
        "arm64",
        "m7i.large",
        "m7g.large",
        "m7i",
        "m7g",
        "us-east-1a",
    ];
    let two = |value: u32| vec![value; 2];
    let claim = |nodepool| ClaimView {
        nodepool,
        weight: 1,
        ..ClaimView::default()
    };
    RankRound {
        now_seconds: 1_767_614_400,
        cluster: "test".to_owned(),
        decision_id: "rank-1".to_owned(),
        seed: 7,
        table: OfferingTable {
            symbols: words.map(str::to_owned).to_vec(),
            instance_type: vec![4, 5],
            family: vec![6, 7],
            generation: two(7),
            cpu_manufacturer: two(NO_SYMBOL),
            zone: two(8),
            arch: vec![2, 3],
            capacity_type: vec![0, 0],
            price: vec![0.10, 0.11],
            on_demand_price: vec![0.10, 0.11],
            cpu_milli: two(2000),
            memory_mib: two(8192),
            gpus: two(0),
            max_pods: two(29),
            reservation_slots: two(0),
            ice_count: two(0),
            ice_age: two(u32::MAX),
            interruption_rate: vec![-1.0; 2],
            prior: vec![0.10, 0.11],
            extra: Vec::new(),
        },
        claims: vec![claim(0), claim(1)],
        ..RankRound::default()
    }
}
