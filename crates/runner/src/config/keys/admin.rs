//! `[admin]`: health and metrics.

use std::net::SocketAddr;

use config::Value;

use super::row::{Built, Key, keys};
use crate::config::diagnose::Exposure;
use crate::config::secret::Secret;
use crate::config::value::{BadValue, text};

/// What to write as `listen`.
pub(crate) const LISTEN_EXAMPLE: &str = "write for example listen = \"127.0.0.1:8080\"";

keys! { "admin":
    LISTEN: SocketAddr = Key::new("listen", "text", |value, _| listen(value),
        "Where `/healthz`, `/readyz` and `/metrics` are served: an address and a port, `\"127.0.0.1:9090\"`, `\"[::1]:9090\"`. With port 0 the system chooses one; the log says which.")
        .refuses("names; an address without a port");

    // Read, although it is refused: a token that is refused must not be shown either.
    TOKEN: Secret = Key::new("token", "secret", |value, walk| walk.resolver.secret(value),
        "What requests that change something will have to show.")
        .default_in_words("none")
        .exposed(Exposure::Never)
        .built(Built::Nothing("no request that [admin] serves changes anything, so none needs a token"))
        .refuses("any value: it is not built yet, and no request changes anything");
}

fn listen(value: &Value) -> Result<SocketAddr, BadValue> {
    let address = text(value)?;
    address
        .parse()
        .map_err(|_| BadValue::new(format!("{address:?} is not an address and a port")).hint(LISTEN_EXAMPLE))
}
