//! Options of a write. Answers to `CreateOptions`, `UpdateOptions` and `PatchOptions` of `meta/v1`.

/// Options of a write besides its object.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// Which part of the object an update means.
    pub part: ObjectPart,
    /// Go through everything and store nothing.
    pub dry_run: bool,
    /// Who writes; named writers get their fields recorded.
    pub field_manager: Option<String>,
    /// The write is an apply, which does its own bookkeeping of fields.
    pub is_apply: bool,
    /// An apply takes fields over from other managers.
    pub takes_over: bool,
}

/// The part of an object an update means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectPart {
    /// Everything but status, where status is a subresource.
    #[default]
    Main,
    /// The status alone.
    Status,
    /// Everything, without the split: the server's own bookkeeping.
    Whole,
}
