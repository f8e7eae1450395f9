//! What a controller's `/metrics` says.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

/// One reading; empty while nobody answers.
#[derive(Debug, Default)]
pub(crate) struct Metrics(String);

impl Metrics {
    pub(crate) fn of(port: u16) -> Self {
        let read = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes())?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        Self(read().unwrap_or_default())
    }

    pub(crate) fn answers(&self) -> bool {
        !self.0.is_empty()
    }

    /// The sum of a counter's series that hold this label, written as in the text; all where it is empty.
    pub(crate) fn sum(&self, name: &str, label: &str) -> f64 {
        let series = self.0.lines().filter_map(|line| line.strip_prefix(name));
        let values = series
            .filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
            .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_added_by_name_and_label() {
        let text = "# HELP a_total x\na_total{code=\"200\"} 3\na_total{code=\"429\"} 4\na_total_more 9\nb 2.5\n";
        let metrics = Metrics(text.to_owned());
        for (name, label, sum) in [
            ("a_total", "code=\"200\"", 3.0),
            ("a_total", "", 7.0),
            ("b", "", 2.5),
            ("c", "", 0.0),
        ] {
            let counted = metrics.sum(name, label);
            assert!((counted - sum).abs() < 1e-9, "{name} {label}: {counted}");
        }
    }
}
