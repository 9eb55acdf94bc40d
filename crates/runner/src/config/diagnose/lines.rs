//! Lines and headers of a text that may not be TOML.

/// The line that holds the byte `at`.
pub(crate) fn line_of(text: &str, at: usize) -> &str {
    text[line_start(text, at)..].split('\n').next().unwrap_or_default()
}

/// Where the header of the table that holds the byte `at` begins; 0 above the first header.
pub(crate) fn header_before(text: &str, at: usize) -> usize {
    let mut start = line_start(text, at);
    while start > 0 && !line_of(text, start).trim_start().starts_with('[') {
        start = line_start(text, start - 1);
    }
    start
}

/// Where the line that holds the byte `at` begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// `[ jobs . "a" ]` as `jobs.a`; empty when the line is no header.
pub(crate) fn normal_header(line: &str) -> String {
    let Some(inner) = line.trim().strip_prefix('[') else { return String::new() };
    let inner = inner.trim_start_matches('[').split(']').next().unwrap_or_default();
    inner.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_in_its_line_and_below_its_header() {
        let text = "x = 1\n[a]\ny = 2\n";
        let at = text.find("y").expect("there");
        assert_eq!((line_of(text, at), line_of(text, header_before(text, at))), ("y = 2", "[a]"));
        assert_eq!(header_before(text, 2), 0);
        assert_eq!(line_start(text, 7), 6);
    }

    #[test]
    fn a_header_is_read_however_it_is_spaced() {
        for header in ["[jobs.a]", "[ jobs . \"a\" ]", "[[jobs.a]]", "[jobs.a", "  [jobs.'a'] # note"] {
            assert_eq!(normal_header(header), "jobs.a", "{header}");
        }
        assert_eq!(normal_header("a = 1"), "");
    }
}
