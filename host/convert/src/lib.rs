//! Objects of older Karpenters and groups of Cluster Autoscaler as objects of v1, with a report of everything that was
//! changed or left out; and what a switch to Mortise would meet in a cluster.
//!
//! A function from documents to documents: opens no files, asks no cluster, knows no time. Answers to the conversions
//! of Karpenter 0.32 to 1.0 (`pkg/apis/v1/*_conversion.go`), which went from one version to the next.

mod ami;
mod aws_node_template;
pub mod doctor;
mod documents;
mod ec2_node_class;
mod fields;
mod group;
mod identity;
mod kind;
mod kubelet;
mod metadata;
mod node_claim;
mod node_pool;
mod object_name;
mod provisioner;
mod report;
mod requirements;
mod schema;
mod selectors;
mod settings;
mod settle;
mod workload;

use serde_json::{Map, Value};

pub use documents::{ConversionInput, Source, SourcePlace, Unread};
pub use report::{ConversionReport, Fate, ReportLine};

use kind::SourceKind;
use report::ObjectOrigin;
use settings::GlobalSettings;

/// Answers of the caller to what the old objects do not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversionOptions {
    /// Name of the cluster, by which subnets and security groups are found where nothing else says them.
    pub cluster_name: Option<String>,
    /// IAM role of nodes whose class has neither a role nor an instance profile.
    pub role: Option<String>,
    /// Instance profile of such nodes, where no role is given.
    pub instance_profile: Option<String>,
    /// Images of groups whose answer does not tell them, such as `al2023@latest`.
    pub ami_alias: Option<String>,
    /// Whether Machines and NodeClaims are converted, too: applied to a cluster, each launches an instance.
    pub node_claims: bool,
}

/// Result of a conversion.
#[derive(Debug, Clone, Default)]
pub struct Conversion {
    /// Objects of v1: classes, pools, claims, each by name.
    pub objects: Vec<Value>,
    /// Values for the chart, of the settings that stood in ConfigMaps; null without any.
    pub values: Value,
    /// Report about everything that was not taken over as it was.
    pub report: ConversionReport,
}

/// One object that was made.
#[derive(Debug, Clone)]
struct ConvertedObject {
    origin: ObjectOrigin,
    /// Of objects of one name the newest generation wins.
    generation: u8,
    object: Value,
}

impl ConvertedObject {
    fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }
}

/// State while the objects are gone through.
#[derive(Debug)]
struct Converter<'a> {
    options: &'a ConversionOptions,
    settings: GlobalSettings,
    /// Names of classes that the input has as objects of their own.
    class_names: Vec<String>,
    made: Vec<ConvertedObject>,
    /// Kubelet configurations that pools had, by the index of their origin.
    kubelets: Vec<(usize, Value)>,
    report: ConversionReport,
}

/// Converts what can be converted. `refusal` says why a cluster would not take an object, if so.
pub fn convert(
    input: &ConversionInput,
    options: &ConversionOptions,
    refusal: &dyn Fn(&Value) -> Option<String>,
) -> Conversion {
    let mut work = Converter {
        options,
        settings: GlobalSettings::default(),
        class_names: class_names(input),
        made: Vec::new(),
        kubelets: Vec::new(),
        report: ConversionReport::default(),
    };
    let known: Vec<(SourceKind, ObjectOrigin, &Value)> = input
        .sources
        .iter()
        .enumerate()
        .map(|(index, source)| {
            let label = kind::label(&source.object);
            (
                SourceKind::of(&source.object),
                ObjectOrigin { index, label },
                &source.object,
            )
        })
        .collect();
    // What holds for all objects comes first, wherever it stands.
    for (kind, origin, object) in &known {
        if *kind == SourceKind::GlobalSettings {
            settings::read(&mut work, origin, object);
        }
    }
    for (kind, origin, object) in &known {
        convert_object(&mut work, *kind, origin, object);
    }
    settle::collisions(&mut work);
    kubelet::settle(&mut work);
    settle::unknown_fields(&mut work);
    settle::refused(&mut work, refusal);
    settle::references(&mut work);
    finish(work, input)
}

fn convert_object(
    work: &mut Converter<'_>,
    kind: SourceKind,
    origin: &ObjectOrigin,
    object: &Value,
) {
    match kind {
        SourceKind::GlobalSettings => {}
        SourceKind::Provisioner(age) => provisioner::convert(work, origin, object, age),
        SourceKind::AwsNodeTemplate => aws_node_template::convert(work, origin, object),
        SourceKind::NodePoolBeta => node_pool::convert(work, origin, object),
        SourceKind::Ec2NodeClassBeta => ec2_node_class::convert(work, origin, object),
        SourceKind::Machine => node_claim::machine(work, origin, object),
        SourceKind::NodeClaimBeta => node_claim::beta(work, origin, object),
        SourceKind::NodeClaim => node_claim::present(work, origin, object),
        SourceKind::NodePool | SourceKind::Ec2NodeClass | SourceKind::NodeOverlay => {
            let mut object = object.clone();
            metadata::clean(work, origin, &mut object);
            work.make(origin, kind::PRESENT, object);
        }
        SourceKind::AutoScalingGroup => group::auto_scaling::convert(work, origin, object),
        SourceKind::Nodegroup => group::managed::convert(work, origin, object),
        SourceKind::Unknown => {
            let version = object["apiVersion"].as_str().unwrap_or_default();
            let what = format!("nothing is known of {version} of this kind");
            let way_out = "known are karpenter.sh/v1alpha3 to v1, karpenter.k8s.aws/v1alpha1 to v1; write it as one of these";
            work.report
                .push(origin.note(Fate::LeftOut, "", what).or(way_out));
        }
        SourceKind::Other => workload::look(work, origin, object),
    }
}

impl Converter<'_> {
    fn make(&mut self, origin: &ObjectOrigin, generation: u8, object: Value) {
        self.made.push(ConvertedObject {
            origin: origin.clone(),
            generation,
            object,
        });
    }
}

/// Documents that are no objects come last, then what no one asked to be converted.
fn finish(work: Converter<'_>, input: &ConversionInput) -> Conversion {
    let Converter {
        settings,
        mut made,
        mut report,
        ..
    } = work;
    for (at, unread) in input.unread.iter().enumerate() {
        let origin = ObjectOrigin {
            index: input.sources.len() + at,
            label: unread.place.to_string(),
        };
        report.push(origin.note(Fate::LeftOut, "", unread.message.clone()));
    }
    report.sort();
    made.sort_by(|a, b| (kind_order(a.kind()), a.name()).cmp(&(kind_order(b.kind()), b.name())));
    Conversion {
        objects: made.into_iter().map(|it| it.object).collect(),
        values: settings.into_values(),
        report,
    }
}

/// Classes before the pools that name them.
fn kind_order(kind: &str) -> usize {
    let order = ["EC2NodeClass", "NodePool", "NodeOverlay", "NodeClaim"];
    order
        .iter()
        .position(|it| *it == kind)
        .unwrap_or(order.len())
}

fn class_names(input: &ConversionInput) -> Vec<String> {
    let objects = input.sources.iter().map(|source| &source.object);
    objects
        .filter(|object| {
            matches!(
                SourceKind::of(object),
                SourceKind::AwsNodeTemplate
                    | SourceKind::Ec2NodeClassBeta
                    | SourceKind::Ec2NodeClass
            )
        })
        .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

/// Objects as one stream of YAML documents.
///
/// # Errors
/// None that is known; the writer's own, as text.
pub fn to_yaml(objects: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    for object in objects {
        let document = serde_saphyr::to_string(object).map_err(|error| error.to_string())?;
        text.push_str("---\n");
        text.push_str(document.trim_start_matches("---\n").trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// Objects as one `List`, for `-o json`.
pub fn to_list(objects: Vec<Value>) -> Value {
    let mut list = Map::new();
    list.insert("apiVersion".to_owned(), "v1".into());
    list.insert("kind".to_owned(), "List".into());
    list.insert("items".to_owned(), objects.into());
    Value::Object(list)
}
