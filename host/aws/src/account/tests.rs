//! The table of actions against the calls of the seam, and what of it reaches the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::actions::{ACTIONS, ActionOrigin};
use super::documents::RULES;
use super::names::INSTALLATION_NAME_MAX;
use super::*;

/// Clients of the SDK as the seam calls them, and what IAM calls their services.
const CLIENTS: [(&str, &str); 7] = [
    ("ec2", "ec2"),
    ("eks", "eks"),
    ("iam", "iam"),
    ("pricing", "pricing"),
    ("sqs", "sqs"),
    ("ssm", "ssm"),
    ("zonal_shift", "arc-zonal-shift"),
];

/// What IAM allows for a policy, white space left out.
const POLICY_CHARACTERS_MAX: usize = 6144;

fn options(cluster_name: &str) -> AccountOptions {
    AccountOptions {
        cluster_name: cluster_name.parse().unwrap(),
        node_role: None,
        has_queue: true,
        is_isolated_vpc: false,
        trust: ControllerTrust::PodIdentity,
    }
}

fn place(region: &str) -> AccountPlace {
    let region: AwsRegion = region.parse().unwrap();
    AccountPlace {
        partition: AwsPartition::of(&region),
        region,
        account: "123456789012".parse().unwrap(),
    }
}

fn source(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    fs::read_to_string(root.join(file)).unwrap()
}

/// `describe_subnets` as `DescribeSubnets`.
fn operation(method: &str) -> String {
    let words = method.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.collect()
}

/// What is called on a client: `self.iam, get_role, ..` of a macro, or `self.iam.get_role()`.
fn calls_on(client: &str, code: &str) -> BTreeSet<String> {
    let client = format!("self.{client}");
    let names = code.split(&client).skip(1).filter_map(|rest| {
        // The client for a call that may be a dry run is the answer of a function.
        let rest = rest.strip_prefix("_for(input.dry_run)").unwrap_or(rest);
        let rest = rest.strip_prefix([',', '.'])?;
        rest.split(|it: char| !it.is_ascii_lowercase() && it != '_')
            .next()
    });
    names.filter(|it| !it.is_empty()).map(operation).collect()
}

/// The calls that the SDK's side of the seam makes, as IAM names them.
fn called() -> BTreeSet<String> {
    let files = [
        "sdk.rs",
        "sdk/ec2.rs",
        "sdk/iam.rs",
        "sdk/lookups.rs",
        "sdk/sqs.rs",
    ];
    let code = files.map(source).concat().replace(char::is_whitespace, "");
    let calls = CLIENTS.iter().flat_map(|(client, service)| {
        let names = calls_on(client, &code).into_iter();
        names.map(move |name| format!("{service}:{name}"))
    });
    calls.collect()
}

#[test]
fn every_call_has_its_row_and_every_row_its_call() {
    let mut rows: BTreeMap<&str, ActionOrigin> = BTreeMap::new();
    for row in ACTIONS {
        assert!(
            rows.insert(row.name, row.origin).is_none(),
            "{} has two rows",
            row.name
        );
    }
    let listed = rows
        .iter()
        .filter(|(_, origin)| **origin == ActionOrigin::Called);
    let listed: BTreeSet<String> = listed.map(|(name, _)| (*name).to_owned()).collect();
    let called = called();
    assert!(called.len() > 25, "{called:?}");
    let without_row: Vec<_> = called.difference(&listed).collect();
    let uncalled: Vec<_> = listed.difference(&called).collect();
    assert!(
        without_row.is_empty() && uncalled.is_empty(),
        "calls without a row: {without_row:?}; rows without a call: {uncalled:?}"
    );
}

#[test]
fn every_client_of_the_sdk_is_looked_at() {
    let text = source("sdk.rs");
    let fields = text.split("pub struct SdkClients {").nth(1).unwrap();
    let fields = fields.split('}').next().unwrap().lines();
    let clients = fields.filter_map(|line| line.trim().split_once(": aws_sdk_"));
    let clients: BTreeSet<&str> = clients.map(|(name, _)| name).collect();
    let known = CLIENTS
        .map(|(client, _)| client)
        .into_iter()
        .chain(["ec2_once"]);
    assert_eq!(clients, known.collect());
}

/// Actions of the controller's policy.
fn allowed(options: &AccountOptions) -> BTreeSet<String> {
    let all = documents(options, &place("us-east-1"));
    let statements = all["controllerRole"]["policy"]["Statement"]
        .as_array()
        .unwrap();
    let actions = statements
        .iter()
        .flat_map(|it| it["Action"].as_array().unwrap());
    actions.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_an_installation_does_without_is_not_allowed() {
    let all = allowed(&options("demo"));
    let of = |actions: &[&str]| -> BTreeSet<String> {
        actions.iter().map(|it| (*it).to_owned()).collect()
    };
    let rows = ACTIONS.iter().map(|it| it.name.to_owned());
    let rows: BTreeSet<String> = rows.collect();
    // None of EC2's policies of repair has a node rebooted.
    let never: BTreeSet<String> = rows.difference(&all).cloned().collect();
    assert_eq!(never, of(&["ec2:RebootInstances"]));

    let mut without = options("demo");
    without.has_queue = false;
    let lost: BTreeSet<String> = all.difference(&allowed(&without)).cloned().collect();
    let queue = rows.iter().filter(|it| it.starts_with("sqs:")).cloned();
    assert_eq!(lost, queue.collect());
    let document = documents(&without, &place("us-east-1"));
    assert_eq!(
        (&document["queue"], &document["rules"]),
        (&Value::Null, &Value::Null)
    );

    let mut isolated = options("demo");
    isolated.is_isolated_vpc = true;
    let left = allowed(&isolated);
    assert!(left.contains("iam:PassRole"), "{left:?}");
    let closed = |it: &&String| it.starts_with("pricing:") || it.contains("InstanceProfile");
    assert_eq!(left.iter().find(closed), None);
}

#[test]
fn policies_are_as_short_as_iam_wants_them() {
    let longest = "n".repeat(INSTALLATION_NAME_MAX);
    for region in ["ap-southeast-1", "cn-northwest-1", "us-gov-west-1"] {
        let all = documents(&options(&longest), &place(region));
        // Without white space, as the documents have none in their texts.
        let length = all["controllerRole"]["policy"].to_string().len();
        assert!(length <= POLICY_CHARACTERS_MAX, "{region}: {length}");
    }
}

#[test]
fn rules_send_what_the_controller_reads() {
    let reader = source("interruption.rs");
    for rule in &RULES {
        let pattern = rule.pattern();
        let kind = pattern["detail-type"][0].as_str().unwrap();
        assert!(reader.contains(&format!("{kind:?}")), "{kind}");
    }
    let read = reader.matches("(VERSION, SOURCE_").count();
    assert_eq!(read, RULES.len());
}

#[test]
fn partitions_come_of_regions() {
    let cases = [
        ("eu-central-1", AwsPartition::Aws, "ec2.amazonaws.com"),
        ("cn-north-1", AwsPartition::AwsCn, "ec2.amazonaws.com.cn"),
        ("us-gov-east-1", AwsPartition::AwsUsGov, "ec2.amazonaws.com"),
    ];
    for (region, partition, service) in cases {
        let place = place(region);
        assert_eq!(place.partition, partition, "{region}");
        let all = documents(&options("demo"), &place);
        let trust = &all["nodeRole"]["trustPolicy"]["Statement"][0];
        assert_eq!(trust["Principal"]["Service"], service, "{region}");
    }
}

#[test]
fn no_form_leaves_a_name_out() {
    let token = ControllerTrust::Token {
        issuer: "https://oidc.example.com/id/0123".parse().unwrap(),
        service_account: "mortise/mortise".parse().unwrap(),
    };
    let options = AccountOptions {
        trust: token,
        ..options("demo")
    };
    let texts = [
        documents(&options, &place("us-east-1")).to_string(),
        cloudformation(&options).to_string(),
        terraform(&options).to_string(),
    ];
    for text in texts {
        for word in [
            "partition",
            "dns-suffix",
            "region",
            "account",
            "cluster",
            "node-role",
        ] {
            assert!(!text.contains(&format!("{{{word}}}")), "{word} in {text}");
        }
        assert!(
            text.contains("system:serviceaccount:mortise:mortise"),
            "{text}"
        );
        assert!(text.contains("oidc.example.com/id/0123:sub"), "{text}");
    }
}

#[test]
fn a_role_of_nodes_that_is_there_is_passed_and_not_made() {
    let mut options = options("demo");
    options.node_role = Some("teams/blue/nodes".parse().unwrap());
    let all = documents(&options, &place("us-east-1"));
    assert_eq!(all["nodeRole"], Value::Null);
    let policy = all["controllerRole"]["policy"].to_string();
    assert!(
        policy.contains("arn:aws:iam::123456789012:role/teams/blue/nodes"),
        "{policy}"
    );
    assert_eq!(
        cloudformation(&options)["Resources"]["NodeRole"],
        Value::Null
    );
    let roles = terraform(&options)["resource"]["aws_iam_role"].clone();
    let names: Vec<&String> = roles.as_object().unwrap().keys().collect();
    assert_eq!(names, ["mortise_controller"]);
}

#[test]
fn names_that_would_break_a_document_are_refused() {
    let is_name = |text: &str| text.parse::<InstallationName>().is_ok();
    assert!(is_name("demo-1_a"));
    let too_long = "n".repeat(INSTALLATION_NAME_MAX + 1);
    for name in ["", "-demo", "de mo", "demo\"", "${demo}", too_long.as_str()] {
        assert!(!is_name(name), "{name}");
    }
    for account in ["", "12345678901", "12345678901x"] {
        assert!(account.parse::<AccountId>().is_err(), "{account}");
    }
    for region in ["", "eu", "eu-central", "EU-CENTRAL-1", "eu-central-1*"] {
        assert!(region.parse::<AwsRegion>().is_err(), "{region}");
    }
    for issuer in ["", "https://", "oidc", "oidc.example.com/\"", "${a}.b"] {
        assert!(issuer.parse::<OidcIssuer>().is_err(), "{issuer}");
    }
    for role in ["", "nodes/", "/nodes", "no des", "nodes*", "${nodes}"] {
        assert!(role.parse::<RoleName>().is_err(), "{role}");
    }
    for account in ["", "mortise", "/mortise", "a/b/c", "a/*"] {
        assert!(account.parse::<ServiceAccountName>().is_err(), "{account}");
    }
}
