//! The proof of who holds a lock: new for each acquisition, and readable in redis-cli.

use std::fmt::{self, Display};

use uuid::Uuid;

/// `<instance>|<subject>|<uuid>`: a value that belongs to one acquisition.
///
/// Release and renewal compare the whole value. So a process never touches the lock of another process, nor
/// one of an earlier acquisition of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token(String);

impl Token {
    /// A new token of the process `instance`. `subject` says what the lock is held for: the instant of the
    /// work, for example. A `|` in either is replaced by `_`.
    #[must_use]
    pub fn new(instance: &str, subject: &str, unique: Uuid) -> Self {
        let clean = |text: &str| text.replace('|', "_");
        Self(format!("{}|{}|{}", clean(instance), clean(subject), unique.simple()))
    }

    /// The same instance and subject with a new unique part, for an acquisition that starts again.
    pub(crate) fn reissued(&self, unique: Uuid) -> Self {
        let named = self.0.rsplit_once('|').map_or(self.0.as_str(), |(named, _)| named);
        Self(format!("{named}|{}", unique.simple()))
    }

    /// The value as the server stores it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who holds a lock, as others learn it when they cannot take it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The process that holds it.
    pub instance: String,
    /// What it holds it for.
    pub subject: String,
}

impl Holder {
    /// Reads the value of a token. A value of another form, which is not ours, becomes the instance as it is.
    #[must_use]
    pub fn from_value(value: &str) -> Self {
        let mut parts = value.splitn(3, '|');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(instance), Some(subject), Some(_)) => {
                Self { instance: instance.into(), subject: subject.into() }
            }
            _ => Self { instance: value.into(), subject: String::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_holder_and_is_unique() {
        let token = |unique| Token::new("web-1", "2026-06-01T12:00:00Z", Uuid::from_u128(unique));
        assert_eq!(token(1).as_str(), "web-1|2026-06-01T12:00:00Z|00000000000000000000000000000001");
        assert_eq!(token(1).to_string(), token(1).as_str());
        assert_ne!(token(1), token(2));
        let holder = Holder::from_value(token(1).as_str());
        assert_eq!((holder.instance.as_str(), holder.subject.as_str()), ("web-1", "2026-06-01T12:00:00Z"));
    }

    #[test]
    fn a_reissued_token_differs_in_its_unique_part_only() {
        let first = Token::new("web-1", "noon", Uuid::from_u128(1));
        assert_eq!(first.reissued(Uuid::from_u128(2)), Token::new("web-1", "noon", Uuid::from_u128(2)));
    }

    #[test]
    fn a_name_with_a_bar_cannot_change_the_parts_of_a_token() {
        let token = Token::new("web|1", "no|on", Uuid::from_u128(1));
        let holder = Holder::from_value(token.as_str());
        assert_eq!((holder.instance.as_str(), holder.subject.as_str()), ("web_1", "no_on"));
    }

    #[test]
    fn a_foreign_value_is_shown_whole() {
        let holder = Holder::from_value("maintenance|since monday");
        assert_eq!((holder.instance.as_str(), holder.subject.as_str()), ("maintenance|since monday", ""));
    }
}
