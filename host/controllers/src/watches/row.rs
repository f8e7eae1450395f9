//! A watched kind as one row: what hangs on it, the right to watch it, and how its objects are told.
//!
//! Which kinds there are is no business of this file.

use std::borrow::Cow;
use std::fmt::Debug;

use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use state::cluster::Watched;
use state::devices::DeviceKind;
use state::workloads::{Workload, WorkloadKind};

use super::WatchSource;
use super::mapping::{ObjectMapper, Ours, Plain, WatchedDevices, WatchedWorkloads};
use super::stream::{KindWatch, watch_some};
use crate::rbac::rule::{LOOKED_AT, RbacRule, Role, WATCHED, When};
use crate::shell::model::first_lists::WatchedKind;
use crate::shell::model::managed::Managed;

pub(super) const DEVICE_GROUP: &str = "resource.k8s.io";

/// Makes a kind of its name, with how much hangs on it.
pub(super) type Criticality = fn(&'static str) -> WatchedKind;
type BeginWatch = Box<dyn FnOnce(&WatchSource, WatchedKind) -> KindWatch + Send>;

/// How the watch of a kind begins.
enum WatchStart {
    /// As the types of this process have it.
    Typed(BeginWatch),
    /// In the version that the cluster prefers.
    Device(DeviceKind),
}

/// A kind that is watched.
pub(super) struct WatchRow {
    kind: WatchedKind,
    group: Cow<'static, str>,
    plural: Cow<'static, str>,
    role: Role,
    verbs: &'static [&'static str],
    pub(super) when: When,
    why: &'static str,
    start: WatchStart,
}

impl WatchRow {
    /// A kind of which the watch begins in a way of its own.
    pub(super) fn new<K: Resource<DynamicType = ()>>(
        criticality: Criticality,
        why: &'static str,
        start: impl FnOnce(&WatchSource, WatchedKind) -> KindWatch + Send + 'static,
    ) -> Self {
        Self {
            kind: criticality(lasting(K::kind(&()))),
            group: K::group(&()),
            plural: K::plural(&()),
            role: Role::Core,
            verbs: WATCHED,
            when: When::Always,
            why,
            start: WatchStart::Typed(Box::new(start)),
        }
    }

    /// Objects are asked for one by one, too, before something is done about them.
    pub(super) fn read_with_get(self) -> Self {
        Self {
            verbs: LOOKED_AT,
            ..self
        }
    }

    /// The right is granted by another role than that of what does not depend on the cloud.
    pub(super) fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// It is watched, and may be, only where the settings ask for it.
    pub(super) fn when(self, when: When) -> Self {
        Self { when, ..self }
    }

    /// People know its objects by this name.
    pub(super) fn display_name(self, name: &'static str) -> Self {
        let kind = self.kind.display_name(name);
        Self { kind, ..self }
    }

    /// The right to watch it, which lasts as long as the process.
    pub(super) fn rule(self) -> RbacRule {
        let resources: &'static [&'static str] = Box::leak(Box::new([lasting(self.plural)]));
        let group = lasting(self.group);
        RbacRule::new(self.role, group, resources, self.verbs, self.why).when(self.when)
    }

    pub(super) fn is_device(&self) -> bool {
        matches!(self.start, WatchStart::Device(_))
    }

    /// The watch; the version is that of devices.
    pub(super) fn begin(self, source: &WatchSource, version: &str) -> KindWatch {
        match self.start {
            WatchStart::Typed(start) => start(source, self.kind),
            WatchStart::Device(kind) => {
                let resource = ApiResource {
                    group: DEVICE_GROUP.to_owned(),
                    version: version.to_owned(),
                    api_version: format!("{DEVICE_GROUP}/{version}"),
                    kind: self.kind.name().to_owned(),
                    plural: self.plural.into_owned(),
                };
                let client = source.shell.client.clone();
                let api = Api::<DynamicObject>::all_with(client, &resource);
                let all = watcher::Config::default();
                watch_some(api, all, self.kind, WatchedDevices(kind))
            }
        }
    }
}

/// A word of a kind. The types have them as constants; another would stay for as long as the process does.
fn lasting(word: Cow<'static, str>) -> &'static str {
    match word {
        Cow::Borrowed(word) => word,
        Cow::Owned(word) => word.leak(),
    }
}

pub(super) fn all<K: Resource<DynamicType = ()>>(client: &Client) -> Api<K> {
    Api::all(client.clone())
}

/// A kind whose objects are told in a way of their own.
pub(super) fn mapped<K, T: ObjectMapper<K>>(
    criticality: Criticality,
    why: &'static str,
    mapper: impl FnOnce(&WatchSource) -> T + Send + 'static,
) -> WatchRow
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    WatchRow::new::<K>(criticality, why, move |source, kind| {
        let every = watcher::Config::default();
        let api = all::<K>(&source.shell.client);
        watch_some(api, every, kind, mapper(source))
    })
}

/// A kind whose objects are told as they are.
pub(super) fn plain<K>(criticality: Criticality, why: &'static str) -> WatchRow
where
    K: Watched<Kind = ()> + Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    mapped::<K, _>(criticality, why, |_| Plain::default())
}

/// A kind of which those that another provider manages are not there.
pub(super) fn ours<K>(criticality: Criticality, why: &'static str) -> WatchRow
where
    K: Watched<Kind = ()> + Managed + Resource<DynamicType = ()> + Clone + DeserializeOwned,
{
    mapped::<K, _>(criticality, why, |_| Ours::default())
}

/// A kind of workload, of which only some facts are kept.
pub(super) fn workload<K>(kind: WorkloadKind, why: &'static str) -> WatchRow
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    Workload: From<K>,
{
    mapped::<K, _>(WatchedKind::helpful, why, move |_| WatchedWorkloads(kind))
}

/// Watch of a kind that tells of devices.
pub(super) fn device(
    kind: DeviceKind,
    name: &'static str,
    plural: &'static str,
    why: &'static str,
) -> WatchRow {
    WatchRow {
        kind: WatchedKind::helpful(name),
        group: Cow::Borrowed(DEVICE_GROUP),
        plural: Cow::Borrowed(plural),
        role: Role::Core,
        verbs: WATCHED,
        when: When::Devices,
        why,
        start: WatchStart::Device(kind),
    }
}
