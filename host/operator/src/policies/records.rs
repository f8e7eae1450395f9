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

use super::recorder::FileRecorder;

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
            let message = format!("the recording cannot be read: {error}\n");
            return (StatusCode::INTERNAL_SERVER_ERROR, message).into_response();
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
mod tests;
