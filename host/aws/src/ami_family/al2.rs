//! Amazon Linux 2: a shell script that calls the image's bootstrap script.
//!
//! Answers to Karpenter's `pkg/providers/amifamily/bootstrap/eksbootstrap.go`.

use super::flags::kubelet_flags;
use super::mime::{self, MimePart};
use super::{BootstrapError, BootstrapOptions};

const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";

pub(super) fn render(bootstrap: &BootstrapOptions<'_>) -> Result<String, BootstrapError> {
    let mut parts = match bootstrap.custom {
        None | Some("") => Vec::new(),
        Some(custom) if mime::is_archive(custom) => mime::parse(custom)?,
        Some(custom) => vec![MimePart::new(SHELL_SCRIPT, custom)],
    };
    parts.push(MimePart::new(SHELL_SCRIPT, script(bootstrap)));
    Ok(mime::render(&parts))
}

fn script(bootstrap: &BootstrapOptions<'_>) -> String {
    let bundle = bootstrap
        .cluster_ca_bundle
        .map(|bundle| format!(" --b64-cluster-ca '{bundle}'"))
        .unwrap_or_default();
    let call = format!(
        "/etc/eks/bootstrap.sh '{}' --apiserver-endpoint '{}'{bundle}",
        bootstrap.cluster_name, bootstrap.cluster_endpoint
    );
    let mut lines = vec![call];
    if let Some(address) = bootstrap.cluster_dns.first() {
        if address.contains(':') {
            lines.push("--ip-family ipv6".to_owned());
        }
        lines.push(format!("--dns-cluster-ip '{address}'"));
    }
    lines.push("--use-max-pods false".to_owned());
    lines.push(format!(
        "--kubelet-extra-args '{}'",
        kubelet_flags(bootstrap).join(" ")
    ));
    if bootstrap.is_raid0 {
        lines.push("--local-disks raid0".to_owned());
    }
    let preamble = "#!/bin/bash -xe\nexec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1";
    format!("{preamble}\n{}", lines.join(" \\\n"))
}
