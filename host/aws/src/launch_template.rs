//! Launch templates: made when a launch needs them, named after their content, deleted when unused.
//!
//! Two launches of equal content share a template. Nothing chooses instances here. Answers to Karpenter's
//! `pkg/providers/launchtemplate/launchtemplate.go`.

mod data;
mod known;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use apis::{Ec2NodeClass, labels};
use aws_sdk_ec2::operation::create_launch_template::CreateLaunchTemplateInput;
use aws_sdk_ec2::operation::delete_launch_template::DeleteLaunchTemplateInput;
use aws_sdk_ec2::operation::describe_launch_templates::DescribeLaunchTemplatesInput;
use aws_sdk_ec2::types::{Filter, ResourceType};
use cloudprovider::CloudProviderError;
use jiff::{SignedDuration, Timestamp};
use locks::lock;
use tokio::sync::{RwLock, Semaphore};

pub(crate) use data::{NetworkPlan, ReservationPlan, TemplateParameters};

use crate::cache::{after, fingerprint};
use crate::error::{LAUNCH_TEMPLATE_NAME_NOT_FOUND, call_failure, invalid, is_not_found, unbuilt};
use crate::launch_template::known::KnownTemplates;
use crate::metrics::AwsMetrics;
use crate::pages::all_pages;
use crate::seam::{ApiError, ApiResult, Ec2Api};
use crate::tags::{filter, specification};

const NAME_PREFIX: &str = "karpenter.k8s.aws/";
const PAGE: i32 = 200;
/// Templates made at once: EC2 refills the bucket of calls that change something by a few a second.
const MAKERS_MAX: usize = 8;
/// How often the account is asked which templates there are: one whose maker died, or never heard that it was made, is
/// known to nobody else.
const LOOK_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

type TurnsByName = BTreeMap<String, Arc<tokio::sync::Mutex<()>>>;

/// One of those that look for a template or make it; the last of them, cancelled or not, takes the entry away.
struct TemplateMaker<'a> {
    making: &'a Mutex<TurnsByName>,
    name: &'a str,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> TemplateMaker<'a> {
    fn of(making: &'a Mutex<TurnsByName>, name: &'a str) -> Self {
        let turn = Arc::clone(lock(making).entry(name.to_owned()).or_default());
        Self { making, name, turn }
    }
}

impl Drop for TemplateMaker<'_> {
    fn drop(&mut self) {
        let mut making = lock(self.making);
        // The map and this one hold it; a third holder waits for its turn.
        if Arc::strong_count(&self.turn) <= 2 {
            making.remove(self.name);
        }
    }
}

/// Makes and deletes launch templates.
pub(crate) struct LaunchTemplateProvider {
    ec2: Arc<dyn Ec2Api>,
    known: KnownTemplates,
    /// Two launches must not make the same template at once: those being looked for or made, by name.
    making: Mutex<TurnsByName>,
    /// Bounds how many are made at once.
    makers: Semaphore,
    /// A template that is being deleted must not be found.
    sweeping: RwLock<()>,
    /// When the account was last asked for its templates; never, if what it would have told is not known.
    looked: Mutex<Option<Timestamp>>,
    metrics: AwsMetrics,
}

impl LaunchTemplateProvider {
    /// With no template known.
    pub(crate) fn new(ec2: Arc<dyn Ec2Api>, metrics: &AwsMetrics) -> Self {
        Self {
            metrics: metrics.clone(),
            ec2,
            known: KnownTemplates::default(),
            making: Mutex::default(),
            makers: Semaphore::new(MAKERS_MAX),
            sweeping: RwLock::default(),
            looked: Mutex::default(),
        }
    }

    /// The name of a template with this content, made if need be.
    pub(crate) async fn ensure(
        &self,
        parameters: &TemplateParameters,
        now: Timestamp,
    ) -> ApiResult<String> {
        let name = template_name(parameters);
        if self.known.touch(&name, now) {
            return Ok(name);
        }
        let maker = TemplateMaker::of(&self.making, &name);
        let made = {
            let _one_at_a_time = maker.turn.lock().await;
            self.make(&name, parameters, now).await
        };
        drop(maker);
        made.map(|()| name)
    }

    async fn make(
        &self,
        name: &str,
        parameters: &TemplateParameters,
        now: Timestamp,
    ) -> ApiResult<()> {
        if self.known.touch(name, now) {
            return Ok(());
        }
        let _no_sweep = self.sweeping.read().await;
        let _permit = self.makers.acquire().await;
        let id = match self.find(name).await? {
            Some(id) => id,
            None => self.create(name, parameters).await?,
        };
        self.known.keep(name.to_owned(), id, now);
        Ok(())
    }

    async fn find(&self, name: &str) -> ApiResult<Option<String>> {
        let input = DescribeLaunchTemplatesInput::builder()
            .launch_template_names(name)
            .build()
            .map_err(unbuilt)?;
        match self.ec2.describe_launch_templates(input).await {
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
            Ok(answer) => {
                let ids: Vec<_> = answer
                    .launch_templates()
                    .iter()
                    .filter_map(|template| template.launch_template_id())
                    .collect();
                match ids.as_slice() {
                    [] => Ok(None),
                    [id] => Ok(Some((*id).to_owned())),
                    _ => Err(ApiError::client(
                        "AmbiguousLaunchTemplate",
                        format!("more than one launch template is named {name}"),
                    )),
                }
            }
        }
    }

    async fn create(&self, name: &str, parameters: &TemplateParameters) -> ApiResult<String> {
        // What is too long is refused, so that it has to be told before.
        if let Some(class) = parameters.tags.get(labels::EC2_NODE_CLASS) {
            let bytes = base64::decoded_len_estimate(parameters.user_data.len());
            let padding = parameters.user_data.bytes().rev();
            let padding = padding.take_while(|it| *it == b'=').count();
            self.metrics
                .observe_rendering(class, bytes.saturating_sub(padding));
        }
        let input = CreateLaunchTemplateInput::builder()
            .launch_template_name(name)
            .launch_template_data(data::template_data(parameters))
            .tag_specifications(specification(
                ResourceType::LaunchTemplate,
                &parameters.tags,
            ))
            .build()
            .map_err(unbuilt)?;
        let answer = self.ec2.create_launch_template(input).await?;
        let id = answer
            .launch_template
            .and_then(|template| template.launch_template_id);
        id.ok_or_else(|| {
            ApiError::server(
                "NoLaunchTemplateId",
                format!("EC2 told no id of launch template {name}"),
            )
        })
    }

    /// Forgets templates that a fleet could not find, so that the next launch makes them again.
    pub(crate) fn invalidate(&self, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.known.forget(&name);
        }
    }

    /// Takes in those of the cluster's templates that are not known, so that unused ones get deleted.
    pub(crate) async fn hydrate(
        &self,
        cluster_name: &str,
        now: Timestamp,
    ) -> Result<(), CloudProviderError> {
        let tag = filter(
            &format!("tag:{}", labels::EKS_CLUSTER_NAME_TAG),
            [cluster_name],
        );
        for (name, id) in self.describe(vec![tag]).await? {
            self.known.note_listed(name, id, now);
        }
        *lock(&self.looked) = Some(now);
        Ok(())
    }

    /// Deletes templates that have not been used for a while, whoever made them.
    pub(crate) async fn sweep(&self, cluster_name: &str, now: Timestamp) {
        let looked = *lock(&self.looked);
        if looked.is_none_or(|at| after(at, LOOK_INTERVAL) <= now)
            && let Err(error) = self.hydrate(cluster_name, now).await
        {
            tracing::warn!(%error, "could not list the cluster's launch templates");
        }
        for name in self.known.unused(now) {
            // Launches wait for one deletion at a time, and what one of them used meanwhile stays.
            let _nobody_makes = self.sweeping.write().await;
            let Some(id) = self.known.take_unused(&name, now) else {
                continue;
            };
            if let Err(error) = self.delete(&id).await {
                tracing::warn!(launch_template = name, %error, "could not delete an unused launch template");
                self.known.put_back(name, id, now);
            }
        }
    }

    /// Deletes all templates of a class.
    pub(crate) async fn release(
        &self,
        node_class: &Ec2NodeClass,
        cluster_name: &str,
    ) -> Result<(), CloudProviderError> {
        let class = node_class.metadata.name.as_deref().unwrap_or_default();
        self.metrics.forget_class(class);
        let filters = vec![
            filter(
                &format!("tag:{}", labels::EKS_CLUSTER_NAME_TAG),
                [cluster_name],
            ),
            filter(&format!("tag:{}", labels::EC2_NODE_CLASS), [class]),
        ];
        for (name, id) in self.describe(filters).await? {
            self.known.forget(&name);
            self.delete(&id).await?;
        }
        Ok(())
    }

    async fn describe(
        &self,
        filters: Vec<Filter>,
    ) -> Result<Vec<(String, String)>, CloudProviderError> {
        let input = || {
            DescribeLaunchTemplatesInput::builder()
                .set_filters(Some(filters.clone()))
                .max_results(PAGE)
        };
        let templates = all_pages!(
            self.ec2,
            describe_launch_templates,
            "describing launch templates",
            launch_templates,
            input()
        )?;
        Ok(templates
            .into_iter()
            .filter_map(|template| {
                Some((template.launch_template_name?, template.launch_template_id?))
            })
            .filter(|(name, _)| name.starts_with(NAME_PREFIX))
            .collect())
    }

    async fn delete(&self, id: &str) -> Result<(), CloudProviderError> {
        let input = DeleteLaunchTemplateInput::builder()
            .launch_template_id(id)
            .build()
            .map_err(invalid)?;
        match self.ec2.delete_launch_template(input).await {
            Err(error) if !is_not_found(&error) => {
                Err(call_failure("deleting a launch template", &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Whether a fleet error says that its template is gone.
pub(crate) fn is_template_missing(code: &str) -> bool {
    code == LAUNCH_TEMPLATE_NAME_NOT_FOUND
}

fn template_name(parameters: &TemplateParameters) -> String {
    // Debug text names every field, so a new one cannot be forgotten here.
    format!(
        "{NAME_PREFIX}{}",
        fingerprint([format!("{parameters:?}").as_str()])
    )
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::fake::FakeAws;

    #[tokio::test]
    async fn a_launch_that_is_cut_off_leaves_no_turn_behind() {
        let provider =
            LaunchTemplateProvider::new(FakeAws::new(Vec::new()), &AwsMetrics::default());
        let parameters = data::tests::plain();
        let sweep = provider.sweeping.write().await;
        let ensure = || provider.ensure(&parameters, Timestamp::UNIX_EPOCH);
        let mut first = Box::pin(ensure());
        assert!(first.as_mut().now_or_never().is_none());
        // Cut off at once, while the first goes on.
        assert!(ensure().now_or_never().is_none());
        assert_eq!(lock(&provider.making).len(), 1);
        drop(first);
        assert_eq!(lock(&provider.making).len(), 0);
        drop(sweep);
    }
}
