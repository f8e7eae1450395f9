//! Tables of the book against what the code has: no row too many, none missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::{mortise, workspace_root};

use super::page::Page;
use crate::chart;

fn source(path: &str) -> String {
    fs::read_to_string(workspace_root().join(path)).unwrap()
}

/// What stands between backticks in a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Rows whose first cell is a name between backticks that `is_name` knows, by that name.
fn rows(page: &str, is_name: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<String>> {
    let rows = Page::read(Path::new(page)).rows();
    let rows = rows.into_iter().filter_map(|row| {
        let name = quoted(row.first()?).into_iter().next()?;
        (is_name(&name) && row[0].starts_with('`')).then_some((name, row))
    });
    let mut by_name = BTreeMap::new();
    for (name, row) in rows {
        let before = by_name.insert(name.clone(), row);
        assert_eq!(before, None, "{page}: {name} has two rows");
    }
    by_name
}

#[track_caller]
fn check_same<T: Ord + Debug>(page: &str, told: &BTreeSet<T>, there_is: &BTreeSet<T>) {
    let missing: Vec<_> = there_is.difference(told).collect();
    let unknown: Vec<_> = told.difference(there_is).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "{page}: rows that are missing: {missing:#?}; rows of what there is not: {unknown:#?}"
    );
}

/// A flag: its name, its variable and its default, empty where there is none.
type Flag = (String, String, String);

/// The flags that `mortise controller --help` shows, `--kubeconfig` and the like without a variable among them.
fn flags() -> BTreeSet<Flag> {
    let output = Command::new(mortise())
        .args(["controller", "--help"])
        .output();
    let help = String::from_utf8(output.unwrap().stdout).unwrap();
    let help = help.replace("\n  -", "\n      -");
    let blocks = help.split("\n      --").skip(1);
    let bracket = |block: &str, name: &str| {
        let rest = block.split(&format!("[{name}: ")).nth(1)?;
        Some(rest.split([']', '\n']).next()?.to_owned())
    };
    let flags = blocks.filter_map(|block| {
        let name = block.split([' ', '[', '\n']).next()?;
        let variable = bracket(block, "env").unwrap_or_default();
        let variable = variable.split('=').next()?.to_owned();
        let default = bracket(block, "default").unwrap_or_default();
        Some((format!("--{name}"), variable, default))
    });
    flags
        .filter(|(name, ..)| name != "--help" && name != "--version")
        .collect()
}

#[test]
fn settings_are_those_of_the_controller() {
    let page = "docs/settings.md";
    let rows = rows(page, |name| name.starts_with("--"));
    let cell = |row: &[String], column: usize| {
        let quoted = quoted(&row[column]);
        quoted.into_iter().next().unwrap_or_default()
    };
    let told = rows
        .iter()
        .map(|(name, row)| (name.clone(), cell(row, 1), cell(row, 2)));
    check_same(page, &told.collect(), &flags());
}

/// Variables of the container, each with the line of the chart that sets it.
fn chart_lines() -> BTreeMap<String, String> {
    let helpers = source("charts/mortise/templates/_settings.tpl");
    let lines = helpers.lines().map(str::trim).filter_map(|line| {
        let name = line.strip_prefix('"')?.split('"').next()?;
        let is_variable = name.chars().all(|it| it.is_ascii_uppercase() || it == '_');
        is_variable.then(|| (name.to_owned(), line.to_owned()))
    });
    lines.collect()
}

#[test]
fn settings_name_the_values_of_the_chart() {
    let rows = rows("docs/settings.md", |name| name.starts_with("--"));
    let lines = chart_lines();
    assert!(lines.len() > 20, "{lines:?}");
    for (flag, row) in rows {
        let variable = quoted(&row[1]).into_iter().next().unwrap_or_default();
        let value = quoted(&row[3]).into_iter().next();
        match (value, lines.get(&variable)) {
            (Some(value), Some(line)) => {
                let last = value.rsplit('.').next().unwrap_or_default().to_lowercase();
                let line = line.to_lowercase().replace('_', "");
                assert!(
                    line.contains(&last),
                    "{flag}: {value} is not what sets {variable}: {line}"
                );
            }
            (None, None) => {}
            (value, line) => panic!("{flag}: told {value:?}, the chart has {line:?}"),
        }
    }
}

#[test]
fn variables_that_change_nothing_are_those_that_help_hides() {
    let page = "docs/settings.md";
    let told = rows(page, |name| {
        name.chars().all(|it| it.is_ascii_uppercase() || it == '_')
    });
    let options = source("host/operator/src/options.rs");
    let accepted = options.split("struct AcceptedOptions").nth(1).unwrap();
    let accepted = accepted.split("\n}").next().unwrap();
    let variables = accepted.split("env = \"").skip(1);
    let variables = variables.filter_map(|rest| rest.split('"').next());
    check_same(
        page,
        &told.into_keys().collect(),
        &variables.map(str::to_owned).collect(),
    );
}

/// Names of the metrics of the tables in the source, without the ending of counters; their rows are written from the
/// code.
fn metrics_of_controllers() -> BTreeSet<String> {
    let files = [
        "host/controllers/src/shell/metrics.rs",
        "host/controllers/src/observability.rs",
    ];
    let texts = files.map(source).concat();
    let literals = texts.split('"').skip(1).step_by(2);
    let names = literals.filter(|it| is_metric(it));
    names
        .map(|it| it.trim_end_matches("_total").to_owned())
        .collect()
}

fn is_metric(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let families = [
        "karpenter_",
        "mortise_",
        "controller_runtime_",
        "workqueue_",
        "client_go_",
        "leader_election_",
        "aws_sdk_go_",
        "process_",
    ];
    text.chars().all(is_part) && families.iter().any(|it| text.starts_with(it))
}

/// Names of metrics that are registered elsewhere, without the ending of counters.
fn metrics_of_others() -> BTreeSet<String> {
    let files = [
        "host/aws/src/metrics.rs",
        "host/aws/src/sdk/requests.rs",
        "host/operator/src/api_client/requests.rs",
        "host/operator/src/process_metrics.rs",
    ];
    let texts = files.map(source).concat();
    let literals = texts.split('"').skip(1).step_by(2);
    let names = literals.filter(|it| is_metric(it));
    names.map(str::to_owned).collect()
}

/// Names of the metrics of conditions, which are put together of the kind and what is told of it.
fn metrics_of_conditions() -> BTreeSet<String> {
    let counted = source("host/controllers/src/shell/metrics/conditions.rs");
    let observed = source("host/controllers/src/observability/conditions.rs");
    let counted = counted.split("\"{prefix}_").skip(1);
    let observed = observed.split('"').skip(1).step_by(2);
    let ends = counted
        .filter_map(|it| it.split('"').next())
        .chain(observed);
    let ends =
        ends.filter(|it| it.starts_with("status_condition_") || it.starts_with("termination_"));
    ends.map(|it| format!("operator_KIND_{it}")).collect()
}

/// Names of the metrics of policies.
fn metrics_of_policies() -> BTreeSet<String> {
    let text = source("host/operator/src/policies/metrics.rs");
    let literals = text.split('"').skip(1).step_by(2);
    let names = literals.filter(|it| it.starts_with("mortise_policy_"));
    names.map(str::to_owned).collect()
}

#[test]
fn metrics_of_others_are_those_that_are_registered() {
    let page = "docs/metrics.md";
    let rows_of = |is_wanted: &dyn Fn(&str) -> bool| rows(page, |name| is_wanted(name));
    let of_controllers = metrics_of_controllers();
    assert!(of_controllers.len() > 80, "{of_controllers:?}");
    let is_of_controllers = |name: &str| of_controllers.contains(name.trim_end_matches("_total"));

    let told =
        rows_of(&|name| is_metric(name) && !is_of_controllers(name) && !name.contains("_policy_"));
    let told = told.into_keys();
    let told = told.map(|name| name.trim_end_matches("_total").to_owned());
    check_same(page, &told.collect(), &metrics_of_others());

    let told = rows_of(&|name| name.starts_with("operator_"));
    let told = told.into_keys();
    let told = told.map(|name| name.trim_end_matches("_total").to_owned());
    check_same(page, &told.collect(), &metrics_of_conditions());

    let told = rows(page, |name| {
        name.contains("_policy_") && !is_of_controllers(name)
    });
    let told = told
        .into_keys()
        .map(|name| name.trim_end_matches("_total").to_owned());
    check_same(page, &told.collect(), &metrics_of_policies());
}

#[test]
fn metrics_that_are_asked_for_are_there() {
    let known = chart::registered();
    for page in Page::book() {
        let text = source(&page.name());
        let named = chart::named(&text).into_iter();
        // Labels of Kubernetes' objects begin as Karpenter's metrics do.
        let is_label =
            |it: &str| it.starts_with("karpenter_sh_") || it.starts_with("karpenter_k8s_");
        let mut unknown =
            named.filter(|it| !known.contains(it) && !it.ends_with('_') && !is_label(it));
        assert_eq!(unknown.next(), None, "{}", page.name());
    }
}

#[test]
fn there_is_advice_for_every_outcome() {
    let page = "docs/troubleshooting.md";
    let is_number = |name: &str| name.len() == 4 && name.parse::<u16>().is_ok();
    let of = |page: &str| -> BTreeSet<(String, String)> {
        let rows = Page::read(Path::new(page)).rows().into_iter();
        let rows = rows.filter(|row| is_number(&row[0]));
        let rows: Vec<_> = rows
            .map(|row| (row[0].clone(), quoted(&row[1]).concat()))
            .collect();
        let distinct: BTreeSet<_> = rows.iter().cloned().collect();
        assert_eq!(rows.len(), distinct.len(), "{page} has a row twice");
        distinct
    };
    check_same(page, &of(page), &of("host/state/OUTCOMES.md"));
}

/// Words beside events that look like one.
const NO_EVENTS: [&str; 4] = ["Node", "NodeClaim", "Normal", "Warning"];

/// Reasons that are those of conditions, too, and so constants.
const OF_CONDITIONS: [&str; 1] = [apis::conditions::reason::AWAITING_VOLUME_DETACHMENT];

/// What of a file is neither a comment nor a test.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Sources below a folder, those of tests left out.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.ends_with("tests.rs") {
            found.push(code(&fs::read_to_string(path).unwrap()));
        }
    }
}

/// Whether a literal is a reason of an event, among the code that makes events.
fn is_reason(literal: &str) -> bool {
    literal.starts_with(|it: char| it.is_ascii_uppercase())
        && literal.len() > 1
        && literal.chars().all(char::is_alphanumeric)
        && !NO_EVENTS.contains(&literal)
}

#[test]
fn events_are_those_that_controllers_tell() {
    let mut files = Vec::new();
    sources(&workspace_root().join("host/controllers/src"), &mut files);
    let telling = files.iter().filter(|it| it.contains("EventType::"));
    let literals = telling.flat_map(|code| code.split('"').skip(1).step_by(2));
    let reasons: BTreeSet<_> = literals
        .filter(|it| is_reason(it))
        .chain(OF_CONDITIONS)
        .map(str::to_owned)
        .collect();
    assert!(reasons.len() > 20, "{reasons:?}");
    let told = rows("docs/events.md", is_reason);
    check_same("docs/events.md", &told.into_keys().collect(), &reasons);
}

/// Actions of IAM that the table of the page of installing names.
fn actions_of_the_table() -> BTreeSet<String> {
    let page = Page::read(Path::new("docs/install.md"));
    let services = [
        "EC2",
        "IAM",
        "EKS",
        "arc-zonal-shift",
        "SSM",
        "Pricing",
        "SQS",
    ];
    let mut actions = BTreeSet::new();
    for row in page.rows() {
        let service = row[0].split(',').next().unwrap_or_default();
        if services.contains(&service) {
            let names = quoted(&row[1]).into_iter();
            let names = names.filter(|it| it.starts_with(|it: char| it.is_ascii_uppercase()));
            actions.extend(names.map(|it| format!("{}:{it}", service.to_lowercase())));
        }
    }
    actions
}

/// Actions that the policy of the controller allows.
fn allowed() -> BTreeSet<String> {
    let place = ["--account=123456789012", "--region=us-east-1"];
    let output = Command::new(mortise())
        .args(["iam", "--cluster-name=demo"])
        .args(place)
        .output();
    let documents: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let statements = documents["controllerRole"]["policy"]["Statement"].as_array();
    let actions = statements
        .unwrap()
        .iter()
        .flat_map(|it| it["Action"].as_array().unwrap());
    actions.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn rights_on_aws_are_those_that_the_policy_allows() {
    check_same("docs/install.md", &actions_of_the_table(), &allowed());
}
