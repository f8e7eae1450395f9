//! `mortise doctor`: what a switch to Mortise would meet, in a dump or in a cluster.
//!
//! Reads only. What is found, and what to do about it, is decided in the crate `convert`.

mod setting;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use convert::doctor::{DoctorFinding, Severity, examine};
use convert::{ConversionInput, SourcePlace, Unread};
use http::Request;
use kube::Client;

use crate::api_client::{self, Asker, Guard};
use crate::cli::{DoctorArguments, Output};
use crate::convert::read;
use crate::output::print_text;

/// What is asked of a cluster, each kind in the newest version that is served: a webhook may convert the same objects
/// to another.
const KINDS: [&[&str]; 17] = [
    &["/apis/apiextensions.k8s.io/v1/customresourcedefinitions"],
    &[
        "/apis/karpenter.sh/v1/nodepools",
        "/apis/karpenter.sh/v1beta1/nodepools",
    ],
    &[
        "/apis/karpenter.sh/v1/nodeclaims",
        "/apis/karpenter.sh/v1beta1/nodeclaims",
    ],
    &[
        "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
        "/apis/karpenter.k8s.aws/v1beta1/ec2nodeclasses",
    ],
    &[
        "/apis/karpenter.sh/v1alpha5/provisioners",
        "/apis/karpenter.sh/v1alpha4/provisioners",
        "/apis/karpenter.sh/v1alpha3/provisioners",
    ],
    &["/apis/karpenter.sh/v1alpha5/machines"],
    &["/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates"],
    &["/api/v1/configmaps?fieldSelector=metadata.name%3Dkarpenter-global-settings"],
    &["/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"],
    &["/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"],
    &["/apis/coordination.k8s.io/v1/leases"],
    &["/apis/apps/v1/deployments"],
    &["/apis/apps/v1/statefulsets"],
    &["/apis/apps/v1/daemonsets"],
    &["/apis/batch/v1/cronjobs"],
    &["/apis/batch/v1/jobs"],
    &["/api/v1/nodes"],
];

/// Objects that were looked at.
#[derive(Default)]
struct DoctorInput {
    input: ConversionInput,
    /// Lists that a cluster answered.
    lists: usize,
    /// Resources of which a cluster told every object, or that it does not serve.
    whole: BTreeSet<String>,
    /// Kinds of Karpenter's that a cluster serves, whether they may be listed or not; unknown of a dump.
    kinds: Option<usize>,
}

impl DoctorInput {
    fn is_nothing(&self) -> bool {
        self.input.sources.is_empty() && self.lists == 0
    }
}

/// Exit code 0 when nothing breaks or differs, 1 when something does, 2 when nothing could be read.
pub(crate) fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let seen = see(arguments)?;
    let mut findings = examine(&seen.input, &seen.whole, &setting::refusal);
    if seen.kinds == Some(0) {
        findings.push(DoctorFinding {
            severity: Severity::Note,
            object: "the cluster".to_owned(),
            what: "no kind of Karpenter's is served here".to_owned(),
            fix: "`mortise crds | kubectl apply --server-side -f -` makes Mortise's".to_owned(),
        });
    }
    let text = match arguments.output {
        Output::Json => format!("{}\n", serde_json::to_string_pretty(&findings)?),
        Output::Text => findings
            .iter()
            .fold(String::new(), |text, it| text + &it.to_string() + "\n"),
    };
    print_text(&text)?;
    if seen.is_nothing() {
        anyhow::bail!("nothing could be read");
    }
    Ok(if findings.iter().all(is_note) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn is_note(finding: &DoctorFinding) -> bool {
    finding.severity == Severity::Note
}

fn see(arguments: &DoctorArguments) -> anyhow::Result<DoctorInput> {
    let mut seen = DoctorInput::default();
    for path in &arguments.files {
        read(path, &mut seen.input)?;
    }
    if let Some(file) = &arguments.kubeconfig {
        ask_cluster(file, &mut seen)?;
    } else if arguments.files.is_empty() {
        anyhow::bail!("nothing to look at: name a dump with -f, or a cluster with --kubeconfig");
    }
    if seen.is_nothing() && seen.input.unread.is_empty() {
        anyhow::bail!(if seen.kinds == Some(0) {
            "no kind of Karpenter's is served here, nor any other: is this the API server of a cluster?"
        } else {
            "nothing to look at: no object was given"
        });
    }
    Ok(seen)
}

fn ask_cluster(kubeconfig: &Path, seen: &mut DoctorInput) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let read = kube::config::Kubeconfig::read_from(kubeconfig)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
        let client = api_client::client(config, &Guard::none(), Asker::Doctor)?;
        let mut kinds = 0;
        for paths in KINDS {
            let is_served = ask(&client, paths, seen).await?;
            let is_karpenters = paths.iter().any(|it| it.starts_with("/apis/karpenter."));
            kinds += usize::from(is_served && is_karpenters);
        }
        seen.kinds = Some(kinds);
        Ok(())
    })
}

/// Reads a kind in the first version that is served, and says whether one is. What may not be read is said to be
/// unknown.
async fn ask(client: &Client, paths: &[&str], seen: &mut DoctorInput) -> anyhow::Result<bool> {
    for path in paths {
        let request = Request::get(*path).body(Vec::new())?;
        match client.request_text(request).await {
            Ok(text) => {
                seen.input.add(path, &text);
                seen.lists += 1;
                seen.whole.extend(resource(path));
                return Ok(true);
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(kube::Error::Api(status)) => {
                let place = SourcePlace {
                    file: (*path).to_owned(),
                    line: 1,
                };
                let message = format!("cannot be listed ({})", status.message);
                seen.input.unread.push(Unread { place, message });
                return Ok(true);
            }
            Err(error) => return Err(error.into()),
        }
    }
    seen.whole
        .extend(paths.iter().copied().filter_map(resource));
    Ok(false)
}

/// The resource that a path lists whole.
fn resource(path: &str) -> Option<String> {
    let is_a_part = path.contains('?');
    let plural = path.rsplit('/').next().filter(|_| !is_a_part);
    plural.map(str::to_owned)
}
