//! Profiles of a running controller, as `go tool pprof` reads them.

use std::process::Command;

use tests::has_program;
use tests::served::Served;

/// Has the allocator take samples from the first allocation on.
const SAMPLED: [(&str, &str); 1] = [("_RJEM_MALLOC_CONF", "prof:true,lg_prof_sample:14")];

/// What pprof says of a profile that it asks the controller for, as `Err` where it gets none.
fn top(served: &Served, path: &str) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("mortise-pprof-{}", std::process::id()));
    let address = served.metrics_address();
    let pprof = Command::new("go")
        .args(["tool", "pprof", "-top"])
        .arg(format!("http://{address}/debug/pprof/{path}"))
        .env("PPROF_TMPDIR", &folder)
        .output();
    let output = pprof.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        std::fs::remove_dir_all(&folder).unwrap();
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

#[test]
fn pprof_reads_where_time_and_memory_of_the_controller_go() {
    if !has_program("kubectl", "help") || !has_program("go", "version") {
        return;
    }
    let served = Served::with_metrics_of(&[], &["--enable-profiling"], &SAMPLED);
    served.eventually("there is a heap to look at", || {
        let heap = top(&served, "heap").unwrap_or_default();
        heap.contains("inuse_space")
            && heap.contains("mortise::")
            && !heap.contains("prof_backtrace")
    });
    // Whoever scrapes gives the controller something to do meanwhile.
    let told = std::thread::scope(|scope| {
        let asked = scope.spawn(|| top(&served, "profile?seconds=3"));
        while !asked.is_finished() {
            served.metrics();
        }
        asked.join().unwrap().unwrap()
    });
    assert!(told.contains("Type: cpu"), "{told}");
    assert!(
        told.contains("mortise") && told.contains("exposition"),
        "{told}"
    );
    assert!(!told.contains("pprof::"), "{told}");
    let refused = top(&served, "profile?seconds=0").unwrap_err();
    assert!(refused.contains("400"), "{refused}");
    let of_go = top(&served, "goroutine").unwrap_err();
    assert!(of_go.contains("404"), "{of_go}");
}

#[test]
fn nobody_is_profiled_without_having_asked_for_it() {
    if !has_program("kubectl", "help") || !has_program("go", "version") {
        return;
    }
    let served = Served::with_metrics(&[]);
    served.eventually("the controller answers", || !served.metrics().is_empty());
    let refused = top(&served, "profile?seconds=1").unwrap_err();
    assert!(refused.contains("404"), "{refused}");
}
