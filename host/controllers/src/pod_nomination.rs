//! Tells the scheduler where pods were placed: `status.nominatedNodeName`, written just before a new node takes pods.
//!
//! It never goes over a nomination of the scheduler's own: the field is applied under a manager of ours, and a conflict
//! leaves it as it is. A cluster that refuses is asked no more, and its plans go on without. Answers to no file of
//! Karpenter, which leaves placement to chance.

mod entries;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apis::labels::NOMINATION_MANAGER;
use apis::{NodeClaim, NodeRef};
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use locks::lock;
use planning::pod_nomination::{
    Following, NodeOpening, OpeningTerms, PlaceTrade, Renomination, following, next_look,
    nominations, nominations_again, shut_out,
};
use scheduling::pod::PodKey;
use scheduling::solution::NewClaim;
use serde_json::{Value, json};
use state::Event;
use state::Snapshot;
use state::facts::NodeFacts;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{debug, warn};

use self::entries::PlanEntry;
use crate::shell::Shell;

/// Writes under way at one time.
const WRITES_AT_ONCE: usize = 16;
/// How long pods have to show that they were told.
const NOMINATED_AGAIN: SignedDuration = SignedDuration::from_secs(2);
/// A node does not wait longer than this for its pods to be told of it.
const NOMINATING_MAX: Duration = Duration::from_secs(5);

/// Shared by all that open nodes and place pods.
pub(crate) struct PodNominations {
    shell: Arc<Shell>,
    /// Whether they are written.
    is_on: AtomicBool,
    /// When nodes open next, or opened last: all that are ready by then go together.
    opens_at: Mutex<Timestamp>,
    /// When pods were told last.
    nominated_at: Mutex<BTreeMap<PodKey, Timestamp>>,
    played: Mutex<Played>,
    opened: Notify,
}

/// What the scheduler would make of what pods are told.
#[derive(Clone)]
pub(crate) struct Played {
    /// Until when that is taken to be so.
    until: Timestamp,
    /// Pods that are not told for now, and those that are not told again once their node is open.
    found: Arc<Following>,
    /// Pods that would be kept off their node, and whom no trade would help.
    pub(crate) shut_out: Arc<BTreeSet<PodKey>>,
}

/// Nodes that open together do so at full seconds, and pods are told again then.
pub(crate) fn until_next_look(now: Timestamp) -> Duration {
    next_look(now).duration_since(now).unsigned_abs()
}

/// When pods are nominated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NominationMoment {
    /// Just before their node opens.
    AtOpening,
    /// While their node is closed, or again once it is open.
    BeforeOrAfter,
}

/// A pod, and the node that it is nominated to; none takes our nomination back.
struct Write {
    pod: PodKey,
    uid: String,
    node: Option<String>,
}

impl Write {
    fn of(pod: &scheduling::pod::Pod, node: Option<&str>) -> Self {
        Self {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node: node.map(str::to_owned),
        }
    }

    /// The whole of our fields of the object: those that are missing are no longer ours.
    fn object(&self) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.pod.name, "namespace": self.pod.namespace, "uid": self.uid},
        });
        if let Some(node) = &self.node {
            object["status"] = json!({"nominatedNodeName": node});
        }
        object
    }

    async fn send(self, client: Client) -> Result<(), kube::Error> {
        let pods: Api<Pod> = Api::namespaced(client, &self.pod.namespace);
        let params = PatchParams::apply(NOMINATION_MANAGER);
        let object = Patch::Apply(self.object());
        pods.patch_status(&self.pod.name, &params, &object).await?;
        Ok(())
    }
}

impl PodNominations {
    pub(crate) fn new(shell: Arc<Shell>) -> Self {
        Self {
            is_on: AtomicBool::new(shell.settings.nominates_planned_pods()),
            shell,
            opens_at: Mutex::new(Timestamp::MIN),
            nominated_at: Mutex::default(),
            played: Mutex::new(Played {
                until: Timestamp::MIN,
                found: Arc::default(),
                shut_out: Arc::default(),
            }),
            opened: Notify::new(),
        }
    }

    /// Whether pods are told their nodes: asked for, and refused by nobody so far.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// By what it is decided when nodes open.
    pub(crate) fn opening_terms(&self) -> OpeningTerms {
        OpeningTerms {
            holds_nodes_closed: self.shell.settings.follows_plans(),
            nominates_pods: self.is_on(),
        }
    }

    /// When nodes open next, or opened last.
    pub(crate) fn opens_at(&self) -> Timestamp {
        *lock(&self.opens_at)
    }

    /// Nodes open at this moment, those of which it is decided meanwhile included.
    pub(crate) fn appoint(&self, at: Timestamp) {
        *lock(&self.opens_at) = at;
    }

    /// Nominates the pods that a node was bought for, where that can be done. When the node gets the time at which it
    /// opens, pods trade places first.
    pub(crate) async fn tell_pods(
        &self,
        claim: &NodeClaim,
        node: &NodeFacts,
        opening: NodeOpening,
    ) {
        let moment = match opening {
            NodeOpening::TooEarly(_) => return,
            NodeOpening::Held(_) | NodeOpening::Appointed(_) => NominationMoment::BeforeOrAfter,
            NodeOpening::OpensAlone(_) | NodeOpening::Opens => NominationMoment::AtOpening,
        };
        if !self.is_on() {
            return;
        }
        if let NodeOpening::Appointed(_) = opening {
            self.trade_places().await;
        }
        self.nominate_placed(&claim.name_any(), node, moment).await;
    }

    /// At every full second while there are nodes that opened lately, tells their pods of them again, where the
    /// scheduler forgot, and of equal pods the next one.
    pub(crate) async fn run(&self) {
        // Nodes may have opened before the process began.
        self.wake();
        loop {
            self.opened.notified().await;
            loop {
                tokio::time::sleep(until_next_look(self.shell.now())).await;
                if !self.nominate_again().await {
                    break;
                }
            }
        }
    }

    /// A node opened, or something happened to one that did: its pods are told again.
    pub(crate) fn wake(&self) {
        self.opened.notify_one();
    }

    /// Answers whether there may be more to nominate.
    async fn nominate_again(&self) -> bool {
        if !self.is_on() {
            return false;
        }
        let (snapshot, now) = (self.shell.model.snapshot(), self.shell.now());
        let Played { found, .. } = self.played(&snapshot);
        let again = nominations_again(&snapshot, &found.kept_off, now);
        let Renomination::Awaited(again) = again else {
            return false;
        };
        let writes = again
            .iter()
            .flat_map(|it| it.pods.iter().map(|pod| Write::of(pod, Some(it.node))));
        let writes = writes.collect();
        drop(snapshot);
        let moment = NominationMoment::BeforeOrAfter;
        self.nominate_pods(writes, moment).await;
        true
    }

    /// Gives pods that would be kept off their node others, which let them in. What they were told before holds room
    /// where they no longer go, so they are told at once.
    async fn trade_places(&self) {
        let now = self.shell.now();
        let before = self.shell.model.snapshot();
        let found = following(&before, PlaceTrade::BeforeOpening, now);
        drop(before);
        for (node, pods) in &found.moved {
            debug!(NodeClaim = %node, pods = pods.len(), "pods traded places");
            let (node, pods) = (node.clone(), pods.clone());
            self.shell.model.note(Event::Placed { node, pods });
        }
        let snapshot = self.shell.model.snapshot();
        let writes = found.moved.values().flatten().filter_map(|key| {
            let pod = snapshot.pod(key)?;
            let node = snapshot.place(key)?.node_name();
            let node = node.filter(|_| !found.out_of_turn.contains(key));
            Some(Write::of(pod, node))
        });
        let writes = writes.collect();
        drop(snapshot);
        *lock(&self.played) = Played {
            until: next_look(now),
            shut_out: Arc::new(found.kept_off.clone()),
            found: Arc::new(found),
        };
        self.write_nominations(writes).await;
    }

    /// What the scheduler would make of what pods are told: found out once from one full second to the next, as many
    /// nodes ask at one moment.
    pub(crate) fn played(&self, snapshot: &Snapshot) -> Played {
        let now = self.shell.now();
        let mut played = lock(&self.played);
        if played.until <= now {
            let found = if self.is_on() {
                following(snapshot, PlaceTrade::Nobody, now)
            } else {
                Following::default()
            };
            *played = Played {
                until: next_look(now),
                shut_out: Arc::new(shut_out(snapshot, &found.kept_off, now)),
                found: Arc::new(found),
            };
        }
        played.clone()
    }

    /// Nominates the pods that were placed on a node which is about to take pods.
    async fn nominate_placed(&self, claim: &str, node: &NodeFacts, moment: NominationMoment) {
        let snapshot = self.shell.model.snapshot();
        let Some(state_node) = snapshot.node_of_claim(claim) else {
            return;
        };
        let Played { found, .. } = self.played(&snapshot);
        let pods = nominations(&snapshot, state_node, &found.out_of_turn).into_iter();
        let writes = pods.map(|pod| Write::of(pod, Some(&node.name))).collect();
        drop(snapshot);
        self.nominate_pods(writes, moment).await;
    }

    async fn nominate_pods(&self, mut writes: Vec<Write>, moment: NominationMoment) {
        self.leave_out_recent(&mut writes, moment, self.shell.now());
        if writes.is_empty() {
            return;
        }
        let (wanted, since) = (writes.len(), Instant::now());
        let nominated = self.write_nominations(writes).await;
        debug!(wanted, told = nominated, took = ?since.elapsed(), "nominated pods");
        self.shell
            .journal
            .write(&(), &PlanEntry::Nominated(nominated));
    }

    /// Notes that a pod was bound to another node than the one planned for it, if so.
    pub(crate) fn check_place(&self, pod: &PodKey, node: &str, planned: &NodeRef) {
        let snapshot = self.shell.model.snapshot();
        let place = snapshot.find(planned);
        let Some(place) = place.filter(|it| it.node_name() != Some(node)) else {
            return;
        };
        let planned = place.name().to_owned();
        let is_open = place.is_initialized();
        drop(snapshot);
        debug!(Pod = %pod, Node = node, planned, is_open, "pod off plan");
        let entry = PlanEntry::PodElsewhere { pod, node, planned };
        self.shell.journal.write(&(), &entry);
    }

    /// Takes back what was said of pods whose place is now another.
    pub(crate) async fn withdraw(&self, pods: impl Iterator<Item = &PodKey>) {
        let snapshot = self.shell.model.snapshot();
        let pods = pods.filter_map(|key| snapshot.pod(key));
        let ours = pods.filter(|pod| pod.nomination.as_ref().is_some_and(|it| it.is_of_plan));
        let writes = ours.map(|pod| Write::of(pod, None)).collect();
        drop(snapshot);
        self.write_nominations(writes).await;
    }

    /// Answers how many were written.
    async fn write_nominations(&self, writes: Vec<Write>) -> u64 {
        let mut written = 0;
        let sent = writes
            .into_iter()
            .map(|write| write.send(self.shell.client.clone()));
        let sent: Vec<_> = sent.collect();
        let mut answers = stream::iter(sent).buffer_unordered(WRITES_AT_ONCE);
        let all = async {
            while let Some(answer) = answers.next().await {
                match answer {
                    Ok(()) => written += 1,
                    Err(error) if is_refusal(&error) => self.turn_off(&error),
                    Err(error) => debug!(%error, "a pod was not nominated"),
                }
            }
        };
        if tokio::time::timeout(NOMINATING_MAX, all).await.is_err() {
            debug!("the API server took too long to take nominations");
        }
        written
    }

    /// Leaves out pods that were nominated just before, and remembers the others: what is written comes back after a
    /// while. At the moment at which a node opens none is left out, as another that opened may have cost them their
    /// nomination.
    fn leave_out_recent(&self, writes: &mut Vec<Write>, moment: NominationMoment, now: Timestamp) {
        let mut nominated = lock(&self.nominated_at);
        nominated.retain(|_, at| now.duration_since(*at) < NOMINATED_AGAIN);
        writes.retain(|write| {
            let is_new = nominated.insert(write.pod.clone(), now).is_none();
            is_new || moment == NominationMoment::AtOpening
        });
    }

    /// Turns nominations off, with one warning: an API server that refuses one refuses all.
    fn turn_off(&self, error: &kube::Error) {
        if self.is_on.swap(false, Ordering::Relaxed) {
            warn!(
                %error,
                "pods cannot be nominated to the nodes planned for them, so the scheduler may place them elsewhere; allow \
                 patch of pods/status, or turn it off with --nominate-planned-pods=off"
            );
        }
    }
}

/// Whether a new claim would not be there had all pods gone where they were planned: it is for pods whose node has
/// come, and has no room for them.
pub(crate) fn is_off_plan(snapshot: &Snapshot, new: &NewClaim) -> bool {
    let has_come = |pod| snapshot.place(pod).is_some_and(|it| it.is_initialized());
    new.pods.iter().any(has_come)
}

/// Whether every other try would be met likewise. A pod may be gone, bound by now (which the server calls invalid) or
/// nominated by somebody else, the server may have no time, the connection may break, a token may have run out
/// before the next one was read: that says nothing of the next pod.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 403 | 405))
}

#[cfg(test)]
mod tests;
