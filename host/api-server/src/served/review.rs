//! Reviews: questions about who one is and what one may do. In this world everybody with the token may do all.

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::request::answer::{ApiResponse, answer_json};
use crate::status::StatusError;

/// Group, plural, kind, and whether it lives in namespaces.
pub(crate) const KINDS: [(&str, &str, &str, bool); 6] = [
    (
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
        false,
    ),
    (
        "authentication.k8s.io",
        "tokenreviews",
        "TokenReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        true,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "SubjectAccessReview",
        false,
    ),
];

const USER: &str = "mortise-user";

/// Answers a review, if the path is one.
pub(crate) fn answer(
    method: &Method,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> Result<Option<ApiResponse>, StatusError> {
    let found = KINDS.iter().find(|(group, plural, ..)| {
        path.starts_with(&format!("/apis/{group}/v1/")) && path.ends_with(plural)
    });
    let Some((group, _, kind, _)) = found else {
        return Ok(None);
    };
    if method != Method::POST {
        return Err(StatusError::method_not_allowed());
    }
    let mut review: Value = if content_type.contains("protobuf") {
        crate::request::protobuf::decode(body)?
    } else {
        serde_json::from_slice(body)
            .map_err(|e| StatusError::bad_request(format!("error decoding the body: {e}")))?
    };
    if !review.is_object() {
        return Err(StatusError::bad_request(
            "the object provided is not a JSON object",
        ));
    }
    review["apiVersion"] = format!("{group}/v1").into();
    review["kind"] = (*kind).into();
    let user = json!({"username": USER, "groups": ["system:masters", "system:authenticated"]});
    review["status"] = match *kind {
        "SelfSubjectReview" => json!({"userInfo": user}),
        "TokenReview" => json!({"authenticated": true, "user": user}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"allowed": true, "reason": "everything is allowed in the simulated cluster"}),
    };
    Ok(Some(answer_json(201, &review)))
}

/// A token request of a service account; the token opens nothing.
pub(crate) fn token(name: &str, now: Timestamp) -> Value {
    json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name},
        "status": {
            "token": "simulated", "expirationTimestamp": crate::timestamp::time_text(now),
        },
    })
}
