//! A run in stages: the manifests of `--then` are applied once the world has settled, one file after the other.

use anyhow::bail;

use super::progress::{DemoView, Ended, StageOutcome, Watcher};
use super::summary::StageLine;
use super::{SYSTEM_NAMESPACE, read};
use crate::apply;
use crate::cli::{DemoArguments, Until};
use authoring::manifests::Manifests;

/// Stages that follow the beginning.
pub(super) struct Stages {
    until: Until,
    then: Vec<(String, Manifests)>,
}

/// How the whole run went.
pub(super) struct DemoRun {
    /// Outcome of the last stage.
    pub(super) watched: StageOutcome,
    /// Those that settled; none where there was but one stage.
    pub(super) stages: Vec<StageLine>,
    /// Faults of manifests that could not be applied.
    pub(super) faults: Vec<String>,
}

impl Stages {
    pub(super) fn of(arguments: &DemoArguments) -> anyhow::Result<Self> {
        let DemoArguments { until, then, .. } = arguments;
        if !then.is_empty() && *until != Until::Settled {
            bail!("--then waits for the world to settle: leave --until away");
        }
        let then = then.iter();
        let then = then.map(|it| Ok((it.display().to_string(), read("--then", it)?)));
        Ok(Self {
            until: *until,
            then: then.collect::<anyhow::Result<_>>()?,
        })
    }

    pub(super) async fn run(
        self,
        client: &kube::Client,
        watcher: &Watcher<'_>,
        view: &mut DemoView,
    ) -> anyhow::Result<DemoRun> {
        let mut watched = Box::pin(watcher.watch(self.until, view)).await?;
        let all_running = watched.all_running;
        let (mut stages, mut faults) = (Vec::new(), Vec::new());
        let is_staged = !self.then.is_empty();
        let mut begun_by = "the beginning".to_owned();
        let mut then = self.then.into_iter();
        while is_staged && watched.ended == Ended::Settled {
            stages.push(watcher.stage(begun_by, watched.changed_for));
            let Some((file, manifests)) = then.next() else {
                break;
            };
            begun_by = file;
            let documents = manifests.documents;
            let unknown = apply::Unknown::Refuse;
            let applied = apply::apply(client, documents, SYSTEM_NAMESPACE, unknown).await?;
            faults.extend(applied.faults);
            watched = Box::pin(watcher.watch(self.until, view)).await?;
        }
        // Later stages begin with pods that run.
        watched.all_running = all_running;
        Ok(DemoRun {
            watched,
            stages,
            faults,
        })
    }
}
