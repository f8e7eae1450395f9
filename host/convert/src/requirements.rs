//! Requirements on the way to v1: old keys under their present names, keys that v1 refuses taken out, and the defaults
//! that the webhook of Provisioners injected.
//!
//! Values are left as they are; whether they make sense is the solver's business.

use apis::labels;
use serde_json::{Value, json};

use crate::Converter;
use crate::fields::Fields;
use crate::report::{Fate, ObjectOrigin};

/// Label of Karpenter 0.3 for spot and on-demand.
const CAPACITY_TYPE_OF_0_3: &str = "node.k8s.aws/capacity-type";

/// A list in the making.
#[derive(Debug, Default)]
pub(crate) struct RequirementList(Vec<Value>);

impl RequirementList {
    pub(crate) fn add(&mut self, key: &str, operator: &str, values: &[String]) {
        if values.is_empty() {
            self.0.push(json!({"key": key, "operator": operator}));
        } else {
            self.0
                .push(json!({"key": key, "operator": operator, "values": values}));
        }
    }

    /// Adds `In` where there are values.
    pub(crate) fn one_of(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.add(key, "In", values);
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|it| it["key"] == key)
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Array(self.0)
    }

    /// Takes over requirements as they were written.
    pub(crate) fn take(
        &mut self,
        work: &mut Converter<'_>,
        origin: &ObjectOrigin,
        path: &str,
        written: Vec<Value>,
    ) {
        for (index, requirement) in written.into_iter().enumerate() {
            let path = format!("{path}[{index}]");
            let mut fields = Fields::new(origin, &path, requirement);
            let written = fields.text("key").unwrap_or_default();
            let operator = fields.text("operator").unwrap_or_default();
            let values = fields.texts("values");
            let least = fields.take("minValues");
            fields.finish(&mut work.report);
            let Some(key) = key(work, origin, &path, &written) else {
                continue;
            };
            self.add(&key, &operator, &values);
            if let (Some(least), Some(last)) = (least, self.0.last_mut()) {
                last["minValues"] = least;
            }
        }
    }

    /// Adds what the webhook of 0.18 to 0.31 injected, unless requirements or labels say it; `why` goes into the
    /// report.
    pub(crate) fn add_defaults(
        &mut self,
        work: &mut Converter<'_>,
        origin: &ObjectOrigin,
        labels: &Value,
        why: &str,
    ) {
        let says = |this: &Self, key: &str| this.has(key) || labels.get(key).is_some();
        let mut added = Vec::new();
        for (key, value) in [
            (labels::OS, labels::OS_LINUX),
            (labels::ARCH, labels::ARCH_AMD64),
            (labels::CAPACITY_TYPE, labels::CAPACITY_TYPE_ON_DEMAND),
        ] {
            if !says(self, key) {
                self.add(key, "In", &[value.to_owned()]);
                added.push(value);
            }
        }
        let families = [
            labels::INSTANCE_TYPE,
            labels::INSTANCE_FAMILY,
            labels::INSTANCE_CATEGORY,
            labels::INSTANCE_GENERATION,
        ];
        if !families.iter().any(|key| says(self, key)) {
            let categories = ["c", "m", "r"].map(str::to_owned).to_vec();
            self.add(labels::INSTANCE_CATEGORY, "In", &categories);
            self.add(labels::INSTANCE_GENERATION, "Gt", &["2".to_owned()]);
            added.push("categories c, m and r of generation 3 and later");
        }
        if !added.is_empty() {
            let what = format!("{}: {why}", added.join(", "));
            work.report
                .push(origin.note(Fate::Added, "spec.requirements", what));
        }
    }
}

/// The key under which v1 knows it. None where v1 would refuse it, which is reported.
pub(crate) fn key(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    path: &str,
    written: &str,
) -> Option<String> {
    let key = match written {
        CAPACITY_TYPE_OF_0_3 => labels::CAPACITY_TYPE,
        "karpenter.sh/provisioner-name" => labels::NODEPOOL,
        other => labels::normalize(other),
    };
    if key == labels::NODEPOOL {
        let what = format!("{written}: a pool cannot ask for its own name");
        work.report.push(origin.note(Fate::Dropped, path, what));
        return None;
    }
    if labels::is_restricted(key) {
        let what = format!("{written}: no label that nodes have, or one that users may not set");
        let way_out =
            "use a label of your own domain, or one of the karpenter.k8s.aws/instance-* labels";
        work.report
            .push(origin.note(Fate::Lost, path, what).or(way_out));
        return None;
    }
    if key != written {
        work.report
            .push(origin.note(Fate::Changed, path, format!("{written} is {key} now")));
    }
    Some(key.to_owned())
}

/// Labels of a pool's nodes under their present keys.
pub(crate) fn template_labels(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    path: &str,
    written: Vec<(String, String)>,
) -> Value {
    let mut kept = serde_json::Map::new();
    for (label, value) in written {
        if let Some(key) = key(work, origin, path, &label) {
            kept.insert(key, value.into());
        }
    }
    kept.into()
}
