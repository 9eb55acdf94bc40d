//! The statuses of an answer that count as success.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use hyper::StatusCode;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

/// A set of statuses: `200`, `"2xx"`, `"200-204"`, or a list of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expect(Vec<RangeInclusive<u16>>);

impl Expect {
    /// Whether an answer with this status is a success.
    pub(super) fn holds(&self, status: StatusCode) -> bool {
        self.0.iter().any(|range| range.contains(&status.as_u16()))
    }

    fn one(status: u16) -> Option<Self> {
        Self::range(status, status)
    }

    /// 1xx is left out: such a response is not final, a real answer follows it.
    fn range(from: u16, to: u16) -> Option<Self> {
        (from <= to && (200..=599).contains(&from) && to <= 599).then(|| Self(vec![from..=to]))
    }
}

impl Default for Expect {
    fn default() -> Self {
        Self(vec![200..=299])
    }
}

impl FromStr for Expect {
    type Err = NoStatus;

    fn from_str(text: &str) -> Result<Self, NoStatus> {
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let trimmed = text.trim();
        let class = |text: &str| {
            let digit = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"))?;
            let digit = number(digit).filter(|digit| *digit < 10)?;
            Self::range(digit * 100, digit * 100 + 99)
        };
        let found = match trimmed.split_once('-') {
            Some((from, to)) => number(from).zip(number(to)).and_then(|(from, to)| Self::range(from, to)),
            None => class(trimmed).or_else(|| number(trimmed).and_then(Self::one)),
        };
        found.ok_or_else(|| NoStatus(format!("{text:?}")))
    }
}

/// Text or a number that is not a final status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a status: write 200, \"2xx\", \"200-204\" or a list of these, from 200 to 599")]
pub(super) struct NoStatus(String);

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExpectVisitor)
    }
}

struct ExpectVisitor;

impl<'de> Visitor<'de> for ExpectVisitor {
    type Value = Expect;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a status such as 200, \"2xx\" or \"200-204\", or a list of these")
    }

    fn visit_u64<E: de::Error>(self, status: u64) -> Result<Expect, E> {
        let found = u16::try_from(status).ok().and_then(Expect::one);
        found.ok_or_else(|| E::custom(NoStatus(status.to_string())))
    }

    fn visit_i64<E: de::Error>(self, status: i64) -> Result<Expect, E> {
        let found = u16::try_from(status).ok().and_then(Expect::one);
        found.ok_or_else(|| E::custom(NoStatus(status.to_string())))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Expect, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Expect, A::Error> {
        let mut ranges = Vec::new();
        while let Some(Expect(more)) = seq.next_element()? {
            ranges.extend(more);
        }
        if ranges.is_empty() {
            return Err(de::Error::custom("the list is empty: no answer could be a success"));
        }
        Ok(Expect(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Expect, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn holds(json: &str, status: u16) -> bool {
        read(json).unwrap().holds(StatusCode::from_u16(status).unwrap())
    }

    #[test]
    fn statuses_are_numbers_classes_ranges_and_lists_of_them() {
        assert!(holds("202", 202) && !holds("202", 200));
        assert!(holds("\"204\"", 204));
        assert!(holds("\"2xx\"", 200) && holds("\"2XX\"", 299) && !holds("\"2xx\"", 300));
        assert!(holds("\"200-204\"", 204) && !holds("\"200-204\"", 205));
        assert!(holds("[\"2xx\", 404, \"409 - 410\"]", 410) && !holds("[200, 404]", 500));
        assert!(holds("\"3xx\"", 303));
        assert!(Expect::default().holds(StatusCode::ACCEPTED));
    }

    #[test]
    fn what_is_not_a_status_is_refused_with_a_hint() {
        for json in [
            "99",
            "100",
            "600",
            "-1",
            "70000",
            "\"\"",
            "\"xx\"",
            "\"1xx\"",
            "\"22xx\"",
            "\"204-200\"",
            "\"2-3\"",
            "\"ok\"",
        ] {
            let refusal = read(json).unwrap_err();
            assert!(refusal.contains("is not a status: write 200"), "{json}: {refusal}");
        }
        assert!(read("[]").unwrap_err().contains("the list is empty"));
        assert!(read("true").unwrap_err().contains("a status such as"));
    }
}
