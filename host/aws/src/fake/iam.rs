//! Instance profiles and roles of the fake account.

use async_trait::async_trait;
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
use aws_sdk_iam::types::{InstanceProfile, Role};

use aws_smithy_types::DateTime;

use super::FakeAws;
use crate::seam::{ApiError, ApiResult, IamApi};

fn no_such_entity<T>() -> ApiResult<T> {
    Err(ApiError::client("NoSuchEntity", "there is none"))
}

fn profile(name: &str, role: &str) -> InstanceProfile {
    let epoch = DateTime::from_secs(0);
    let role = (!role.is_empty()).then(|| {
        Role::builder()
            .path("/")
            .role_name(role)
            .role_id("r")
            .arn("arn")
            .create_date(epoch)
            .build()
            .unwrap()
    });
    InstanceProfile::builder()
        .path("/")
        .instance_profile_name(name)
        .instance_profile_id("p")
        .arn("arn")
        .create_date(epoch)
        .set_roles(Some(role.into_iter().collect()))
        .build()
        .unwrap()
}

#[async_trait]
impl IamApi for FakeAws {
    async fn get_instance_profile(
        &self,
        input: GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput> {
        self.count("GetInstanceProfile", |state| {
            let name = input.instance_profile_name.unwrap();
            let Some(role) = state.profiles.get(&name) else {
                return no_such_entity();
            };
            Ok(GetInstanceProfileOutput::builder()
                .instance_profile(profile(&name, role))
                .build())
        })
    }

    async fn create_instance_profile(
        &self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput> {
        self.count("CreateInstanceProfile", |state| {
            let name = input.instance_profile_name.unwrap();
            state.profiles.entry(name.clone()).or_default();
            let path = input.path.unwrap_or_default();
            state.profile_paths.insert(name.clone(), path);
            Ok(CreateInstanceProfileOutput::builder()
                .instance_profile(profile(&name, ""))
                .build())
        })
    }

    async fn add_role_to_instance_profile(
        &self,
        input: AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput> {
        self.count("AddRoleToInstanceProfile", |state| {
            let role = input.role_name.unwrap();
            if role == "no-such-role" {
                return no_such_entity();
            }
            state
                .profiles
                .insert(input.instance_profile_name.unwrap(), role);
            Ok(AddRoleToInstanceProfileOutput::builder().build())
        })
    }

    async fn remove_role_from_instance_profile(
        &self,
        input: RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput> {
        self.count("RemoveRoleFromInstanceProfile", |state| {
            state
                .profiles
                .insert(input.instance_profile_name.unwrap(), String::new());
            Ok(RemoveRoleFromInstanceProfileOutput::builder().build())
        })
    }

    async fn delete_instance_profile(
        &self,
        input: DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput> {
        self.count("DeleteInstanceProfile", |state| {
            let name = input.instance_profile_name;
            if name == state.fixed_profile {
                return Err(ApiError::client("AccessDenied", "refused"));
            }
            state.profiles.remove(&name.unwrap());
            Ok(DeleteInstanceProfileOutput::builder().build())
        })
    }

    async fn list_instance_profiles(
        &self,
        input: ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput> {
        self.count("ListInstanceProfiles", |state| {
            let prefix = input.path_prefix.unwrap_or_default();
            let is_under = |name: &String| {
                let path = state.profile_paths.get(name).map_or("/", String::as_str);
                path.starts_with(&prefix)
            };
            let profiles = state
                .profiles
                .iter()
                .filter(|(name, _)| is_under(name))
                .map(|(name, role)| profile(name, role))
                .collect();
            Ok(ListInstanceProfilesOutput::builder()
                .set_instance_profiles(Some(profiles))
                .build()
                .unwrap())
        })
    }
}
