//! What is made of the ConfigMaps in `tests/bindings.yaml`.

use std::collections::BTreeMap;
use std::fs;

use policy::{Binding, BindingSource};
use serde::Deserialize;

const BYTES_MAX: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    case: String,
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    data: BTreeMap<String, String>,
    /// In base64, as in a ConfigMap; what the bytes are is not looked at in any case.
    #[serde(default, rename = "binaryData")]
    binary_data: BTreeMap<String, String>,
    says: Option<String>,
    #[serde(default = "invalid")]
    reason: String,
    #[serde(rename = "refused_by")]
    _refused_by: Option<String>,
}

fn invalid() -> String {
    "InvalidBinding".to_owned()
}

#[test]
fn each_binding_is_read_or_its_mistake_told_with_the_way_out() {
    let cases = fs::read_to_string("tests/bindings.yaml").unwrap();
    let cases: Vec<Case> = serde_saphyr::from_str(&cases).unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let binary = case.binary_data.into_iter();
        let source = BindingSource {
            namespace: "mortise".to_owned(),
            name: "it".to_owned(),
            labels: case.labels,
            annotations: case.annotations,
            data: case.data,
            binary_data: binary.map(|(key, it)| (key, it.into_bytes())).collect(),
            ..BindingSource::default()
        };
        let read = Binding::parse(&source, BYTES_MAX);
        match (read, case.says) {
            (Ok(_), None) => {}
            (Err(error), Some(says)) => {
                let text = error.to_string();
                assert!(text.contains(&says), "{}: {text}", case.case);
                assert_eq!(error.reason(), case.reason, "{}: {text}", case.case);
            }
            (Ok(_), Some(says)) => panic!("{}: not refused; should say {says}", case.case),
            (Err(error), None) => panic!("{}: refused: {error}", case.case),
        }
    }
}
