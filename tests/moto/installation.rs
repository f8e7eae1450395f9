//! What `mortise iam` prints makes an installation in moto's account: its CloudFormation, its IAM, its queue and its
//! rules.
//!
//! moto's CloudFormation has no policies of queues and gives roles none of AWS' own policies, so that the documents are
//! applied one by one as well.

use std::process::Command;

use serde_json::{Value, json};
use tests::mortise;
use tests::moto::Moto;

const QUEUE_ARN: &str = "arn:aws:sqs:us-east-1:123456789012:demo";

/// What is printed for the cluster in moto's account.
fn printed(flags: &[&str]) -> Value {
    let output = Command::new(mortise())
        .args(["iam", "--cluster-name=demo"])
        .args(flags)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn documents(flags: &[&str]) -> Value {
    let place = ["--account=123456789012", "--region=us-east-1"];
    printed(&[place.as_slice(), flags].concat())
}

fn texts<'a>(values: &'a Value, key: &str) -> Vec<&'a str> {
    let values = values.as_array().unwrap_or_else(|| panic!("{values}"));
    let mut texts: Vec<&str> = values.iter().filter_map(|it| it[key].as_str()).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn the_template_makes_what_the_documents_say() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let template = printed(&["--format=cloudformation"]).to_string();
    let stack = json!({
        "StackName": "mortise-demo",
        "TemplateBody": template,
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
    });
    moto.call("cloudformation", "create_stack", &stack);
    let stacks = moto.call("cloudformation", "describe_stacks", &json!({}));
    assert_eq!(
        stacks["Stacks"][0]["StackStatus"], "CREATE_COMPLETE",
        "{stacks}"
    );
    let expected = documents(&[]);
    for role in [&expected["controllerRole"], &expected["nodeRole"]] {
        let made = moto.call("iam", "get_role", &json!({"RoleName": role["name"]}));
        let trust = &made["Role"]["AssumeRolePolicyDocument"];
        assert_eq!(*trust, role["trustPolicy"]);
    }
    assert_eq!(
        policy_of_the_controller(&mut moto),
        expected["controllerRole"]["policy"]
    );
    assert_eq!(rules(&mut moto), expected["rules"]);
    let url = json!({"QueueName": "demo"});
    let url = moto.call("sqs", "get_queue_url", &url)["QueueUrl"].clone();
    let asked = json!({"QueueUrl": url, "AttributeNames": ["All"]});
    let attributes = moto.call("sqs", "get_queue_attributes", &asked)["Attributes"].clone();
    assert_eq!(attributes["QueueArn"], QUEUE_ARN);
    assert_eq!(attributes["MessageRetentionPeriod"], "300");

    let outputs = &stacks["Stacks"][0]["Outputs"];
    let names = texts(outputs, "OutputKey");
    let want = [
        "ControllerRoleArn",
        "InterruptionQueueName",
        "NodeRoleArn",
        "NodeRoleName",
    ];
    assert_eq!(names, want);
    let values = texts(outputs, "OutputValue");
    assert!(values.contains(&"KarpenterNodeRole-demo"), "{values:?}");
    assert!(values.contains(&"arn:aws:iam::123456789012:role/MortiseController-demo"));
}

/// The document of the only policy that the controller's role has.
fn policy_of_the_controller(moto: &mut Moto) -> Value {
    let role = json!({"RoleName": "MortiseController-demo"});
    let attached = moto.call("iam", "list_attached_role_policies", &role);
    let attached = attached["AttachedPolicies"].as_array().unwrap();
    assert_eq!(attached.len(), 1, "{attached:?}");
    let version = json!({"PolicyArn": attached[0]["PolicyArn"], "VersionId": "v1"});
    let version = moto.call("iam", "get_policy_version", &version);
    version["PolicyVersion"]["Document"].clone()
}

/// The rules of the account in the form of the documents, by the order of those.
fn rules(moto: &mut Moto) -> Value {
    let suffixes = ["spot", "rebalance", "state", "reservation", "health"];
    let rules = suffixes.map(|suffix| {
        let name = format!("demo-{suffix}");
        let rule = moto.call("events", "describe_rule", &json!({"Name": name}));
        let targets = moto.call("events", "list_targets_by_rule", &json!({"Rule": name}));
        let pattern: Value = serde_json::from_str(rule["EventPattern"].as_str().unwrap()).unwrap();
        json!({"name": name, "eventPattern": pattern, "targets": targets["Targets"]})
    });
    json!(rules)
}

#[test]
fn iam_sqs_and_eventbridge_take_the_documents() {
    let Some(mut moto) = Moto::start() else {
        return;
    };
    let issuer = "--oidc-provider=oidc.eks.us-east-1.amazonaws.com/id/0123";
    let (documents, with_token) = (documents(&[]), documents(&[issuer]));
    let trusted_by_token = with_token["controllerRole"]["trustPolicy"].to_string();
    let by_token = json!({"RoleName": "by-token", "AssumeRolePolicyDocument": trusted_by_token});
    moto.call("iam", "create_role", &by_token);
    for role in [&documents["controllerRole"], &documents["nodeRole"]] {
        let trust = role["trustPolicy"].to_string();
        let asked = json!({"RoleName": role["name"], "AssumeRolePolicyDocument": trust});
        moto.call("iam", "create_role", &asked);
    }
    let controller = &documents["controllerRole"];
    let document = controller["policy"].to_string();
    let policy = json!({"PolicyName": controller["name"], "PolicyDocument": document});
    moto.call("iam", "create_policy", &policy);
    for arn in documents["nodeRole"]["managedPolicies"].as_array().unwrap() {
        let attached = json!({"RoleName": documents["nodeRole"]["name"], "PolicyArn": arn});
        moto.call("iam", "attach_role_policy", &attached);
    }
    let url = fed_queue(&mut moto, &documents);
    assert_eq!(
        heard_on(&mut moto, &url),
        ["EC2 Spot Instance Interruption Warning"]
    );
}

/// Makes queue and rules; the address of the queue.
fn fed_queue(moto: &mut Moto, documents: &Value) -> Value {
    let queue = &documents["queue"];
    let mut attributes = queue["attributes"].clone();
    attributes["Policy"] = json!(queue["policy"].to_string());
    let asked = json!({"QueueName": queue["name"], "Attributes": attributes});
    let url = moto.call("sqs", "create_queue", &asked)["QueueUrl"].clone();
    for rule in documents["rules"].as_array().unwrap() {
        let pattern = rule["eventPattern"].to_string();
        let asked = json!({"Name": rule["name"], "EventPattern": pattern});
        moto.call("events", "put_rule", &asked);
        let asked = json!({"Rule": rule["name"], "Targets": rule["targets"]});
        moto.call("events", "put_targets", &asked);
    }
    url
}

/// Kinds of the events that reach the queue, of one that a rule knows and one that none does.
fn heard_on(moto: &mut Moto, url: &Value) -> Vec<String> {
    let event = |kind: &str| json!({"Source": "aws.ec2", "DetailType": kind, "Detail": "{}"});
    let kinds = [
        "EC2 Spot Instance Interruption Warning",
        "EC2 Fleet State Change",
    ];
    moto.call(
        "events",
        "put_events",
        &json!({"Entries": kinds.map(event)}),
    );
    let asked = json!({"QueueUrl": url, "MaxNumberOfMessages": 10});
    let heard = moto.call("sqs", "receive_message", &asked);
    let messages = heard["Messages"].as_array().cloned().unwrap_or_default();
    let bodies = messages.iter().filter_map(|it| it["Body"].as_str());
    let envelopes = bodies.filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let kinds = envelopes.map(|it| it["detail-type"].as_str().unwrap_or_default().to_owned());
    kinds.collect()
}
