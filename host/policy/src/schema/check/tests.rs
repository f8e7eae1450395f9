//! What schemas refuse of a configuration, and what they cost.

use std::time::{Duration, Instant};

use super::super::{ConfigSchema, SchemaError};

const SHELF: &str = r#"{"type":"object","additionalProperties":false,"required":["zone"],"properties":{
    "discount":{"type":"number","minimum":0,"maximum":1,"default":0.2,"description":"share"},
    "step":{"type":"integer","exclusiveMinimum":0},
    "zone":{"type":"string","pattern":"^[a-z]+-[0-9]$","maxLength":8},
    "mode":{"enum":["fast","slow",1]},
    "tiers":{"type":"array","minItems":1,"items":{"type":"array","items":{"type":"string"}}},
    "rates":{"type":"object","additionalProperties":{"type":["number","null"],"exclusiveMinimum":0}},
    "per/hour":{"type":"boolean"}}}"#;

fn schema(text: &str) -> ConfigSchema {
    ConfigSchema::parse(text).unwrap().unwrap()
}

#[test]
fn what_a_schema_allows_has_no_fault() {
    let schema = schema(SHELF);
    for config in [
        r#"{"zone":"a-1"}"#,
        r#"{"zone":"a-1","discount":0,"step":2.0,"mode":1.0,"tiers":[["m7g"],[]]}"#,
        r#"{"zone":"a-1","rates":{"m7g":null,"c7g":0.5},"per/hour":false}"#,
    ] {
        assert_eq!(schema.faults(config), None, "{config}");
    }
    assert!(ConfigSchema::parse("  ").unwrap().is_none());
}

#[test]
fn every_fault_has_its_place_what_is_there_and_what_would_be_right() {
    let schema = schema(SHELF);
    for (config, told) in [
        (
            "",
            "lacks zone: a text of at most 8 letters that matches ^[a-z]+-[0-9]$",
        ),
        (
            "null",
            "lacks zone: a text of at most 8 letters that matches ^[a-z]+-[0-9]$",
        ),
        ("[1]", "is a list of 1; must be an object"),
        (
            r#"{"zone":"A1","discont":0.3,"discount":1.5}"#,
            "/discont is no setting; did you mean discount?; /discount is 1.5; must be a number from 0 to 1; /zone is \
             \"A1\"; must be a text of at most 8 letters that matches ^[a-z]+-[0-9]$",
        ),
        (
            r#"{"zone":"a-1","step":0,"mode":"Fast"}"#,
            "/mode is \"Fast\"; must be \"fast\" or \"slow\" or 1; /step is 0; must be a whole number of more than 0",
        ),
        (
            r#"{"zone":"a-1","tiers":[["m7g",3],"c7g"],"rates":{"m7g":-1}}"#,
            "/rates/m7g is -1; must be a number or null of more than 0; /tiers/0/1 is 3; must be a text; /tiers/1 is \
             \"c7g\"; must be a list",
        ),
        (
            r#"{"zone":"a-1","tiers":[],"per/hour":"yes"}"#,
            "/per~1hour is \"yes\"; must be true or false; /tiers is an empty list; must be a list of at least 1 items",
        ),
        (
            r#"{"zone":"a-1","colour":1}"#,
            "/colour is no setting; take it out, or use discount, mode, per/hour, rates, step, tiers, zone",
        ),
    ] {
        assert_eq!(schema.faults(config).unwrap(), told, "{config}");
    }
}

#[test]
fn a_constant_and_a_list_of_values_both_count() {
    for (words, config, told) in [
        (r#""const":1,"enum":[1,2]"#, "1.0", None),
        (r#""const":1,"enum":[1,2]"#, "2", Some("is 2; must be 1")),
        (r#""enum":[1,2],"const":1"#, "2", Some("is 2; must be 1")),
        (r#""enum":[2],"const":1"#, "1", Some("is 1; must be absent")),
    ] {
        let schema = schema(&format!("{{{words}}}"));
        assert_eq!(schema.faults(config).as_deref(), told, "{words}: {config}");
    }
}

#[test]
fn a_schema_that_cannot_be_read_says_where() {
    for (text, words) in [
        ("nope", "config-schema: is no JSON: "),
        (
            "3",
            "config-schema: must be a schema: an object, true or false",
        ),
        (
            r#"{"type":"text"}"#,
            "config-schema /type: must be one of null, boolean",
        ),
        (
            r#"{"properties":{"a":{"minimum":"0"}}}"#,
            "config-schema /properties/a/minimum: must be a number; mend the schema of the component",
        ),
        (
            r#"{"exclusiveMinimum":true}"#,
            "/exclusiveMinimum: must be a number",
        ),
        (r#"{"required":"a"}"#, "/required: must be a list of names"),
        (r#"{"enum":[]}"#, "/enum: must be a list of values"),
        (r#"{"pattern":"("}"#, "/pattern: not a pattern"),
        (
            r#"{"pattern":"(a{999}){999}"}"#,
            "/pattern: the pattern is too large",
        ),
        (r#"{"minItems":-1}"#, "/minItems: must be a whole number"),
    ] {
        let error: SchemaError = ConfigSchema::parse(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let deep = "{\"items\":".repeat(200) + "{}" + &"}".repeat(200);
    assert!(ConfigSchema::parse(&deep).is_err());
    let many: Vec<String> = (0..17)
        .map(|it| format!(r#""k{it}":{{"pattern":"a"}}"#))
        .collect();
    let many = format!(r#"{{"properties":{{{}}}}}"#, many.join(","));
    let error = ConfigSchema::parse(&many).unwrap_err().to_string();
    assert!(error.contains("more than 16 patterns"), "{error}");
}

#[test]
fn words_that_nobody_reads_are_ignored_and_those_that_would_refuse_are_noted() {
    let schema = schema(
        r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"mine","additionalProperties":false,
            "patternProperties":{"^x-":{"type":"number"}},
            "properties":{"a":{"$ref":"#/$defs/a","format":"date"},"b":{"prefixItems":[{}],"items":false}}}"##,
    );
    assert_eq!(schema.faults(r#"{"a":1,"b":[1,2],"x-c":"d"}"#), None);
    let notes = schema.notes().join("\n");
    for place in [
        "/patternProperties",
        "/properties/a/$ref",
        "/properties/b/prefixItems",
    ] {
        assert!(
            notes.contains(&format!("config-schema: {place} is not enforced")),
            "{notes}"
        );
    }
    assert_eq!(schema.notes().len(), 3);
}

#[test]
fn a_hostile_schema_and_a_long_configuration_take_no_time() {
    // As large as a schema may be; each of the objects of the configuration lacks all of it.
    let names: Vec<String> = (0..9000).map(|it| format!("\"{it}\"")).collect();
    let lacking = format!(r#"{{"items":{{"required":[{}]}}}}"#, names.join(","));
    let objects = format!("[{}]", vec!["{}"; 21_000].join(","));
    // Values that differ in their last item only.
    let row = |last: usize| format!("[{}{last}]", "0,".repeat(500));
    let rows: Vec<String> = (1..60).map(row).collect();
    let listed = format!(r#"{{"items":{{"enum":[{}]}}}}"#, rows.join(","));
    let unlisted = format!("[{}]", vec![row(0); 60].join(","));
    // Keys that are nearly known.
    let known: Vec<String> = (0..3000).map(|it| format!(r#""{it:040}":{{}}"#)).collect();
    let known = known.get(..1200).unwrap().join(",");
    let known = format!(r#"{{"additionalProperties":false,"properties":{{{known}}}}}"#);
    let keys: Vec<String> = (0..1400).map(|it| format!(r#""{it:039}x":0"#)).collect();
    let unknown = format!("{{{}}}", keys.join(","));
    for (text, config) in [(lacking, objects), (listed, unlisted), (known, unknown)] {
        let schema = schema(&text);
        let started = Instant::now();
        let faults = schema.faults(&config).unwrap();
        // Milliseconds, and room for a machine that does other things.
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "{:?}",
            started.elapsed()
        );
        assert!(faults.len() < 32 << 10, "{}", faults.len());
        assert!(
            faults.contains("more than 500000 steps") || faults.contains("and 1384 more"),
            "{faults}"
        );
    }
}

#[test]
fn settings_are_told_with_their_places_and_defaults() {
    let schema = schema(
        r#"{"properties":{"commitments":{"type":"array","items":{"type":"object","required":["nodes"],
            "properties":{"nodes":{"type":"number","minimum":0}}}},
            "performance":{"type":"object","additionalProperties":{"type":"number"}},
            "tiers":{"type":"array","items":{"type":"array","items":{"type":"string"}}},
            "discount":{"type":"number","default":0.2,"description":"share"}}}"#,
    );
    let told: Vec<String> = schema
        .settings()
        .iter()
        .map(|it| {
            let default = it.default.clone().unwrap_or_default();
            format!(
                "{} {} {default} {} {}",
                it.name, it.must_be, it.is_required, it.description
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "commitments a list  false ",
            "commitments[].nodes a number of at least 0  true ",
            "discount a number 0.2 false share",
            "performance an object  false ",
            "performance.* a number  false ",
            "tiers a list  false ",
            "tiers[][] a text  false ",
        ]
    );
}
