//! What is served of a recording, whole or as asked for.

use axum::body::to_bytes;
use axum::http::Request;
use hooks::disruption::BudgetRound;
use policy::{
    CallRecorder as _, RecordedAnswer, RecordedCall, RecordedLine, RecordedLines, RecordedPolicy,
    RecordedQuestion,
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
