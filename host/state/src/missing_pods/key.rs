//! How pods about to be created are called: by their controller and a number, as no pod is.

use scheduling::pod::PodKey;

/// No name of a real pod holds it.
const MARK: char = '#';

/// Whether the key is that of a pod about to be created rather than of a real one.
pub fn is_coming(pod: &PodKey) -> bool {
    pod.name.contains(MARK)
}

/// Name that all coming pods of a controller share, up to their number.
pub(super) fn prefix(kind: &str, key: &PodKey) -> PodKey {
    PodKey::new(&key.namespace, &format!("{} ({kind}) {MARK}", key.name))
}

/// Numbers sort as they count, up to a million: whoever names pods plans fewer of one controller.
pub(super) fn numbered(prefix: &PodKey, number: usize) -> PodKey {
    PodKey::new(&prefix.namespace, &format!("{}{number:06}", prefix.name))
}
