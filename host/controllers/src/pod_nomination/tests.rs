//! Which refusals are for good, and what a nomination says.

use kube::core::Status;

use super::*;

#[test]
fn only_who_may_not_is_refused_for_good() {
    let answer = |code| {
        let status = Status::failure("no", "Reason").with_code(code);
        is_refusal(&kube::Error::Api(Box::new(status)))
    };
    let refused = [401, 403, 404, 405, 409, 422, 429, 500].map(answer);
    // Who is not known is told once the next token is read.
    let expected = [false, true, false, true, false, false, false, false];
    assert_eq!(refused, expected);
}

#[test]
fn an_applied_object_says_no_more_than_the_nomination() {
    let write = |node: Option<&str>| Write {
        pod: PodKey::new("shop", "web-1"),
        uid: "u".to_owned(),
        node: node.map(str::to_owned),
    };
    let metadata = json!({"name": "web-1", "namespace": "shop", "uid": "u"});
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    assert_eq!(write(None).object(), object);
    let nominated = write(Some("n1")).object();
    assert_eq!(nominated["status"], json!({"nominatedNodeName": "n1"}));
    assert_eq!(nominated["metadata"], metadata);
}
