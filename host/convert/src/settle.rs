//! Checks once everything is made: names that collide, fields that v1 does not have, objects that a cluster would
//! refuse, and pools whose class is missing.
//!
//! Makes nothing new.

use serde_json::Value;

use crate::kubelet::class_of;
use crate::report::Fate;
use crate::{ConvertedObject, Converter, schema};

/// Of objects of one kind and name the newest generation stays, and of these the first.
pub(crate) fn collisions(work: &mut Converter<'_>) {
    let made = std::mem::take(&mut work.made);
    let mut kept: Vec<ConvertedObject> = Vec::new();
    let mut by_age: Vec<(usize, ConvertedObject)> = made.into_iter().enumerate().collect();
    by_age.sort_by_key(|(at, made)| (std::cmp::Reverse(made.generation), *at));
    for (_, made) in by_age {
        let rival = kept
            .iter()
            .find(|it| it.kind() == made.kind() && it.name() == made.name());
        match rival {
            None => kept.push(made),
            Some(rival) if rival.object == made.object => {
                let what = format!(
                    "{}/{} is there already, and the same",
                    made.kind(),
                    made.name()
                );
                work.report.push(made.origin.note(Fate::Dropped, "", what));
            }
            Some(rival) => {
                let what = format!(
                    "{}/{} is made of another object, {}",
                    made.kind(),
                    made.name(),
                    rival.origin.label
                );
                let way_out = "take one of the two out, or give it another name, and convert again";
                let entry = made.origin.note(Fate::LeftOut, "", what).or(way_out);
                work.report.push(entry);
            }
        }
    }
    work.made = kept;
}

/// Takes out what the definitions do not have, as a cluster would without a word.
pub(crate) fn unknown_fields(work: &mut Converter<'_>) {
    for made in &mut work.made {
        let Some(schema) = schema::of_kind(made.kind()) else {
            continue;
        };
        for path in schema::prune(&mut made.object, &schema) {
            let what = "v1 has no such field";
            work.report.push(made.origin.note(Fate::Lost, &path, what));
        }
    }
}

/// Leaves out what a cluster would refuse.
pub(crate) fn refused(work: &mut Converter<'_>, refusal: &dyn Fn(&Value) -> Option<String>) {
    let made = std::mem::take(&mut work.made);
    for made in made {
        match refusal(&made.object) {
            None => work.made.push(made),
            Some(why) => {
                let what = format!(
                    "a cluster would refuse {}/{}: {why}",
                    made.kind(),
                    made.name()
                );
                let way_out = "mend the field in the old object, and convert again";
                work.report
                    .push(made.origin.note(Fate::LeftOut, "", what).or(way_out));
            }
        }
    }
}

/// Says which pools wait for a class that is not there.
pub(crate) fn references(work: &mut Converter<'_>) {
    let has_class = |name: &str| {
        let mut classes = work.made.iter().filter(|it| it.kind() == "EC2NodeClass");
        classes.any(|it| it.name() == name)
    };
    for made in work.made.iter().filter(|it| it.kind() == "NodePool") {
        let reference = &made.object["spec"]["template"]["spec"]["nodeClassRef"];
        let class = class_of(&made.object);
        if reference["kind"] == "EC2NodeClass" && !has_class(class) {
            let what = format!(
                "EC2NodeClass/{class} is not among what was made, and without it the pool is not ready"
            );
            let way_out = "give it along, or write it";
            let entry = made
                .origin
                .note(Fate::ToDo, "spec.template.spec.nodeClassRef", what);
            work.report.push(entry.or(way_out));
        }
    }
}
