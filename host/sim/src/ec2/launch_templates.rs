//! Launch templates: made once, read by every fleet that names one, and refused as EC2 refuses them.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::create_launch_template::{
    CreateLaunchTemplateInput, CreateLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::delete_launch_template::{
    DeleteLaunchTemplateInput, DeleteLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::describe_launch_templates::{
    DescribeLaunchTemplatesInput, DescribeLaunchTemplatesOutput,
};
use aws_sdk_ec2::types::{LaunchTemplate, RequestLaunchTemplateData};
use base64::Engine as _;
use jiff::Timestamp;

use super::bootstrap::KubeletSettings;
use super::filters::{matches, page, tag_list, tag_map};
use super::instance_types::dry_run;
use super::{AccountState, date_time};

/// EC2's limit on user data, decoded.
const USER_DATA_BYTES_MAX: usize = 16_384;

#[derive(Debug)]
pub(super) struct LaunchTemplateRecord {
    pub(super) id: String,
    pub(super) name: String,
    created_at: Timestamp,
    tags: BTreeMap<String, String>,
    pub(super) data: Arc<RequestLaunchTemplateData>,
    pub(super) bootstrap: Arc<KubeletSettings>,
}

impl AccountState {
    pub(super) fn create_launch_template(
        &mut self,
        input: CreateLaunchTemplateInput,
    ) -> ApiResult<CreateLaunchTemplateOutput> {
        let name = input.launch_template_name.unwrap_or_default();
        if self
            .launch_templates
            .values()
            .any(|template| template.name == name)
        {
            let message = format!("Launch template name already in use: {name}");
            return Err(ApiError::client(
                "InvalidLaunchTemplateName.AlreadyExistsException",
                message,
            ));
        }
        let data = input
            .launch_template_data
            .unwrap_or_else(|| RequestLaunchTemplateData::builder().build());
        let user_data = data.user_data().unwrap_or_default();
        let decoded = base64::engine::general_purpose::STANDARD
            .decode(user_data)
            .map_err(|_| {
                ApiError::client(
                    "InvalidUserData.Malformed",
                    "Invalid BASE64 encoding of user data.",
                )
            })?;
        if decoded.len() > USER_DATA_BYTES_MAX {
            let message = format!("User data is limited to {USER_DATA_BYTES_MAX} bytes");
            return Err(ApiError::client("InvalidUserData.Malformed", message));
        }
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        let record = LaunchTemplateRecord {
            id: self.new_id("lt"),
            created_at: self.now(),
            tags: tag_map(
                input
                    .tag_specifications
                    .unwrap_or_default()
                    .iter()
                    .flat_map(|specification| specification.tags().to_vec())
                    .collect::<Vec<_>>()
                    .as_slice(),
            ),
            bootstrap: Arc::new(KubeletSettings::from_text(&String::from_utf8_lossy(
                &decoded,
            ))),
            data: Arc::new(data),
            name,
        };
        let output = CreateLaunchTemplateOutput::builder()
            .launch_template(template(&record))
            .build();
        self.launch_templates.insert(record.id.clone(), record);
        Ok(output)
    }

    pub(super) fn describe_launch_templates(
        &self,
        input: &DescribeLaunchTemplatesInput,
    ) -> ApiResult<DescribeLaunchTemplatesOutput> {
        let names = input.launch_template_names.as_deref().unwrap_or_default();
        let ids = input.launch_template_ids.as_deref().unwrap_or_default();
        for name in names {
            self.launch_template(None, Some(name))?;
        }
        for id in ids {
            self.launch_template(Some(id), None)?;
        }
        let filters = input.filters.as_deref().unwrap_or_default();
        let found = self
            .launch_templates
            .values()
            .filter(|record| names.is_empty() || names.contains(&record.name))
            .filter(|record| ids.is_empty() || ids.contains(&record.id))
            .filter(|record| {
                matches(filters, &record.tags, |name| match name {
                    "launch-template-name" => vec![record.name.clone()],
                    _ => Vec::new(),
                })
            });
        let (templates, next) = page(
            found.map(template).collect(),
            input.max_results,
            input.next_token.as_deref(),
        )?;
        Ok(DescribeLaunchTemplatesOutput::builder()
            .set_launch_templates(Some(templates))
            .set_next_token(next)
            .build())
    }

    pub(super) fn delete_launch_template(
        &mut self,
        input: &DeleteLaunchTemplateInput,
    ) -> ApiResult<DeleteLaunchTemplateOutput> {
        let (id, name) = (
            input.launch_template_id.as_deref(),
            input.launch_template_name.as_deref(),
        );
        let record = self.launch_template(id, name)?;
        let output = DeleteLaunchTemplateOutput::builder()
            .launch_template(template(record))
            .build();
        let id = record.id.clone();
        self.launch_templates.remove(&id);
        Ok(output)
    }

    /// A template by id or name, or the error that EC2 gives.
    pub(super) fn launch_template(
        &self,
        id: Option<&str>,
        name: Option<&str>,
    ) -> ApiResult<&LaunchTemplateRecord> {
        if let Some(id) = id {
            return self.launch_templates.get(id).ok_or_else(|| {
                let message = format!(
                    "The specified launch template, with template ID {id}, does not exist."
                );
                ApiError::client("InvalidLaunchTemplateId.NotFound", message)
            });
        }
        let name = name.unwrap_or_default();
        self.launch_templates
            .values()
            .find(|record| record.name == name)
            .ok_or_else(|| {
                let message =
                    "At least one of the launch templates specified in the request does not exist.";
                ApiError::client("InvalidLaunchTemplateName.NotFoundException", message)
            })
    }
}

fn template(record: &LaunchTemplateRecord) -> LaunchTemplate {
    LaunchTemplate::builder()
        .launch_template_id(&record.id)
        .launch_template_name(&record.name)
        .create_time(date_time(record.created_at))
        .default_version_number(1)
        .latest_version_number(1)
        .set_tags(Some(tag_list(&record.tags)))
        .build()
}
