//! Windows Server: a PowerShell script that calls the image's bootstrap script.
//!
//! Answers to Karpenter's `pkg/providers/amifamily/bootstrap/windows.go`.

use super::Bootstrap;
use super::flags::kubelet_flags;

pub(super) fn render(bootstrap: &Bootstrap<'_>) -> String {
    let mut script = String::from("<powershell>\n");
    if let Some(custom) = bootstrap.custom.filter(|custom| !custom.is_empty()) {
        script.push_str(custom);
        script.push('\n');
    }
    script.push_str("[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n");
    script.push_str(&format!(
        "& $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'",
        bootstrap.cluster_name, bootstrap.cluster_endpoint
    ));
    if let Some(bundle) = bootstrap.cluster_ca_bundle {
        script.push_str(&format!(" -Base64ClusterCA '{bundle}'"));
    }
    script.push_str(&format!(
        " -KubeletExtraArgs '{}'",
        kubelet_flags(bootstrap).join(" ")
    ));
    if let Some(address) = bootstrap.cluster_dns.first() {
        script.push_str(&format!(" -DNSClusterIP '{address}'"));
    }
    script.push_str("\n</powershell>");
    script
}
