//! MIME archives, by which cloud-init and nodeadm take several documents at once.
//!
//! Reads just what users put into `spec.userData`; it is no mail parser. Answers to Karpenter's
//! `pkg/providers/amifamily/bootstrap/mime`.

use super::BootstrapError;

/// Boundary of the archives written here.
const BOUNDARY: &str = "//";

/// One document of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MimePart {
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl MimePart {
    pub(super) fn new(content_type: &str, body: impl Into<String>) -> Self {
        Self {
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
        }
    }
}

/// Whether a text is an archive already.
pub(super) fn is_archive(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("MIME-Version:") || text.starts_with("Content-Type:")
}

/// The documents of an archive.
pub(super) fn parse(text: &str) -> Result<Vec<MimePart>, BootstrapError> {
    let text = text.replace('\r', "");
    let (headers, body) = split_headers(text.trim_start());
    let content_type = header(&headers, "Content-Type").unwrap_or_default();
    if !content_type.to_ascii_lowercase().starts_with("multipart/") {
        return Err(fault("is not a multipart one"));
    }
    let boundary = parameter(content_type, "boundary").ok_or_else(|| fault("has no boundary"))?;
    let opening = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut current: Option<Vec<&str>> = None;
    for line in body.lines() {
        let Some(rest) = line
            .strip_prefix(&opening)
            .filter(|rest| matches!(rest.trim(), "" | "--"))
        else {
            if let Some(lines) = current.as_mut() {
                lines.push(line);
            }
            continue;
        };
        if let Some(lines) = current.take() {
            let (headers, body) = split_headers(&lines.join("\n"));
            parts.push(MimePart { headers, body });
        }
        if rest.trim() == "--" {
            return Ok(parts);
        }
        current = Some(Vec::new());
    }
    Err(fault(&format!(
        "ends without the line {opening:?} and two dashes more"
    )))
}

fn fault(what: &str) -> BootstrapError {
    BootstrapError::Custom(format!("the MIME document {what}"))
}

/// A parameter of a header's value, by its name in any case (RFC 2045, section 5.1); quotes are taken off.
fn parameter<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let mut is_quoted = false;
    let mut parameters = value.split(move |it: char| {
        is_quoted ^= it == '"';
        it == ';' && !is_quoted
    });
    parameters.find_map(|it| {
        let (key, value) = it.split_once('=')?;
        let is_wanted = key.trim().eq_ignore_ascii_case(name);
        is_wanted.then(|| value.trim().trim_matches('"'))
    })
}

/// An archive of the documents.
pub(super) fn render(parts: &[MimePart]) -> String {
    let part = |part: &MimePart| {
        let headers: Vec<String> = part
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let body = part.body.trim_end_matches('\n');
        format!("--{BOUNDARY}\n{}\n{body}\n", headers.concat())
    };
    let parts: Vec<String> = parts.iter().map(part).collect();
    format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n{}--{BOUNDARY}--\n",
        parts.concat()
    )
}

fn split_headers(text: &str) -> (Vec<(String, String)>, String) {
    let (head, body) = match text.strip_prefix('\n') {
        Some(body) => ("", body),
        None => text.split_once("\n\n").unwrap_or((text, "")),
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in head.lines() {
        // A header may run on in lines that begin with space.
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = headers.last_mut()
        {
            value.push(' ');
            value.push_str(line.trim());
        } else if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    (headers, body.to_owned())
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_survives_the_way_through_text() {
        let parts = vec![MimePart::new(
            "text/x-shellscript; charset=\"us-ascii\"",
            "#!/bin/sh\necho a\n\necho b",
        )];
        let text = render(&parts);
        assert!(is_archive(&text));
        assert_eq!(parse(&text).unwrap(), parts);
        assert_eq!(parse(&text.replace('\n', "\r\n")).unwrap(), parts);
    }

    #[test]
    fn headers_are_read_in_any_case_and_quotes_hold_what_they_hold() {
        for content_type in [
            "multipart/mixed; boundary=x",
            "Multipart/Mixed; Boundary=\"x\"",
            "multipart/mixed; charset=\"a;boundary=y\"; boundary=x",
        ] {
            let text = format!("Content-Type: {content_type}\n\n--x\nA: b\n\nhello\n--x--\n");
            let body = &parse(&text).unwrap()[0].body;
            assert_eq!(body, "hello", "{content_type}");
        }
    }

    #[test]
    fn what_is_no_whole_archive_is_refused() {
        for text in [
            "Content-Type: text/plain\n\nhello",
            "Content-Type: multipart/mixed\n\n--x\n\nhello\n--x--\n",
            "Content-Type: multipart/mixed; boundary=x\n\n--x\n\nhello\n",
            "Content-Type: multipart/mixed; boundary=y\n\n--x\n\nhello\n--x--\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(!is_archive("#!/bin/sh"));
    }
}
