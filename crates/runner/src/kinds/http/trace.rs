//! The trace that a run belongs to, in the format of W3C Trace Context.

use crate::firing::Fence;

/// The `traceparent` of one run: all runs of a firing are one trace, and each run is a span of its own.
///
/// The ids are computed, not random. So runs of one firing share a trace even when they happened on different
/// replicas. Every trace is marked as sampled: scheduled requests are rare, and a failed one must be findable.
pub(super) fn parent(idempotency_key: &str, fence: Fence) -> String {
    let key = idempotency_key.as_bytes();
    let span = [key, &fence.0.to_be_bytes()].concat();
    format!("00-{:016x}{:016x}-{:016x}-01", mixed(0, key), mixed(1, key), mixed(2, &span))
}

/// FNV-1a, and then a step that mixes all bits. The standard library's hashers may change with its version,
/// and replicas of two versions must agree. Never zero, which the format forbids.
fn mixed(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.iter().fold(start, step);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash ^ (hash >> 33)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "default/reconcile/2026-03-29T01:00:00Z/0";

    fn parts(key: &str, fence: i64) -> [String; 2] {
        let parent = parent(key, Fence(fence));
        let fields: Vec<&str> = parent.split('-').collect();
        assert_eq!((fields[0], fields[3], fields.len()), ("00", "01", 4), "{parent}");
        let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        assert!(
            fields[1].len() == 32 && hex(fields[1]) && fields[2].len() == 16 && hex(fields[2]),
            "{parent}"
        );
        [fields[1].to_owned(), fields[2].to_owned()]
    }

    #[test]
    fn runs_of_one_firing_are_spans_of_one_trace() {
        let (first, second, other) =
            (parts(KEY, 41), parts(KEY, 42), parts(&KEY.replace("01:00", "01:05"), 41));
        assert_eq!(first[0], second[0]);
        assert_ne!(first[1], second[1]);
        assert_ne!(first[0], other[0]);
        assert_ne!(first[1], other[1]);
    }

    #[test]
    fn replicas_of_every_version_derive_the_same() {
        assert_eq!(parent(KEY, Fence(41)), parent(KEY, Fence(41)));
        assert_eq!(mixed(0, b""), 0xefd0_1f60_ba99_2926);
    }
}
