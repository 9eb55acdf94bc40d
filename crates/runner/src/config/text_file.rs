//! Params that name a text file: the kind is told what is in the file.

use std::path::Path;

use super::value::BadValue;

/// More than anybody writes by hand: a device or a log that is named by mistake is not read to its end.
const LARGEST: u64 = 1024 * 1024;

/// Replaces the names of files by the text of the files, for those of `keys` that are set. A relative
/// name starts in `directory`.
pub(crate) fn put_in_place(params: &mut toml::Table, keys: &[&str], directory: &Path) -> Vec<BadValue> {
    let mut faults = Vec::new();
    for key in keys {
        let Some(toml::Value::String(value)) = params.get_mut(*key) else { continue };
        match read(&directory.join(&*value)) {
            Ok(text) => *value = text,
            Err(message) => faults.push(BadValue::new(message).under(key)),
        }
    }
    faults
}

fn read(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| format!("cannot read the file {shown}: {error}");
    let size = std::fs::metadata(path).map_err(cannot)?.len();
    if size > LARGEST {
        return Err(format!("the file {shown} has {size} bytes, more than the {LARGEST} that are read"));
    }
    std::fs::read_to_string(path).map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_the_configuration_takes_the_place_of_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("a.sql"), "SELECT 1;\n").expect("written");
        let mut params: toml::Table = "file = 'a.sql'\nother = 'a.sql'".parse().expect("TOML");
        assert_eq!(put_in_place(&mut params, &["file", "absent"], dir.path()), []);
        assert_eq!(params, "file = \"SELECT 1;\\n\"\nother = 'a.sql'".parse().expect("TOML"));
        let mut missing: toml::Table = "file = 'b.sql'".parse().expect("TOML");
        let faults = put_in_place(&mut missing, &["file"], dir.path());
        assert!(matches!(faults.as_slice(), [fault] if fault.within == ["file"]), "{faults:?}");
    }
}
