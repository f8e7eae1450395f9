//! Schedules find their next run.

use super::*;

#[test]
fn schedules_find_their_next_run() {
    let since: Timestamp = "2026-01-01T00:07:30Z".parse().unwrap();
    for (schedule, expected) in [
        ("*/5 * * * *", Some("2026-01-01T00:10:00Z")),
        ("0 * * * *", Some("2026-01-01T01:00:00Z")),
        ("30 6 * * *", Some("2026-01-01T06:30:00Z")),
        ("@daily", Some("2026-01-02T00:00:00Z")),
        ("0 0 1 * *", None),
        ("nonsense", None),
    ] {
        let expected = expected.map(|text| text.parse::<Timestamp>().unwrap());
        assert_eq!(next_run(schedule, since), expected, "{schedule}");
    }
}
