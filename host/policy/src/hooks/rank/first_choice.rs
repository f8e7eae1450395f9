//! First choice of a ranking: the row with the lowest score that nobody excluded.
//!
//! For what is told of policies: what is launched in the end is for the solver and the cloud to say.

use std::iter::Copied;
use std::ops::Range;
use std::slice::Iter;

use apis::CapacityType;
use either::Either;
use hooks::columns::{at, index, saturated, word};
use hooks::ranking::{ClaimView, RankRound, Ranking};

/// Rows of the table that a claim is about, in the order of its scores.
pub(crate) fn rows(claim: &ClaimView, table_rows: usize) -> RowIndices<'_> {
    if claim.candidates.is_empty() {
        Either::Left(0..saturated(table_rows))
    } else {
        Either::Right(claim.candidates.iter().copied())
    }
}

pub(crate) type RowIndices<'a> = Either<Range<u32>, Copied<Iter<'a, u32>>>;

/// The row with the lowest score that is in neither list of exclusions.
pub(super) fn choice(
    round: &RankRound,
    claim: &ClaimView,
    scores: &[f64],
    excluded: [&[(u32, String)]; 2],
) -> Option<u32> {
    let mut is_out = Vec::new();
    for (position, _) in excluded.into_iter().flatten() {
        is_out.resize(scores.len(), false);
        let position = usize::try_from(*position).unwrap_or(usize::MAX);
        if let Some(is_out) = is_out.get_mut(position) {
            *is_out = true;
        }
    }
    // Costs are finite, so that they order as numbers.
    let mut best = None;
    for (position, &score) in scores.iter().enumerate() {
        if best.is_none_or(|(_, least)| score < least) && is_out.get(position) != Some(&true) {
            best = Some((position, score));
        }
    }
    let (best, _) = best?;
    rows(claim, round.table.price.len()).nth(best)
}

pub(super) fn named(round: &RankRound, row: Option<u32>) -> String {
    let Some(row) = row else {
        return "none".to_owned();
    };
    let table = &round.table;
    let name = |column: &[u32]| {
        let symbol = column.get(index(row));
        symbol.map_or("", |it| word(&table.symbols, *it))
    };
    format!(
        "{} {} {}",
        name(&table.instance_type),
        name(&table.zone),
        CapacityType::word_of(at(&table.capacity_type, row))
    )
}

/// The row that a ranking would launch.
pub(crate) fn first_choice(round: &RankRound, claim: &ClaimView, ranking: &Ranking) -> Option<u32> {
    choice(round, claim, &ranking.scores, [&ranking.excluded, &[]])
}
