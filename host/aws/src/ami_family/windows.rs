//! Windows Server: a PowerShell script that calls the image's bootstrap script.
//!
//! Answers to Karpenter's `pkg/providers/amifamily/bootstrap/windows.go`.

use super::BootstrapOptions;
use super::flags::kubelet_flags;

pub(super) fn render(bootstrap: &BootstrapOptions<'_>) -> String {
    let custom = bootstrap.custom.filter(|custom| !custom.is_empty());
    let custom = custom
        .map(|custom| format!("{custom}\n"))
        .unwrap_or_default();
    let bundle = bootstrap
        .cluster_ca_bundle
        .map(|bundle| format!(" -Base64ClusterCA '{bundle}'"));
    let address = bootstrap
        .cluster_dns
        .first()
        .map(|address| format!(" -DNSClusterIP '{address}'"));
    format!(
        "<powershell>\n{custom}\
         [string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
         & $EKSBootstrapScriptFile -EKSClusterName '{}' -APIServerEndpoint '{}'{} -KubeletExtraArgs '{}'{}\n\
         </powershell>",
        bootstrap.cluster_name,
        bootstrap.cluster_endpoint,
        bundle.unwrap_or_default(),
        kubelet_flags(bootstrap).join(" "),
        address.unwrap_or_default(),
    )
}
