//! `/debug/pprof/`: where the time and the memory of this process go, in the format of pprof, behind
//! `--enable-profiling`. `go tool pprof http://HOST:PORT/debug/pprof/profile?seconds=30` reads it, and so does what
//! else reads profiles of Go's.
//!
//! Paths, parameters and words are those of Go's `net/http/pprof`; what only Go's runtime has is not found.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use jemalloc_pprof::{PROF_CTL, WeightedStack};
use pprof::protos::Message as _;
use pprof::{Frames, ProfilerGuardBuilder, Symbol};

use super::{gzip, query_value};

/// Samples a second of CPU time, as Go takes them.
const SAMPLES_PER_SECOND: i32 = 100;
/// How long a profile is without a word about it.
const USUAL_SPAN: Duration = Duration::from_secs(30);
/// Longer than who asks waits, and what is sampled takes memory.
const SPAN_MAX: Duration = Duration::from_mins(10);
/// Samples that begin here are left out: they may hold a lock that unwinding takes.
const NOT_UNWOUND: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// What functions of the allocator that others call begin with; `do_rallocx` is left of one that ends by calling it.
const ALLOCATOR: [&str; 2] = ["_rjem_", "do_rallocx"];

const INDEX: &str = "\
/debug/pprof/profile?seconds=30   CPU time of the seconds to come
/debug/pprof/heap                 memory that is held, by who took it
/debug/pprof/cmdline              the command line, its words parted by NUL
";

/// How samples of the heap are taken: by the allocator, which must be told before it gives anything out.
const NO_HEAP: &str = "\
the allocator takes no samples: start the process with _RJEM_MALLOC_CONF=prof:true,lg_prof_sample:19
(the chart does so where settings.enableProfiling is true)
";

pub(super) fn router() -> Router {
    Router::new()
        .route("/debug/pprof/", get(|| async { INDEX }))
        .route("/debug/pprof/cmdline", get(|| async { cmdline() }))
        .route("/debug/pprof/profile", get(cpu))
        .route("/debug/pprof/heap", get(heap))
        .route("/debug/pprof/{name}", get(of_go))
}

fn cmdline() -> Vec<u8> {
    let words: Vec<Vec<u8>> = std::env::args_os().map(OsString::into_vec).collect();
    words.join(&0)
}

async fn of_go(Path(name): Path<String>) -> (StatusCode, String) {
    let told = format!("no profile `{name}` outside Go; there are\n{INDEX}");
    (StatusCode::NOT_FOUND, told)
}

/// How long the profile is to be.
fn span(query: &str) -> Result<Duration, String> {
    let Some(told) = query_value(query, "seconds") else {
        return Ok(USUAL_SPAN);
    };
    let seconds = told.parse().map(Duration::from_secs);
    let seconds = seconds
        .ok()
        .filter(|it| (1..=SPAN_MAX.as_secs()).contains(&it.as_secs()));
    seconds.ok_or_else(|| {
        let longest = SPAN_MAX.as_secs();
        format!("seconds={told}: give a whole number from 1 to {longest}\n")
    })
}

async fn cpu(uri: Uri) -> Response {
    let span = match span(uri.query().unwrap_or_default()) {
        Ok(span) => span,
        Err(told) => return (StatusCode::BAD_REQUEST, told).into_response(),
    };
    let sampling = ProfilerGuardBuilder::default()
        .frequency(SAMPLES_PER_SECOND)
        .blocklist(&NOT_UNWOUND)
        .build();
    let sampling = match sampling {
        Ok(sampling) => sampling,
        Err(error) => return failed(&format!("could not enable CPU profiling: {error}")),
    };
    // Who hangs up ends the sampling by that.
    tokio::time::sleep(span).await;
    // Names are looked for in the whole symbol table.
    let made = tokio::task::spawn_blocking(move || {
        let mut report = sampling.report();
        let report = report.frames_post_processor(leave_sampling_out).build()?;
        anyhow::Ok(gzip(&report.pprof()?.encode_to_vec())?)
    });
    answer("profile", made.await.map_err(Into::into).flatten())
}

async fn heap() -> Response {
    let Some(allocator) = PROF_CTL.as_ref() else {
        return (StatusCode::NOT_IMPLEMENTED, NO_HEAP).into_response();
    };
    let mut allocator = allocator.clone().lock_owned().await;
    let made = tokio::task::spawn_blocking(move || {
        let mut profile = allocator.dump_profile()?;
        let mut inside = HashMap::new();
        for (stack, _) in &mut profile.stacks {
            leave_allocating_out(stack, &mut inside);
        }
        anyhow::Ok(profile.to_pprof(("inuse_space", "bytes"), ("space", "bytes"), None))
    });
    answer("heap", made.await.map_err(Into::into).flatten())
}

/// What took a sample of CPU time is inside of it, and so is what pprof calls while it begins or waits for its own
/// lock: all up to the outermost of its frames.
fn leave_sampling_out(frames: &mut Frames) {
    let is_sampling = |frame: &Vec<Symbol>| frame.iter().any(|it| is_of_pprof(&it.name()));
    if let Some(outermost) = frames.frames.iter().rposition(is_sampling) {
        frames.frames.drain(..=outermost);
    }
}

/// Whether a function is one of the crate `pprof`, or of a trait that it implements; `jemalloc_pprof` is another.
fn is_of_pprof(function: &str) -> bool {
    let mut found = function.match_indices("pprof::");
    found.any(|(at, _)| {
        !function[..at].ends_with(|before: char| before == '_' || before.is_alphanumeric())
    })
}

/// The innermost frames of a sample of the heap, which are its last, are the allocator's from its door on. Who is
/// inside is looked up once.
fn leave_allocating_out(stack: &mut WeightedStack, inside: &mut HashMap<usize, bool>) {
    let mut is_inside = |address: &usize| {
        let known = inside.entry(*address);
        *known.or_insert_with(|| {
            let mut is_inside = false;
            backtrace::resolve(*address as *mut _, |symbol| {
                let name = symbol.name().and_then(|it| it.as_str());
                is_inside |=
                    name.is_some_and(|name| ALLOCATOR.iter().any(|it| name.starts_with(it)));
            });
            is_inside
        })
    };
    if let Some(door) = stack.addrs.iter().position(&mut is_inside) {
        stack.addrs.truncate(door);
    }
}

fn answer(name: &str, profile: anyhow::Result<Vec<u8>>) -> Response {
    let named = format!("attachment; filename=\"{name}\"");
    let kind = [
        ("content-type", "application/octet-stream"),
        ("content-disposition", &named),
    ];
    match profile {
        Ok(bytes) => (kind, bytes).into_response(),
        Err(error) => failed(&format!("{error:#}")),
    }
}

fn failed(told: &str) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{told}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_samples_is_in_none() {
        let taken_in = |functions: &[&str]| {
            let symbol = |function: &&str| Symbol {
                name: Some(function.as_bytes().to_vec()),
                addr: None,
                lineno: None,
                filename: None,
            };
            let mut frames = Frames {
                frames: functions.iter().map(|it| vec![symbol(it)]).collect(),
                thread_name: String::new(),
                thread_id: 0,
                sample_timestamp: std::time::UNIX_EPOCH,
            };
            leave_sampling_out(&mut frames);
            let left = frames.frames.iter().flatten().map(Symbol::name);
            left.collect::<Vec<_>>()
        };
        let handler = "<pprof::backtrace::backtrace_rs::Trace as pprof::backtrace::Trace>::trace";
        let waiting = ["spin::relax", "pprof::report::ReportBuilder::build"];
        let own = ["jemalloc_pprof::dump", "mortise::http::profiles::heap"];
        assert_eq!(taken_in(&own), own);
        assert_eq!(taken_in(&[&[handler], &own[..]].concat()), own);
        let waited = [&[handler], &waiting[..], &own[1..]].concat();
        assert_eq!(taken_in(&waited), own[1..]);
    }

    #[test]
    fn a_profile_is_as_long_as_was_asked_for() {
        for (query, seconds) in [
            ("", Some(30)),
            ("debug=1", Some(30)),
            ("seconds=5", Some(5)),
            ("debug=1&seconds=600", Some(600)),
            ("seconds=0", None),
            ("seconds=601", None),
            ("seconds=-1", None),
            ("seconds=1.5", None),
            ("seconds=", None),
        ] {
            let span = span(query);
            assert_eq!(
                span.as_ref().ok().map(Duration::as_secs),
                seconds,
                "{query}"
            );
            assert!(
                span.is_ok() || span.unwrap_err().contains("from 1 to 600"),
                "{query}"
            );
        }
    }
}
