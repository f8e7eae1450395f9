//! What is found in which objects.

use apis::crd;

use super::*;

/// A controller that knows one variable and takes one value of it.
fn refusal(variable: &str, value: &str) -> Option<String> {
    let is_refused = variable == "BATCH_IDLE_DURATION" && value != "1s";
    is_refused.then(|| format!("`{value}` is not a duration"))
}

/// What is told of objects, where those of some resources are all that there are.
fn told_of_all(text: &str, whole: &[&str]) -> String {
    let mut input = ConversionInput::default();
    input.add("dump", text);
    let whole = whole.iter().map(|&it| it.to_owned()).collect();
    let found = examine(&input, &whole, &refusal);
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn told(text: &str) -> String {
    told_of_all(text, &[])
}

#[test]
fn each_thing_that_breaks_is_told_with_its_fix() {
    for (text, wanted) in [
        (
            "{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}}",
            "mortise convert",
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
fn a_class_is_missing_where_all_are_known_and_else_unknown() {
    let pool = |version: &str, reference: &str| {
        format!(
            "{{apiVersion: karpenter.sh/{version}, kind: NodePool, metadata: {{name: a}}, spec: {{template: {{spec: \
             {{nodeClassRef: {reference}}}}}}}}}"
        )
    };
    let ours = pool("v1", "{kind: EC2NodeClass, name: b}");
    let class =
        "\n---\n{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: b}}";
    let others = pool("v1", "{kind: OtherClass, name: b}");
    let older = pool("v1beta1", "{name: b}");
    let all = &["ec2nodeclasses"][..];
    for (text, whole, wanted) in [
        (
            ours.clone(),
            all,
            "breaks: NodePool/a: EC2NodeClass/b is not there;",
        ),
        (
            ours.clone(),
            &["nodepools"],
            "note: NodePool/a: whether EC2NodeClass/b is there is not known;",
        ),
        (ours + class, all, ""),
        (
            others,
            all,
            "note: NodePool/a: its class is of kind \"OtherClass\"",
        ),
        (
            older,
            all,
            "breaks: NodePool/a: karpenter.sh/v1beta1 is not read",
        ),
    ] {
        let told = told_of_all(&text, whole);
        assert!(told.starts_with(wanted), "{text}: {told}");
        let lines = usize::from(!wanted.is_empty());
        assert_eq!(told.lines().count(), lines, "{text}: {told}");
    }
}

#[test]
fn names_of_old_are_told_of_a_cron_job_and_not_of_each_of_its_jobs() {
    let run = "{template: {metadata: {annotations: {karpenter.sh/do-not-evict: 'true'}}}}";
    let cron = format!(
        "{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: a}}, spec: {{jobTemplate: {{spec: {run}}}}}}}"
    );
    let job = |owner: &str| {
        let owner = format!("{{kind: {owner}, name: a, controller: true}}");
        format!(
            "{{apiVersion: batch/v1, kind: Job, metadata: {{name: b, ownerReferences: [{owner}]}}, spec: {run}}}"
        )
    };
    for (text, wanted) in [
        (cron, "differs: CronJob/a: spec.jobTemplate.spec.template"),
        (job("CronJob"), ""),
        (job("Workflow"), "differs: Job/b: spec.template"),
    ] {
        let told = told(&text);
        assert_eq!(told.is_empty(), wanted.is_empty(), "{text}: {told}");
        assert!(told.starts_with(wanted), "{text}: {told}");
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

/// A definition of NodePools with these versions, of which the last is stored, and what else its fields say.
fn definition(versions: &[&str], stored: &str) -> String {
    let ours = crd::all()
        .into_iter()
        .find(|it| it.spec.names.kind == "NodePool")
        .unwrap();
    let mut value = serde_json::to_value(ours).unwrap();
    let present = value["spec"]["versions"][0].clone();
    let versions = versions.iter().map(|name| {
        let mut version = present.clone();
        version["name"] = Value::from(*name);
        version
    });
    value["spec"]["versions"] = versions.collect();
    value["status"] = serde_json::json!({"storedVersions": [stored]});
    value.to_string()
}

#[test]
fn versions_that_are_stored_are_told_with_the_way_that_is_open() {
    for (versions, stored, wanted) in [
        (&["v1"][..], "v1", ""),
        (&["v1beta1"], "v1beta1", "upgrade to Karpenter 1.0"),
        (&["v1beta1"], "v1", "mortise crds"),
        (
            &["v1beta1", "v1"],
            "v1beta1",
            "kubectl patch crd nodepools.karpenter.sh --subresource status",
        ),
    ] {
        let told = told(&definition(versions, stored));
        assert_eq!(told.is_empty(), wanted.is_empty(), "{versions:?}: {told}");
        assert!(told.contains(wanted), "{versions:?}: {told}");
        let way_out = told.contains("mortise crds");
        assert_eq!(way_out, wanted == "mortise crds", "{versions:?}: {told}");
    }
}

#[test]
fn what_is_half_done_is_noted() {
    for (text, wanted) in [
        (
            "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a}, status: {conditions: [{type: Drifted, \
             status: 'True', reason: NodePoolDrifted}]}}",
            "note: NodeClaim/a: has drifted already (NodePoolDrifted)",
        ),
        (
            "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a}, status: {conditions: [{type: Drifted, \
             status: 'False'}]}}",
            "",
        ),
        (
            "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: a, deletionTimestamp: \
             '2026-01-01T00:00:00Z', finalizers: [karpenter.sh/termination]}}",
            "note: NodeClaim/a: is on its way out, held by [\"karpenter.sh/termination\"]",
        ),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {taints: [{key: karpenter.sh/disrupted, effect: \
             NoSchedule}]}}",
            "note: Node/a: is tainted karpenter.sh/disrupted",
        ),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: \
             [karpenter.sh/termination]}}",
            "note: Node/a: is on its way out",
        ),
        (
            "{apiVersion: v1, kind: Node, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: \
             [example.com/other]}, spec: {taints: [{key: dedicated, effect: NoSchedule}]}}",
            "",
        ),
    ] {
        let told = told(text);
        assert_eq!(told.is_empty(), wanted.is_empty(), "{text}: {told}");
        assert!(told.starts_with(wanted), "{text}: {told}");
    }
}

/// A Deployment with a label and containers.
fn deployment(app: &str, containers: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a, namespace: b, labels: {{app.kubernetes.io/name: \
         {app}}}}}, spec: {{template: {{spec: {{containers: [{containers}]}}}}}}}}"
    )
}

#[test]
fn settings_that_the_controller_refuses_are_told_of_its_own_deployment() {
    let bad = "{name: BATCH_IDLE_DURATION, value: soon}";
    let good = "{name: BATCH_IDLE_DURATION, value: 1s}";
    let elsewhere = "{name: BATCH_IDLE_DURATION, valueFrom: {configMapKeyRef: {name: a, key: b}}}, \
                     {name: BATCH_IDLE_DURATION, value: $(OTHER)}";
    let service = "{name: KARPENTER_SERVICE, value: karpenter}";
    let broken = "breaks: Deployment/b/a: BATCH_IDLE_DURATION: `soon` is not a duration: the controller does not start";
    for (app, containers, wanted) in [
        ("karpenter", format!("{{env: [{bad}]}}"), broken),
        ("mortise", format!("{{env: [{bad}]}}"), broken),
        ("nodes", format!("{{env: [{service}, {bad}]}}"), broken),
        (
            "nodes",
            format!("{{name: mesh}}, {{env: [{service}, {bad}]}}"),
            broken,
        ),
        ("web", format!("{{env: [{bad}]}}"), ""),
        (
            "karpenter",
            format!("{{env: [{good}]}}, {{env: [{bad}]}}"),
            "",
        ),
        ("karpenter", format!("{{env: [{elsewhere}]}}"), ""),
        ("karpenter", "{name: controller}".to_owned(), ""),
    ] {
        let told = told(&deployment(app, &containers));
        assert_eq!(told.is_empty(), wanted.is_empty(), "{containers}: {told}");
        assert!(told.starts_with(wanted), "{containers}: {told}");
    }
}
