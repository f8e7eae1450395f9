//! Who may ask what: the API server says whom a bearer's token belongs to (TokenReview) and whether that one may ask
//! for the path (SubjectAccessReview of a non-resource path), as for the ports of Kubernetes' own components.
//!
//! Answers to `pkg/metrics/filters` of controller-runtime.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use locks::lock;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long a right is believed: whoever scrapes asks for the same every few seconds.
const ADMITTED_FOR: Duration = Duration::from_mins(1);
/// Shorter, as rights are granted while somebody waits for them.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// More than ask in a minute, but for somebody who makes tokens up; beyond them all are forgotten.
const REMEMBERED_MAX: usize = 1024;

/// Lets only those through to whom the API server grants what they ask for.
pub(crate) fn secured(router: Router, client: Client) -> Router {
    let reviewer = Arc::new(Reviewer {
        client,
        answers: Mutex::default(),
    });
    router.layer(middleware::from_fn_with_state(reviewer, admit))
}

/// Asks the API server, and remembers its answers for a while.
struct Reviewer {
    client: Client,
    answers: Mutex<HashMap<Question, Answer>>,
}

/// What is asked for, and by whom; of a token no more is kept than tells it from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    token: [u8; 32],
    verb: String,
    path: String,
}

#[derive(Debug)]
struct Answer {
    verdict: ReviewVerdict,
    until: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ReviewVerdict {
    Admitted,
    /// The token is nobody's.
    Unknown,
    /// The user may not ask for that.
    Refused(String),
}

impl Reviewer {
    async fn verdict(&self, token: &str, verb: &str, path: &str) -> kube::Result<ReviewVerdict> {
        let question = Question {
            token: Sha256::digest(token).into(),
            verb: verb.to_owned(),
            path: path.to_owned(),
        };
        if let Some(verdict) = self.remembered(&question) {
            return Ok(verdict);
        }
        let verdict = match self.user(token).await? {
            None => ReviewVerdict::Unknown,
            Some(user) if self.may(&user, &question).await? => ReviewVerdict::Admitted,
            Some(user) => ReviewVerdict::Refused(user.username.unwrap_or_default()),
        };
        self.remember(question, verdict.clone());
        Ok(verdict)
    }

    fn remembered(&self, question: &Question) -> Option<ReviewVerdict> {
        let answers = lock(&self.answers);
        let answer = answers.get(question)?;
        (Instant::now() < answer.until).then(|| answer.verdict.clone())
    }

    fn remember(&self, question: Question, verdict: ReviewVerdict) {
        let kept = match verdict {
            ReviewVerdict::Admitted => ADMITTED_FOR,
            ReviewVerdict::Unknown | ReviewVerdict::Refused(_) => REFUSED_FOR,
        };
        let mut answers = lock(&self.answers);
        if answers.len() >= REMEMBERED_MAX {
            answers.clear();
        }
        let until = Instant::now() + kept;
        answers.insert(question, Answer { verdict, until });
    }

    /// Whom the token belongs to.
    async fn user(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let api = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status;
        let status = status.filter(|it| it.authenticated == Some(true));
        Ok(status.and_then(|it| it.user))
    }

    async fn may(&self, user: &UserInfo, question: &Question) -> kube::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                extra: user.extra.clone(),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(question.path.clone()),
                    verb: Some(question.verb.clone()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let api = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status;
        Ok(status.is_some_and(|it| it.allowed))
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let said = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = said.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Lets a request through, or answers it in the words of the API server.
async fn admit(State(reviewer): State<Arc<Reviewer>>, request: Request, next: Next) -> Response {
    let verb = request.method().as_str().to_ascii_lowercase();
    let path = request.uri().path();
    let verdict = match bearer(request.headers()) {
        None => Ok(ReviewVerdict::Unknown),
        Some(token) => reviewer.verdict(token, &verb, path).await,
    };
    match verdict {
        Ok(ReviewVerdict::Admitted) => next.run(request).await,
        Ok(ReviewVerdict::Unknown) => {
            let how = [(WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, how, "Unauthorized\n").into_response()
        }
        Ok(ReviewVerdict::Refused(user)) => {
            let told = format!(
                "Forbidden: user \"{user}\" cannot {verb} path \"{path}\"; a ClusterRole with nonResourceURLs grants it\n"
            );
            (StatusCode::FORBIDDEN, told).into_response()
        }
        Err(error) => {
            let told = format!("the API server does not say who asks: {error}\n");
            (StatusCode::SERVICE_UNAVAILABLE, told).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body as AxumBody;
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::{ServiceExt as _, service_fn};

    use super::*;

    /// An API server that knows two tokens, the second of somebody who may do nothing; and what it was asked.
    fn api_server() -> (Client, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let service = service_fn(move |request: http::Request<Body>| {
            let log = Arc::clone(&log);
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let mut review: Value = serde_json::from_slice(&body).unwrap();
                review["status"] = match review["spec"]["token"].as_str() {
                    Some("broken") => {
                        return Ok(http::Response::builder()
                            .status(500)
                            .body(Body::empty())
                            .unwrap());
                    }
                    Some(token @ ("reader" | "stranger")) => {
                        json!({"authenticated": true, "user": {"username": token, "groups": ["g"]}})
                    }
                    Some(_) => json!({"authenticated": false}),
                    None => json!({"allowed": review["spec"]["user"] == "reader"}),
                };
                lock(&log).push(review["spec"].clone());
                let answer = http::Response::builder().status(201);
                Ok::<_, Infallible>(
                    answer
                        .body(Body::from(review.to_string().into_bytes()))
                        .unwrap(),
                )
            }
        });
        (Client::new(service, "default"), asked)
    }

    /// A port with that API server behind it, and what it was asked.
    fn metrics_port() -> (Router, Arc<Mutex<Vec<Value>>>) {
        let (client, asked) = api_server();
        let router = Router::new().route("/metrics", get(|| async { "told" }));
        (secured(router, client), asked)
    }

    async fn asks(router: &Router, authorization: &str) -> (u16, String) {
        let request = Request::get("/metrics?a=b").header("authorization", authorization);
        let request = request.body(AxumBody::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_says_who_may_ask() {
        let (router, asked) = metrics_port();
        for (authorization, status, told) in [
            ("Bearer reader", 200, "told"),
            ("bearer reader", 200, "told"),
            (
                "Bearer stranger",
                403,
                "user \"stranger\" cannot get path \"/metrics\"",
            ),
            ("Bearer nobody", 401, "Unauthorized"),
            ("Bearer", 401, "Unauthorized"),
            ("Basic reader", 401, "Unauthorized"),
            ("", 401, "Unauthorized"),
            ("Bearer broken", 503, "the API server does not say who asks"),
        ] {
            let (is, body) = asks(&router, authorization).await;
            assert!(
                is == status && body.contains(told),
                "{authorization}: {is} {body}"
            );
        }
        let review = lock(&asked)[1].clone();
        let path = json!({"path": "/metrics", "verb": "get"});
        let expected = json!({"user": "reader", "groups": ["g"], "nonResourceAttributes": path});
        assert_eq!(review, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_believed_for_a_while() {
        let (router, asked) = metrics_port();
        for (token, kept, reviews) in [
            ("Bearer reader", ADMITTED_FOR, 2),
            ("Bearer stranger", REFUSED_FOR, 2),
            ("Bearer nobody", REFUSED_FOR, 1),
        ] {
            lock(&asked).clear();
            for _ in 0..3 {
                asks(&router, token).await;
            }
            assert_eq!(lock(&asked).len(), reviews, "{token}");
            tokio::time::advance(kept).await;
            asks(&router, token).await;
            assert_eq!(lock(&asked).len(), 2 * reviews, "{token}");
        }
    }
}
