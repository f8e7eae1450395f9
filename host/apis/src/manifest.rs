//! Texts of several YAML documents, as manifests are kept.
//!
//! Nothing of YAML is read but the lines that part documents.

/// Cuts at lines that are `---`, and tells the line at which each document begins. Those without content are left out.
pub fn split_documents(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 1, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push((start_line, &text[start..offset]));
            start = offset + line.len();
            start_line = index + 2;
        }
        offset += line.len();
    }
    documents.push((start_line, &text[start..]));
    documents.retain(|(_, document)| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    });
    documents
}

#[cfg(test)]
mod tests {
    use super::split_documents;

    #[test]
    fn documents_are_told_with_their_lines_and_comments_are_none() {
        let text = "# of nobody\n---\na: 1\n---\n# nothing\n--- # b\nb: 2\n";
        assert_eq!(split_documents(text), [(3, "a: 1\n"), (7, "b: 2\n")]);
        assert_eq!(split_documents("a: '---'"), [(1, "a: '---'")]);
        assert!(split_documents("\n---\n").is_empty());
    }
}
