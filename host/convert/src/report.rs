//! Report about everything that was not taken over as it was: one line for each object and field, with the way out.
//!
//! Wording of single lines is the business of who converts the field; here is their form, order and sum.

use std::fmt;

use serde::Serialize;

/// Fate of a field or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It has another form or place, and the same meaning unless the line says otherwise.
    Changed,
    /// The old object did not say it and meant it: an old default that is not v1's.
    Added,
    /// It means nothing any more, or was asked to be left aside.
    Dropped,
    /// Somebody must look or act before the objects do what the old ones did.
    ToDo,
    /// It meant something that v1 cannot say.
    Lost,
    /// No object came of it.
    LeftOut,
}

impl Fate {
    /// The word that a line begins with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Dropped => "dropped",
            Self::ToDo => "to do",
            Self::Lost => "lost",
            Self::LeftOut => "left out",
        }
    }

    /// Whether the result is less than what was given.
    const fn is_loss(self) -> bool {
        matches!(self, Self::Lost | Self::LeftOut)
    }
}

/// Where an object came from: its position in the input, by which lines are sorted, and its name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectOrigin {
    pub(crate) index: usize,
    pub(crate) label: String,
}

impl ObjectOrigin {
    /// A line about a field of the object; the empty field is the object itself.
    pub(crate) fn note(&self, fate: Fate, field: &str, what: impl Into<String>) -> ReportLine {
        ReportLine {
            index: self.index,
            fate,
            object: self.label.clone(),
            field: field.to_owned(),
            what: what.into(),
            way_out: None,
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportLine {
    #[serde(skip)]
    index: usize,
    /// Fate of the field or the object.
    pub fate: Fate,
    /// Kind and name, or the place in the input of what could not be read.
    pub object: String,
    /// Path of the field; empty for the whole object.
    pub field: String,
    /// Explanation of its fate, in words.
    pub what: String,
    /// Advice what to do about it, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way_out: Option<String>,
}

impl ReportLine {
    /// The line with what to do about it.
    pub(crate) fn or(mut self, way_out: impl Into<String>) -> Self {
        self.way_out = Some(way_out.into());
        self
    }
}

impl fmt::Display for ReportLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fate.as_str(), self.object)?;
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.what)?;
        match &self.way_out {
            Some(way_out) => write!(f, "; {way_out}"),
            None => Ok(()),
        }
    }
}

/// All lines, in the order of the input.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(transparent)]
pub struct ConversionReport {
    entries: Vec<ReportLine>,
}

impl ConversionReport {
    pub(crate) fn push(&mut self, entry: ReportLine) {
        self.entries.push(entry);
    }

    /// Brings the lines of each object together, in the order of the input.
    pub(crate) fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.index);
    }

    /// Lines of the report; in the order of the input once they are sorted.
    pub fn entries(&self) -> &[ReportLine] {
        &self.entries
    }

    /// How many lines are of this fate.
    pub fn count(&self, fate: Fate) -> usize {
        self.entries.iter().filter(|it| it.fate == fate).count()
    }

    /// Whether no object and nothing that had a meaning was left out.
    pub fn is_complete(&self) -> bool {
        !self.entries.iter().any(|entry| entry.fate.is_loss())
    }
}

impl fmt::Display for ConversionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}
