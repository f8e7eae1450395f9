//! Kubelet configurations of pools, which v1 keeps with the class: pools of one class that differ get classes of their
//! own.
//!
//! Of the configuration itself only what no node ever looked at is taken out.

use apis::Ec2NodeClass;
use serde::Deserialize as _;
use serde_json::Value;

use crate::object_name::with_suffix;
use crate::report::{Fate, ObjectOrigin};
use crate::{ConvertedObject, Converter};

/// A pool, by its place in what was made, with the class that it names.
struct WantedKubelet {
    pool: usize,
    class: String,
    kubelet: Value,
}

/// Gives each class the configuration of its pools, and pools that want another a copy of the class.
pub(crate) fn settle(work: &mut Converter<'_>) {
    let mut wishes = wishes(work);
    for wish in &mut wishes {
        leave_out_what_was_ignored(work, wish);
    }
    let mut classes: Vec<&str> = wishes.iter().map(|it| it.class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.retain(|class| !class.is_empty());
    for class in classes {
        let of_class: Vec<&WantedKubelet> = wishes.iter().filter(|it| it.class == class).collect();
        if of_class.iter().any(|it| !it.kubelet.is_null()) {
            settle_class(work, class, &of_class);
        }
    }
}

/// Takes out what nodes of the class's family never looked at: a class that has it is not ready in v1.
fn leave_out_what_was_ignored(work: &mut Converter<'_>, wish: &mut WantedKubelet) {
    let mut classes = work.made.iter().filter(|it| it.kind() == "EC2NodeClass");
    let class = classes.find(|it| it.name() == wish.class);
    let class = class.and_then(|it| Ec2NodeClass::deserialize(&it.object).ok());
    let (Some(class), Some(kubelet)) = (class, wish.kubelet.as_object_mut()) else {
        return;
    };
    let family = class.ami_family();
    let origin = &work.made[wish.pool].origin;
    let mut notes = Vec::new();
    if !family.takes_pods_per_core() && kubelet.remove("podsPerCore").is_some() {
        let what = format!("{family} does not look at it, and v1 refuses it there");
        notes.push(origin.note(Fate::Dropped, "spec.kubelet.podsPerCore", what));
    }
    let servers = kubelet.get_mut("clusterDNS").and_then(Value::as_array_mut);
    let servers = servers.filter(|it| it.len() > 1 && !family.takes_many_cluster_dns());
    if let Some(servers) = servers {
        servers.truncate(1);
        let what = format!("nodes of {family} have the first alone, and v1 refuses more there");
        notes.push(origin.note(Fate::Dropped, "spec.kubelet.clusterDNS[1..]", what));
    }
    if kubelet.is_empty() {
        wish.kubelet = Value::Null;
    }
    for note in notes {
        work.report.push(note);
    }
}

/// Pools by name, each with what it wants; those that want nothing first, so that the class stays as it is for them.
fn wishes(work: &Converter<'_>) -> Vec<WantedKubelet> {
    let mut wishes: Vec<WantedKubelet> = work
        .made
        .iter()
        .enumerate()
        .filter(|(_, made)| made.kind() == "NodePool")
        .map(|(pool, made)| WantedKubelet {
            pool,
            class: class_of(&made.object).to_owned(),
            kubelet: work
                .kubelets
                .iter()
                .find(|(index, _)| *index == made.origin.index)
                .map(|(_, kubelet)| kubelet.clone())
                .unwrap_or_default(),
        })
        .collect();
    wishes.sort_by(|a, b| {
        let key =
            |it: &WantedKubelet| (!it.kubelet.is_null(), work.made[it.pool].name().to_owned());
        key(a).cmp(&key(b))
    });
    wishes
}

pub(crate) fn class_of(pool: &Value) -> &str {
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"]
        .as_str()
        .unwrap_or_default()
}

fn settle_class(work: &mut Converter<'_>, name: &str, wishes: &[&WantedKubelet]) {
    let found = work
        .made
        .iter()
        .position(|it| it.kind() == "EC2NodeClass" && it.name() == name);
    let Some(found) = found else {
        for wish in wishes.iter().filter(|it| !it.kubelet.is_null()) {
            let origin = work.made[wish.pool].origin.clone();
            let what =
                format!("its class {name} is not among what was made, so that nothing takes it");
            let way_out = "give the class along, or write this into its spec.kubelet";
            work.report
                .push(origin.note(Fate::Lost, "spec.kubelet", what).or(way_out));
        }
        return;
    };
    // Copies are made of the class as it was before its first pools had their say.
    let base = work.made[found].clone();
    let mut variants: Vec<(Value, String)> = Vec::new();
    for wish in wishes {
        let known = variants
            .iter()
            .find(|(kubelet, _)| *kubelet == wish.kubelet);
        let class = if let Some((_, class)) = known {
            class.clone()
        } else {
            let class = if variants.is_empty() {
                fill(&mut work.made[found], &wish.kubelet);
                name.to_owned()
            } else {
                variant(work, &base, wish)
            };
            variants.push((wish.kubelet.clone(), class.clone()));
            class
        };
        work.made[wish.pool].object["spec"]["template"]["spec"]["nodeClassRef"]["name"] =
            class.into();
    }
}

/// A copy of the class for a configuration; answers its name.
fn variant(work: &mut Converter<'_>, base: &ConvertedObject, wish: &WantedKubelet) -> String {
    let pool = work.made[wish.pool].name().to_owned();
    let name = free_name(work, &format!("{}-{pool}", base.name()));
    let mut copy = base.clone();
    copy.object["metadata"]["name"] = name.clone().into();
    fill(&mut copy, &wish.kubelet);
    let origin: ObjectOrigin = work.made[wish.pool].origin.clone();
    let what = format!(
        "EC2NodeClass/{name}, a copy of {}: pools of one class had different kubelet configurations",
        base.name()
    );
    work.report
        .push(origin.note(Fate::Added, "spec.kubelet", what));
    work.made.push(copy);
    name
}

fn fill(class: &mut ConvertedObject, kubelet: &Value) {
    let fields = kubelet.as_object().into_iter().flatten();
    let mut target = class.object["spec"]["kubelet"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    for (field, value) in fields {
        target.insert(field.clone(), value.clone());
    }
    if let Some(spec) = class.object["spec"].as_object_mut() {
        spec.remove("kubelet");
        if !target.is_empty() {
            spec.insert("kubelet".to_owned(), target.into());
        }
    }
}

/// The name, or the name with the first number that is free.
fn free_name(work: &Converter<'_>, name: &str) -> String {
    let is_free = |name: &str| {
        let mut classes = work.made.iter().filter(|it| it.kind() == "EC2NodeClass");
        classes.all(|it| it.name() != name)
    };
    let whole = with_suffix(name, "");
    let numbered = (2..).map(|number| with_suffix(name, &format!("-{number}")));
    std::iter::once(whole.clone())
        .chain(numbered)
        .find(|name| is_free(name))
        .unwrap_or(whole)
}
