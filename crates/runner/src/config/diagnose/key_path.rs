//! The dotted key of a value: `jobs.reconcile.params.argv`.

use std::fmt::{self, Display};

/// Where a value stands in the tree, from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KeyPath(Vec<String>);

impl KeyPath {
    /// The path of `segments`.
    pub(crate) fn of<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Self {
        Self(segments.into_iter().map(|segment| segment.as_ref().to_owned()).collect())
    }

    /// Reads what [`Display`] writes; list positions may also be written `argv[0]`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut current = String::new();
        let mut quoted = false;
        for c in text.chars() {
            match c {
                '"' => quoted = !quoted,
                '.' | '[' if !quoted => segments.push(std::mem::take(&mut current)),
                ']' if !quoted => {}
                _ => current.push(c),
            }
        }
        segments.push(current);
        segments.retain(|segment| !segment.is_empty());
        Self(segments)
    }

    /// The path one step down.
    pub(crate) fn child(&self, segment: &str) -> Self {
        self.below([segment])
    }

    /// The path several steps down.
    pub(crate) fn below<S: AsRef<str>>(&self, segments: impl IntoIterator<Item = S>) -> Self {
        let mut path = self.clone();
        path.0.extend(segments.into_iter().map(|segment| segment.as_ref().to_owned()));
        path
    }

    /// The steps from the root.
    pub(crate) fn segments(&self) -> &[String] {
        &self.0
    }

    /// Whether one of the two holds the other, or they are the same.
    pub(crate) fn touches(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| mine == theirs)
    }
}

/// As TOML would write the key, so that it can be searched for.
impl Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(".")?;
            }
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if !segment.is_empty() && segment.chars().all(bare) {
                f.write_str(segment)?;
            } else {
                write!(f, "{segment:?}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_what_it_writes() {
        for text in ["lock.url", "jobs.a.params.argv.0", "jobs.\"a.b\".kind"] {
            assert_eq!(KeyPath::parse(text).to_string(), text);
        }
        assert_eq!(KeyPath::parse("params.argv[2]").to_string(), "params.argv.2");
    }
}
