//! Machine images that Amazon publishes for nodes, and the SSM parameters that point at them.

use std::collections::BTreeMap;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::describe_images::{DescribeImagesInput, DescribeImagesOutput};
use aws_sdk_ec2::types::{ArchitectureValues, Image, ImageState};
use aws_sdk_ssm::operation::get_parameter::{GetParameterInput, GetParameterOutput};
use aws_sdk_ssm::types::{Parameter, ParameterType};
use jiff::Timestamp;

use super::filters::{matches, page, tag_list};
use super::{AccountState, stable_id};

/// Releases that exist of every image, oldest first: (date in the name, creation date).
const RELEASES: [(&str, &str); 3] = [
    ("20251015", "2025-10-15T18:02:11.000Z"),
    ("20251120", "2025-11-20T18:10:45.000Z"),
    ("20251217", "2025-12-17T18:21:33.000Z"),
];

/// Bottlerocket's versions of the same dates.
const BOTTLEROCKET_RELEASES: [&str; 3] = ["1.49.0", "1.50.0", "1.51.0"];

const OWNER: &str = "602401143452";

#[derive(Debug)]
pub(super) struct ImageRecord {
    pub(super) id: String,
    name: String,
    pub(super) architecture: &'static str,
    created: String,
    deprecates: String,
    tags: BTreeMap<String, String>,
}

/// A published line of images: the SSM path with the place of the version, and the image's name.
struct ImageLine {
    path: String,
    latest: &'static str,
    version: String,
    name: String,
    architecture: &'static str,
}

impl AccountState {
    /// Publishes the images of the configured version at the start.
    pub(super) fn publish_images(&mut self) {
        let version = self.config.kubernetes_version.clone();
        for line in lines(&version) {
            for release in 0..RELEASES.len() {
                self.publish(&line, release);
            }
        }
    }

    fn publish(&mut self, line: &ImageLine, release: usize) -> String {
        let name = release_text(&line.name, release);
        let id = stable_id(self.config.seed, "ami", &[&name]);
        let (_, created) = RELEASES[release];
        self.images
            .entry(id.clone())
            .or_insert_with(|| ImageRecord {
                id: id.clone(),
                name,
                architecture: line.architecture,
                created: created.to_owned(),
                // Two years, as EKS does.
                deprecates: created.replacen("2025", "2027", 1),
                tags: BTreeMap::new(),
            });
        id
    }

    pub(super) fn get_parameter(
        &mut self,
        input: &GetParameterInput,
    ) -> ApiResult<GetParameterOutput> {
        let name = input.name.as_deref().unwrap_or_default();
        let id = kubernetes_version(name).and_then(|version| self.image_at(name, &version));
        let id =
            id.ok_or_else(|| ApiError::client("ParameterNotFound", format!("{name} not found")))?;
        let parameter = Parameter::builder()
            .name(name)
            .r#type(ParameterType::String)
            .value(id)
            .version(1)
            .build();
        Ok(GetParameterOutput::builder().parameter(parameter).build())
    }

    /// The image a path names; publishes it when the version of Kubernetes was not asked for before.
    fn image_at(&mut self, path: &str, version: &str) -> Option<String> {
        for line in lines(version) {
            let newest = RELEASES.len() - 1;
            if path == line.path.replace("{V}", line.latest) {
                return Some(self.publish(&line, newest));
            }
            for release in 0..RELEASES.len() {
                if path
                    == line
                        .path
                        .replace("{V}", &release_text(&line.version, release))
                {
                    return Some(self.publish(&line, release));
                }
            }
        }
        None
    }

    pub(super) fn describe_images(
        &self,
        input: &DescribeImagesInput,
    ) -> ApiResult<DescribeImagesOutput> {
        let ids = input.image_ids.as_deref().unwrap_or_default();
        if let Some(id) = ids.iter().find(|id| !self.images.contains_key(*id)) {
            let message = format!("The image id '[{id}]' does not exist");
            return Err(ApiError::client("InvalidAMIID.NotFound", message));
        }
        let owners = input.owners.as_deref().unwrap_or_default();
        let owned = owners.is_empty()
            || owners
                .iter()
                .any(|owner| owner == "amazon" || owner == OWNER);
        let filters = input.filters.as_deref().unwrap_or_default();
        let now = self.now();
        let found = self.images.values().filter(|image| {
            let deprecated = image
                .deprecates
                .parse::<Timestamp>()
                .is_ok_and(|at| at <= now);
            owned
                && (ids.is_empty() || ids.contains(&image.id))
                && (input.include_deprecated == Some(true) || !deprecated)
                && matches(filters, &image.tags, |name| match name {
                    "image-id" => vec![image.id.clone()],
                    "name" => vec![image.name.clone()],
                    "architecture" => vec![image.architecture.to_owned()],
                    "state" => vec!["available".to_owned()],
                    "owner-id" => vec![OWNER.to_owned()],
                    "owner-alias" => vec!["amazon".to_owned()],
                    _ => Vec::new(),
                })
        });
        let (images, next) = page(
            found.map(image).collect(),
            input.max_results,
            input.next_token.as_deref(),
        )?;
        Ok(DescribeImagesOutput::builder()
            .set_images(Some(images))
            .set_next_token(next)
            .build())
    }
}

fn image(record: &ImageRecord) -> Image {
    Image::builder()
        .image_id(&record.id)
        .name(&record.name)
        .architecture(ArchitectureValues::from(record.architecture))
        .creation_date(&record.created)
        .deprecation_time(&record.deprecates)
        .owner_id(OWNER)
        .image_owner_alias("amazon")
        .public(true)
        .state(ImageState::Available)
        .set_tags(Some(tag_list(&record.tags)))
        .build()
}

fn release_text(template: &str, release: usize) -> String {
    template
        .replace("{D}", RELEASES[release].0)
        .replace("{B}", BOTTLEROCKET_RELEASES[release])
}

/// `1.33` out of an SSM path, if the path names a version that exists.
fn kubernetes_version(path: &str) -> Option<String> {
    let version = path.split(['/', '-', '_']).find(|word| {
        word.strip_prefix("1.")
            .and_then(|minor| minor.parse().ok())
            .is_some_and(|minor: u32| (23..=40).contains(&minor))
    });
    version.map(ToOwned::to_owned)
}

fn lines(k: &str) -> Vec<ImageLine> {
    let mut lines = Vec::new();
    let minor: u32 = k
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse().ok())
        .unwrap_or_default();
    let eks = "/aws/service/eks/optimized-ami";
    for (arch, variants) in [
        ("x86_64", &["standard", "nvidia", "neuron"][..]),
        ("arm64", &["standard", "nvidia"][..]),
    ] {
        for variant in variants {
            let version = format!("amazon-eks-node-al2023-{arch}-{variant}-{k}-v{{D}}");
            lines.push(ImageLine {
                path: format!("{eks}/{k}/amazon-linux-2023/{arch}/{variant}/{{V}}/image_id"),
                latest: "recommended",
                name: version.clone(),
                version,
                architecture: arch,
            });
        }
        for flavour in ["", "-nvidia"] {
            lines.push(ImageLine {
                path: format!(
                    "/aws/service/bottlerocket/aws-k8s-{k}{flavour}/{arch}/{{V}}/image_id"
                ),
                latest: "latest",
                version: "{B}".to_owned(),
                name: format!("bottlerocket-aws-k8s-{k}{flavour}-{arch}-v{{B}}-d6c0b1a2"),
                architecture: arch,
            });
        }
    }
    // Amazon stopped publishing AL2 for EKS at 1.33.
    if minor < 33 {
        for (folder, stem, arch) in [
            ("amazon-linux-2", "amazon-eks-node", "x86_64"),
            ("amazon-linux-2-arm64", "amazon-eks-arm64-node", "arm64"),
            ("amazon-linux-2-gpu", "amazon-eks-gpu-node", "x86_64"),
        ] {
            let version = format!("{stem}-{k}-v{{D}}");
            lines.push(ImageLine {
                path: format!("{eks}/{k}/{folder}/{{V}}/image_id"),
                latest: "recommended",
                name: version.clone(),
                version,
                architecture: arch,
            });
        }
    }
    for year in ["2019", "2022", "2025"]
        .into_iter()
        .filter(|year| *year != "2025" || minor >= 35)
    {
        let name = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{k}");
        lines.push(ImageLine {
            path: format!("/aws/service/ami-windows-latest/{name}/{{V}}"),
            latest: "image_id",
            version: "image_id-{D}".to_owned(),
            name: format!("{name}-{{D}}"),
            architecture: "x86_64",
        });
    }
    lines
}
