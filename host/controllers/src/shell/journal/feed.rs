//! The last decisions with their reasons, as lines a person can read: the live view and `mortise why` show them.
//!
//! It is bounded and forgets the oldest; the durable record is the ledger.

use std::collections::VecDeque;
use std::sync::Mutex;

use jiff::Timestamp;
use locks::lock;

/// How many lines are kept.
const LINES_MAX: usize = 512;

/// One decision in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedLine {
    /// Grows by one with each line, so a reader knows what it has seen.
    pub number: u64,
    /// When it was taken.
    pub at: Timestamp,
    /// The decision and its reason, for people.
    pub text: String,
}

/// A bounded list of the latest decisions.
#[derive(Debug, Default)]
pub struct DecisionFeed {
    inner: Mutex<(u64, VecDeque<FeedLine>)>,
}

impl DecisionFeed {
    /// Adds a line, and drops the oldest where the feed is full.
    pub fn write(&self, at: Timestamp, text: String) {
        let mut inner = lock(&self.inner);
        inner.0 += 1;
        let number = inner.0;
        if inner.1.len() == LINES_MAX {
            inner.1.pop_front();
        }
        inner.1.push_back(FeedLine { number, at, text });
    }

    /// The lines after `number`, oldest first; 0 asks for all that are kept.
    pub fn since(&self, number: u64) -> Vec<FeedLine> {
        let inner = lock(&self.inner);
        inner
            .1
            .iter()
            .filter(|line| line.number > number)
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_are_forgotten_and_numbers_go_on() {
        let feed = DecisionFeed::default();
        for number in 0..LINES_MAX + 3 {
            feed.write(Timestamp::UNIX_EPOCH, number.to_string());
        }
        let lines = feed.since(0);
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines[0].text, "3");
        let last = lines[LINES_MAX - 1].number;
        assert!(feed.since(last).is_empty());
        assert_eq!(feed.since(last - 2).len(), 2);
    }
}
