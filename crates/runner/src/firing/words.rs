//! Enums that are written as words, and words that are read from the ledger.

use std::fmt::{self, Display};
use std::str::FromStr;

/// Gives each variant of an enum the word that stands for it in the ledger, in logs and in jobs.toml.
macro_rules! words {
    ($vis:vis $type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word for it.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::firing::Vocabulary for $type {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::firing::UnknownWord;

            fn from_str(text: &str) -> Result<Self, $crate::firing::UnknownWord> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::firing::UnknownWord { found: text.into(), known: &[$($word),+] }),
                }
            }
        }
    };
}
pub(crate) use words;

/// An enum whose variants are written as words.
pub trait Vocabulary: Copy + FromStr + 'static {
    /// Every variant, in the order of the list.
    const ALL: &'static [Self];

    /// The word for it.
    fn word(self) -> &'static str;
}

/// A word that none of the choices has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {found:?}, expected one of {}", .known.join(", "))]
pub struct UnknownWord {
    /// What was found.
    pub found: String,
    /// What would do.
    pub known: &'static [&'static str],
}

/// A word as it was read from the ledger.
///
/// A newer program may share the ledger during a rolling deploy and write words that this one does not know.
/// Such a word is kept as it was read and shown; it makes no row unreadable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Word<T> {
    /// A word of this program.
    Known(T),
    /// A word that only another program knows.
    Foreign(String),
}

impl<T: Vocabulary> Word<T> {
    /// Reads any text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Foreign(text.to_owned()), Self::Known)
    }

    /// The variant, if this program knows the word.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(word) => Some(*word),
            Self::Foreign(_) => None,
        }
    }

    /// The text as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => word.word(),
            Self::Foreign(text) => text,
        }
    }
}

impl<T> From<T> for Word<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<T: PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(word) if word == other)
    }
}

impl<T: Vocabulary> Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reason, State};
    use super::*;

    #[test]
    fn a_word_of_a_newer_program_is_kept_as_it_was_read() {
        let word = Word::<State>::read("hibernating");
        assert_eq!((word.known(), word.as_str()), (None, "hibernating"));
        assert_eq!(word.to_string(), "hibernating");
        assert_ne!(word, State::Running);
    }

    #[test]
    fn a_word_of_this_program_is_its_variant() {
        let word = Word::<Reason>::read("owner_lost");
        assert_eq!((word.known(), word.as_str()), (Some(Reason::OwnerLost), "owner_lost"));
        assert_eq!(word, Reason::OwnerLost);
    }
}
