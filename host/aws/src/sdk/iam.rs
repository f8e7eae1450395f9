//! IAM over the SDK. Decides nothing.

use crate::sdk::SdkClients;
use crate::sdk::change_fence::CallEffect;
use crate::sdk::request::{send, send_change};
use crate::seam::{ApiResult, IamApi};
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

#[async_trait]
impl IamApi for SdkClients {
    async fn get_instance_profile(
        &self,
        input: GetInstanceProfileInput,
    ) -> ApiResult<GetInstanceProfileOutput> {
        send!(
            self.iam,
            get_instance_profile,
            input,
            [set_instance_profile_name = instance_profile_name]
        )
    }

    async fn create_instance_profile(
        &self,
        input: CreateInstanceProfileInput,
    ) -> ApiResult<CreateInstanceProfileOutput> {
        send_change!(
            self.change_fence,
            CallEffect::Change,
            self.iam,
            create_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_path = path,
                set_tags = tags
            ]
        )
    }

    async fn add_role_to_instance_profile(
        &self,
        input: AddRoleToInstanceProfileInput,
    ) -> ApiResult<AddRoleToInstanceProfileOutput> {
        send_change!(
            self.change_fence,
            CallEffect::Change,
            self.iam,
            add_role_to_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_role_name = role_name
            ]
        )
    }

    async fn remove_role_from_instance_profile(
        &self,
        input: RemoveRoleFromInstanceProfileInput,
    ) -> ApiResult<RemoveRoleFromInstanceProfileOutput> {
        send_change!(
            self.change_fence,
            CallEffect::Change,
            self.iam,
            remove_role_from_instance_profile,
            input,
            [
                set_instance_profile_name = instance_profile_name,
                set_role_name = role_name
            ]
        )
    }

    async fn delete_instance_profile(
        &self,
        input: DeleteInstanceProfileInput,
    ) -> ApiResult<DeleteInstanceProfileOutput> {
        send_change!(
            self.change_fence,
            CallEffect::Change,
            self.iam,
            delete_instance_profile,
            input,
            [set_instance_profile_name = instance_profile_name]
        )
    }

    async fn list_instance_profiles(
        &self,
        input: ListInstanceProfilesInput,
    ) -> ApiResult<ListInstanceProfilesOutput> {
        send!(
            self.iam,
            list_instance_profiles,
            input,
            [
                set_path_prefix = path_prefix,
                set_marker = marker,
                set_max_items = max_items
            ]
        )
    }
}
