//! The settings of a policy are held to the schema that it describes, before it sees them.

use policy::{BUILTINS, BindingState, BindingStatus, ConfigSchema, PolicyHost, Setting};

use crate::guests;
use crate::support::{builtin, component, host, module};

fn bind(host: &PolicyHost, name: &str, config: &str) -> BindingStatus {
    let kind = BUILTINS.iter().find(|it| it.name == name).unwrap().kind;
    let mut source = builtin("mine", kind.as_str(), name);
    source.data.insert("config".to_owned(), config.to_owned());
    host.apply(&source)
}

fn settings(host: &PolicyHost, name: &str) -> Vec<Setting> {
    let descriptor = host.inspect(&component(name)).unwrap().descriptor;
    let schema = ConfigSchema::parse(&descriptor.config_schema).unwrap();
    schema.map_or_else(Vec::new, |it| {
        assert!(it.notes().is_empty(), "{name}: {:?}", it.notes());
        it.settings()
    })
}

/// Names in the last column of the table for people, with defaults where they are numbers.
fn documented(name: &str) -> Vec<String> {
    let readme = std::fs::read_to_string("../../policies/README.md").unwrap();
    let mut rows = readme.lines();
    let row = rows.find(|row| row.starts_with(&format!("| `{name}` |")));
    let column = row.unwrap().rsplit('|').nth(1).unwrap();
    column
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn policies_of_the_shelf_take_what_is_documented_and_nothing_that_was_mistyped() {
    let host = host();
    for name in BUILTINS.iter().map(|it| it.name) {
        let settings = settings(&host, name);
        let outer: Vec<&Setting> = settings
            .iter()
            .filter(|it| !it.name.contains(['.', '[']))
            .collect();
        let mut names: Vec<&str> = outer.iter().map(|it| it.name.as_str()).collect();
        let mut expected = documented(name);
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{name}");
        for setting in outer {
            let key = &setting.name;
            if let Some(default) = &setting.default {
                let status = bind(&host, name, &format!("{{{key:?}: {default}}}"));
                assert_eq!(status.state, BindingState::Ready, "{name}: {status:?}");
            }
            let status = bind(&host, name, &format!("{{\"{key}x\": 1}}"));
            assert_eq!(
                (status.state, status.reason.as_str()),
                (BindingState::Degraded, "InvalidConfig")
            );
            let told = format!("data.config: /{key}x is no setting; did you mean {key}?");
            assert!(status.message.starts_with(&told), "{name}: {status:?}");
        }
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_what_was_in_charge_stays() {
    let host = host();
    assert_eq!(
        bind(&host, "payback", "podCost: 0.02").state,
        BindingState::Ready
    );
    let status = bind(&host, "payback", "podCost: much\nminute: 5\nminSavings: -1");
    assert!(
        status.message.starts_with(
            "data.config: /minSavings is -1; must be a number from 0 to 1000; /minute is no setting; did you mean \
             minutes?; /podCost is \"much\"; must be a number from 0 to 1000; sha256:"
        ),
        "{status:?}"
    );
    assert!(status.in_charge.is_some(), "{status:?}");
}

#[test]
fn a_policy_with_a_schema_that_cannot_be_read_is_refused() {
    let status = host().apply(&module("mine", "rank", guests::with_schema("no")));
    assert_eq!(status.reason, "InvalidSchema", "{status:?}");
    assert!(
        status.message.starts_with("config-schema: is no JSON: ")
            && status
                .message
                .contains("mend the schema of the component, or leave it empty"),
        "{}",
        status.message
    );
    // One that says nothing refuses nothing, and one that is not enforced is noted.
    let status = host().apply(&module("mine", "rank", guests::with_schema("{}")));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let status = host().apply(&module(
        "mine",
        "rank",
        guests::with_schema(r#"{"not":{}}"#),
    ));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert!(
        status
            .message
            .contains("note: config-schema: /not is not enforced"),
        "{}",
        status.message
    );
}
