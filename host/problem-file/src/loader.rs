//! Objects to events: what the API server's defaulting and the other controllers would have added is added here.
//!
//! Objects may come in any order. Nodes and claims wait until all are there, because they are joined by provider id.
//! An object at fault is told with its place and left out; none ends the reading.

mod completed;
mod kinds;
mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{NodeClaim, NodeOverlay, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use scheduling::pod::PodKey;
use serde_json::Value;
use state::cluster::{Cluster, Event, Refused};

use crate::FileWorld;
use crate::disruption_budget;
use crate::fault::{ObjectFault, ObjectFaults};
use crate::list::List;
use crate::typed::{Misread, form_of};

use completed::{join, make_claims};
use object::Object;

const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Takes objects in, one by one.
#[derive(Debug)]
pub struct Loader {
    world: FileWorld,
    seen: BTreeSet<(List, PodKey)>,
    namespaces: BTreeMap<String, v1::Namespace>,
    nodes: Vec<v1::Node>,
    claims: Vec<NodeClaim>,
    budgets: Vec<PodDisruptionBudget>,
    /// Pods with resource claims: the templates of these may come later.
    claimants: Vec<(String, v1::Pod)>,
    /// Forms of objects that were looked through for fields that nobody reads.
    forms: BTreeSet<(List, u64)>,
}

impl Default for Loader {
    fn default() -> Self {
        Self::new()
    }
}

impl Loader {
    /// Nothing taken in yet.
    pub fn new() -> Self {
        Self {
            world: FileWorld {
                cluster: Cluster::new(),
                now: None,
                node_classes: Vec::new(),
                invalid_pods: BTreeMap::new(),
                faults: Vec::new(),
                warnings: Vec::new(),
            },
            seen: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            nodes: Vec::new(),
            claims: Vec::new(),
            budgets: Vec::new(),
            claimants: Vec::new(),
            forms: BTreeSet::new(),
        }
    }

    /// Sets the present moment. It comes before any object: objects are taken in as of then.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.world.now = Some(now);
    }

    /// Notes something that is not wrong and yet worth a look.
    pub fn warn(&mut self, warning: &str) {
        self.world.warnings.push(warning.to_owned());
    }

    /// Notes something wrong that was found elsewhere.
    pub fn note_fault(&mut self, fault: ObjectFault) {
        self.world.faults.push(fault);
    }

    /// Takes in one object of a list. `place` is where it came from.
    pub fn add_value(&mut self, list: List, place: &dyn Fn() -> String, value: &Value) {
        // A thousand pods of one form have the same fields, so one of them is looked through.
        let is_new = self.forms.insert((list, form_of(value)));
        self.read(list, place, value, is_new);
    }

    /// Takes in one object that an API server has admitted, which told of fields that nobody reads.
    pub fn add_admitted(&mut self, list: List, place: &dyn Fn() -> String, value: &Value) {
        self.read(list, place, value, false);
    }

    fn read(&mut self, list: List, place: &dyn Fn() -> String, value: &Value, is_new: bool) {
        let name = name_in(value);
        let mut unread = Vec::new();
        match Object::read(list, value, is_new.then_some(&mut unread)) {
            Ok(object) => {
                let place_of = |field: String| format!("{}.{field}: unknown field", place());
                self.world.warnings.extend(unread.into_iter().map(place_of));
                self.add(place, object);
            }
            Err(Misread { field, message }) => {
                if let (List::Pods, Some(key)) = (list, &name) {
                    let message = format!("{field}: {message}");
                    self.world.invalid_pods.insert(key.clone(), message);
                }
                self.note_fault(ObjectFault {
                    place: place(),
                    object: name.as_ref().map(display).unwrap_or_default(),
                    field,
                    message,
                });
            }
        }
    }

    /// Every kind has its arm, so that none is left out in silence.
    fn add(&mut self, place: &dyn Fn() -> String, object: Object) {
        match object {
            Object::Pod(pod) => self.add_pod(place, List::Pods, *pod),
            Object::BoundPod(pod) => self.add_pod(place, List::BoundPods, *pod),
            Object::NodePool(pool) => self.add_node_pool(place, *pool),
            Object::NodeClass(class) => self.add_node_class(place, *class),
            Object::NodeClaim(claim) => self.add_node_claim(place, *claim),
            Object::Node(node) => self.add_node(place, *node),
            Object::DaemonSet(daemon_set) => self.add_daemon_set(place, *daemon_set),
            Object::Namespace(namespace) => self.add_namespace(place, *namespace),
            Object::Pdb(budget) => self.add_budget(place, *budget),
            Object::Device(device) => self.add_device(place, *device),
            Object::Workload(list, workload) => self.add_workload(place, list, *workload),
            Object::CapacityBuffer(buffer) => self.add_capacity_buffer(place, *buffer),
            Object::NodeOverlay(it) => {
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<NodeOverlay>(Arc::from(it));
                self.add_fact(place, List::NodeOverlays, &key, event);
            }
            Object::Volume(it) => {
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<v1::PersistentVolume>(Arc::from(it));
                self.add_fact(place, List::PersistentVolumes, &key, event);
            }
            Object::VolumeClaim(mut it) => {
                default_namespace(&mut it.metadata);
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<v1::PersistentVolumeClaim>(Arc::from(it));
                self.add_fact(place, List::PersistentVolumeClaims, &key, event);
            }
            Object::StorageClass(it) => {
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<StorageClass>(Arc::from(it));
                self.add_fact(place, List::StorageClasses, &key, event);
            }
            Object::CsiNode(it) => {
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<CSINode>(Arc::from(it));
                self.add_fact(place, List::CsiNodes, &key, event);
            }
            Object::Service(mut it) => {
                default_namespace(&mut it.metadata);
                let key = ObjectKey::of(&it.metadata);
                let event = Event::applied::<v1::Service>(Arc::from(it));
                self.add_fact(place, List::Services, &key, event);
            }
        }
    }

    /// Whether the object has a name that no other of its list has.
    fn is_new(&mut self, place: &dyn Fn() -> String, list: List, metadata: &ObjectMeta) -> bool {
        self.is_new_key(place, list, &ObjectKey::of(metadata))
    }

    fn is_new_key(&mut self, place: &dyn Fn() -> String, list: List, key: &PodKey) -> bool {
        let message = if key.name.is_empty() {
            "is not set"
        } else {
            // A pod is one object, bound or not.
            let list = if list == List::BoundPods {
                List::Pods
            } else {
                list
            };
            if self.seen.insert((list, key.clone())) {
                return true;
            }
            "is the name of an earlier object of the same kind"
        };
        let mut faults = ObjectFaults::default();
        faults.push("metadata.name", message);
        self.note_faults(place, key, faults);
        false
    }

    /// A namespace that the file does not hold is there all the same, as something is in it.
    fn add_missing_namespace(&mut self, name: &str) {
        if !self.namespaces.contains_key(name) {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            };
            let namespace = v1::Namespace {
                metadata,
                ..v1::Namespace::default()
            };
            self.namespaces.insert(name.to_owned(), namespace);
        }
    }

    fn note_faults(&mut self, place: &dyn Fn() -> String, key: &PodKey, faults: ObjectFaults) {
        for (field, message) in faults.0 {
            self.world.faults.push(ObjectFault {
                place: place(),
                object: display(key),
                field,
                message,
            });
        }
    }

    fn apply(&mut self, place: &dyn Fn() -> String, event: Event) {
        let now = self.world.now.unwrap_or_default();
        if let Err(refused) = self.world.cluster.apply(now, event) {
            self.note_refusal(place, String::new(), &refused);
        }
    }

    fn apply_pod(&mut self, place: &dyn Fn() -> String, pod: v1::Pod) {
        let now = self.world.now.unwrap_or_default();
        let key = ObjectKey::of(&pod.metadata);
        let applied = self.world.cluster.apply(now, Event::applied(Arc::new(pod)));
        if let Err(refused) = applied {
            let object = display(&key);
            self.world.invalid_pods.insert(key, refused.to_string());
            self.note_refusal(place, object, &refused);
        }
    }

    fn note_refusal(&mut self, place: &dyn Fn() -> String, object: String, refused: &Refused) {
        self.note_fault(ObjectFault {
            place: place(),
            object,
            field: String::new(),
            message: refused.to_string(),
        });
    }

    /// Ends the loading and gives the world: no object comes after this.
    pub fn finish(mut self) -> FileWorld {
        join(&mut self.nodes, &mut self.claims);
        let nowhere = || "the file".to_owned();
        for (place, mut pod) in std::mem::take(&mut self.claimants) {
            let place = || place.clone();
            for claim in make_claims(&mut pod, self.world.snapshot().devices()) {
                self.apply(&place, Event::applied(Arc::new(claim)));
            }
            self.apply_pod(&place, pod);
        }
        for mut namespace in std::mem::take(&mut self.namespaces).into_values() {
            let name = namespace.metadata.name.clone().unwrap_or_default();
            let labels = namespace.metadata.labels.get_or_insert_default();
            labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name);
            self.apply(&nowhere, Event::applied(Arc::new(namespace)));
        }
        for claim in std::mem::take(&mut self.claims) {
            self.apply(&nowhere, Event::applied(Arc::new(claim)));
        }
        let nodes = std::mem::take(&mut self.nodes);
        let name = |node: &v1::Node| node.metadata.name.clone().unwrap_or_default();
        let names: Vec<String> = nodes.iter().map(name).collect();
        for node in nodes {
            self.apply(&nowhere, Event::applied(Arc::new(node)));
        }
        let snapshot = self.world.snapshot();
        for mut budget in std::mem::take(&mut self.budgets) {
            disruption_budget::judge(&mut budget, &snapshot);
            self.apply(&nowhere, Event::applied(Arc::new(budget)));
        }
        for name in names.iter().filter(|name| snapshot.node(name).is_none()) {
            let warning = format!(
                "node {name} is not initialized and has no instance type, so it takes no part"
            );
            self.world.warnings.push(warning);
        }
        self.world
    }
}

fn ready(status: &str, message: &str) -> Condition {
    Condition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: "Ready".to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: None,
    }
}

fn default_namespace(metadata: &mut ObjectMeta) {
    let namespace = metadata.namespace.get_or_insert_default();
    if namespace.is_empty() {
        "default".clone_into(namespace);
    }
}

fn display(key: &PodKey) -> String {
    if key.namespace.is_empty() {
        key.name.clone()
    } else {
        key.to_string()
    }
}

/// The name of an object that may not be one.
fn name_in(value: &Value) -> Option<PodKey> {
    let metadata = value.get("metadata")?;
    let name = metadata.get("name")?.as_str()?;
    let namespace = metadata.get("namespace").and_then(Value::as_str);
    Some(PodKey::new(namespace.unwrap_or("default"), name))
}
