//! The conversions as data: `cases/NAME/in.yaml` or `in.json`, the objects and the report that come of it. With
//! `UPDATE_CASES` in the environment, what comes of it is written.
//!
//! Every object is given to an API server with the project's definitions; none of the cases may be judged here.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use api_server::{ApiServer, Resource, WriteOptions};
use convert::{Conversion, ConversionInput, ConversionOptions, convert, to_yaml};
use jiff::Timestamp;
use serde_json::Value;

/// A server that has our definitions and nothing else, made once: its rules take a while to compile.
fn server() -> &'static ApiServer {
    static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
        let server = ApiServer::new(1, Arc::new(|| Timestamp::UNIX_EPOCH));
        for definition in apis::crd::all() {
            server.install_crd(&definition).unwrap();
        }
        server
    });
    &SERVER
}

/// Why the server would not take the object; it keeps nothing.
fn refusal(object: &Value) -> Option<String> {
    let plural = match object["kind"].as_str()? {
        "EC2NodeClass" => "ec2nodeclasses",
        "NodePool" => "nodepools",
        "NodeClaim" => "nodeclaims",
        other => panic!("{other} has no case"),
    };
    let group = object["apiVersion"].as_str()?.split('/').next()?;
    let options = WriteOptions {
        dry_run: true,
        ..WriteOptions::default()
    };
    let resource = Resource::new(group, plural);
    let created = server().create_with(&resource, "", object.clone(), &options);
    created.err().map(|status| status.to_string())
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    cases
}

fn options(case: &Path) -> ConversionOptions {
    let text = fs::read_to_string(case.join("options.json")).unwrap_or_else(|_| "{}".to_owned());
    let given: Value = serde_json::from_str(&text).unwrap();
    let text = |field: &str| given[field].as_str().map(str::to_owned);
    ConversionOptions {
        cluster_name: text("clusterName"),
        role: text("role"),
        instance_profile: text("instanceProfile"),
        ami_alias: text("amiAlias"),
        node_claims: given["nodeClaims"] == true,
    }
}

fn run(case: &Path) -> Conversion {
    let mut input = ConversionInput::default();
    for file in ["in.yaml", "in.json"] {
        if let Ok(text) = fs::read_to_string(case.join(file)) {
            input.add(file, &text);
        }
    }
    convert(&input, &options(case), &refusal)
}

#[test]
fn every_case_comes_to_what_is_written() {
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut faults = Vec::new();
    for case in cases() {
        let conversion = run(&case);
        let values = if conversion.values.is_null() {
            String::new()
        } else {
            to_yaml(std::slice::from_ref(&conversion.values)).unwrap()
        };
        for (file, text) in [
            ("out.yaml", to_yaml(&conversion.objects).unwrap()),
            ("report.txt", conversion.report.to_string()),
            ("values.yaml", values),
        ] {
            let path = case.join(file);
            let written = fs::read_to_string(&path).unwrap_or_default();
            if update && !text.is_empty() {
                fs::write(&path, &text).unwrap();
            } else if written != text {
                faults.push(format!("{}:\n{text}", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn there_are_thirty_cases() {
    assert!(cases().len() >= 30, "{}", cases().len());
}

#[test]
fn what_comes_out_is_accepted_and_comes_out_again_as_it_is() {
    for case in cases() {
        let first = run(&case);
        for object in &first.objects {
            assert_eq!(refusal(object), None, "{}", case.display());
        }
        let mut input = ConversionInput::default();
        input.add("again", &to_yaml(&first.objects).unwrap());
        let options = ConversionOptions {
            node_claims: true,
            ..options(&case)
        };
        let again = convert(&input, &options, &|_| None);
        assert_eq!(first.objects, again.objects, "{}", case.display());
    }
}
