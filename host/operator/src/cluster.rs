//! Facts that `mortise controller` finds out of its cluster, at the start and every five minutes after.
//!
//! Reads and hands on; what settings say wins, and what cannot be read stays as it was. Answers to `GetCABundle`,
//! `KubeDNSIP` and `ResolveClusterEndpoint` of the AWS provider's `pkg/operator/operator.go`, and to its
//! `pkg/controllers/providers/version`.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::seam::EksApi;
use aws::{AwsProvider, describe_cluster};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::api::Api;
use kube::config::Kubeconfig;
use locks::lock;

/// Karpenter's pace: an upgrade of the control plane reaches images without a restart.
const REFRESH: Duration = Duration::from_mins(5);
/// Where a pod finds the authority of its API server.
const POD_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// The cluster, for a provider that launches into it.
pub(crate) struct ClusterWatch {
    client: kube::Client,
    eks: Arc<dyn EksApi>,
    provider: Arc<AwsProvider>,
    /// What was complained of last, so that it is not every five minutes.
    complaint: Mutex<String>,
}

impl ClusterWatch {
    pub(crate) fn new(
        client: kube::Client,
        eks: Arc<dyn EksApi>,
        provider: Arc<AwsProvider>,
    ) -> Self {
        Self {
            client,
            eks,
            provider,
            complaint: Mutex::default(),
        }
    }

    /// Asks again and again until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            self.refresh().await;
            tokio::time::sleep(REFRESH).await;
        }
    }

    /// Asks once. What EKS could not be asked is answered too, for those that cannot do without.
    pub(crate) async fn refresh(&self) -> Option<String> {
        match self.client.apiserver_version().await {
            Ok(version) if !self.provider.options().eks_control_plane => {
                let version = minor_precise(&version);
                self.provider
                    .set_discovered_options(|it| it.kubernetes_version = version);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the version of the API server is as it was"),
        }
        if let Some(address) = dns(&self.client).await {
            self.provider
                .set_discovered_options(|it| it.kube_dns_ip = Some(address));
        }
        let name = self.provider.options().cluster_name.clone();
        let failure = match describe_cluster(&*self.eks, &name).await {
            Ok(cluster) => {
                self.provider.set_discovered_options(|it| it.learn(cluster));
                None
            }
            Err(error) => Some(error.to_string()),
        };
        if self.provider.options().cluster_cidr.is_none() {
            let range = service_range(&self.client).await;
            self.provider
                .set_discovered_options(|it| it.cluster_cidr = range);
        }
        self.complain(failure.as_deref().unwrap_or_default());
        failure
    }

    fn complain(&self, failure: &str) {
        let mut last = lock(&self.complaint);
        if !failure.is_empty() && *last != failure {
            tracing::warn!(
                error = failure,
                "EKS does not describe the cluster; what settings and the API server say is used"
            );
        }
        failure.clone_into(&mut last);
    }
}

/// The address of the cluster's DNS; clusters may have another one than Karpenter knows, or none.
pub(crate) async fn dns(client: &kube::Client) -> Option<IpAddr> {
    let services: Api<Service> = Api::namespaced(client.clone(), "kube-system");
    match services.get_opt("kube-dns").await {
        Ok(service) => service?.spec?.cluster_ip?.parse().ok(),
        Err(error) => {
            tracing::debug!(%error, "the service kube-dns could not be read");
            None
        }
    }
}

/// The range of service addresses as the API server has it, since Kubernetes 1.33.
pub(crate) async fn service_range(client: &kube::Client) -> Option<String> {
    let ranges: Api<ServiceCIDR> = Api::all(client.clone());
    match ranges.get_opt("kubernetes").await {
        Ok(range) => range?.spec?.cidrs?.into_iter().next(),
        Err(error) => {
            tracing::debug!(%error, "the range of service addresses could not be read");
            None
        }
    }
}

/// Such as `1.33`; providers add a `+` to their minor.
pub(crate) fn minor_precise(version: &Info) -> String {
    format!("{}.{}", version.major, version.minor.trim_end_matches('+'))
}

/// The authority that the client of the API server trusts, in base64, as nodes are to trust it: byte for byte what
/// the file or the kubeconfig holds, because the hash of an EC2NodeClass counts it in.
pub(crate) fn ca_bundle(kubeconfig: Option<&Path>) -> Option<String> {
    let bytes = match kubeconfig {
        Some(file) => Kubeconfig::read_from(file).ok().and_then(of_kubeconfig),
        // In the order in which the client looks for its cluster.
        None => Kubeconfig::read()
            .ok()
            .and_then(of_kubeconfig)
            .or_else(|| std::fs::read(POD_CA).ok()),
    };
    Some(STANDARD.encode(bytes?)).filter(|text| !text.is_empty())
}

fn of_kubeconfig(config: Kubeconfig) -> Option<Vec<u8>> {
    let current = config.current_context?;
    let context = config.contexts.into_iter().find(|it| it.name == current)?;
    let name = context.context?.cluster;
    let cluster = config.clusters.into_iter().find(|it| it.name == name)?;
    let cluster = cluster.cluster?;
    match (
        cluster.certificate_authority_data,
        cluster.certificate_authority,
    ) {
        (Some(data), _) => STANDARD.decode(data.trim()).ok(),
        (None, Some(file)) => std::fs::read(file).ok(),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use sim::ec2::SimulatedEc2;
    use sim::{SimulatedWorld, WorldConfig};

    use super::*;

    /// A watch of a cluster whose account may refuse, on the demo's API server.
    fn watched() -> (ClusterWatch, SimulatedEc2) {
        let world = SimulatedWorld::new(WorldConfig::default());
        let client = kube::Client::new(world.api().clone(), "default");
        let ec2 = world.ec2().clone();
        let clock = Arc::new(world.clock());
        let provider = crate::stack::simulated_provider(&ec2, "mortise-demo", clock);
        provider.set_discovered_options(|it| {
            it.eks_control_plane = true;
            it.discovers_endpoint = true;
        });
        (
            ClusterWatch::new(client, Arc::new(ec2.clone()), provider),
            ec2,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn an_upgrade_of_the_control_plane_is_heard_of_and_a_refusal_leaves_all_as_it_was() {
        let (watch, ec2) = watched();
        assert_eq!(watch.refresh().await, None);
        let found = watch.provider.options();
        let endpoint = "https://mortise-demo.us-east-1.eks.amazonaws.com";
        assert_eq!(found.cluster_endpoint, endpoint);

        ec2.upgrade_cluster("1.99");
        ec2.change_faults(|it| it.denied = vec!["DescribeCluster".to_owned()]);
        let failure = watch.refresh().await.unwrap();
        assert!(failure.contains("eks:DescribeCluster"), "{failure}");
        assert_eq!(watch.provider.options(), found);
        ec2.change_faults(|it| {
            it.denied.clear();
            it.internal_error_chance = 1.0;
        });
        let failure = watch.refresh().await.unwrap();
        assert!(failure.contains("internal error"), "{failure}");
        assert_eq!(watch.provider.options(), found);
        ec2.change_faults(|it| it.internal_error_chance = 0.0);
        assert_eq!(watch.refresh().await, None);
        assert_eq!(watch.provider.options().kubernetes_version, "1.99");

        watch
            .provider
            .set_discovered_options(|it| it.cluster_name = "another".to_owned());
        let failure = watch.refresh().await.unwrap();
        assert!(failure.contains("another"), "{failure}");
    }

    #[test]
    fn the_authority_is_that_of_the_current_cluster_byte_for_byte() {
        let file = std::env::temp_dir().join(format!("mortise-ca-{}", std::process::id()));
        let pem = file.with_extension("pem");
        std::fs::write(&pem, "PEM\n").unwrap();
        let at = format!("certificate-authority: {}", pem.display());
        let cases = [
            ("certificate-authority-data: UEVNCg==", Some("UEVNCg==")),
            (at.as_str(), Some("UEVNCg==")),
            ("insecure-skip-tls-verify: true", None),
        ];
        for (authority, want) in cases {
            let text = format!(
                "current-context: blue\ncontexts:\n- {{name: blue, context: {{cluster: b, user: u}}}}\nclusters:\n\
                 - {{name: a, cluster: {{server: https://a, certificate-authority-data: QQ==}}}}\n\
                 - {{name: b, cluster: {{server: https://b, {authority}}}}}\n"
            );
            std::fs::write(&file, text).unwrap();
            assert_eq!(ca_bundle(Some(&file)).as_deref(), want, "{authority}");
        }
    }
}
