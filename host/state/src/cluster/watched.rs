//! The kinds of objects that the model takes in, each by one implementation of [`Watched`].

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use apis::ObjectKey;
use jiff::Timestamp;

use super::Cluster;
use super::change::{Changes, Refused};

/// A kind of object that the model takes in. Every function is idempotent: watches repeat themselves.
pub trait Watched: Debug + Send + Sync + 'static {
    /// Tells kinds apart that share a type; `()` for the others.
    type Kind: Debug + Copy + Send + Sync + 'static;

    /// Takes in an object as the API has it now. What cannot be read is not taken in.
    fn applied(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused>;

    /// Takes in what a write of our own came to. The watch that tells of it next wakes whom it concerns.
    fn written(
        cluster: &mut Cluster,
        now: Timestamp,
        object: Arc<Self>,
    ) -> Result<Changes, Refused> {
        Self::applied(cluster, now, object)
    }

    /// An object is gone.
    fn deleted(cluster: &mut Cluster, now: Timestamp, kind: Self::Kind, key: &ObjectKey)
    -> Changes;

    /// A list of all that there are lacks the object.
    fn unlisted(
        cluster: &mut Cluster,
        now: Timestamp,
        kind: Self::Kind,
        key: &ObjectKey,
    ) -> Changes {
        Self::deleted(cluster, now, kind, key)
    }

    /// Keys of the objects that the model has.
    fn known(cluster: &Cluster, kind: Self::Kind) -> Vec<ObjectKey>;
}

/// What a watch or a write says of the objects of a kind.
pub(super) trait WatchedEvent: Debug + Send {
    fn apply(self: Box<Self>, cluster: &mut Cluster, now: Timestamp) -> Result<Changes, Refused>;
}

#[derive(Debug)]
pub(super) struct AppliedObject<K>(pub(super) Arc<K>);

#[derive(Debug)]
pub(super) struct WrittenObject<K>(pub(super) Arc<K>);

#[derive(Debug)]
pub(super) struct Deleted<K: Watched>(pub(super) K::Kind, pub(super) ObjectKey);

/// These are all there are.
#[derive(Debug)]
pub(super) struct Listed<K: Watched>(pub(super) K::Kind, pub(super) BTreeSet<ObjectKey>);

impl<K: Watched> WatchedEvent for AppliedObject<K> {
    fn apply(self: Box<Self>, cluster: &mut Cluster, now: Timestamp) -> Result<Changes, Refused> {
        K::applied(cluster, now, self.0)
    }
}

impl<K: Watched> WatchedEvent for WrittenObject<K> {
    fn apply(self: Box<Self>, cluster: &mut Cluster, now: Timestamp) -> Result<Changes, Refused> {
        K::written(cluster, now, self.0)
    }
}

impl<K: Watched> WatchedEvent for Deleted<K> {
    fn apply(self: Box<Self>, cluster: &mut Cluster, now: Timestamp) -> Result<Changes, Refused> {
        let Self(kind, key) = *self;
        Ok(K::deleted(cluster, now, kind, &key))
    }
}

impl<K: Watched> WatchedEvent for Listed<K> {
    fn apply(self: Box<Self>, cluster: &mut Cluster, now: Timestamp) -> Result<Changes, Refused> {
        let Self(kind, listed) = *self;
        let known = K::known(cluster, kind);
        let unlisted = known.iter().filter(|key| !listed.contains(key));
        let changes = unlisted.flat_map(|key| K::unlisted(cluster, now, kind, key));
        Ok(changes.collect())
    }
}
