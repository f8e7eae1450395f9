//! Schedules find their next run.

use super::*;

#[test]
fn schedules_find_their_next_run() {
    let since: Timestamp = "2026-01-01T00:07:30Z".parse().unwrap();
    for (schedule, expected) in [
        ("*/5 * * * *", Some("2026-01-01T00:10:00Z")),
        ("0 * * * *", Some("2026-01-01T01:00:00Z")),
        ("30 6 * * *", Some("2026-01-01T06:30:00Z")),
        ("4/15 * * * *", Some("2026-01-01T00:19:00Z")),
        ("0 8/6 * * *", Some("2026-01-01T08:00:00Z")),
        ("5 1-9/4 * * *", Some("2026-01-01T01:05:00Z")),
        ("2,9,40 * * * *", Some("2026-01-01T00:09:00Z")),
        ("1,8/0 * * * *", None),
        ("@daily", Some("2026-01-02T00:00:00Z")),
        ("0 0 1 * *", None),
        ("nonsense", None),
    ] {
        let expected = expected.map(|text| text.parse::<Timestamp>().unwrap());
        assert_eq!(next_run(schedule, since), expected, "{schedule}");
    }
}
