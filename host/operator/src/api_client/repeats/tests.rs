//! Only requests that certainly did nothing are sent again.

use super::*;

fn kind(method: Method, uri: &str) -> RequestKind {
    RequestKind::of(&Request::builder().method(method).uri(uri).body(()).unwrap())
}

#[test]
fn a_request_is_known_by_its_verb_and_path() {
    let pods = "/api/v1/namespaces/a/pods";
    let evicts = "/api/v1/namespaces/a/pods/b/eviction";
    let cases = [
        (Method::GET, pods.to_owned(), RequestKind::Read),
        (
            Method::GET,
            format!("{pods}?limit=5&watch=true"),
            RequestKind::Watch,
        ),
        (
            Method::GET,
            format!("{pods}?labelSelector=watch"),
            RequestKind::Read,
        ),
        (Method::POST, pods.to_owned(), RequestKind::Change),
        (
            Method::PATCH,
            format!("{pods}?watch=true"),
            RequestKind::Change,
        ),
        (
            Method::POST,
            format!("{evicts}?dryRun=All"),
            RequestKind::Eviction,
        ),
    ];
    for (method, uri, expected) in cases {
        assert_eq!(kind(method, &uri), expected, "{uri}");
    }
}

#[test]
fn only_what_certainly_did_not_happen_is_sent_again() {
    let no_answer = [429, 500, 503, 504];
    let pauses = |kind: RequestKind, retry_after: Option<&'static str>| {
        no_answer.map(|status| {
            let mut headers = HeaderMap::new();
            headers.extend(retry_after.map(|it| (header::RETRY_AFTER, it.parse().unwrap())));
            let status = StatusCode::from_u16(status).unwrap();
            pause(kind, status, &headers, 1).map(|it| it.as_millis())
        })
    };
    let never = [None; 4];
    assert_eq!(pauses(RequestKind::Eviction, Some("1")), never);
    assert_eq!(pauses(RequestKind::Eviction, None), never);
    assert_eq!(
        pauses(RequestKind::Change, Some("1")),
        [Some(1000), None, None, None]
    );
    assert_eq!(pauses(RequestKind::Change, None), never);
    assert_eq!(pauses(RequestKind::Read, Some("2")), [Some(2000); 4]);
    let first = Some(200);
    assert_eq!(pauses(RequestKind::Read, None), [first, None, first, first]);
    assert_eq!(
        pauses(RequestKind::Read, Some("60")),
        never,
        "that is for the queues"
    );
}

#[test]
fn a_read_gives_up_after_five_attempts() {
    let pauses = (1..=5).map(|attempts| {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        pause(RequestKind::Read, status, &HeaderMap::new(), attempts).map(|it| it.as_millis())
    });
    let wanted = [Some(200), Some(400), Some(800), Some(1600), None];
    assert!(pauses.eq(wanted));
}
