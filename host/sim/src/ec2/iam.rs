//! IAM instance profiles, of which EC2 hears later than IAM.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::types::RequestLaunchTemplateData;
use aws_sdk_iam::operation::add_role_to_instance_profile::{
    AddRoleToInstanceProfileInput, AddRoleToInstanceProfileOutput,
};
use aws_sdk_iam::operation::create_instance_profile::{
    CreateInstanceProfileInput, CreateInstanceProfileOutput,
};
use aws_sdk_iam::operation::delete_instance_profile::{
    DeleteInstanceProfileInput, DeleteInstanceProfileOutput,
};
use aws_sdk_iam::operation::get_instance_profile::{
    GetInstanceProfileInput, GetInstanceProfileOutput,
};
use aws_sdk_iam::operation::list_instance_profiles::{
    ListInstanceProfilesInput, ListInstanceProfilesOutput,
};
use aws_sdk_iam::operation::remove_role_from_instance_profile::{
    RemoveRoleFromInstanceProfileInput, RemoveRoleFromInstanceProfileOutput,
};
use aws_sdk_iam::types::{InstanceProfile, Role, Tag};
use jiff::Timestamp;

use super::filters::page;
use super::network::ACCOUNT;
use super::{AccountState, date_time};

const PROFILES_PAGE_MAX: i32 = 100;

#[derive(Debug)]
pub(super) struct ProfileRecord {
    id: String,
    name: String,
    path: String,
    role: Option<String>,
    created_at: Timestamp,
    tags: BTreeMap<String, String>,
}

impl AccountState {
    /// EC2 hears of profiles later than IAM. Those that a class names itself are somebody else's, and there.
    pub(super) fn check_profile(&self, data: &RequestLaunchTemplateData) -> ApiResult<()> {
        let name = data.iam_instance_profile().and_then(|it| it.name());
        let record = name.and_then(|name| self.profiles.get(name));
        let delay = i64::try_from(self.config.faults.profile_delay_seconds).unwrap_or(i64::MAX);
        let age = record.map(|it| self.now().duration_since(it.created_at).as_secs());
        if age.is_none_or(|age| age >= delay) {
            return Ok(());
        }
        let name = name.unwrap_or_default();
        Err(ApiError::client(
            "InvalidParameterValue",
            format!(
                "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"
            ),
        ))
    }

    pub(super) fn get_instance_profile(
        &self,
        input: &GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput> {
        let record = self.profile(input.instance_profile_name.as_deref())?;
        Ok(GetInstanceProfileOutput::builder()
            .instance_profile(profile(record)?)
            .build())
    }

    pub(super) fn create_instance_profile(
        &mut self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput> {
        let name = input.instance_profile_name.unwrap_or_default();
        if self.profiles.contains_key(&name) {
            let message = format!("Instance Profile {name} already exists.");
            return Err(ApiError::client("EntityAlreadyExists", message));
        }
        let tags = input.tags.unwrap_or_default();
        let record = ProfileRecord {
            id: format!("AIPA{:016X}", self.ids.next_u64()),
            path: input.path.unwrap_or_else(|| "/".to_owned()),
            role: None,
            created_at: self.now(),
            tags: tags
                .iter()
                .map(|tag| (tag.key().to_owned(), tag.value().to_owned()))
                .collect(),
            name: name.clone(),
        };
        let output = CreateInstanceProfileOutput::builder()
            .instance_profile(profile(&record)?)
            .build();
        self.profiles.insert(name, record);
        Ok(output)
    }

    pub(super) fn add_role_to_instance_profile(
        &mut self,
        input: &AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput> {
        let role = input.role_name.clone().unwrap_or_default();
        if self.config.faults.missing_roles.contains(&role) {
            let message = format!("The role with name {role} cannot be found.");
            return Err(ApiError::client("NoSuchEntity", message));
        }
        let record = self.profile_mut(input.instance_profile_name.as_deref())?;
        if record.role.is_some() {
            let message = "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1";
            return Err(ApiError::client("LimitExceeded", message));
        }
        record.role = Some(role);
        Ok(AddRoleToInstanceProfileOutput::builder().build())
    }

    pub(super) fn remove_role_from_instance_profile(
        &mut self,
        input: &RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput> {
        let record = self.profile_mut(input.instance_profile_name.as_deref())?;
        if record.role.is_none() || record.role != input.role_name {
            let role = input.role_name.clone().unwrap_or_default();
            let message = format!("The role with name {role} cannot be found.");
            return Err(ApiError::client("NoSuchEntity", message));
        }
        record.role = None;
        Ok(RemoveRoleFromInstanceProfileOutput::builder().build())
    }

    pub(super) fn delete_instance_profile(
        &mut self,
        input: &DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput> {
        let record = self.profile(input.instance_profile_name.as_deref())?;
        if record.role.is_some() {
            let message = "Cannot delete entity, must remove roles from instance profile first.";
            return Err(ApiError::client("DeleteConflict", message));
        }
        let name = record.name.clone();
        self.profiles.remove(&name);
        Ok(DeleteInstanceProfileOutput::builder().build())
    }

    pub(super) fn list_instance_profiles(
        &self,
        input: &ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput> {
        let prefix = input.path_prefix.as_deref().unwrap_or("/");
        let found = self
            .profiles
            .values()
            .filter(|record| record.path.starts_with(prefix));
        let profiles = found.map(profile).collect::<ApiResult<Vec<_>>>()?;
        let size = Some(input.max_items.unwrap_or(PROFILES_PAGE_MAX).clamp(1, 1_000));
        let (profiles, next) = page(profiles, size, input.marker.as_deref())?;
        ListInstanceProfilesOutput::builder()
            .set_instance_profiles(Some(profiles))
            .is_truncated(next.is_some())
            .set_marker(next)
            .build()
            .map_err(incomplete)
    }

    fn profile(&self, name: Option<&str>) -> ApiResult<&ProfileRecord> {
        let name = name.unwrap_or_default();
        self.profiles.get(name).ok_or_else(|| no_such_profile(name))
    }

    fn profile_mut(&mut self, name: Option<&str>) -> ApiResult<&mut ProfileRecord> {
        let name = name.unwrap_or_default();
        self.profiles
            .get_mut(name)
            .ok_or_else(|| no_such_profile(name))
    }
}

fn no_such_profile(name: &str) -> ApiError {
    ApiError::client(
        "NoSuchEntity",
        format!("Instance Profile {name} cannot be found."),
    )
}

fn profile(record: &ProfileRecord) -> ApiResult<InstanceProfile> {
    let at = date_time(record.created_at);
    let role = |name: &String| {
        Role::builder()
            .path("/")
            .role_name(name)
            .role_id(format!("AROA{name}"))
            .arn(format!("arn:aws:iam::{ACCOUNT}:role/{name}"))
            .create_date(at)
            .build()
            .map_err(incomplete)
    };
    let tag = |(key, value): (&String, &String)| {
        Tag::builder()
            .key(key)
            .value(value)
            .build()
            .map_err(incomplete)
    };
    InstanceProfile::builder()
        .path(&record.path)
        .instance_profile_name(&record.name)
        .instance_profile_id(&record.id)
        .arn(format!(
            "arn:aws:iam::{ACCOUNT}:instance-profile{}{}",
            record.path, record.name
        ))
        .create_date(at)
        .set_roles(Some(
            record.role.iter().map(role).collect::<ApiResult<_>>()?,
        ))
        .set_tags(Some(record.tags.iter().map(tag).collect::<ApiResult<_>>()?))
        .build()
        .map_err(incomplete)
}

/// The SDK refuses an answer without its required fields; the simulator always sets them.
fn incomplete(error: impl std::fmt::Display) -> ApiError {
    ApiError::server("ServiceFailure", error.to_string())
}
