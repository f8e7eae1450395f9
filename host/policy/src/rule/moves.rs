//! Which kinds of moves a consolidation rule judges, read from `data.applies-to`.

use hooks::disruption::MoveKind;

use super::facts::kind_word;

/// All kinds of moves.
const KINDS: [MoveKind; 6] = [
    MoveKind::Delete,
    MoveKind::Replace,
    MoveKind::Empty,
    MoveKind::Drift,
    MoveKind::StaticDrift,
    MoveKind::Expire,
];

/// The kinds of moves that a consolidation rule judges. The default judges the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moves(Vec<MoveKind>);

impl Default for Moves {
    /// Moves that save money: who writes a rule about savings means those, and neither a new image nor an empty node.
    fn default() -> Self {
        Self(vec![MoveKind::Delete, MoveKind::Replace])
    }
}

impl Moves {
    /// Reads the words of `data.applies-to`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text
            .split([',', ' ', '\n', '\t'])
            .filter(|word| !word.is_empty())
            .collect();
        match words.as_slice() {
            [] => return Ok(Self::default()),
            // Moves before the end of a node's life are proposed to those that ask for them by name.
            ["all"] => {
                let kinds = KINDS.into_iter().filter(|it| *it != MoveKind::Expire);
                return Ok(Self(kinds.collect()));
            }
            _ => {}
        }
        let kinds: Result<Vec<MoveKind>, String> = words
            .into_iter()
            .map(|word| {
                let mut kinds = KINDS.into_iter();
                kinds.find(|kind| kind_word(*kind) == word).ok_or_else(|| {
                    let known = KINDS.map(kind_word).join(", ");
                    format!("data.applies-to: {word:?} is no kind of move; use {known}, or all")
                })
            })
            .collect();
        kinds.map(Self)
    }

    pub(super) fn contains(&self, kind: MoveKind) -> bool {
        self.0.contains(&kind)
    }
}
