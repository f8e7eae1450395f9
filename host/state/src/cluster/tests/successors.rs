//! Objects of another name that come to the same instance before those they follow are gone.

use super::*;

const INSTANCE: &str = "aws:///a/i-1";

fn node_on_instance(name: &str) -> Event {
    node(name, json!({"spec": {"providerID": INSTANCE}}))
}

/// Names of the Node and the claim that the model has on the instance.
fn on_instance(model: &Cluster) -> (Option<String>, Option<String>) {
    let snapshot = model.snapshot();
    let node = snapshot.nodes().find(|it| {
        let provider_id = it.provider_id();
        provider_id.is_some_and(|it| it.as_str() == INSTANCE)
    });
    let node = node.expect("the instance is known");
    let claim = node.claim().map(|it| it.name.clone());
    (node.node_name().map(str::to_owned), claim)
}

#[test]
fn a_node_that_came_first_outlives_the_end_of_the_one_before_it() {
    let mut model = cluster([
        claim("web-1", INSTANCE, json!({})),
        node_on_instance("old"),
        node_on_instance("new"),
    ]);
    let gone = |name: &str| Event::deleted::<v1::Node>(ObjectKey::cluster(name));
    model.apply(at(1), gone("old")).unwrap();
    let both = (Some("new".to_owned()), Some("web-1".to_owned()));
    assert_eq!(on_instance(&model), both);
    assert!(model.snapshot().node("old").is_none());
    assert!(model.snapshot().node("new").is_some());
    model.apply(at(2), gone("new")).unwrap();
    assert_eq!(on_instance(&model), (None, Some("web-1".to_owned())));
}

#[test]
fn a_claim_that_came_first_outlives_the_end_of_the_one_before_it() {
    let mut model = cluster([
        node_on_instance("n1"),
        claim("old", INSTANCE, json!({})),
        claim("new", INSTANCE, json!({})),
    ]);
    let gone = |name: &str| Event::deleted::<NodeClaim>(ObjectKey::cluster(name));
    model.apply(at(1), gone("old")).unwrap();
    let both = (Some("n1".to_owned()), Some("new".to_owned()));
    assert_eq!(on_instance(&model), both);
    assert!(!model.snapshot().has_claim("old") && model.snapshot().has_claim("new"));
    model.apply(at(2), gone("new")).unwrap();
    assert_eq!(on_instance(&model), (Some("n1".to_owned()), None));
}
