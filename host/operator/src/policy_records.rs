//! `GET /debug/policy-records`: the recording of this process as a file to keep. An image without a shell has no other
//! way out for it. `?last=BYTES` gives the end of it only.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::stream;

use crate::policy_recorder::FileRecorder;

/// Where the recording is served.
pub(crate) const RECORDS_PATH: &str = "/debug/policy-records";
/// Bytes that are read at a time.
const PART_BYTES: u64 = 256 << 10;
const NOT_RECORDED: &str = "no call of a policy is recorded here: start the controller with --policy-records FILE \
    (MORTISE_POLICY_RECORDS, policyRecords.enabled of the chart), and ask the one that leads\n";

/// Serves the recording; where none is made it says how to have one.
pub(crate) fn records_router(recorder: Option<Arc<FileRecorder>>) -> Router {
    let answer = move |uri: Uri| {
        let recorder = recorder.clone();
        async move {
            match (recorder, last(uri.query())) {
                (None, _) => (StatusCode::NOT_FOUND, NOT_RECORDED).into_response(),
                (Some(_), Err(())) => {
                    (StatusCode::BAD_REQUEST, "ask with ?last=BYTES\n").into_response()
                }
                (Some(recorder), Ok(last)) => recording(&recorder, last),
            }
        }
    };
    Router::new().route(RECORDS_PATH, get(answer))
}

/// How much of the end is wanted; everything where nothing is said.
fn last(query: Option<&str>) -> Result<u64, ()> {
    let Some(query) = query else {
        return Ok(u64::MAX);
    };
    let bytes = query.strip_prefix("last=").ok_or(())?;
    bytes.parse().map_err(|_| ())
}

fn recording(recorder: &FileRecorder, last: u64) -> Response {
    let parts = match recorder.open().and_then(|open| ending(open, last)) {
        Ok(parts) => parts,
        Err(error) => {
            let told = format!("the recording cannot be read: {error}\n");
            return (StatusCode::INTERNAL_SERVER_ERROR, told).into_response();
        }
    };
    let read = stream::try_unfold(parts, |mut parts| async move {
        let read = tokio::task::spawn_blocking(move || part(&mut parts).map(|it| (it, parts)));
        let (bytes, parts) = read.await.map_err(io::Error::other)??;
        Ok::<_, io::Error>((!bytes.is_empty()).then_some((bytes, parts)))
    });
    let head = [("content-type", "application/zstd")];
    (head, Body::from_stream(read)).into_response()
}

/// The files with what is to be read of each, where only the last bytes of all are wanted.
fn ending(open: Vec<(File, u64)>, mut last: u64) -> io::Result<VecDeque<(File, u64)>> {
    let mut parts = VecDeque::new();
    for (mut file, bytes) in open.into_iter().rev() {
        let wanted = bytes.min(last);
        last -= wanted;
        file.seek(SeekFrom::Start(bytes - wanted))?;
        parts.push_front((file, wanted));
    }
    Ok(parts)
}

/// The next bytes; none at the end.
fn part(parts: &mut VecDeque<(File, u64)>) -> io::Result<Vec<u8>> {
    while let Some((file, left)) = parts.front_mut() {
        let mut bytes = Vec::new();
        let read = file.take(PART_BYTES.min(*left)).read_to_end(&mut bytes)?;
        if read > 0 {
            *left -= u64::try_from(read).map_err(io::Error::other)?;
            return Ok(bytes);
        }
        parts.pop_front();
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use axum::http::Request;
    use disruption::hooks::BudgetRound;
    use policy::{
        CallRecorder as _, RecordedAnswer, RecordedCall, RecordedLine, RecordedLines,
        RecordedPolicy, RecordedQuestion,
    };
    use tower::ServiceExt as _;

    use super::*;

    fn call(number: u32) -> Box<RecordedCall> {
        Box::new(RecordedCall {
            decision_id: number.to_string(),
            name: "mine".to_owned(),
            digest: String::new(),
            config_digest: String::new(),
            is_shadow: false,
            fuel: 0,
            memory: Vec::new(),
            question: RecordedQuestion::Allow {
                round: BudgetRound::default(),
            },
            answer: Ok(RecordedAnswer::Order(Vec::new())),
            remembers: None,
        })
    }

    fn policy() -> RecordedPolicy {
        RecordedPolicy {
            name: "mine".to_owned(),
            digest: String::new(),
            config_digest: String::new(),
            config: String::new(),
            rule: None,
            needs: Vec::new(),
            facts: [].into(),
        }
    }

    async fn got(recorder: Option<&Arc<FileRecorder>>, query: &str) -> (StatusCode, Vec<u8>) {
        let router = records_router(recorder.map(Arc::clone));
        let request = Request::get(format!("{RECORDS_PATH}{query}")).body(Body::empty());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, body.to_vec())
    }

    fn decisions(bytes: Vec<u8>) -> Vec<String> {
        let lines = RecordedLines::of(bytes).map(Result::unwrap);
        lines
            .filter_map(|line| match line {
                RecordedLine::Call(call) => Some(call.decision_id),
                RecordedLine::Policy(_) => None,
            })
            .collect()
    }

    #[tokio::test]
    async fn both_files_are_served_in_their_order_or_the_end_of_them() {
        let folder = std::env::temp_dir().join(format!("mortise-served-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("records");
        let before = FileRecorder::create(&file, 1 << 20).unwrap();
        for number in 0..3 {
            before.record(call(number), &policy);
        }
        let recorder = Arc::new(FileRecorder::resume(&file, 1 << 20).unwrap());
        recorder.record(call(3), &policy);
        let (status, whole) = got(Some(&recorder), "").await;
        assert_eq!(status, StatusCode::OK);
        let length = whole.len();
        assert_eq!(decisions(whole), ["0", "1", "2", "3"]);
        let (_, end) = got(Some(&recorder), &format!("?last={}", length - 1)).await;
        assert_eq!(end.len(), length - 1);
        assert_eq!(decisions(end), ["0", "1", "2", "3"]);
        let newer = std::fs::metadata(&file).unwrap().len();
        let (_, end) = got(Some(&recorder), &format!("?last={newer}")).await;
        assert_eq!(decisions(end), ["3"]);
        let (status, _) = got(Some(&recorder), "?first=1").await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let (status, told) = got(None, "").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(
            String::from_utf8(told)
                .unwrap()
                .contains("--policy-records FILE")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
