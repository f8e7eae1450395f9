//! One write of the mirror, done in the shadow. Nothing is written to the cluster itself.

use api_server::{DeleteOptions, NamespacedName, Resource, StatusError};
use shadow::{MirrorWrite, ReadKind, update};
use sim::SimulatedWorld;

/// Does one write; what is gone already is as good as deleted or ended.
pub(super) fn written(world: &SimulatedWorld, write: MirrorWrite) -> Result<(), String> {
    let api = world.api();
    let refused = |kind: ReadKind, why: String| {
        format!(
            "the shadow does without some {}: {why}",
            kind.row().resource()
        )
    };
    match write {
        MirrorWrite::Restore { kind, object } => {
            let restored = api.restore(&resource(kind), object);
            restored
                .map(drop)
                .map_err(|status| refused(kind, status.to_string()))
        }
        MirrorWrite::Update { kind, object } => {
            let key = NamespacedName::of(&object);
            let updated = api.modify(&resource(kind), &key, |there| update(there, object));
            updated
                .map(drop)
                .map_err(|status| refused(kind, status.to_string()))
        }
        MirrorWrite::Delete { kind, key } => {
            let options = DeleteOptions::default();
            let deleted = api.delete(&resource(kind), &key.namespace, &key.name, &options);
            unless_gone(deleted).map_err(|status| kept(kind, &status))
        }
        MirrorWrite::Finish { pod, phase } => {
            let ended = world.end_pod(&NamespacedName::new(pod.namespace, pod.name), &phase);
            unless_gone(ended).map_err(|status| kept(ReadKind::Pods, &status))
        }
    }
}

fn unless_gone<T>(done: Result<T, StatusError>) -> Result<(), StatusError> {
    match done {
        Err(status) if status.code != 404 => Err(status),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn kept(kind: ReadKind, status: &StatusError) -> String {
    let resource = kind.row().resource();
    format!("the shadow keeps some {resource} that the cluster has no longer: {status}")
}

pub(super) fn resource(kind: ReadKind) -> Resource {
    let row = kind.row();
    Resource::fixed(row.group, row.plural)
}
