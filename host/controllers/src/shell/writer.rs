//! Writes of the controllers: NodeClaims, Nodes and NodePools. The model learns of each write but deletions before the
//! watch does.
//!
//! It decides nothing and tells nobody; that is the controllers' and the [`crate::shell::journal`]'s. Answers to the
//! writing half of controller-runtime's client.

pub(crate) mod claim_names;
pub(crate) mod finalizers;
pub(crate) mod patching;

use std::fmt::Debug;
use std::sync::Arc;

use apis::{NodeClaim, NodePool, labels};
use cloudprovider::Clock;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PostParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use state::Event;
use state::facts::NodeFacts;

use crate::shell::error::{ReconcileError, api_code};
use crate::shell::model::Model;
use crate::shell::writer::claim_names::ClaimNames;
use crate::shell::writer::finalizers::add_finalizer;
use crate::shell::writer::patching::{PatchTarget, patch, patch_params};

/// Shared by all that write.
pub(crate) struct Writer {
    client: Client,
    clock: Arc<dyn Clock>,
    model: Arc<Model>,
    names: ClaimNames,
}

impl Writer {
    pub(crate) fn new(client: Client, clock: Arc<dyn Clock>, model: Arc<Model>) -> Self {
        Self {
            client,
            clock,
            model,
            names: ClaimNames::default(),
        }
    }

    /// The API of a cluster-scoped kind.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()>,
    {
        Api::all(self.client.clone())
    }

    /// Creates a claim, with the finalizer by which its instance is not forgotten; the model learns of it at once, as
    /// the watch may tell only after the next pass.
    pub(crate) async fn create_claim(&self, claim: &NodeClaim) -> Result<NodeClaim, kube::Error> {
        let created = match self.create_named(claim).await {
            // The name is taken by another, so that nothing came of it.
            Err(error) if api_code(&error) == Some(409) => self.create_named(claim).await,
            tried => tried,
        }?;
        self.claim_written(&created);
        Ok(created)
    }

    /// Creates the claim under a name of its own. Where the answer leaves open whether it is there, the API server is
    /// asked; where it does not answer that either, an error is told, and the claim may be there all the same: the
    /// watch tells of it, and nothing here creates it a second time under that name.
    async fn create_named(&self, claim: &NodeClaim) -> Result<NodeClaim, kube::Error> {
        let mut claim = claim.clone();
        add_finalizer(&mut claim, labels::TERMINATION_FINALIZER);
        let prefix = claim.metadata.generate_name.take().unwrap_or_default();
        let name = self.names.next(&prefix, self.clock.now());
        claim.metadata.name = Some(name.clone());
        let tried = self.api().create(&PostParams::default(), &claim).await;
        match tried {
            Err(error) if is_unknown(&error) => match self.api().get_opt(&name).await {
                Ok(Some(created)) => Ok(created),
                Ok(None) | Err(_) => Err(error),
            },
            known => known,
        }
    }

    /// Writes metadata of a claim; answers what the API server made of it.
    pub(crate) async fn write_claim(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        self.write_claim_part(before, after, PatchTarget::Main)
            .await
    }

    /// Writes the status of a claim; answers what the API server made of it.
    pub(crate) async fn write_claim_status(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
    ) -> Result<NodeClaim, ReconcileError> {
        self.write_claim_part(before, after, PatchTarget::Status)
            .await
    }

    async fn write_claim_part(
        &self,
        before: &NodeClaim,
        after: &NodeClaim,
        part: PatchTarget,
    ) -> Result<NodeClaim, ReconcileError> {
        let written = match patch(&self.api(), before, after, part).await {
            Ok(Some(written)) => written,
            Ok(None) => return Ok(before.clone()),
            Err(error) => {
                self.model.forget_recent_claim(&before.name_any());
                return Err(error);
            }
        };
        self.claim_written(&written);
        if is_gone(&written) {
            self.model.forget_recent_claim(&written.name_any());
        }
        Ok(written)
    }

    fn claim_written(&self, claim: &NodeClaim) {
        let mut claim = claim.clone();
        claim.metadata.managed_fields = None;
        self.model.note(Event::written(Arc::new(claim)));
    }

    /// Writes metadata and spec of a node.
    pub(crate) async fn write_node(
        &self,
        before: &Node,
        after: &Node,
    ) -> Result<Node, ReconcileError> {
        let Some(written) = patch(&self.api(), before, after, PatchTarget::Main).await? else {
            return Ok(before.clone());
        };
        if !is_gone(&written) {
            let event = Event::written(Arc::new(written.clone()));
            self.model.note(event);
        }
        Ok(written)
    }

    /// Gives this very node a label, whatever else of it has changed since; whether it is still there.
    pub(crate) async fn label_node(
        &self,
        seen: &NodeFacts,
        label: &str,
        value: &str,
    ) -> Result<bool, ReconcileError> {
        let change = json!({"metadata": {"uid": seen.uid, "labels": {label: value}}});
        let (params, change) = (patch_params(), Patch::Merge(change));
        let nodes = self.api::<Node>();
        match nodes.patch(&seen.name, &params, &change).await {
            Ok(written) => self.model.note(Event::written(Arc::new(written))),
            // Gone, or another of that name, whose UID cannot be changed.
            Err(error) if matches!(api_code(&error), Some(404 | 409 | 422)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Writes metadata and spec of a pool.
    pub(crate) async fn write_pool(
        &self,
        before: &NodePool,
        after: &NodePool,
    ) -> Result<(), ReconcileError> {
        self.write_pool_part(before, after, PatchTarget::Main).await
    }

    /// Writes the status of a pool.
    pub(crate) async fn write_pool_status(
        &self,
        before: &NodePool,
        after: &NodePool,
    ) -> Result<(), ReconcileError> {
        self.write_pool_part(before, after, PatchTarget::Status)
            .await
    }

    async fn write_pool_part(
        &self,
        before: &NodePool,
        after: &NodePool,
        part: PatchTarget,
    ) -> Result<(), ReconcileError> {
        if let Some(written) = patch(&self.api(), before, after, part).await? {
            self.model.note(Event::written(Arc::new(written)));
        }
        Ok(())
    }

    /// Deletes this very object, not a later one of the same name.
    pub(crate) async fn delete<K>(&self, object: &K) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let uid = object.uid();
        self.delete_if::<K>(&object.name_any(), this_very(uid))
            .await
    }

    /// Deletes this very node, not a later one of the same name.
    pub(crate) async fn delete_node(&self, node: &NodeFacts) -> Result<(), kube::Error> {
        let uid = Some(node.uid.clone());
        self.delete_if::<Node>(&node.name, this_very(uid)).await
    }

    /// Deletes the object unless it has changed since; what was seen of a claim is then asked for anew.
    pub(crate) async fn delete_unchanged(&self, claim: &NodeClaim) -> Result<(), kube::Error> {
        let preconditions = Preconditions {
            uid: claim.uid(),
            resource_version: claim.resource_version(),
        };
        let result = self
            .delete_if::<NodeClaim>(&claim.name_any(), preconditions)
            .await;
        if result.is_err() {
            self.model.forget_recent_claim(&claim.name_any());
        }
        result
    }

    async fn delete_if<K>(
        &self,
        name: &str,
        preconditions: Preconditions,
    ) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let deleted = self.api::<K>().delete(name, &params).await;
        deleted.map(drop)
    }
}

/// That the object is still the one with this UID.
pub(crate) fn this_very(uid: Option<String>) -> Preconditions {
    Preconditions {
        uid,
        resource_version: None,
    }
}

/// Whether the write may have happened all the same: the server failed at it, or did not answer.
fn is_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// Whether the write took the last finalizer off a deleted object.
fn is_gone(written: &impl ResourceExt) -> bool {
    written.meta().deletion_timestamp.is_some() && written.finalizers().is_empty()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api_server::{ApiServer, DeleteOptions, Resource};
    use jiff::Timestamp;

    use super::*;
    use crate::Settings;

    #[tokio::test]
    async fn a_node_is_labelled_over_changes_of_others_and_another_of_its_name_is_not() {
        let clock: Arc<dyn Clock> = Arc::new(sim::SimulatedClock::virtual_time());
        let server = ApiServer::new(1, Arc::new(|| Timestamp::UNIX_EPOCH));
        let client = Client::new(server.clone(), "default");
        let model = Model::new(client.clone(), Arc::clone(&clock), &Settings::default());
        let writer = Writer::new(client, clock, Arc::new(model));
        let nodes = &Resource::NODES;
        let node = || json!({"metadata": {"name": "n"}});
        let created = server.create(nodes, "", node()).unwrap();
        let seen = NodeFacts::parse(&serde_json::from_value((*created).clone()).unwrap());
        let theirs = json!({"metadata": {"labels": {"theirs": "true"}}});
        server.patch_merge(nodes, "", "n", theirs).unwrap();
        let labels = || server.get(nodes, "", "n").unwrap()["metadata"]["labels"].clone();

        assert!(writer.label_node(&seen, "ours", "1").await.unwrap());
        assert_eq!(labels(), json!({"theirs": "true", "ours": "1"}));
        server
            .delete(nodes, "", "n", &DeleteOptions::default())
            .unwrap();
        assert!(!writer.label_node(&seen, "ours", "1").await.unwrap());
        server.create(nodes, "", node()).unwrap();
        assert!(!writer.label_node(&seen, "ours", "1").await.unwrap());
        assert_eq!(labels(), json!(null));
    }
}
