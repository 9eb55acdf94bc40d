//! The one list of what the file can already say and the product cannot do yet. Building something
//! ends with deleting its row here.

use config::{Value, ValueKind};

use super::value::Fault;

/// A key of a job, and the only values of it that are built.
const KEYS: &[(&str, &[&str])] =
    &[("overlap", &["skip", "allow"]), ("guard", &["both", "ledger"]), ("shards", &["1"])];

/// Keys that are not built, whatever their value, and what is so without them.
const NO_USE: &[(&str, &str)] =
    &[("admin.token", "what [admin] serves changes nothing, so that no request needs a token")];

/// Why this value of a key is refused although it is a good one; `None` when it is built.
pub(crate) fn refusal(key: &str, value: &Value) -> Option<Fault> {
    let (_, built) = KEYS.iter().find(|(name, _)| *name == key)?;
    let (plain, written) = match &value.kind {
        ValueKind::String(text) => (text.clone(), format!("{text:?}")),
        other => (other.to_string(), other.to_string()),
    };
    if built.contains(&plain.trim()) {
        return None;
    }
    let hint = format!("leave it out, or write {}", built.join(" or "));
    Some(Fault::new(format!("{key} = {written} is not built yet")).hint(hint))
}

/// Why a key of a section is refused whatever its value, by its dotted name; `None` when it is built.
pub(crate) fn use_refusal(key: &str) -> Option<Fault> {
    let (key, why) = NO_USE.iter().find(|(name, _)| *name == key)?;
    Some(Fault::new(format!("{key} is not built yet: {why}")).hint("leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_use_is_refused_with_the_reason() {
        assert_eq!(use_refusal("admin.listen"), None);
        assert!(use_refusal("admin.token").is_some_and(|fault| fault.message.contains("changes nothing")));
    }

    #[test]
    fn a_built_value_passes_and_another_is_named() {
        assert_eq!(refusal("overlap", &Value::new(None, "skip")), None);
        assert_eq!(refusal("timeout", &Value::new(None, "1m")), None);
        let fault = refusal("shards", &Value::new(None, 7_i64)).expect("a refusal");
        assert_eq!(fault.message, "shards = 7 is not built yet");
    }
}
