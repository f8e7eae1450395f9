//! What is found in which objects.

use super::*;

fn told(text: &str) -> String {
    let mut input = ConversionInput::default();
    input.add("dump", text);
    let lines: Vec<String> = examine(&input).iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn each_thing_that_breaks_is_told_with_its_fix() {
    for (text, wanted) in [
        (
            "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}}",
            "mortise convert",
        ),
        (
            "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: a}, spec: {template: {spec: \
             {nodeClassRef: {kind: EC2NodeClass, name: b}}}}}",
            "EC2NodeClass/b is not there",
        ),
        (
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: \
             validation.webhook.karpenter.sh}}",
            "refuses every write",
        ),
    ] {
        let told = told(text);
        assert!(
            told.starts_with("breaks: ") && told.contains(wanted),
            "{told}"
        );
    }
}

#[test]
fn our_own_definitions_are_neither_older_nor_newer() {
    let ours = crd::all();
    let ours: Result<String, _> = ours.iter().map(crd::yaml).collect();
    assert_eq!(told(&ours.unwrap()), "");
}

#[test]
fn a_definition_without_a_field_is_older() {
    let definition = crd::all()
        .into_iter()
        .find(|it| it.spec.names.kind == "NodePool")
        .unwrap();
    let mut value = serde_json::to_value(definition).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let fields = value.pointer_mut(spec).unwrap().as_object_mut().unwrap();
    fields.remove("replicas");
    fields.insert("colour".to_owned(), Value::Null);
    let told = told(&value.to_string());
    assert!(told.contains("no spec.replicas"), "{told}");
    assert!(told.contains("spec.colour is read by nobody"), "{told}");
}
