//! The name of a lock, and the two keys that it stands for on the server.

use std::fmt::{self, Display};

/// The keys of one lock: `{<prefix>:<scope>/<name>}:lock`, with `#<shard>` and `@<instant>` where wanted.
///
/// Redis Cluster hashes only the text between the braces. So a lock and its done marker are always in one
/// slot, and one script can use both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockKey {
    tag: String,
    suffix: String,
}

impl LockKey {
    /// A key for `name` within `scope`.
    ///
    /// # Errors
    /// [`InvalidKey`] when a part is empty or contains a brace, a slash, white space or a control character,
    /// or when the scope contains a colon: such a key could be in another slot or be equal to another key.
    pub fn new(prefix: &str, scope: &str, name: &str) -> Result<Self, InvalidKey> {
        for (part, text) in [("prefix", prefix), ("scope", scope), ("name", name)] {
            let bad = |c: char| match c {
                '{' | '}' | '/' => true,
                // A prefix may contain colons, so the last colon must be the one before the scope.
                ':' => part == "scope",
                c => c.is_whitespace() || c.is_control(),
            };
            if text.is_empty() || text.contains(bad) {
                return Err(InvalidKey { part, text: text.into() });
            }
        }
        Ok(Self { tag: format!("{{{prefix}:{scope}/{name}}}"), suffix: String::new() })
    }

    /// The same key for one shard.
    #[must_use]
    pub fn shard(mut self, shard: u32) -> Self {
        self.suffix.push_str(&format!("#{shard}"));
        self
    }

    /// The same key for one instant, in milliseconds since 1970: for work that may overlap.
    #[must_use]
    pub fn at(mut self, millis: i64) -> Self {
        self.suffix.push_str(&format!("@{millis}"));
        self
    }

    /// The key on the server that contains the token.
    #[must_use]
    pub fn lock(&self) -> String {
        format!("{}:lock{}", self.tag, self.suffix)
    }

    /// The key on the server that contains the done marker.
    #[must_use]
    pub fn done(&self) -> String {
        format!("{}:done{}", self.tag, self.suffix)
    }
}

impl Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lock())
    }
}

/// A part of a key that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {part} of a lock key must not be empty or contain braces, slashes{colons} or white space, found {text:?}",
    colons = if *part == "scope" { ", colons" } else { "" })]
#[non_exhaustive]
pub struct InvalidKey {
    /// Which part: `prefix`, `scope` or `name`.
    pub part: &'static str,
    /// The text of that part.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_shows_prefix_scope_name_and_dimensions() {
        let key = LockKey::new("runner", "default", "reconcile").unwrap();
        assert_eq!(key.lock(), "{runner:default/reconcile}:lock");
        assert_eq!(key.done(), "{runner:default/reconcile}:done");
        let key = key.shard(3).at(1_780_315_200_000);
        assert_eq!(key.to_string(), "{runner:default/reconcile}:lock#3@1780315200000");
        assert_eq!(key.done(), "{runner:default/reconcile}:done#3@1780315200000");
    }

    #[test]
    fn parts_that_would_move_or_merge_keys_are_refused() {
        for (prefix, scope, name, part) in [
            ("", "s", "n", "prefix"),
            ("p}", "s", "n", "prefix"),
            ("p", "s:t", "n", "scope"),
            ("p", "s/t", "n", "scope"),
            ("p", "s", "n m", "name"),
            ("p", "s", "n\0", "name"),
        ] {
            assert_eq!(LockKey::new(prefix, scope, name).unwrap_err().part, part);
        }
    }

    proptest! {
        #[test]
        fn different_parts_make_different_keys_in_one_slot_each(
            one in ("[a:/]{1,3}", "[a:/]{1,3}", "[a:/]{1,3}"), two in ("[a:/]{1,3}", "[a:/]{1,3}", "[a:/]{1,3}"),
        ) {
            let key = |(prefix, scope, name): &(String, String, String)| LockKey::new(prefix, scope, name).ok();
            if let (Some(first), Some(second)) = (key(&one), key(&two)) {
                prop_assert_eq!(one == two, first.lock() == second.lock());
                let slot = |key: String| key.split('}').next().map(str::to_owned);
                prop_assert_eq!(slot(first.lock()), slot(first.shard(1).at(2).done()));
            }
        }
    }
}
