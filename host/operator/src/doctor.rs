//! `mortise doctor`: what a switch to Mortise would meet, in a dump or in a cluster.
//!
//! Reads only. What is found, and what to do about it, is decided in the crate `convert`.

use std::process::ExitCode;

use convert::doctor::{DoctorFinding, Severity, examine};
use convert::{ConversionInput, SourcePlace, Unread};
use http::Request;
use kube::Client;

use crate::api_client::{self, Guard};
use crate::cli::{DoctorArguments, Output};
use crate::convert::read;
use crate::output::print_text;

/// What is asked of a cluster.
const PATHS: [&str; 14] = [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/karpenter.sh/v1/nodepools",
    "/apis/karpenter.sh/v1/nodeclaims",
    "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "/apis/karpenter.sh/v1alpha5/provisioners",
    "/apis/karpenter.sh/v1alpha5/machines",
    "/apis/karpenter.k8s.aws/v1alpha1/awsnodetemplates",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/api/v1/nodes",
];

/// Exit code 0 when nothing breaks or differs, 1 when something does, 2 when nothing could be read.
pub(crate) fn run(arguments: &DoctorArguments) -> ExitCode {
    let told = input(arguments).and_then(|input| {
        let findings = examine(&input);
        let text = match arguments.output {
            Output::Json => format!("{}\n", serde_json::to_string_pretty(&findings)?),
            Output::Text => findings
                .iter()
                .fold(String::new(), |text, it| text + &it.to_string() + "\n"),
        };
        print_text(&text)?;
        Ok(findings)
    });
    match told {
        Ok(findings) if findings.iter().all(is_note) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("mortise: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_note(finding: &DoctorFinding) -> bool {
    finding.severity == Severity::Note
}

fn input(arguments: &DoctorArguments) -> anyhow::Result<ConversionInput> {
    let mut input = ConversionInput::default();
    for path in &arguments.files {
        read(path, &mut input)?;
    }
    if let Some(file) = &arguments.kubeconfig {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let read = kube::config::Kubeconfig::read_from(file)?;
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(read, &options).await?;
            let client = api_client::client(config, &Guard::none())?;
            ask(&client, &mut input).await
        })?;
    }
    if input.sources.is_empty() && input.unread.is_empty() {
        anyhow::bail!("nothing to look at: name a dump with -f, or a cluster with --kubeconfig");
    }
    Ok(input)
}

/// Reads each kind. One that is not served has no objects; one that may not be read is said to be unknown.
async fn ask(client: &Client, input: &mut ConversionInput) -> anyhow::Result<()> {
    for path in PATHS {
        let request = Request::get(path).body(Vec::new())?;
        match client.request_text(request).await {
            Ok(text) => input.add(path, &text),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(kube::Error::Api(status)) if [401, 403].contains(&status.code) => {
                let place = SourcePlace {
                    file: path.to_owned(),
                    line: 1,
                };
                let message = format!("cannot be listed ({})", status.message);
                input.unread.push(Unread { place, message });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
