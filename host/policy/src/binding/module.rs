//! The component that a binding carries: in one piece, or in chunks over several ConfigMaps; unpacked.
//!
//! Whether the bytes are those that were meant, and a component at all, is looked at in `load.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;

use hooks::binding::BindingSource;
use hooks::binding::keys::PARTS_ANNOTATION;

use super::error::{BindingError, value};
use super::keys::{BINDING_BINARY_DATA, chunk_of};
use super::other_config_map::{is_name, other};

/// ConfigMaps over which a component may be spread.
const PARTS_MAX: usize = 32;

/// A component as it is carried.
pub(super) struct Packed<'a> {
    key: &'static str,
    bytes: Cow<'a, [u8]>,
    /// Whether it was put together from chunks, which only its digest shows to belong together.
    pub(super) is_split: bool,
}

/// Names of the ConfigMaps that hold further chunks.
pub(super) fn parts(source: &BindingSource) -> impl Iterator<Item = &str> {
    let annotation = source.annotations.get(PARTS_ANNOTATION);
    annotation
        .into_iter()
        .flat_map(|names| names.split(','))
        .map(str::trim)
}

/// Components in `binaryData` and the parts, one for each key that names one.
pub(super) fn packed(source: &BindingSource) -> Result<Vec<Packed<'_>>, BindingError> {
    let whole = BINDING_BINARY_DATA.into_iter().filter_map(|key| {
        source.binary_data.get(key).map(|bytes| Packed {
            key,
            bytes: Cow::Borrowed(bytes),
            is_split: false,
        })
    });
    let mut found: Vec<Packed<'_>> = whole.collect();
    for (key, chunks) in chunks(source)? {
        let wanted = chunks.keys().next_back().map_or(0, |last| last + 1);
        if let Some(missing) = (0..wanted).find(|number| !chunks.contains_key(number)) {
            return Err(BindingError::MissingChunk { key, missing });
        }
        let pieces: Vec<&[u8]> = chunks.into_values().map(|(_, bytes)| bytes).collect();
        found.push(Packed {
            key,
            bytes: Cow::Owned(pieces.concat()),
            is_split: true,
        });
    }
    Ok(found)
}

/// Chunks by number, each with the name of the ConfigMap that it is in.
type Chunks<'a> = BTreeMap<usize, (&'a str, &'a [u8])>;

fn chunks(source: &BindingSource) -> Result<BTreeMap<&'static str, Chunks<'_>>, BindingError> {
    let names: Vec<&str> = parts(source).collect();
    let annotation = source.annotations.get(PARTS_ANNOTATION);
    if names.len() > PARTS_MAX || names.iter().any(|name| !is_name(name)) {
        return Err(value(
            PARTS_ANNOTATION,
            annotation.map_or("", String::as_str),
            &format!("names of at most {PARTS_MAX} ConfigMaps, separated by commas"),
        ));
    }
    let mut maps = vec![(source.name.as_str(), &source.binary_data)];
    for name in names {
        let other = other(source, PARTS_ANNOTATION, name)?;
        if !other.binary_data.keys().any(|key| chunk_of(key).is_some()) {
            return Err(value(
                PARTS_ANNOTATION,
                name,
                "ConfigMaps with chunks under binaryData[\"policy.wasm.zst.0\"] and so on, which \
                 `mortise policy pack` makes",
            ));
        }
        maps.push((name, &other.binary_data));
    }
    let mut found: BTreeMap<&'static str, Chunks<'_>> = BTreeMap::new();
    for (name, binary_data) in maps {
        for (key, bytes) in binary_data {
            let Some((whole, number)) = chunk_of(key) else {
                continue;
            };
            let chunks = found.entry(whole).or_default();
            if let Some((earlier, _)) = chunks.insert(number, (name, bytes)) {
                return Err(BindingError::ChunkTwice {
                    key: key.clone(),
                    places: format!("{earlier} and {name}"),
                });
            }
        }
    }
    Ok(found)
}

impl Packed<'_> {
    pub(super) fn key(&self) -> &'static str {
        self.key
    }

    /// The component, unless it is larger than that.
    pub(super) fn unpack(&self, bytes_max: usize) -> Result<Vec<u8>, BindingError> {
        let key = self.key;
        let packed: &[u8] = &self.bytes;
        let failed = |error: std::io::Error| BindingError::Unpack {
            key,
            error: error.to_string(),
        };
        let reader: Box<dyn Read + '_> = match key.rsplit('.').next() {
            Some("gz") => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Some("zst") => Box::new(zstd::stream::read::Decoder::new(packed).map_err(failed)?),
            _ => Box::new(packed),
        };
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        reader
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() > bytes_max {
            return Err(BindingError::TooLarge { key, bytes_max });
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use hooks::binding::OtherConfigMap;

    use super::super::{Binding, PolicySource};
    use super::*;

    const COMPONENT: &[u8] = b"a component of some length";
    /// `sha256sum` of it.
    const SHA256: &str = "c06b16aefd7b5a2b75ab61792f21cf0b4c1ff3bb631236273d9dca0ca0a35d11";

    fn source(parts: &str) -> BindingSource {
        let pair = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        BindingSource {
            namespace: "mortise".to_owned(),
            name: "it".to_owned(),
            labels: pair("mortise.dev/policy", "rank"),
            annotations: pair(PARTS_ANNOTATION, parts),
            data: pair("sha256", SHA256),
            ..BindingSource::default()
        }
    }

    fn with(mut source: BindingSource, name: &str, key: &str, bytes: &[u8]) -> BindingSource {
        let other = source.others.entry(name.to_owned());
        let other: &mut OtherConfigMap = other.or_default();
        other.binary_data.insert(key.to_owned(), bytes.to_vec());
        source
    }

    fn split() -> BindingSource {
        let packed = zstd::encode_all(COMPONENT, 3).unwrap();
        let (first, rest) = packed.split_at(9);
        let (second, third) = rest.split_at(9);
        let source = with(source("b,a"), "b", "policy.wasm.zst.0", first);
        let source = with(source, "a", "policy.wasm.zst.2", third);
        with(source, "a", "policy.wasm.zst.1", second)
    }

    #[test]
    fn chunks_are_put_together_by_their_numbers() {
        let binding = Binding::parse(&split(), 1000).unwrap();
        assert_eq!(binding.source, PolicySource::Module(COMPONENT.to_vec()));
    }

    #[test]
    fn what_is_missing_or_twice_is_told() {
        let without = |name: &str, key: &str| {
            let mut source = split();
            source.others.get_mut(name).unwrap().binary_data.remove(key);
            source
        };
        let mut gone = split();
        gone.others.remove("a");
        let mut unsigned = split();
        unsigned.data.clear();
        let twice = with(split(), "b", "policy.wasm.zst.1", b"x");
        let mut one_too_many = split();
        one_too_many
            .data
            .insert("builtin".to_owned(), "default-rank".to_owned());
        for (source, words) in [
            (without("a", "policy.wasm.zst.1"), "chunk 1 is missing"),
            (
                without("b", "policy.wasm.zst.0"),
                "\"b\" is not valid; use ConfigMaps with chunks",
            ),
            (gone, "there is no ConfigMap a in mortise"),
            (unsigned, "data.sha256"),
            (twice, "[\"policy.wasm.zst.1\"] is in b and a"),
            (one_too_many, "builtin, policy.wasm.zst"),
            (source("a,"), "names of at most 32 ConfigMaps"),
        ] {
            let error = Binding::parse(&source, 1000).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
