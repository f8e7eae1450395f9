//! The protobuf that kubectl's typed commands send (`create deployment`, `drain`, `auth can-i`), read into JSON.
//!
//! Only what those commands send is known: a table of field numbers by message (`messages.rs`). Fields
//! outside it are dropped, as a server drops fields it does not know.

mod messages;

use serde_json::{Map, Value, json};

use self::messages::ProtobufType::{
    self, Bytes, BytesMap, Flag, IntOrString, Message, Number, Quantity, QuantityMap, Text, TextMap,
};
use self::messages::message;
use crate::status::StatusError;

/// Numbers that Go writes as zero when they are not set.
const ZERO_IS_ABSENT: [&str; 3] = ["hostPort", "nodePort", "minReadySeconds"];

/// Reads a body in Kubernetes' protobuf envelope.
pub(crate) fn decode(body: &[u8]) -> Result<Value, StatusError> {
    let bad = || StatusError::bad_request("the protobuf in the body of the request cannot be read");
    let envelope = body.strip_prefix(b"k8s\0").ok_or_else(bad)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, part) in parts(envelope).ok_or_else(bad)? {
        match (number, part) {
            (1, WireValue::Bytes(meta)) => {
                for (number, part) in parts(meta).ok_or_else(bad)? {
                    if let WireValue::Bytes(text) = part {
                        let text = String::from_utf8_lossy(text).into_owned();
                        if number == 1 {
                            api_version = text;
                        } else {
                            kind = text;
                        }
                    }
                }
            }
            (2, WireValue::Bytes(object)) => raw = object,
            _ => {}
        }
    }
    let is_review = kind.ends_with("Review") || kind == "TokenRequest";
    if message(&kind).is_empty() && !is_review {
        return Err(StatusError::unsupported_media_type(&format!(
            "application/vnd.kubernetes.protobuf of a {kind}"
        )));
    }
    let mut object = read(&kind, raw).ok_or_else(bad)?;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

/// A field's content on the wire.
enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn parts(mut bytes: &[u8]) -> Option<Vec<(u64, WireValue<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let part = match tag & 7 {
            0 => WireValue::Number(varint(&mut bytes)?),
            1 => WireValue::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                WireValue::Bytes(take(&mut bytes, length)?)
            }
            5 => WireValue::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        found.push((tag >> 3, part));
    }
    Some(found)
}

fn read(name: &str, bytes: &[u8]) -> Option<Value> {
    let mut object = Map::new();
    let fields = message(name);
    for (number, part) in parts(bytes)? {
        let Some((_, field, kind, repeats)) = fields.iter().find(|f| f.0 == number) else {
            continue;
        };
        match kind {
            TextMap | BytesMap | QuantityMap => {
                let WireValue::Bytes(entry) = part else {
                    continue;
                };
                let (key, value) = map_entry(*kind, entry)?;
                let map = object.entry(*field).or_insert_with(|| json!({}));
                map[key] = value;
            }
            _ => {
                let Some(value) = scalar(*kind, &part)? else {
                    continue;
                };
                if value == json!(0) && ZERO_IS_ABSENT.contains(field) {
                    continue;
                }
                if *repeats {
                    let list = object.entry(*field).or_insert_with(|| json!([]));
                    list.as_array_mut()?.push(value);
                } else {
                    object.insert((*field).to_owned(), value);
                }
            }
        }
    }
    Some(Value::Object(object))
}

/// The value of a field; the inner `None` means that it says nothing.
#[expect(
    clippy::option_option,
    reason = "unreadable and absent are different answers"
)]
fn scalar(kind: ProtobufType, part: &WireValue<'_>) -> Option<Option<Value>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(match (kind, part) {
        (Number, WireValue::Number(n)) => Some(json!(n.cast_signed())),
        (Flag, WireValue::Number(n)) => Some(json!(*n != 0)),
        // Go writes empty texts that JSON leaves out.
        (Text, WireValue::Bytes(bytes)) => (!bytes.is_empty()).then(|| text(bytes).into()),
        (Bytes, WireValue::Bytes(bytes)) => {
            use base64::Engine as _;
            Some(
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into(),
            )
        }
        (Message(name), WireValue::Bytes(bytes)) => Some(read(name, bytes)?),
        (Quantity, WireValue::Bytes(bytes)) => parts(bytes)?.into_iter().find_map(|p| match p {
            (1, WireValue::Bytes(bytes)) => Some(text(bytes).into()),
            _ => None,
        }),
        (IntOrString, WireValue::Bytes(bytes)) => Some(int_or_string(bytes)?),
        // Times are the server's to set.
        _ => None,
    })
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for (field, part) in parts(bytes)? {
        match (field, part) {
            (1, WireValue::Number(kind)) => is_text = kind == 1,
            (2, WireValue::Number(n)) => number = n.cast_signed(),
            (3, WireValue::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
    }
    Some(if is_text { text.into() } else { number.into() })
}

fn map_entry(kind: ProtobufType, bytes: &[u8]) -> Option<(String, Value)> {
    let value_kind = match kind {
        BytesMap => Bytes,
        QuantityMap => Quantity,
        _ => Text,
    };
    let (mut key, mut value) = (String::new(), Value::String(String::new()));
    for (number, part) in parts(bytes)? {
        match (number, &part) {
            (1, WireValue::Bytes(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (2, _) => {
                if let Some(read) = scalar(value_kind, &part)? {
                    value = read;
                }
            }
            _ => {}
        }
    }
    Some((key, value))
}
