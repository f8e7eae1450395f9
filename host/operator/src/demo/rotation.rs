//! Manifests applied in turn while the demo runs, such as policies that are swapped under load.

use std::time::Duration;

use super::{SYSTEM_NAMESPACE, read};
use crate::apply;
use crate::cli::DemoArguments;
use authoring::manifests::Manifests;

/// Manifests that are applied in turn, and how long each lasts.
pub(super) struct Rotation {
    manifests: Vec<Manifests>,
    every: Duration,
}

impl Rotation {
    /// Nothing where no manifest is named.
    pub(super) fn of(arguments: &DemoArguments) -> anyhow::Result<Option<Self>> {
        let DemoArguments {
            rotate,
            rotate_every,
            ..
        } = arguments;
        let read: anyhow::Result<Vec<Manifests>> =
            rotate.iter().map(|it| read("--rotate", it)).collect();
        let manifests = read?;
        Ok((!manifests.is_empty()).then_some(Self {
            manifests,
            every: *rotate_every,
        }))
    }

    /// Goes on for as long as it is polled.
    pub(super) async fn run(self, client: kube::Client) {
        for manifests in self.manifests.iter().cycle() {
            let documents = manifests.documents.clone();
            let unknown = apply::Unknown::Refuse;
            match apply::apply(&client, documents, SYSTEM_NAMESPACE, unknown).await {
                Ok(applied) => applied.faults.iter().for_each(|it| eprintln!("{it}")),
                Err(error) => eprintln!("{error:#}"),
            }
            tokio::time::sleep(self.every).await;
        }
    }
}
