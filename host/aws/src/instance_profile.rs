//! The instance profile of a class: the one it names, or one made for its role.
//!
//! A profile made here is named after the class and the role, so that making it twice makes one. What a class names
//! itself is neither changed nor deleted. Answers to Karpenter's `pkg/providers/instanceprofile/instanceprofile.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::Ec2NodeClass;
use aws_sdk_iam::operation::add_role_to_instance_profile::AddRoleToInstanceProfileInput;
use aws_sdk_iam::operation::create_instance_profile::CreateInstanceProfileInput;
use aws_sdk_iam::operation::delete_instance_profile::DeleteInstanceProfileInput;
use aws_sdk_iam::operation::get_instance_profile::GetInstanceProfileInput;
use aws_sdk_iam::operation::list_instance_profiles::ListInstanceProfilesInput;
use aws_sdk_iam::operation::remove_role_from_instance_profile::RemoveRoleFromInstanceProfileInput;
use aws_sdk_iam::types::Tag;
use cloudprovider::CloudProviderError;
use jiff::{SignedDuration, Timestamp};

use crate::cache::{DEFAULT_TTL, TtlCache, fingerprint};
use crate::error::{call_failure, invalid, is_already_exists, is_not_found};
use crate::options::AwsOptions;
use crate::seam::IamApi;
use crate::tags::{Tags, profile_tags};

/// A claim that bears a profile may be seen this late.
const PROTECTED: SignedDuration = SignedDuration::from_hours(1);
const PROFILE_TTL: SignedDuration = SignedDuration::from_mins(15);

/// The role that IAM says a profile has.
enum ProfileRole {
    NoProfile,
    NoRole,
    Role(String),
}

/// Makes, finds and deletes instance profiles.
pub(crate) struct InstanceProfileProvider {
    iam: Arc<dyn IamApi>,
    /// Role of a profile by profile name.
    profiles: TtlCache<String, String>,
    missing_roles: TtlCache<String, String>,
    /// Profiles that classes had lately.
    protected: TtlCache<String, ()>,
}

impl InstanceProfileProvider {
    /// With empty caches.
    pub(crate) fn new(iam: Arc<dyn IamApi>) -> Self {
        Self {
            iam,
            profiles: TtlCache::new(PROFILE_TTL),
            missing_roles: TtlCache::new(DEFAULT_TTL),
            protected: TtlCache::new(PROTECTED),
        }
    }

    /// Name of the profile that instances of the class get.
    pub(crate) async fn resolve(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<String, CloudProviderError> {
        let status = node_class.status.as_ref();
        let current = status.and_then(|it| it.instance_profile.clone());
        let resolved = self.find_or_make(node_class, options, now).await;
        for name in current.into_iter().chain(resolved.clone().ok()) {
            self.protected.insert(name, (), now);
        }
        resolved
    }

    async fn find_or_make(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<String, CloudProviderError> {
        if let Some(profile) = &node_class.spec.instance_profile {
            return Ok(profile.clone());
        }
        let Some(role) = node_class.spec.role.as_deref() else {
            return Err(CloudProviderError::Other(
                "neither spec.role nor spec.instanceProfile is set".to_owned(),
            ));
        };
        // IAM knows roles by name; a path before it is for people.
        let role = role.rsplit('/').next().unwrap_or(role);
        if let Some(message) = self.missing_roles.get(&role.to_owned(), now) {
            return Err(CloudProviderError::Other(message));
        }
        let status = node_class.status.as_ref();
        if let Some(current) = status.and_then(|it| it.instance_profile.as_deref())
            && self.has_role(current, role, now).await?
        {
            return Ok(current.to_owned());
        }
        let name = profile_name(node_class, options, role);
        if self.has_role(&name, role, now).await? {
            return Ok(name);
        }
        let path = profile_path(node_class, options);
        let tags = profile_tags(node_class, &options.cluster_name, &options.region);
        self.create(&name, &path, &tags).await?;
        self.attach(&name, role, now).await?;
        self.profiles.insert(name.clone(), role.to_owned(), now);
        Ok(name)
    }

    /// Deletes every profile made for the class.
    pub(crate) async fn release(
        &self,
        node_class: &Ec2NodeClass,
        options: &AwsOptions,
    ) -> Result<(), CloudProviderError> {
        for name in self.made_under(&profile_path(node_class, options)).await? {
            self.delete(&name).await?;
        }
        self.delete(&legacy_profile_name(node_class, options)).await
    }

    /// Deletes every profile made for the cluster that is neither in use nor was lately.
    pub(crate) async fn release_unused(
        &self,
        in_use: &BTreeSet<String>,
        options: &AwsOptions,
        now: Timestamp,
    ) -> Result<(), CloudProviderError> {
        let mut first_error = None;
        for name in self.made_under(&cluster_path(options)).await? {
            if in_use.contains(&name) || self.protected.get(&name, now).is_some() {
                continue;
            }
            match self.delete(&name).await {
                Ok(()) => tracing::info!(
                    profile = name,
                    "deleted an instance profile that nothing uses"
                ),
                // One that may not be deleted keeps none of the others.
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Names of the profiles under a path.
    async fn made_under(&self, path: &str) -> Result<Vec<String>, CloudProviderError> {
        let mut marker = None;
        let mut names = Vec::new();
        loop {
            let input = ListInstanceProfilesInput::builder()
                .path_prefix(path)
                .set_marker(marker)
                .build()
                .map_err(invalid)?;
            let page = self.iam.list_instance_profiles(input).await;
            let page = page.map_err(|e| call_failure("listing instance profiles", &e))?;
            names.extend(
                page.instance_profiles
                    .into_iter()
                    .map(|profile| profile.instance_profile_name),
            );
            marker = page.marker;
            if !page.is_truncated || marker.is_none() {
                return Ok(names);
            }
        }
    }

    /// Whether the profile is there and has this role.
    async fn has_role(
        &self,
        name: &str,
        role: &str,
        now: Timestamp,
    ) -> Result<bool, CloudProviderError> {
        if let Some(known) = self.profiles.get(&name.to_owned(), now) {
            return Ok(known == role);
        }
        let ProfileRole::Role(found) = self.fetch_role(name).await? else {
            return Ok(false);
        };
        let is_the_one = found == role;
        self.profiles.insert(name.to_owned(), found, now);
        Ok(is_the_one)
    }

    async fn fetch_role(&self, name: &str) -> Result<ProfileRole, CloudProviderError> {
        let input = GetInstanceProfileInput::builder()
            .instance_profile_name(name)
            .build()
            .map_err(invalid)?;
        match self.iam.get_instance_profile(input).await {
            Err(error) if is_not_found(&error) => Ok(ProfileRole::NoProfile),
            Err(error) => Err(call_failure("getting the instance profile", &error)),
            Ok(answer) => {
                let roles = answer
                    .instance_profile
                    .map(|profile| profile.roles)
                    .unwrap_or_default();
                let role = roles.into_iter().next();
                Ok(role.map_or(ProfileRole::NoRole, |it| ProfileRole::Role(it.role_name)))
            }
        }
    }

    async fn create(&self, name: &str, path: &str, tags: &Tags) -> Result<(), CloudProviderError> {
        let tags: Result<Vec<Tag>, _> = tags
            .iter()
            .map(|(key, value)| Tag::builder().key(key).value(value).build())
            .collect();
        let input = CreateInstanceProfileInput::builder()
            .instance_profile_name(name)
            .path(path)
            .set_tags(Some(tags.map_err(invalid)?))
            .build()
            .map_err(invalid)?;
        match self.iam.create_instance_profile(input).await {
            Err(error) if !is_already_exists(&error) => {
                Err(call_failure("creating the instance profile", &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn attach(
        &self,
        name: &str,
        role: &str,
        now: Timestamp,
    ) -> Result<(), CloudProviderError> {
        match self.fetch_role(name).await? {
            ProfileRole::Role(current) if current == role => return Ok(()),
            ProfileRole::Role(current) => self.detach(name, &current).await?,
            ProfileRole::NoProfile | ProfileRole::NoRole => {}
        }
        let input = AddRoleToInstanceProfileInput::builder()
            .instance_profile_name(name)
            .role_name(role)
            .build()
            .map_err(invalid)?;
        let Err(error) = self.iam.add_role_to_instance_profile(input).await else {
            return Ok(());
        };
        if is_not_found(&error) {
            let message = format!("the role {role} does not exist, {error}");
            self.missing_roles
                .insert(role.to_owned(), message.clone(), now);
            // A profile without a role would only be in the way of the next attempt's tags.
            if let Err(error) = self.delete(name).await {
                tracing::warn!(profile = name, %error, "could not delete a profile without a role");
            }
            return Err(CloudProviderError::Other(message));
        }
        Err(call_failure(
            "adding the role to the instance profile",
            &error,
        ))
    }

    async fn detach(&self, name: &str, role: &str) -> Result<(), CloudProviderError> {
        let input = RemoveRoleFromInstanceProfileInput::builder()
            .instance_profile_name(name)
            .role_name(role)
            .build()
            .map_err(invalid)?;
        match self.iam.remove_role_from_instance_profile(input).await {
            Err(error) if !is_not_found(&error) => Err(call_failure(
                "removing the role from the instance profile",
                &error,
            )),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn delete(&self, name: &str) -> Result<(), CloudProviderError> {
        self.profiles.remove(&name.to_owned());
        match self.fetch_role(name).await? {
            ProfileRole::NoProfile => return Ok(()),
            ProfileRole::NoRole => {}
            ProfileRole::Role(role) => self.detach(name, &role).await?,
        }
        let input = DeleteInstanceProfileInput::builder()
            .instance_profile_name(name)
            .build()
            .map_err(invalid)?;
        match self.iam.delete_instance_profile(input).await {
            Err(error) if !is_not_found(&error) => {
                Err(call_failure("deleting the instance profile", &error))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

fn profile_name(node_class: &Ec2NodeClass, options: &AwsOptions, role: &str) -> String {
    let uid = node_class.metadata.uid.as_deref().unwrap_or_default();
    let class = node_class.metadata.name.as_deref().unwrap_or_default();
    let hash = fingerprint([options.region.as_str(), class, uid, role]);
    format!("{}_{hash}", options.cluster_name)
}

/// The name that Karpenter gave before profiles had a path of their class.
fn legacy_profile_name(node_class: &Ec2NodeClass, options: &AwsOptions) -> String {
    let class = node_class.metadata.name.as_deref().unwrap_or_default();
    let hash = apis::hash::text(&format!("{}{class}", options.region));
    format!("{}_{hash}", options.cluster_name)
}

/// Under which all profiles of the cluster lie.
fn cluster_path(options: &AwsOptions) -> String {
    format!("/karpenter/{}/{}/", options.region, options.cluster_name)
}

fn profile_path(node_class: &Ec2NodeClass, options: &AwsOptions) -> String {
    let uid = node_class.metadata.uid.as_deref().unwrap_or_default();
    format!("{}{uid}/", cluster_path(options))
}
