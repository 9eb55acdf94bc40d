//! What gives a secret away: words in the name of a key, and signs in a text.

use super::hints;

/// Words in the name of a key whose value is a secret.
const TELLING: [&str; 10] = [
    "url",
    "password",
    "passwd",
    "token",
    "secret",
    "credential",
    "authorization",
    "cookie",
    "api_key",
    "apikey",
];

/// Whether the name of a key says that its value is a secret. A misspelt `pasword` says it too: a
/// misspelt key is a problem, and a problem quotes its line.
pub(crate) fn is_telling(key: &str) -> bool {
    let key = key.to_lowercase().replace('-', "_");
    TELLING.iter().any(|word| key.contains(word)) || hints::nearest(&key, TELLING).is_some()
}

/// Whether a text looks like a secret: `scheme://user:password@host`, `--password=…`.
pub(crate) fn is_telling_text(text: &str) -> bool {
    let userinfo = text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        // An unescaped '/' or '#' in a password ends the authority early; the '@' gives it away.
        authority.contains('@') || (rest.contains('@') && rest.contains(':'))
    });
    let lower = text.to_lowercase();
    userinfo
        || ["password=", "passwd=", "token=", "secret=", "bearer "].iter().any(|sign| lower.contains(sign))
}
