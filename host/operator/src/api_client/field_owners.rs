//! Leaves out of answers which field of an object is whose (`metadata.managedFields[].fieldsV1`): a third of most
//! objects, which nobody here reads and everybody would parse, into a tree of small maps at that.
//!
//! Works on the text as it comes, wherever it is cut, so that a watch goes through without being held up. The API
//! server writes JSON without blanks; in text that has some nothing is found, and it goes through as it is.
//! Format: `FieldsV1` of <https://kubernetes.io/docs/reference/using-api/server-side-apply/>.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use memchr::{memchr2, memchr3};

/// What stands before the tree, up to its bracket. It cannot stand within a string, where quotes have a backslash.
const BEFORE: &[u8] = b",\"fieldsV1\":{";
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEFORE));
/// What stands in its place.
const NOTHING: &[u8] = b"null";

/// One answer, of which pieces are told in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldOwners {
    place: Place,
}

/// Where the last piece ended.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Outside of a tree, and so far into what may be the text before one.
    Outside { matched: usize },
    /// Within a tree, under so many brackets.
    Inside { depth: u32, quoted: Quoted },
}

/// Whether brackets count.
#[derive(Debug, Clone, Copy)]
enum Quoted {
    No,
    Yes,
    /// The next byte belongs to its string, whatever it is.
    Escaped,
}

impl Default for Place {
    fn default() -> Self {
        Self::Outside { matched: 0 }
    }
}

impl FieldOwners {
    /// The next piece, without what lies within a tree.
    pub(super) fn leave_out(&mut self, piece: Bytes) -> Bytes {
        let is_outside = matches!(self.place, Place::Outside { matched: 0 });
        if is_outside && FINDER.find(&piece).is_none() {
            self.place = Place::Outside {
                matched: begun(&piece),
            };
            return piece;
        }
        let mut kept = Vec::with_capacity(piece.len());
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let taken;
            (taken, self.place) = match self.place {
                Place::Inside { depth, quoted } => skip(rest, depth, quoted),
                Place::Outside { matched: 0 } => search(&mut kept, rest),
                Place::Outside { matched } => go_on(&mut kept, rest, matched),
            };
            rest = &rest[taken..];
        }
        kept.into()
    }
}

/// Looks for the text before a tree.
fn search(kept: &mut Vec<u8>, rest: &[u8]) -> (usize, Place) {
    if let Some(at) = FINDER.find(rest) {
        return keep(kept, rest, at + BEFORE.len());
    }
    kept.extend_from_slice(rest);
    let matched = begun(rest);
    (rest.len(), Place::Outside { matched })
}

/// Keeps what comes up to a tree, whose bracket is the last of these bytes.
fn keep(kept: &mut Vec<u8>, rest: &[u8], length: usize) -> (usize, Place) {
    kept.extend_from_slice(&rest[..length - 1]);
    kept.extend_from_slice(NOTHING);
    let quoted = Quoted::No;
    (length, Place::Inside { depth: 1, quoted })
}

/// Looks whether what the last piece ended with goes on as the text before a tree.
fn go_on(kept: &mut Vec<u8>, rest: &[u8], matched: usize) -> (usize, Place) {
    let wanted = &BEFORE[matched..];
    let same = wanted.iter().zip(rest).take_while(|(a, b)| a == b).count();
    if same == wanted.len() {
        return keep(kept, rest, same);
    }
    kept.extend_from_slice(&rest[..same]);
    let matched = if same == rest.len() {
        matched + same
    } else {
        // The text begins with its only comma, so that none can begin within it.
        0
    };
    (same, Place::Outside { matched })
}

/// How much of the text before a tree the piece ends with.
fn begun(piece: &[u8]) -> usize {
    let longest = piece.len().min(BEFORE.len() - 1);
    let lengths = (1..=longest).rev();
    let mut lengths = lengths.filter(|length| piece.ends_with(&BEFORE[..*length]));
    lengths.next().unwrap_or_default()
}

/// Goes on to the end of the tree, or of what there is of it.
fn skip(rest: &[u8], mut depth: u32, mut quoted: Quoted) -> (usize, Place) {
    let mut taken = 0;
    while depth > 0 {
        let left = &rest[taken..];
        let next = match quoted {
            Quoted::No => memchr3(b'"', b'{', b'}', left),
            Quoted::Yes => memchr2(b'"', b'\\', left),
            Quoted::Escaped => (!left.is_empty()).then_some(0),
        };
        let Some(next) = next else {
            return (rest.len(), Place::Inside { depth, quoted });
        };
        taken += next + 1;
        match (quoted, left[next]) {
            (Quoted::No, b'{') => depth += 1,
            (Quoted::No, b'}') => depth -= 1,
            (Quoted::No | Quoted::Escaped, _) => quoted = Quoted::Yes,
            (Quoted::Yes, b'"') => quoted = Quoted::No,
            (Quoted::Yes, _) => quoted = Quoted::Escaped,
        }
    }
    (taken, Place::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: &str = r#"{"a":",\"fieldsV1\":{","managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"k:{\"type\":\"Re}ady\\\"}":{".":{}}}},"subresource":"status"},{"manager":"n","fieldsV1":{}}],"b":{"fieldsV1":1,"c":[,"fieldsV2":{}]}}"#;
    const WITHOUT: &str = r#"{"a":",\"fieldsV1\":{","managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":null,"subresource":"status"},{"manager":"n","fieldsV1":null}],"b":{"fieldsV1":1,"c":[,"fieldsV2":{}]}}"#;

    fn without(pieces: &[&str]) -> String {
        let mut owners = FieldOwners::default();
        let pieces = pieces
            .iter()
            .map(|it| Bytes::copy_from_slice(it.as_bytes()));
        let kept: Vec<u8> = pieces.flat_map(|it| owners.leave_out(it)).collect();
        String::from_utf8(kept).unwrap()
    }

    #[test]
    fn trees_are_left_out_and_all_else_is_kept_wherever_the_text_is_cut() {
        assert_eq!(without(&[OBJECT]), WITHOUT);
        for first in 0..=OBJECT.len() {
            for second in first..=OBJECT.len() {
                let (a, rest) = OBJECT.split_at(first);
                let (b, c) = rest.split_at(second - first);
                assert_eq!(without(&[a, b, c]), WITHOUT, "cut at {first} and {second}");
            }
        }
        let bytes: Vec<&str> = OBJECT.split("").collect();
        assert_eq!(without(&bytes), WITHOUT);
    }

    #[test]
    fn what_has_no_tree_is_not_copied() {
        let piece = Bytes::from_static(b"{\"kind\":\"Status\",");
        let kept = FieldOwners::default().leave_out(piece.clone());
        assert_eq!(kept.as_ptr(), piece.as_ptr());
    }
}
