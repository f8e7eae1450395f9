//! The policies of a cluster, for `mortise policy status`: the verbs themselves have no client.

use anyhow::Context as _;
use authoring::StatusArguments;
use controllers::{POLICY_LABEL, source_of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use policy::BindingSource;

use crate::api_client::{Asker, Guard};
use crate::controller;

pub(crate) fn list(arguments: &StatusArguments) -> anyhow::Result<Vec<BindingSource>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config_maps = runtime.block_on(config_maps(arguments))?;
    Ok(config_maps.iter().map(source_of).collect())
}

async fn config_maps(arguments: &StatusArguments) -> anyhow::Result<Vec<ConfigMap>> {
    let kubeconfig = arguments.kubeconfig.as_deref();
    let client = controller::client(kubeconfig, &Guard::none(), Asker::Policy).await?;
    let api: Api<ConfigMap> = if arguments.all_namespaces {
        Api::all(client)
    } else {
        Api::namespaced(client, &arguments.namespace)
    };
    let labelled = ListParams::default().labels(POLICY_LABEL);
    let list = api
        .list(&labelled)
        .await
        .context("the ConfigMaps of policies cannot be listed")?;
    Ok(list.items)
}
