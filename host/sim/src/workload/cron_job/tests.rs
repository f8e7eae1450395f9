//! Schedules find the runs before and after a moment.

use super::*;

#[test]
fn schedules_find_the_runs_on_both_sides() {
    let now: Timestamp = "2026-01-02T00:07:30Z".parse().unwrap();
    for (schedule, expected) in [
        ("*/5 * * * *", Some(["02T00:05", "02T00:10"])),
        ("7 * * * *", Some(["02T00:07", "02T01:07"])),
        ("0 * * * *", Some(["02T00:00", "02T01:00"])),
        ("30 6 * * *", Some(["01T06:30", "02T06:30"])),
        ("4/15 * * * *", Some(["02T00:04", "02T00:19"])),
        ("0 8/6 * * *", Some(["01T20:00", "02T08:00"])),
        ("5 1-9/4 * * *", Some(["01T09:05", "02T01:05"])),
        ("2,9,40 * * * *", Some(["02T00:02", "02T00:09"])),
        ("1,8/0 * * * *", None),
        ("@daily", Some(["02T00:00", "03T00:00"])),
        ("0 0 1 * *", None),
        ("nonsense", None),
    ] {
        let time = |text: &str| format!("2026-01-{text}:00Z").parse().unwrap();
        let expected = expected.map(|[due, next]| CronRuns {
            due: time(due),
            next: time(next),
        });
        assert_eq!(runs(schedule, now), expected, "{schedule}");
    }
}
