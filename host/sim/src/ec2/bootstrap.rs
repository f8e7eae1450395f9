//! Reads from user data what a machine learns of its kubelet: labels, taints and reserved resources.
//!
//! Reads the formats that Karpenter's AMI families write (AL2's bootstrap.sh, AL2023's NodeConfig,
//! Bottlerocket's TOML, Windows' PowerShell). Text it does not know leaves the kubelet's defaults, as on a
//! real machine. Answers to `pkg/providers/amifamily/bootstrap` from the other end.

use std::collections::BTreeMap;

use serde_json::Value;

/// A kubelet's settings from user data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeletSettings {
    /// Labels that the node registers with.
    pub labels: BTreeMap<String, String>,
    /// Taints that the node registers with, as (key, value, effect).
    pub taints: Vec<(String, String, String)>,
    /// Most pods that the kubelet takes; none where user data set no limit.
    pub max_pods: Option<i64>,
    /// Reserved for Kubernetes, resource to quantity.
    pub kube_reserved: BTreeMap<String, String>,
    /// Reserved for the system, resource to quantity.
    pub system_reserved: BTreeMap<String, String>,
    /// Hard eviction thresholds, signal to quantity or percentage.
    pub eviction_hard: BTreeMap<String, String>,
    /// Local disks become one volume for pods.
    pub raid0: bool,
    /// The image is Bottlerocket, whose memory reservation counts its own pods.
    pub bottlerocket: bool,
}

impl KubeletSettings {
    /// Reads decoded user data.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut bootstrap = Self::default();
        for part in node_config_parts(text) {
            bootstrap.read_node_config(&part);
        }
        bootstrap.read_flags(text);
        if text.contains("[settings.kubernetes") || text.contains("[settings]") {
            bootstrap.bottlerocket = true;
            bootstrap.read_toml(text);
        }
        bootstrap
    }

    fn read_node_config(&mut self, config: &Value) {
        let spec = &config["spec"];
        self.raid0 |= spec["instance"]["localStorage"]["strategy"] == "RAID0";
        let kubelet = &spec["kubelet"]["config"];
        self.max_pods = kubelet["maxPods"].as_i64().or(self.max_pods);
        merge(&mut self.kube_reserved, &kubelet["kubeReserved"]);
        merge(&mut self.system_reserved, &kubelet["systemReserved"]);
        merge(&mut self.eviction_hard, &kubelet["evictionHard"]);
        if let Some(taints) = kubelet["registerWithTaints"].as_array() {
            let field = |taint: &Value, name: &str| taint[name].as_str().unwrap_or("").to_owned();
            self.taints = taints
                .iter()
                .map(|taint| {
                    (
                        field(taint, "key"),
                        field(taint, "value"),
                        field(taint, "effect"),
                    )
                })
                .collect();
        }
        for flag in spec["kubelet"]["flags"].as_array().into_iter().flatten() {
            self.read_flags(flag.as_str().unwrap_or_default());
        }
    }

    /// Kubelet flags wherever they stand: a script, a PowerShell line, a NodeConfig.
    fn read_flags(&mut self, text: &str) {
        for (key, value) in pairs(flag(text, "--node-labels="), '=') {
            self.labels.insert(key, value);
        }
        let taints = pairs(flag(text, "--register-with-taints="), '=');
        self.taints.extend(taints.into_iter().map(|(key, rest)| {
            let (value, effect) = rest.split_once(':').unwrap_or(("", rest.as_str()));
            (key, value.to_owned(), effect.to_owned())
        }));
        self.max_pods = flag(text, "--max-pods=")
            .and_then(|n| n.parse().ok())
            .or(self.max_pods);
        self.kube_reserved
            .extend(pairs(flag(text, "--kube-reserved="), '='));
        self.system_reserved
            .extend(pairs(flag(text, "--system-reserved="), '='));
        self.eviction_hard
            .extend(pairs(flag(text, "--eviction-hard="), '<'));
        self.raid0 |= text.contains("--local-disks raid0");
    }

    /// The few tables of Bottlerocket's settings that matter, line by line.
    fn read_toml(&mut self, text: &str) {
        let mut table = String::new();
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with('#'))
        {
            if let Some(name) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                name.clone_into(&mut table);
                self.raid0 |=
                    name.contains("bootstrap-commands") && name.contains("instance-storage");
                continue;
            }
            let Some((key, value)) = toml_pair(line) else {
                continue;
            };
            match table.strip_prefix("settings.kubernetes").unwrap_or("-") {
                "" if key == "max-pods" => self.max_pods = value.parse().ok().or(self.max_pods),
                ".node-labels" => drop(self.labels.insert(key, unquoted(&value))),
                ".node-taints" => self.taints.extend(toml_taints(&key, &value)),
                ".kube-reserved" => drop(self.kube_reserved.insert(key, unquoted(&value))),
                ".system-reserved" => drop(self.system_reserved.insert(key, unquoted(&value))),
                ".eviction-hard" => drop(self.eviction_hard.insert(key, unquoted(&value))),
                _ => {}
            }
        }
    }
}

/// YAML documents of kind NodeConfig, bare or as parts of a MIME archive.
fn node_config_parts(text: &str) -> Vec<Value> {
    let boundary = text.lines().find_map(|line| {
        line.split_once("boundary=")
            .map(|(_, rest)| rest.trim().trim_matches('"'))
    });
    let parts: Vec<&str> = match boundary {
        Some(boundary) => text.split(&format!("--{boundary}")).collect(),
        None => vec![text],
    };
    parts
        .into_iter()
        .filter(|part| part.contains("node.eks.aws"))
        .filter_map(|part| {
            let body = part.find("apiVersion:").map(|at| line_start(part, at))?;
            serde_saphyr::from_str::<Value>(part.get(body..)?).ok()
        })
        .filter(|document| document["kind"] == "NodeConfig")
        .collect()
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|head| head.rfind('\n'))
        .map_or(0, |newline| newline + 1)
}

fn merge(into: &mut BTreeMap<String, String>, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), ToOwned::to_owned);
        into.insert(key.clone(), value);
    }
}

/// The value of the last use of a flag, in quotes or up to white space.
fn flag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.rsplit_once(name)?.1;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest
            .split(|c: char| c.is_whitespace() || c == '\'' || c == '"')
            .next(),
    }
}

fn pairs(list: Option<&str>, separator: char) -> Vec<(String, String)> {
    let entries = list.unwrap_or_default().split(',');
    entries
        .filter_map(|entry| entry.split_once(separator))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn toml_pair(line: &str) -> Option<(String, String)> {
    let (key, value) = if let Some(rest) = line.strip_prefix(['"', '\'']) {
        let (key, rest) = rest.split_once(['"', '\''])?;
        (key, rest.trim_start().strip_prefix('=')?)
    } else {
        line.split_once('=')?
    };
    Some((key.trim().to_owned(), value.trim().to_owned()))
}

fn unquoted(value: &str) -> String {
    value.trim_matches(['"', '\'']).to_owned()
}

fn toml_taints(key: &str, list: &str) -> Vec<(String, String, String)> {
    let entries = list
        .trim_matches(['[', ']'])
        .split(',')
        .map(|entry| unquoted(entry.trim()));
    entries
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let (value, effect) = entry.split_once(':').unwrap_or(("", entry.as_str()));
            (key.to_owned(), value.to_owned(), effect.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> (String, String, String) {
        (key.to_owned(), value.to_owned(), effect.to_owned())
    }

    #[test]
    fn al2023_node_config_sets_the_kubelet() {
        let bootstrap = KubeletSettings::from_text(concat!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n",
            "Content-Type: application/node.eks.aws\n\n# generated\napiVersion: node.eks.aws/v1alpha1\n",
            "kind: NodeConfig\nspec:\n  instance:\n    localStorage: {strategy: RAID0}\n  kubelet:\n",
            "    config:\n      maxPods: 58\n      kubeReserved: {cpu: 80m}\n",
            "      registerWithTaints:\n      - {effect: NoExecute, key: karpenter.sh/unregistered}\n",
            "    flags:\n    - --node-labels=\"a=b,karpenter.sh/nodepool=default\"\n--//--\n"
        ));
        assert_eq!(bootstrap.max_pods, Some(58));
        assert_eq!(bootstrap.labels["karpenter.sh/nodepool"], "default");
        assert_eq!(
            bootstrap.taints,
            [taint("karpenter.sh/unregistered", "", "NoExecute")]
        );
        assert_eq!(bootstrap.kube_reserved["cpu"], "80m");
        assert!(bootstrap.raid0);
    }

    #[test]
    fn al2_script_flags_set_the_kubelet() {
        let bootstrap = KubeletSettings::from_text(concat!(
            "/etc/eks/bootstrap.sh 'demo' --kubelet-extra-args '--node-labels=\"a=b\" ",
            "--register-with-taints=\"k=v:NoSchedule,karpenter.sh/unregistered=:NoExecute\" ",
            "--max-pods=29 --eviction-hard=\"memory.available<5%\"'"
        ));
        assert_eq!(bootstrap.labels["a"], "b");
        assert_eq!(bootstrap.taints[0], taint("k", "v", "NoSchedule"));
        assert_eq!(
            bootstrap.taints[1],
            taint("karpenter.sh/unregistered", "", "NoExecute")
        );
        assert_eq!(bootstrap.max_pods, Some(29));
        assert_eq!(bootstrap.eviction_hard["memory.available"], "5%");
    }

    #[test]
    fn bottlerocket_settings_set_the_kubelet() {
        let bootstrap = KubeletSettings::from_text(concat!(
            "[settings.kubernetes]\nmax-pods = 58\n[settings.kubernetes.node-labels]\n'a/b' = 'c'\n",
            "[settings.kubernetes.node-taints]\n\"k\" = [\"v:NoSchedule\", ':NoExecute']\n"
        ));
        assert_eq!(bootstrap.max_pods, Some(58));
        assert_eq!(bootstrap.labels["a/b"], "c");
        assert_eq!(
            bootstrap.taints,
            [taint("k", "v", "NoSchedule"), taint("k", "", "NoExecute")]
        );
    }
}
