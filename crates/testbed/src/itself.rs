//! For tests that start their own test program again, as a second process.

/// The full name of the test `$test` in this module, for `--exact`.
///
/// A test program that does not have the requested test runs nothing and succeeds. So the compiler builds the
/// name here, and it also checks that the function exists.
#[macro_export]
macro_rules! test_name {
    ($test:ident) => {{
        let _: fn() = $test;
        let name = concat!(module_path!(), "::", stringify!($test));
        // The test program leaves out the name of its crate.
        name.split_once("::").map_or(name, |(_, name)| name)
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_knows_its_own_name() {
        assert_eq!(test_name!(a_test_knows_its_own_name), "itself::tests::a_test_knows_its_own_name");
    }
}
