//! The text of metrics is what Prometheus reads, in the format that the asker takes.

use super::*;

#[test]
fn the_asker_says_which_format() {
    let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    for (header, format) in [
        ("", ExpositionFormat::Prometheus),
        ("*/*", ExpositionFormat::Prometheus),
        ("text/plain", ExpositionFormat::Prometheus),
        (
            "application/openmetrics-text",
            ExpositionFormat::OpenMetrics,
        ),
        (prometheus_3, ExpositionFormat::OpenMetrics),
        (
            "application/openmetrics-text;q=0.2, text/plain;q=0.3",
            ExpositionFormat::Prometheus,
        ),
    ] {
        assert_eq!(ExpositionFormat::accepted(header), format, "{header}");
    }
}

#[test]
fn counters_summaries_and_bounds_are_as_prometheus_has_them() {
    let text = "# HELP a Help.\n# TYPE a counter\na_total{} 1\n\
        # HELP b Help of b.\n# TYPE b unknown\nb{quantile=\"0\"} NaN\nb_sum{} 0.0\nb_count{} 0\n\
        # HELP c Help.\n# TYPE c histogram\nc_bucket{x=\"1.0\",le=\"10.0\"} 1\nc_bucket{le=\"0.5\",x=\"1.0\"} 1\n# EOF\n";
    let translated = translate(text, ExpositionFormat::Prometheus);
    let wanted = "# HELP a_total Help.\n# TYPE a_total counter\na_total 1\n\
        # HELP b Help of b.\n# TYPE b summary\nb{quantile=\"0\"} NaN\nb_sum 0.0\nb_count 0\n\
        # HELP c Help.\n# TYPE c histogram\nc_bucket{x=\"1.0\",le=\"10\"} 1\nc_bucket{le=\"0.5\",x=\"1.0\"} 1\n";
    assert_eq!(translated, wanted);
    let translated = translate(text, ExpositionFormat::OpenMetrics);
    assert!(translated.contains("# TYPE b summary\n") && translated.contains("le=\"10.0\""));
    assert!(translated.starts_with("# HELP a Help.\n# TYPE a counter\na_total 1\n"));
    assert!(translated.ends_with("# EOF\n"));
}

#[test]
fn answers_are_gzipped_for_who_says_so() {
    let cases = [
        ("", false),
        ("gzip", true),
        ("GZIP", true),
        ("deflate, gzip;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip; q=0.0, br", false),
        ("identity", false),
        ("*", false),
    ];
    for (header, expected) in cases {
        assert_eq!(accepts_gzip(header), expected, "{header}");
    }
}
