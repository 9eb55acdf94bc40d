//! Tests that start their own test program once more, to be another process.

/// The full name of the test `$test` of the module in which this stands, as `--exact` wants it.
///
/// A test program that is asked for a test it does not have runs none and succeeds. So the name is made
/// by the compiler, which also checks that there is such a function.
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
