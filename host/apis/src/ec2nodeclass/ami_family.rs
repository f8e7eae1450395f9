//! Families of machine images, and the alias that names a family and a version.
//!
//! Which parameter an alias stands for is the aws crate's business. Answers to the AWS provider's
//! `pkg/apis/v1/ec2nodeclass.go` (Alias, AMIFamily).

use super::Ec2NodeClass;
use crate::schema;

schema::words! {
    /// Family of machine images: decides the form of the user data and the default volumes.
    AmiFamily {
        /// Amazon Linux 2.
        Al2 = "AL2",
        /// Amazon Linux 2023.
        Al2023 = "AL2023",
        /// Bottlerocket.
        Bottlerocket = "Bottlerocket",
        /// Any image; user data goes through unchanged.
        Custom = "Custom",
        /// Windows Server 2019.
        Windows2019 = "Windows2019",
        /// Windows Server 2022.
        Windows2022 = "Windows2022",
        /// Windows Server 2025.
        Windows2025 = "Windows2025",
    }
}

impl AmiFamily {
    /// Whether its kubelet is told `podsPerCore`. Answers to `FeatureFlags.PodsPerCoreEnabled` of Karpenter's
    /// `pkg/providers/amifamily/resolver.go`.
    pub fn takes_pods_per_core(self) -> bool {
        self != Self::Bottlerocket
    }

    /// Whether its nodes are told more than the first entry of `clusterDNS`.
    pub fn takes_many_cluster_dns(self) -> bool {
        matches!(self, Self::Al2023 | Self::Custom)
    }
}

/// Family and version of images that AWS publishes, such as `al2023@latest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Family of the images.
    pub family: AmiFamily,
    /// Version, or `latest`.
    pub version: String,
}

impl Alias {
    /// The version that moves with the newest image.
    const LATEST: &'static str = "latest";

    /// Reads `family@version`; nothing when malformed or when the family has no alias.
    pub fn parse(text: &str) -> Option<Self> {
        let (family, version) = text.split_once('@')?;
        if version.is_empty() || version.contains('@') {
            return None;
        }
        let family = AmiFamily::ALL.iter().copied().find(|candidate| {
            *candidate != AmiFamily::Custom && candidate.as_str().to_lowercase() == family
        })?;
        Some(Self {
            family,
            version: version.to_owned(),
        })
    }

    /// Whether the version moves with the newest image.
    pub fn is_latest(&self) -> bool {
        self.version == Self::LATEST
    }
}

impl Ec2NodeClass {
    /// The alias among the AMI selector terms, if there is one.
    pub fn alias(&self) -> Option<Alias> {
        self.spec
            .ami_selector_terms
            .iter()
            .find_map(|term| Alias::parse(term.alias.as_deref()?))
    }

    /// The family given, else that of the alias, else Custom.
    pub fn ami_family(&self) -> AmiFamily {
        self.spec
            .ami_family
            .or_else(|| self.alias().map(|alias| alias.family))
            .unwrap_or(AmiFamily::Custom)
    }
}
