//! One write of the mirror, done in the shadow. Nothing is written to the cluster itself.

use api_server::{DeleteOptions, NamespacedName, Resource};
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
            drop(api.delete(&resource(kind), &key.namespace, &key.name, &options));
            Ok(())
        }
        MirrorWrite::Finish { pod, phase } => {
            drop(world.end_pod(&NamespacedName::new(pod.namespace, pod.name), &phase));
            Ok(())
        }
    }
}

pub(super) fn resource(kind: ReadKind) -> Resource {
    let row = kind.row();
    Resource::fixed(row.group, row.plural)
}
