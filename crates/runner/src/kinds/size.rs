//! A number of bytes, as people write it.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// The largest size: all output that is kept of a run is stored in one row of the ledger.
const LARGEST: u64 = 16 << 20;

const UNITS: [(&str, u64); 6] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("kB", 1_000), ("KB", 1_000), ("MB", 1_000_000)];

/// A number of bytes, at most 16 MiB: `65536`, or text such as `"64KiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteSize(u64);

impl ByteSize {
    /// So many times 1024 bytes.
    pub(crate) const fn kib(count: u16) -> Self {
        Self((count as u64) << 10)
    }

    /// The number of bytes.
    pub(crate) fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn checked(bytes: u64) -> Result<Self, InvalidSize> {
        if bytes > LARGEST { Err(InvalidSize::TooLarge) } else { Ok(Self(bytes)) }
    }
}

impl FromStr for ByteSize {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        match (number.parse::<u64>(), factor) {
            (Ok(number), Some(factor)) => Self::checked(number.saturating_mul(factor)),
            _ => Err(InvalidSize::Unreadable(text.into())),
        }
    }
}

/// Text or a number that is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidSize {
    /// Not a number with a unit.
    #[error(
        "{0:?} is not a size: write a number and a unit, such as \"64KiB\" (B, KiB, MiB, kB, MB), or an integer of bytes"
    )]
    Unreadable(String),
    /// More than one row should hold.
    #[error("at most \"16MiB\" may be kept")]
    TooLarge,
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as \"64KiB\", or an integer of bytes")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
        ByteSize::checked(bytes).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
        let bytes = u64::try_from(bytes).map_err(|_| E::custom("a size cannot be negative"))?;
        self.visit_u64(bytes)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_a_unit() {
        let size = |json: &str| serde_json::from_str::<ByteSize>(json).map(ByteSize::bytes).unwrap();
        assert_eq!(size("4096"), 4096);
        assert_eq!(size("0"), 0);
        assert_eq!(size("\"64KiB\""), 65_536);
        assert_eq!(size("\"2 MiB\""), 2 << 20);
        assert_eq!(size("\"1kB\""), 1_000);
        assert_eq!(size("\"16MiB\""), 16 << 20);
    }

    #[test]
    fn text_that_is_not_a_size_is_refused_with_a_hint() {
        let refusal = |json: &str| serde_json::from_str::<ByteSize>(json).unwrap_err().to_string();
        for json in ["\"64\"", "\"KiB\"", "\"64 kilobytes\"", "\"-1KiB\"", "\"\""] {
            assert!(refusal(json).contains("write a number and a unit"), "{json}: {}", refusal(json));
        }
        assert!(refusal("\"17MiB\"").contains("16MiB"));
        assert!(refusal("\"99999999999999999999KiB\"").contains("not a size"));
        assert!(refusal("\"18446744073709551615MiB\"").contains("16MiB"));
        assert!(refusal("-1").contains("negative"));
        assert!(refusal("true").contains("a size such as"));
    }
}
