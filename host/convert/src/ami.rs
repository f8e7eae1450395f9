//! Which images: a family and selector terms as v1 wants them, an alias where nothing was selected.
//!
//! Looks no image up.

use serde_json::{Map, Value, json};

use crate::Converter;
use crate::report::{Fate, ObjectOrigin};

/// Puts `amiFamily` and `amiSelectorTerms` into a spec. False where no image can be named, which is reported.
pub(crate) fn select(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    family: &str,
    terms: Vec<Value>,
    spec: &mut Map<String, Value>,
) -> bool {
    let field = "spec.amiFamily";
    if family == "AL2" {
        let what = "AL2 has no images for Kubernetes 1.33 and later";
        let way_out = "move to al2023@latest before that, with user data in the form of AL2023";
        work.report
            .push(origin.note(Fate::ToDo, field, what).or(way_out));
    }
    let known = match family {
        "Ubuntu" => "Custom",
        other => other,
    };
    if family == "Ubuntu" {
        let what =
            "v1 has no family Ubuntu: the class is of Custom, for which no user data is added";
        let way_out = "let userData call /etc/eks/bootstrap.sh with the cluster's name and --kubelet-extra-args \
                       '--register-with-taints=karpenter.sh/unregistered=:NoExecute'";
        work.report
            .push(origin.note(Fate::Lost, field, what).or(way_out));
    }
    if terms.is_empty() {
        return alias(work, origin, known, spec);
    }
    let is_alias = terms.iter().any(|term| term.get("alias").is_some());
    if !is_alias || known == "Custom" {
        spec.insert("amiFamily".to_owned(), known.into());
    }
    spec.insert("amiSelectorTerms".to_owned(), terms.into());
    true
}

fn alias(
    work: &mut Converter<'_>,
    origin: &ObjectOrigin,
    family: &str,
    spec: &mut Map<String, Value>,
) -> bool {
    let name = match family {
        "AL2" | "AL2023" | "Bottlerocket" | "Windows2019" | "Windows2022" | "Windows2025" => {
            family.to_lowercase()
        }
        other => {
            let what =
                format!("v1 finds no images of {other} by itself, and the class selects none");
            let way_out = "name them in amiSelectorTerms (amiSelector of an AWSNodeTemplate) by id, name or tags";
            work.report.push(
                origin
                    .note(Fate::LeftOut, "spec.amiFamily", what)
                    .or(way_out),
            );
            return false;
        }
    };
    let alias = format!("{name}@latest");
    let what = format!("{family} without a selector is amiSelectorTerms: [{{alias: {alias}}}]");
    work.report
        .push(origin.note(Fate::Changed, "spec.amiFamily", what));
    spec.insert("amiSelectorTerms".to_owned(), json!([{"alias": alias}]));
    true
}
