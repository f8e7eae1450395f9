//! The token with which a client asks for the next page of a list.

use crate::object_key::NamespacedName;
use crate::status::StatusError;
use base64::Engine as _;
use serde_json::json;

/// Where a list continues. All pages carry the first one's revision, so that a watch from it misses nothing.
pub(super) struct Resume {
    pub(super) revision: u64,
    pub(super) after: NamespacedName,
}

impl Resume {
    pub(super) fn encode(&self) -> String {
        let token = json!([self.revision, self.after.namespace, self.after.name]).to_string();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token)
    }

    pub(super) fn decode(text: &str) -> Result<Option<Self>, StatusError> {
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || StatusError::bad_request("continue key is not valid");
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| bad())?;
        let (revision, namespace, name): (u64, String, String) =
            serde_json::from_slice(&bytes).map_err(|_| bad())?;
        Ok(Some(Self {
            revision,
            after: NamespacedName::new(namespace, name),
        }))
    }
}
