//! From the text of a problem file to a [`FileWorld`].
//!
//! The text is read as a stream, an object at a time, so that a large file costs little more than its text. It is
//! passed over once before, for the moment as of which objects are taken in.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::FileWorld;
use crate::fault::FileError;
use crate::list::List;
use crate::loader::Loader;
use crate::typed::excerpt;

const NOW: &str = "now";

pub(super) fn read(text: &str) -> Result<FileWorld, FileError> {
    let mut loader = Loader::new();
    if let Some(now) = now_of(text) {
        loader.set_now(moment(&now)?);
    }
    let mut refusal = None;
    let mut json = serde_json::Deserializer::from_str(text);
    let visitor = FileVisitor {
        loader: &mut loader,
        refusal: &mut refusal,
    };
    let outcome = json.deserialize_any(visitor).and_then(|()| json.end());
    match (refusal, outcome) {
        (Some(refusal), _) => Err(refusal),
        (None, Err(error)) => Err(FileError::Syntax(error.to_string())),
        (None, Ok(())) => Ok(loader.finish()),
    }
}

pub(super) fn from_value(value: Value) -> Result<FileWorld, FileError> {
    let Value::Object(lists) = value else {
        return Err(form("$", "an object", &value));
    };
    let mut loader = Loader::new();
    if let Some(now) = lists.get(NOW) {
        loader.set_now(moment(now)?);
    }
    for (key, value) in lists {
        match (FileKey::of(&key)?, value) {
            (FileKey::List(list), Value::Array(objects)) => {
                for (index, object) in objects.into_iter().enumerate() {
                    loader.add_value(list, &|| format!("{key}[{index}]"), &object);
                }
            }
            // The moment was read before; a list that is null is none.
            (FileKey::Now, _) | (FileKey::List(_), Value::Null) => {}
            (FileKey::List(_), other) => return Err(form(&key, "a list", &other)),
        }
    }
    Ok(loader.finish())
}

/// The moment that a file tells, wherever it stands: objects are taken in as of then, so that it comes before them. A
/// text that cannot be read tells none; whoever reads it to the end finds out why.
fn now_of(text: &str) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_any(NowVisitor).ok().flatten()
}

/// Passes over everything but the moment.
struct NowVisitor;

impl<'de> Visitor<'de> for NowVisitor {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut now = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == NOW {
                now = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(now)
    }
}

enum FileKey {
    Now,
    List(List),
}

impl FileKey {
    fn of(key: &str) -> Result<Self, FileError> {
        if key == NOW {
            return Ok(Self::Now);
        }
        let lists = || List::ALL.into_iter().map(List::key);
        List::of_key(key)
            .map(Self::List)
            .ok_or_else(|| FileError::UnknownKey {
                key: key.to_owned(),
                expected: lists().chain([NOW]).collect(),
            })
    }
}

fn moment(value: &Value) -> Result<jiff::Timestamp, FileError> {
    let now = value.as_str().and_then(|it| it.parse().ok());
    now.ok_or_else(|| form(NOW, "a time such as 2026-01-01T00:00:00Z", value))
}

fn form(path: &str, expected: &str, found: &Value) -> FileError {
    FileError::Form {
        path: path.to_owned(),
        expected: expected.to_owned(),
        found: excerpt(found),
    }
}

/// Stops at the first thing that makes the file another kind of file, which it leaves in `refusal`.
struct FileVisitor<'a> {
    loader: &'a mut Loader,
    refusal: &'a mut Option<FileError>,
}

impl<'de> Visitor<'de> for FileVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a problem file, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let outcome = match FileKey::of(&key) {
                // Judged before anything else.
                Ok(FileKey::Now) => map.next_value::<IgnoredAny>().map(|_| Ok(()))?,
                Ok(FileKey::List(list)) => map.next_value_seed(ListSeed {
                    loader: self.loader,
                    list,
                })?,
                Err(error) => Err(error),
            };
            if let Err(refusal) = outcome {
                *self.refusal = Some(refusal);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

struct ListSeed<'a> {
    loader: &'a mut Loader,
    list: List,
}

impl ListSeed<'_> {
    fn refusal(&self, found: &str) -> Result<(), FileError> {
        Err(FileError::Form {
            path: self.list.key().to_owned(),
            expected: "a list".to_owned(),
            found: found.to_owned(),
        })
    }
}

impl<'de> DeserializeSeed<'de> for ListSeed<'_> {
    type Value = Result<(), FileError>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_> {
    type Value = Result<(), FileError>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the list {}", self.list.key())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Ok(()))
    }

    fn visit_bool<E>(self, found: bool) -> Result<Self::Value, E> {
        Ok(self.refusal(&found.to_string()))
    }

    fn visit_i64<E>(self, found: i64) -> Result<Self::Value, E> {
        Ok(self.refusal(&found.to_string()))
    }

    fn visit_u64<E>(self, found: u64) -> Result<Self::Value, E> {
        Ok(self.refusal(&found.to_string()))
    }

    fn visit_f64<E>(self, found: f64) -> Result<Self::Value, E> {
        Ok(self.refusal(&found.to_string()))
    }

    fn visit_str<E>(self, found: &str) -> Result<Self::Value, E> {
        Ok(self.refusal(&excerpt(&Value::from(found))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = serde_json::Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            found.insert(key, value);
        }
        Ok(self.refusal(&excerpt(&Value::Object(found))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let Self { loader, list } = self;
        let mut index = 0;
        while let Some(object) = sequence.next_element::<Value>()? {
            loader.add_value(list, &|| format!("{}[{index}]", list.key()), &object);
            index += 1;
        }
        Ok(Ok(()))
    }
}
