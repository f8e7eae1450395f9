//! The user data of every family with every option, as files: `testdata/user-data`. `just tables` writes them anew.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Taint;
use serde_json::json;

use super::*;

/// Set, the files are written instead of compared.
const WRITES: &str = "MORTISE_WRITES_TABLES";

/// Families that are told the same share their files.
const FAMILIES: [(AmiFamily, &str); 7] = [
    (AmiFamily::Al2, "al2"),
    (AmiFamily::Al2023, "al2023"),
    (AmiFamily::Bottlerocket, "bottlerocket"),
    (AmiFamily::Windows2019, "windows"),
    (AmiFamily::Windows2022, "windows"),
    (AmiFamily::Windows2025, "windows"),
    (AmiFamily::Custom, "custom"),
];

const SHELL: &str = "#!/bin/bash\necho 'before'\n";
const ARCHIVE: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n\
    --BOUNDARY\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho 'first'\n\n\
    --BOUNDARY\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\
    spec:\n  kubelet:\n    config:\n      serializeImagePulls: false\n\n--BOUNDARY--\n";
const NODE_CONFIG: &str = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    flags: [\"--v=2\"]\n";
const SETTINGS: &str = "# Kept.\n[settings.kubernetes]\nmax-pods = 7\nunknown = true\n\
    [settings.kubernetes.node-labels]\n\"mine\" = \"yes\"\n\"team\" = \"b\"\n[settings.ntp]\ntime-servers = [\"169.254.169.123\"]\n";
const POWERSHELL: &str = "Write-Host 'before'";

/// All that a kubelet can be told in every family.
fn managed() -> serde_json::Value {
    json!({
        "systemReserved": {"cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi", "pid": "100"},
        "kubeReserved": {"cpu": "200m", "memory": "200Mi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "10%"},
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 50,
        "cpuCFSQuota": false,
    })
}

/// Options under the name that their files have.
struct UserDataCase {
    name: &'static str,
    kubelet: serde_json::Value,
    /// The user's own.
    own: Option<&'static str>,
    change: fn(&mut BootstrapOptions<'_>),
    /// Families that know the option.
    of: &'static [&'static str],
}

const ALL: &[&str] = &["al2", "al2023", "bottlerocket", "windows", "custom"];
const WITH_SCRIPTS: &[&str] = &["al2", "al2023", "custom"];

fn case(
    name: &'static str,
    of: &'static [&'static str],
    change: fn(&mut BootstrapOptions<'_>),
) -> UserDataCase {
    UserDataCase {
        name,
        kubelet: json!({}),
        own: None,
        change,
        of,
    }
}

fn with_kubelet(
    name: &'static str,
    of: &'static [&'static str],
    kubelet: serde_json::Value,
) -> UserDataCase {
    UserDataCase {
        kubelet,
        ..case(name, of, |_| {})
    }
}

fn with_own(name: &'static str, of: &'static [&'static str], own: &'static str) -> UserDataCase {
    UserDataCase {
        own: Some(own),
        ..case(name, of, |_| {})
    }
}

fn taint(options: &mut BootstrapOptions<'_>) {
    let taints = [
        ("gpu", Some("yes"), "NoSchedule"),
        ("gpu", Some("yes"), "NoExecute"),
        ("karpenter.sh/unregistered", None, "NoExecute"),
    ];
    let taint = |(key, value, effect): (&str, Option<&str>, &str)| Taint {
        key: key.to_owned(),
        value: value.map(str::to_owned),
        effect: effect.to_owned(),
        ..Taint::default()
    };
    options.taints = taints.map(taint).into();
}

fn cases() -> Vec<UserDataCase> {
    let any = json!({"maxParallelImagePulls": 3, "serializeImagePulls": false});
    vec![
        case("plain", ALL, |_| {}),
        case("authority", ALL, |options| {
            options.cluster_ca_bundle = Some("Q0E=");
        }),
        case("taints", ALL, taint),
        case("dns", ALL, |options| {
            options.cluster_dns = vec!["10.0.100.10".to_owned()];
        }),
        case("two-dns", &["al2023"], |options| {
            options.cluster_dns = vec!["10.0.100.10".to_owned(), "10.0.100.11".to_owned()];
        }),
        case("ipv6", &["al2", "al2023"], |options| {
            options.cluster_cidr = Some("fd00:10::/108");
            options.cluster_dns = vec!["fd00:10::a".to_owned()];
        }),
        case(
            "instance-store",
            &["al2", "al2023", "bottlerocket"],
            |options| options.is_raid0 = true,
        ),
        case("instance-store-old", &["bottlerocket"], |options| {
            options.is_raid0 = true;
            options.bottlerocket_version = Some("1.45.0".to_owned());
        }),
        with_kubelet("kubelet", ALL, managed()),
        with_kubelet(
            "pods-per-core",
            &["al2", "al2023"],
            json!({"podsPerCore": 4}),
        ),
        with_kubelet("any-kubelet", &["al2023"], any),
        with_own("own-shell", WITH_SCRIPTS, SHELL),
        with_own("own-archive", WITH_SCRIPTS, ARCHIVE),
        with_own("own-node-config", &["al2023"], NODE_CONFIG),
        with_own("own-settings", &["bottlerocket"], SETTINGS),
        with_own("own-powershell", &["windows"], POWERSHELL),
    ]
}

fn plain(kubelet: &Kubelet) -> BootstrapOptions<'_> {
    BootstrapOptions {
        cluster_name: "demo",
        cluster_endpoint: "https://demo.example",
        cluster_ca_bundle: None,
        cluster_cidr: Some("10.100.0.0/16"),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        kubelet,
        cluster_dns: Vec::new(),
        max_pods: 29,
        is_raid0: false,
        custom: None,
        bottlerocket_version: Some("latest".to_owned()),
    }
}

fn text(family: AmiFamily, case: &UserDataCase) -> String {
    let kubelet = serde_json::from_value(case.kubelet.clone()).unwrap();
    let (kubelet, errors) = Kubelet::parse(&kubelet);
    assert_eq!(errors, Vec::<String>::new(), "{}", case.name);
    let labels = [("karpenter.sh/nodepool", "default"), ("team", "a")];
    let mut options = BootstrapOptions {
        labels: labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..plain(&kubelet)
    };
    options.custom = case.own;
    (case.change)(&mut options);
    let encoded = user_data(family, &options).unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn the_user_data_of_every_family_are_those_of_the_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/user-data");
    let mut seen = std::collections::BTreeSet::new();
    for case in cases() {
        for (family, name) in FAMILIES {
            if !case.of.contains(&name) {
                continue;
            }
            let file = format!("{name}.{}.txt", case.name);
            let made = text(family, &case);
            if std::env::var_os(WRITES).is_some() {
                std::fs::write(folder.join(&file), &made).unwrap();
            }
            let kept = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
            assert_eq!(made, kept, "{file}: `just tables` writes it");
            seen.insert(file);
        }
    }
    let kept = std::fs::read_dir(&folder).unwrap();
    let kept = kept.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(kept.collect::<std::collections::BTreeSet<_>>(), seen);
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let cases = [
        (AmiFamily::Al2, "Content-Type: text/plain\n\nx"),
        (AmiFamily::Al2023, "Content-Type: multipart/mixed\n\nx"),
        (AmiFamily::Bottlerocket, "settings = ["),
        (AmiFamily::Bottlerocket, "settings = 1"),
    ];
    for (family, own) in cases {
        let kubelet = Kubelet::default();
        let options = BootstrapOptions {
            custom: Some(own),
            ..plain(&kubelet)
        };
        let refused = user_data(family, &options);
        assert!(
            matches!(refused, Err(BootstrapError::Custom(_))),
            "{own}: {refused:?}"
        );
    }
}
