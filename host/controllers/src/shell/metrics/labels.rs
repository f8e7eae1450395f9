//! Labels of series, and how words of the API are written in them.
//!
//! Each label has a type of its own, and a row of the table of metrics says which its series bear, in which order: one
//! that is forgotten, or another's, does not compile. Names and words are byte for byte Karpenter's, as dashboards
//! select by them.

use std::fmt::{self, Debug};
use std::hash::Hash;

use apis::DisruptionReason;
use disruption::Method;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

/// Labels with their values: none, a label, or a tuple of labels.
pub trait WrittenLabels {
    /// Writes them.
    fn encode_labels(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result;
}

/// What tells a series from the others of its metric, kept for as long as it is counted.
pub trait SeriesLabels:
    WrittenLabels + Clone + Debug + Eq + Ord + Hash + Send + Sync + 'static
{
    /// The same labels of a series that is made at the scrape, whose values are borrowed of the model.
    type Scraped<'a>: WrittenLabels;

    /// Adds their names, in the order in which they are written.
    fn add_names(names: &mut Vec<&'static str>);
}

/// The series of a metric that bears these labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series<L>(pub L);

impl<L: WrittenLabels> EncodeLabelSet for Series<L> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.encode_labels(encoder)
    }
}

/// One row a label: its type, that of its values where they are kept (words of the code, or of a cluster), and its name
/// in metrics. What no counted metric has, only gauges that are made at the scrape, nobody outside needs.
macro_rules! labels {
    ($($visibility:vis $label:ident($value:ty) = $name:literal;)*) => {$(
        #[doc = concat!("The label `", $name, "`, with its value.")]
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $label<V = $value>(pub V);

        impl<V: AsRef<str>> WrittenLabels for $label<V> {
            fn encode_labels(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
                EncodeLabel::encode(&($name, self.0.as_ref()), encoder.encode_label())
            }
        }

        impl SeriesLabels for $label {
            type Scraped<'a> = $label<&'a str>;

            fn add_names(names: &mut Vec<&'static str>) {
                names.push($name);
            }
        }
    )*};
}

labels! {
    pub(crate) ArchitectureLabel(String) = "arch";
    pub CapacityTypeLabel(String) = "capacity_type";
    pub CategoryLabel(&'static str) = "category";
    pub CodeLabel(String) = "code";
    pub ConditionLabel(String) = "condition";
    pub ConsolidationPolicyLabel(String) = "consolidation_policy";
    pub ConsolidationTypeLabel(&'static str) = "consolidation_type";
    pub ControllerLabel(&'static str) = "controller";
    pub DecisionLabel(&'static str) = "decision";
    pub DynamicResourcesLabel(String) = "dynamic_resources";
    pub ErrorLabel(&'static str) = "error";
    pub ImageIdLabel(String) = "image_id";
    pub(crate) InstanceTypeLabel(String) = "instance_type";
    pub(crate) ManagedLabel(&'static str) = "managed";
    pub MessageTypeLabel(&'static str) = "message_type";
    pub MethodLabel(&'static str) = "method";
    pub MinValuesRelaxedLabel(String) = "min_values_relaxed";
    pub(crate) NamespaceLabel(String) = "namespace";
    pub(crate) NodeNameLabel(String) = "node";
    pub NodePoolLabel(String) = "nodepool";
    pub(crate) OwnerLabel(String) = "owner";
    pub(crate) PhaseLabel(&'static str) = "phase";
    pub(crate) PodNameLabel(String) = "name";
    pub PolicyLabel(String) = "policy";
    pub(crate) PriorityLabel(&'static str) = "priority";
    pub ProviderLabel(&'static str) = "provider";
    pub QueueLabel(&'static str) = "name";
    pub(crate) ReadyLabel(&'static str) = "ready";
    pub ReasonLabel(String) = "reason";
    pub(crate) ResourceTypeLabel(String) = "resource_type";
    pub ResultLabel(&'static str) = "result";
    pub(crate) ScheduledLabel(&'static str) = "scheduled";
    pub(crate) SchedulingIdLabel(String) = "scheduling_id";
    pub TerminateFirstReasonLabel(&'static str) = "terminate_first_reason";
    pub TerminationModeLabel(&'static str) = "termination_mode";
    pub ZoneLabel(String) = "zone";
}

/// Tuples of labels.
macro_rules! tuples {
    ($(($($label:ident),*);)*) => {$(
        impl<$($label: SeriesLabels),*> SeriesLabels for ($($label,)*) {
            type Scraped<'a> = ($($label::Scraped<'a>,)*);

            fn add_names(names: &mut Vec<&'static str>) {
                $($label::add_names(names);)*
            }
        }

        impl<$($label: WrittenLabels),*> WrittenLabels for ($($label,)*) {
            #[expect(non_snake_case, reason = "each label is named as its type")]
            fn encode_labels(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
                let ($($label,)*) = self;
                $($label.encode_labels(encoder)?;)*
                Ok(())
            }
        }
    )*};
}

tuples! {
    (A, B);
    (A, B, C);
    (A, B, C, D);
    (A, B, C, D, E);
}

impl SeriesLabels for () {
    type Scraped<'a> = ();

    fn add_names(_: &mut Vec<&'static str>) {}
}

impl WrittenLabels for () {
    fn encode_labels(&self, _: &mut LabelSetEncoder<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Label of what happens to nodes for a reason of disruption.
pub(crate) fn reason_label(reason: DisruptionReason) -> ReasonLabel {
    ReasonLabel(reason_word(reason))
}

/// Label of the kind of consolidation that a method is; empty of one that is none.
pub(crate) fn consolidation_type_label(method: Method) -> ConsolidationTypeLabel {
    ConsolidationTypeLabel(method.consolidation_type())
}

/// A reason of disruption as metrics and logs of claims call it.
pub(crate) fn reason_word(reason: DisruptionReason) -> String {
    snake_case(reason.as_str())
}

/// Words of the API as label values are written.
pub(crate) fn snake_case(words: &str) -> String {
    let mut snake = String::new();
    for (position, letter) in words.char_indices() {
        if letter.is_uppercase() && position > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The lower-cased name with underscores.
pub(crate) fn resource_type(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn labels_are_snake_case() {
        let cases = [
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Drifted", "drifted"),
        ];
        for (words, snake) in cases {
            assert_eq!(snake_case(words), snake);
        }
    }

    #[test]
    fn labels_are_written_in_the_order_of_their_row() {
        let created = Family::<Series<(NodePoolLabel, ZoneLabel)>, Counter>::default();
        let deleted = Family::<Series<()>, Counter>::default();
        let labels = (NodePoolLabel("web".to_owned()), ZoneLabel("a".to_owned()));
        created.get_or_create(&Series(labels)).inc();
        deleted.get_or_create(&Series(())).inc();
        let mut registry = Registry::default();
        registry.register("created", "Created", created);
        registry.register("deleted", "Deleted", deleted);
        let mut told = String::new();
        text::encode(&mut told, &registry).unwrap();
        assert!(
            told.contains("created_total{nodepool=\"web\",zone=\"a\"} 1\n"),
            "{told}"
        );
        assert!(told.contains("deleted_total{} 1\n"), "{told}");
    }
}
