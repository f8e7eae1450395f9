//! The SSM parameters behind an alias.
//!
//! Pure. Answers to the `DescribeImageQuery` functions of Karpenter's `pkg/providers/amifamily`.

use apis::ec2nodeclass::Alias;
use apis::{AmiFamily, labels};
use scheduling::requirements::{Operator, Requirement, Requirements};

use crate::ami_family::windows_build;

/// A parameter that holds an image id, and what that image is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    /// Name of the parameter at SSM.
    pub(super) path: String,
    /// Each of which alone is enough for an instance type.
    pub(super) variants: Vec<Requirements>,
}

/// Why the cluster's version has no image of the alias, if so.
pub(crate) fn unsupported_alias(alias: &Alias, kubernetes_minor: u32) -> Option<&'static str> {
    match alias.family {
        AmiFamily::Al2 if kubernetes_minor >= 33 => Some("AL2 images end with Kubernetes 1.32"),
        AmiFamily::Windows2025 if kubernetes_minor < 35 => {
            Some("Windows 2025 images start with Kubernetes 1.35")
        }
        _ => None,
    }
}

/// The parameters of an alias for a Kubernetes version.
pub(super) fn parameters(alias: &Alias, kubernetes: &str) -> Vec<Parameter> {
    match alias.family {
        AmiFamily::Al2 => al2(alias, kubernetes),
        AmiFamily::Al2023 => al2023(alias, kubernetes),
        AmiFamily::Bottlerocket => bottlerocket(alias, kubernetes),
        AmiFamily::Windows2019 => windows("2019", alias.family, kubernetes),
        AmiFamily::Windows2022 => windows("2022", alias.family, kubernetes),
        AmiFamily::Windows2025 => windows("2025", alias.family, kubernetes),
        AmiFamily::Custom => Vec::new(),
    }
}

fn al2(alias: &Alias, kubernetes: &str) -> Vec<Parameter> {
    let parameter = |suffix: &str, infix: &str, variants| {
        let version = if alias.is_latest() {
            "recommended".to_owned()
        } else {
            format!("amazon-eks{infix}-node-{kubernetes}-{}", alias.version)
        };
        let root = format!("/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2{suffix}");
        Parameter {
            path: format!("{root}/{version}/image_id"),
            variants,
        }
    };
    vec![
        parameter("", "", vec![standard()]),
        parameter("-arm64", "-arm64", vec![standard()]),
        parameter("-gpu", "-gpu", vec![neuron(), nvidia()]),
    ]
}

fn al2023(alias: &Alias, kubernetes: &str) -> Vec<Parameter> {
    let parameter = |arch: &str, variant: &str, requirements| {
        let version = if alias.is_latest() {
            "recommended".to_owned()
        } else {
            format!(
                "amazon-eks-node-al2023-{arch}-{variant}-{kubernetes}-{}",
                alias.version
            )
        };
        let root = format!(
            "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{arch}/{variant}"
        );
        Parameter {
            path: format!("{root}/{version}/image_id"),
            variants: vec![requirements],
        }
    };
    vec![
        parameter("x86_64", "standard", standard()),
        parameter("x86_64", "nvidia", nvidia()),
        parameter("x86_64", "neuron", neuron()),
        parameter("arm64", "standard", standard()),
        parameter("arm64", "nvidia", nvidia()),
    ]
}

fn bottlerocket(alias: &Alias, kubernetes: &str) -> Vec<Parameter> {
    let version = alias.version.trim_start_matches('v');
    let parameter = |flavour: &str, arch: &str, variants| Parameter {
        path: format!(
            "/aws/service/bottlerocket/aws-k8s-{kubernetes}{flavour}/{arch}/{version}/image_id"
        ),
        variants,
    };
    vec![
        parameter("", "x86_64", vec![standard(), neuron()]),
        parameter("", "arm64", vec![standard()]),
        parameter("-nvidia", "x86_64", vec![nvidia()]),
        parameter("-nvidia", "arm64", vec![nvidia()]),
    ]
}

fn windows(year: &str, family: AmiFamily, kubernetes: &str) -> Vec<Parameter> {
    let image = format!("Windows_Server-{year}-English-Core-EKS_Optimized-{kubernetes}");
    let mut requirements = Requirements::new();
    requirements.add(Requirement::new(
        labels::OS,
        Operator::In,
        [labels::OS_WINDOWS],
    ));
    requirements.add(Requirement::new(
        labels::WINDOWS_BUILD,
        Operator::In,
        windows_build(family),
    ));
    vec![Parameter {
        path: format!("/aws/service/ami-windows-latest/{image}/image_id"),
        variants: vec![requirements],
    }]
}

fn one(key: &str, operator: Operator) -> Requirements {
    std::iter::once(Requirement::new(key, operator, [])).collect()
}

/// For types without GPU or accelerator.
fn standard() -> Requirements {
    let mut requirements = one(labels::INSTANCE_ACCELERATOR_COUNT, Operator::DoesNotExist);
    requirements.add(Requirement::new(
        labels::INSTANCE_GPU_COUNT,
        Operator::DoesNotExist,
        [],
    ));
    requirements
}

fn nvidia() -> Requirements {
    one(labels::INSTANCE_GPU_COUNT, Operator::Exists)
}

fn neuron() -> Requirements {
    one(labels::INSTANCE_ACCELERATOR_COUNT, Operator::Exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_lead_to_published_parameters() {
        let cases = [
            (
                "al2023@latest",
                "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id",
            ),
            (
                "al2023@v20250601",
                "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/\
                 amazon-eks-node-al2023-x86_64-standard-1.33-v20250601/image_id",
            ),
            (
                "al2@latest",
                "/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id",
            ),
            (
                "bottlerocket@v1.40.0",
                "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/1.40.0/image_id",
            ),
            (
                "windows2022@latest",
                "/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.33/image_id",
            ),
        ];
        for (alias, want) in cases {
            let alias = Alias::parse(alias).unwrap();
            assert_eq!(parameters(&alias, "1.33")[0].path, want);
        }
    }

    #[test]
    fn aliases_end_and_start_with_kubernetes_versions() {
        let cases = [
            ("al2@latest", 32, false),
            ("al2@latest", 33, true),
            ("windows2025@latest", 34, true),
        ];
        for (alias, minor, want) in cases {
            assert_eq!(
                unsupported_alias(&Alias::parse(alias).unwrap(), minor).is_some(),
                want,
                "{alias}"
            );
        }
    }
}
