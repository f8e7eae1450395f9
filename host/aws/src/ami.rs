//! Machine images: which ones a class selects, and which one an instance type boots.
//!
//! Aliases go through SSM parameters; all other terms are EC2 queries. No other image is taken where a class's own are
//! not there. Answers to Karpenter's `pkg/providers/amifamily/ami.go` and `pkg/providers/ssm/provider.go`.

mod alias;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ec2nodeclass::{Ami, AmiSelectorTerm};
use apis::{Ec2NodeClass, labels};
use aws_sdk_ec2::operation::describe_images::DescribeImagesInput;
use aws_sdk_ec2::types::{Filter, Image};
use aws_sdk_ssm::operation::get_parameter::GetParameterInput;
use cloudprovider::CloudProviderError;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use scheduling::instance_type::InstanceType;
use scheduling::requirements::{AllowUndefined, Operator, Requirement, Requirements};

pub(crate) use alias::unsupported_alias;

use crate::cache::TtlCache;
use crate::error::{call_failure, invalid, is_not_found};
use crate::node_class::revision::revision_key;
use crate::options::AwsOptions;
use crate::pages::all_pages;
use crate::seam::{Ec2Api, SsmApi};
use crate::tags::{filter, tag_filters};

const PAGE: i32 = 1000;
const SSM_TTL: SignedDuration = SignedDuration::from_hours(24);
/// A parameter whose image is deprecated or gone is read again so often.
const SSM_REREAD: SignedDuration = SignedDuration::from_mins(30);
const SSM_CUSTOM_TTL: SignedDuration = SignedDuration::from_mins(5);

/// An image and the types it is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResolvedAmi {
    /// Such as `ami-0123`.
    pub(crate) id: String,
    /// Name of the image.
    pub(crate) name: String,
    /// Whether its maker advises against it.
    pub(crate) is_deprecated: bool,
    /// As EC2 writes it; the texts sort like the times.
    pub(crate) creation_date: String,
    /// Requirements on the instance types that can boot it.
    pub(crate) requirements: Requirements,
}

/// Images to ask EC2 for.
#[derive(Debug, Clone, Default)]
struct DescribeImageQuery {
    filters: Vec<Filter>,
    owners: Vec<String>,
    /// What is known of an image beforehand, by id.
    variants: BTreeMap<String, Vec<Requirements>>,
    /// Parameters that may hold another image by now, by the id that they held.
    mutable: BTreeMap<String, Vec<String>>,
}

/// Finds images.
pub(crate) struct AmiProvider {
    ec2: Arc<dyn Ec2Api>,
    ssm: Arc<dyn SsmApi>,
    parameters: TtlCache<String, String>,
    /// Parameters that were read again because their image is outdated.
    reread: TtlCache<String, ()>,
    images: TtlCache<String, Arc<[ResolvedAmi]>>,
}

impl AmiProvider {
    /// Believes a listing for `refresh_interval`.
    pub(crate) fn new(
        ec2: Arc<dyn Ec2Api>,
        ssm: Arc<dyn SsmApi>,
        refresh_interval: SignedDuration,
    ) -> Self {
        Self {
            ec2,
            ssm,
            parameters: TtlCache::new(SSM_TTL),
            reread: TtlCache::new(SSM_REREAD),
            images: TtlCache::new(refresh_interval),
        }
    }

    /// The images a class selects, the newest first.
    pub(crate) async fn list(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<Arc<[ResolvedAmi]>, CloudProviderError> {
        let key = revision_key(node_class);
        if let Some(images) = self.images.get(&key, now) {
            return Ok(images);
        }
        let mut found = self.look(node_class, options, now).await?;
        if self.forget_outdated(&found, now) {
            found = self.look(node_class, options, now).await?;
        }
        let mut best: BTreeMap<Requirements, ResolvedAmi> = BTreeMap::new();
        for (query, images) in found {
            for image in images {
                let id = image.image_id().unwrap_or_default();
                let variants = query
                    .variants
                    .get(id)
                    .cloned()
                    .unwrap_or_else(|| vec![Requirements::new()]);
                for variant in variants {
                    offer(&mut best, resolved(&image, variant, now));
                }
            }
        }
        let mut images: Vec<_> = best.into_values().collect();
        images.sort_by(|a, b| {
            b.creation_date
                .cmp(&a.creation_date)
                .then_with(|| a.id.cmp(&b.id))
        });
        let images: Arc<[ResolvedAmi]> = images.into();
        if !images.is_empty() {
            self.images.insert(key, Arc::clone(&images), now);
        }
        Ok(images)
    }

    async fn look(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<Vec<(DescribeImageQuery, Vec<Image>)>, CloudProviderError> {
        let mut found = Vec::new();
        for query in self.queries(node_class, options, now).await? {
            let images = self.describe(&query).await?;
            found.push((query, images));
        }
        Ok(found)
    }

    /// Forgets parameters whose image is deprecated or gone, and says whether there were any: another may have been
    /// published since they were read.
    fn forget_outdated(&self, found: &[(DescribeImageQuery, Vec<Image>)], now: Timestamp) -> bool {
        let mut has_forgotten = false;
        for (query, images) in found {
            let is_current = |id: &String| {
                let mut images = images.iter();
                images.any(|it| it.image_id() == Some(id) && !is_deprecated(it, now))
            };
            let outdated = query.mutable.iter().filter(|(id, _)| !is_current(id));
            for parameter in outdated.flat_map(|(_, parameters)| parameters) {
                if self.reread.get(parameter, now).is_none() {
                    self.reread.insert(parameter.clone(), (), now);
                    has_forgotten |= self.parameters.remove(parameter).is_some();
                }
            }
        }
        has_forgotten
    }

    async fn queries(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<Vec<DescribeImageQuery>, CloudProviderError> {
        if let Some(alias) = node_class.alias() {
            let parameters = alias::parameters(&alias, &options.kubernetes_version);
            let mut variants: BTreeMap<String, Vec<Requirements>> = BTreeMap::new();
            let mut mutable: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for parameter in parameters {
                if let Some(id) = self.parameter(&parameter.path, SSM_TTL, now).await? {
                    if alias.is_latest() {
                        mutable.entry(id.clone()).or_default().push(parameter.path);
                    }
                    variants.entry(id).or_default().extend(parameter.variants);
                }
            }
            if variants.is_empty() {
                let alias = format!("{}@{}", alias.family.as_str().to_lowercase(), alias.version);
                return Err(CloudProviderError::Other(format!(
                    "no image is published for alias {alias:?}"
                )));
            }
            return Ok(vec![DescribeImageQuery {
                variants: variants.clone(),
                mutable,
                ..by_ids(variants.into_keys())
            }]);
        }
        let mut ids = Vec::new();
        let mut queries = Vec::new();
        for term in &node_class.spec.ami_selector_terms {
            match (&term.id, &term.ssm_parameter) {
                (Some(id), _) => ids.push(id.clone()),
                (None, Some(parameter)) => {
                    let id = self.parameter(parameter, SSM_CUSTOM_TTL, now).await?;
                    match id.filter(|id| id.starts_with("ami-")) {
                        Some(id) => ids.push(id),
                        None => {
                            tracing::error!(parameter, "the parameter does not hold an image id");
                        }
                    }
                }
                (None, None) => queries.push(by_name_or_tags(term)),
            }
        }
        if !ids.is_empty() {
            queries.insert(0, by_ids(ids));
        }
        Ok(queries)
    }

    async fn parameter(
        &self,
        name: &str,
        ttl: SignedDuration,
        now: Timestamp,
    ) -> Result<Option<String>, CloudProviderError> {
        if let Some(value) = self.parameters.get(&name.to_owned(), now) {
            return Ok(Some(value));
        }
        let input = GetParameterInput::builder()
            .name(name)
            .build()
            .map_err(invalid)?;
        match self.ssm.get_parameter(input).await {
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(call_failure("getting an SSM parameter", &error)),
            Ok(answer) => {
                let value = answer.parameter.and_then(|parameter| parameter.value);
                if let Some(value) = &value {
                    self.parameters
                        .insert_for(name.to_owned(), value.clone(), now, ttl);
                }
                Ok(value)
            }
        }
    }

    async fn describe(&self, query: &DescribeImageQuery) -> Result<Vec<Image>, CloudProviderError> {
        let input = || {
            let owners = Some(query.owners.clone()).filter(|owners| !owners.is_empty());
            DescribeImagesInput::builder()
                .set_filters(Some(query.filters.clone()))
                .filters(filter("state", ["available"]))
                .set_owners(owners)
                .include_deprecated(true)
                .max_results(PAGE)
        };
        all_pages!(
            self.ec2,
            describe_images,
            "describing images",
            images,
            input()
        )
    }
}

fn by_ids(ids: impl IntoIterator<Item = String>) -> DescribeImageQuery {
    DescribeImageQuery {
        filters: vec![filter("image-id", ids)],
        ..DescribeImageQuery::default()
    }
}

fn by_name_or_tags(term: &AmiSelectorTerm) -> DescribeImageQuery {
    let mut filters = tag_filters(&term.tags);
    let mut owners: Vec<String> = term.owner.clone().into_iter().collect();
    if let Some(name) = &term.name {
        filters.push(filter("name", [name.as_str()]));
        if owners.is_empty() {
            // A name alone would also match anybody's public image.
            owners = vec!["self".to_owned(), "amazon".to_owned()];
        }
    }
    DescribeImageQuery {
        filters,
        owners,
        ..DescribeImageQuery::default()
    }
}

fn resolved(image: &Image, mut requirements: Requirements, now: Timestamp) -> Option<ResolvedAmi> {
    let architecture = match image.architecture()?.as_str() {
        "x86_64" => labels::ARCH_AMD64,
        "arm64" => labels::ARCH_ARM64,
        _ => return None,
    };
    requirements.add(Requirement::new(labels::ARCH, Operator::In, [architecture]));
    Some(ResolvedAmi {
        id: image.image_id()?.to_owned(),
        name: image.name().unwrap_or_default().to_owned(),
        is_deprecated: is_deprecated(image, now),
        creation_date: image.creation_date().unwrap_or_default().to_owned(),
        requirements,
    })
}

fn is_deprecated(image: &Image, now: Timestamp) -> bool {
    let time = image.deprecation_time();
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.is_some_and(|time| time <= now)
}

/// Keeps one image per set of requirements: current before deprecated, then newer, then the greater name.
fn offer(best: &mut BTreeMap<Requirements, ResolvedAmi>, image: Option<ResolvedAmi>) {
    let Some(image) = image else { return };
    let rank = |image: &ResolvedAmi| {
        (
            !image.is_deprecated,
            image.creation_date.clone(),
            image.name.clone(),
        )
    };
    let is_better = best
        .get(&image.requirements)
        .is_none_or(|old| rank(&image) > rank(old));
    if is_better {
        best.insert(image.requirements.clone(), image);
    }
}

/// The form of a class' status.
pub(crate) fn to_status(images: &[ResolvedAmi]) -> Vec<Ami> {
    images
        .iter()
        .map(|image| Ami {
            id: image.id.clone(),
            deprecated: image.is_deprecated,
            name: Some(image.name.clone()),
            requirements: status_requirements(&image.requirements),
        })
        .collect()
}

fn status_requirements(requirements: &Requirements) -> Vec<NodeSelectorRequirement> {
    let mut list: Vec<_> = requirements
        .to_node_selector_requirements()
        .into_iter()
        .map(|requirement| NodeSelectorRequirement {
            key: requirement.key,
            operator: requirement.operator.as_str().to_owned(),
            values: Some(requirement.values).filter(|values| !values.is_empty()),
        })
        .collect();
    list.sort_by(|a, b| {
        a.key
            .len()
            .cmp(&b.key.len())
            .then_with(|| a.key.cmp(&b.key))
    });
    list
}

/// The image of a class' status that an instance type boots: the first that suits it.
pub(crate) fn ami_for<'a>(amis: &'a [Ami], instance_type: &InstanceType) -> Option<&'a Ami> {
    amis.iter().find(|ami| {
        let asked = ami_requirements(ami);
        instance_type
            .requirements
            .compatible(&asked, AllowUndefined::WellKnown)
            .is_ok()
    })
}

/// Whether it is that image.
pub(crate) fn is_current(amis: &[Ami], instance_type: &InstanceType, image_id: &str) -> bool {
    ami_for(amis, instance_type).is_some_and(|ami| ami.id == image_id)
}

fn ami_requirements(ami: &Ami) -> Requirements {
    ami.requirements
        .iter()
        .filter_map(|requirement| {
            let operator = Operator::parse(&requirement.operator)?;
            let values = requirement.values.iter().flatten().map(String::as_str);
            Some(Requirement::new(&requirement.key, operator, values))
        })
        .collect()
}
