//! A hash that never changes, whatever the compiler, the platform or the replica.

/// Hashes `parts`, in order. `["ab", "c"]` and `["a", "bc"]` have different hashes.
///
/// FNV-1a over every part and its length, then the finalizer of SplitMix64: with FNV alone, similar
/// names have similar low bits, and a remainder uses the low bits. The numbers must never change: with
/// others every `H` and every jitter would move at an upgrade, and replicas of different versions would
/// disagree on when a firing is due.
pub(super) fn stable(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    for part in parts {
        part.iter().copied().for_each(&mut eat);
        (part.len() as u64).to_le_bytes().into_iter().for_each(&mut eat);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::stable;

    #[test]
    fn the_hash_is_the_same_in_every_version() {
        assert_eq!(stable(&[]), 0xf52a_15e9_a9b5_e89b);
        assert_eq!(stable(&[b"reconcile", b"minute"]), 0x246d_edfa_618d_fdc6);
        assert_eq!(stable(&[b"reconcile", b"hour"]), 0xcc23_fdfe_1725_d49c);
    }

    #[test]
    fn the_border_between_two_parts_counts() {
        assert_ne!(stable(&[b"ab", b"c"]), stable(&[b"a", b"bc"]));
        assert_ne!(stable(&[b"a", b""]), stable(&[b"a"]));
    }
}
