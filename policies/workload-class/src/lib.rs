//! A consolidation policy: what may be moved depends on whose pods they are.
//!
//! ```json
//! {"label": "tier", "namespaces": {"payments": "critical"}, "classes": {
//!     "critical": {"consolidate": false},
//!     "web": {"minSavings": 0.05, "minAgeMinutes": 60}}}
//! ```
//!
//! The class of a pod is its label `label`, which the binding must name under `mortise.dev/workload-labels`, or else what
//! `namespaces` says of its namespace. A move must suit the classes of all pods on the nodes that go; pods without a class
//! that `classes` names may be moved as ever.

mod class;

use guest_sdk::{
    ConsolidationCall, ConsolidationPolicy, Context, Json, Move, MoveKind, Need, Policy,
    PolicyError, ProposedMove, Settings, Verdict, Verdicts, Workload,
};

use class::Class;

/// Moves pods by their class.
#[derive(Debug)]
pub struct WorkloadClass {
    label: String,
    namespaces: Vec<(String, String)>,
    classes: Vec<(String, Class)>,
}

impl Policy for WorkloadClass {
    const NAME: &'static str = "workload-class";
    const SUMMARY: &'static str = "what may be moved depends on whose pods they are";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"label":{"type":"string","default":"","description":"pod label that names the class; one of the binding's mortise.dev/workload-labels"},"namespaces":{"type":"object","additionalProperties":{"type":"string"},"description":"class of pods without the label, by namespace"},"classes":{"type":"object","additionalProperties":{"type":"object","additionalProperties":false,"properties":{"consolidate":{"type":"boolean","default":true,"description":"whether nodes with such pods are removed to save money"},"drift":{"type":"boolean","default":true,"description":"whether they are replaced because they drifted"},"minSavings":{"type":"number","minimum":0,"default":0,"description":"USD an hour that a move must save"},"minAgeMinutes":{"type":"number","minimum":0,"default":0,"description":"age that nodes with such pods must have"}}}}}}"#;
    const NEEDS: &'static [Need] = &[Need::Workloads];

    fn configure(settings: &mut Settings) -> Self {
        let mut entries = |key, what: &str| match settings.get(key) {
            None => Vec::new(),
            Some(Json::Object(fields)) => fields,
            Some(_) => {
                settings.error(key, what);
                Vec::new()
            }
        };
        let namespaces = entries("namespaces", "must map namespaces to classes");
        let classes = entries("classes", "must map classes to what holds of them");
        let of_namespace = |(name, value): (String, Json)| match value {
            Json::Text(class) => Some((name, class)),
            _ => None,
        };
        let namespaces: Option<Vec<_>> = namespaces.into_iter().map(of_namespace).collect();
        let read = |(name, value): (String, Json)| Some((name, Class::read(&value)?));
        let classes: Option<Vec<_>> = classes.into_iter().map(read).collect();
        if namespaces.is_none() {
            settings.error("namespaces", "must map namespaces to classes");
        }
        if classes.is_none() {
            let known = "knows consolidate, drift (true or false), minSavings and minAgeMinutes";
            settings.error("classes", ["a class ", known].concat());
        }
        Self {
            label: settings.text("label", ""),
            namespaces: namespaces.unwrap_or_default(),
            classes: classes.unwrap_or_default(),
        }
    }
}

impl WorkloadClass {
    fn class_of(&self, workload: &Workload<'_>) -> Class {
        let by_namespace = || {
            let mut own = self.namespaces.iter();
            own.find(|(name, _)| name == workload.namespace())
                .map(|(_, class)| class.as_str())
        };
        let name = workload.label(&self.label).or_else(by_namespace);
        let class = self
            .classes
            .iter()
            .find(|(class, _)| Some(class.as_str()) == name);
        class.map_or(Class::FREE, |(_, class)| *class)
    }

    /// What holds of each node, by row.
    fn of_nodes(&self, call: &ConsolidationCall<'_>) -> Vec<Class> {
        let mut nodes = vec![Class::FREE; call.table.rows() as usize];
        for (workload, of) in call.workloads.iter().zip(&call.workloads.table.of) {
            if let Some(node) = nodes.get_mut(*of as usize) {
                *node = node.and(self.class_of(&workload));
            }
        }
        nodes
    }
}

/// What the classes of the pods object to.
fn objection(proposed: &ProposedMove<'_>, nodes: &[Class]) -> Option<&'static str> {
    let class_of = |row: u32| nodes.get(row as usize).copied().unwrap_or(Class::FREE);
    let class = proposed.removed().map(|node| class_of(node.row()));
    let class = class.fold(Class::FREE, Class::and);
    let is_drift = matches!(proposed.kind(), MoveKind::Drift | MoveKind::StaticDrift);
    let young = || {
        let ages = proposed
            .removed()
            .map(|it| (class_of(it.row()), it.age_seconds()));
        ages.into_iter()
            .any(|(class, age)| f64::from(age) < class.min_age_seconds)
    };
    if is_drift {
        (!class.drift).then_some("pods of a class that drift leaves alone")
    } else if !proposed.is_for_savings() {
        None
    } else if !class.consolidate {
        Some("pods of a class that is not consolidated")
    } else if proposed.savings() < class.min_savings {
        Some("it saves too little for the class of its pods")
    } else {
        young().then_some("the node is too young for the class of its pods")
    }
}

impl ConsolidationPolicy for WorkloadClass {
    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        match proposed.objection() {
            Some(objection) => Verdict::reject(objection),
            None => proposed.approve_as_default(),
        }
    }

    fn judge(&self, call: &ConsolidationCall<'_>, moves: &[Move]) -> Result<Verdicts, PolicyError> {
        let nodes = self.of_nodes(call);
        let verdict = |it| {
            let proposed = call.proposed(it);
            match objection(&proposed, &nodes) {
                Some(objection) => Verdict::reject(objection),
                None => self.verdict(&proposed, call.context),
            }
        };
        Ok(Verdicts {
            items: moves.iter().map(verdict).collect(),
            memory: None,
            extra: Vec::new(),
        })
    }
}

guest_sdk::export_policy!(consolidation: WorkloadClass);

#[cfg(test)]
mod tests;
