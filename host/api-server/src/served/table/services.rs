//! Services as `kubectl get` shows them.

use super::cells::{age, count, labels_text, name, or_none};
use super::printer::Printer;
use serde_json::Value;

pub(super) const SERVICE: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Cluster-IP", "string", 0),
        ("External-IP", "string", 0),
        ("Port(s)", "string", 0),
        ("Age", "string", 0),
        ("Selector", "string", 1),
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let external = match spec["type"].as_str() {
            Some("LoadBalancer") => {
                let ingress = o["status"]["loadBalancer"]["ingress"].as_array();
                let first = ingress.into_iter().flatten().next();
                first
                    .and_then(|i| i["ip"].as_str().or_else(|| i["hostname"].as_str()))
                    .unwrap_or("<pending>")
            }
            Some("ExternalName") => spec["externalName"].as_str().unwrap_or_default(),
            _ => "<none>",
        };
        vec![
            name(o),
            spec["type"].clone(),
            or_none(&spec["clusterIP"]),
            external.into(),
            ports(spec),
            age(o, now),
            labels_text(&spec["selector"]),
        ]
    },
};

fn ports(spec: &Value) -> Value {
    let texts: Vec<String> = spec["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match count(&port["nodePort"]) {
                0 => format!("{}/{protocol}", count(&port["port"])),
                node => format!("{}:{node}/{protocol}", count(&port["port"])),
            }
        })
        .collect();
    if texts.is_empty() {
        "<none>".into()
    } else {
        texts.join(",").into()
    }
}
