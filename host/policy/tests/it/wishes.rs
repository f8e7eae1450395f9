//! What users of Karpenter asked for: `policies/wishes.yaml` says what answers each wish, its scenarios show it, and
//! the table of `policies/README.md` says no more than that.

use std::collections::BTreeMap;
use std::fs;

use policy::{BUILTINS, BindingSource, PolicyHost};
use serde::Deserialize;
use serde_json::Value;

use crate::scenarios::{case, kind};
use crate::support::{builtin, host};

/// Of the wishes, so many are answered by a rule or by a policy of the shelf.
const ANSWERED_MIN: usize = 28;
const WISHES: u32 = 35;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    wish: u32,
    asks: String,
    shelf: Option<String>,
    missing: Option<String>,
    native: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    scenario: Option<Value>,
}

fn wishes() -> Vec<Wish> {
    let text = fs::read_to_string("../../policies/wishes.yaml").unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

impl Wish {
    fn is_answered(&self) -> bool {
        self.shelf.is_some() || self.scenario.is_some()
    }

    fn row(&self) -> String {
        let answer = match (&self.shelf, &self.missing, &self.native) {
            (Some(name), None, None) => format!("[`{name}`]({name})"),
            (None, Some(what), None) => format!("missing: {what}"),
            (None, None, Some(what)) => what.clone(),
            (None, None, None) => self.expressions(),
            _ => panic!("{} has two answers", self.wish),
        };
        format!("| {} | {} | {answer} |", self.wish, self.asks)
    }

    fn expressions(&self) -> String {
        let keys = self.data.iter().filter(|(key, _)| *key != "config");
        let each = keys.map(|(key, text)| format!("`{key}: {}`", text.trim()));
        // A bar would end the cell.
        each.collect::<Vec<_>>().join(", ").replace('|', "\\|")
    }

    fn binding(&self, kind: &str) -> BindingSource {
        let mut source = builtin("it", kind, "unused");
        source.data.clone_from(&self.data);
        source
    }

    fn check(&self, host: &PolicyHost) {
        let Some(scenario) = &self.scenario else {
            return;
        };
        let mut scenario = scenario.clone();
        scenario["name"] = Value::from(self.asks.as_str());
        let (found, default) = kind(&scenario);
        assert_eq!(self.kind.as_deref(), Some(found), "{}", self.asks);
        assert_ne!(scenario["default"], scenario["expect"], "{}", self.asks);
        for (key, source) in [
            ("default", builtin("it", found, default)),
            ("expect", self.binding(found)),
        ] {
            for outcome in case(&scenario, key).run(host, &source) {
                let faults = outcome.faults;
                assert!(
                    faults.is_empty(),
                    "{}, {}: {faults:#?}",
                    self.wish,
                    outcome.name
                );
            }
        }
    }
}

#[test]
fn wishes_are_answered_as_their_scenarios_say() {
    let host = host();
    let wishes = wishes();
    assert!((1..=WISHES).eq(wishes.iter().map(|it| it.wish)));
    let answered = wishes.iter().filter(|it| it.is_answered()).count();
    assert!(answered >= ANSWERED_MIN, "{answered}");
    for wish in &wishes {
        // Those of the shelf have scenarios of their own.
        let is_there = |name: &String| BUILTINS.iter().any(|it| it.name == name);
        assert!(wish.shelf.as_ref().is_none_or(is_there), "{:?}", wish.shelf);
        wish.check(&host);
    }
}

#[test]
fn the_table_of_the_readme_says_what_answers_each_wish() {
    let readme = fs::read_to_string("../../policies/README.md").unwrap();
    let rows: Vec<String> = wishes().iter().map(Wish::row).collect();
    let table = rows.join("\n");
    assert!(readme.contains(&table), "the table should be\n{table}");
}
