//! One connection to a Redis server.

use std::error::Error;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{Client, ErrorKind, FromRedisValue, RedisError, RedisResult, ScriptInvocation, ServerErrorKind};
use tokio::runtime::Handle;

use super::address::connection_info;
use crate::{BoxFuture, InvalidUrl, LockError};

/// A connection that lives on one runtime, and is replaced when it cannot be relied on any more.
pub(super) struct Link {
    client: Client,
    config: ConnectionManagerConfig,
    runtime: Handle,
    pub(super) server: String,
    password: Option<String>,
    connection: Mutex<Connection>,
}

/// The current connection, and how many replies it has brought.
#[derive(Clone)]
struct Connection {
    manager: ConnectionManager,
    replies: Arc<AtomicU64>,
}

impl Link {
    pub(super) fn new(url: &str, timeout: Duration, runtime: Handle) -> Result<Self, InvalidUrl> {
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(5))
            .with_interval(Duration::from_secs(1))
            .with_retries(3);
        // Without the user timeout the kernel would keep a dead network path for a quarter of an hour.
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive)
            .set_user_timeout(Duration::from_secs(2));
        let info = connection_info(url)?.set_tcp_settings(tcp);
        // With its own retries the client would block every caller in its backoff, nine seconds by default.
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_number_of_retries(0)
            .set_pipeline_buffer_size(1024);
        let server = info.addr().to_string();
        let password = info.redis_settings().password().map(Into::into);
        let client = Client::open(info)?;
        let connection = Mutex::new(Connection::open(&client, &config, &runtime)?);
        Ok(Self { client, config, runtime, server, password, connection })
    }

    /// Runs a script. Replaces the connection if the outcome says that it cannot be relied on.
    pub(super) async fn invoke<T: FromRedisValue + Send + Sync>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> RedisResult<T> {
        let mut connection = self.current().clone();
        let replies = connection.replies.load(Ordering::Relaxed);
        let call = script.invoke_async(&mut connection.manager);
        let result = within(&self.runtime, Box::pin(call)).await;
        let silent = connection.replies.load(Ordering::Relaxed) == replies;
        match &result {
            Err(error) if must_reconnect(error, silent) => self.replace(&connection),
            _ => _ = connection.replies.fetch_add(1, Ordering::Relaxed),
        }
        result
    }

    /// Lets the next call open a new connection, unless another call has replaced this one already.
    fn replace(&self, failed: &Connection) {
        let mut current = self.current();
        if Arc::ptr_eq(&current.replies, &failed.replies)
            && let Ok(fresh) = Connection::open(&self.client, &self.config, &self.runtime)
        {
            *current = fresh;
        }
    }

    fn current(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn unavailable(&self, doing: &'static str, error: RedisError) -> LockError {
        LockError::unavailable(doing, without(self.password.as_deref(), error))
    }
}

impl Connection {
    fn open(client: &Client, config: &ConnectionManagerConfig, runtime: &Handle) -> RedisResult<Self> {
        let _inside = runtime.enter();
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())?;
        Ok(Self { manager, replies: Arc::default() })
    }
}

/// Whether a connection must not be used again after `error`. `silent`: it has brought no reply, to any
/// call, since the request was sent.
fn must_reconnect(error: &RedisError, silent: bool) -> bool {
    match error.kind() {
        // If the connection answers other calls, this request was slow. If it is silent, the network path
        // may be dead, and the manager would keep it for as long as the kernel does.
        ErrorKind::Io if error.is_timeout() => silent,
        // The manager reconnects by itself, once, right now. If that fails, the next call would get that
        // failure, however much later it comes.
        ErrorKind::Io => true,
        // A failover has made our server a replica. Its name may lead to the new master by now.
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown) => true,
        _ => error.is_unrecoverable_error(),
    }
}

/// Polls `call` inside `runtime`, on whatever thread: the socket, the timers and the driver task that it
/// creates then belong to that runtime.
async fn within<T>(runtime: &Handle, mut call: BoxFuture<'_, T>) -> T {
    poll_fn(|context| {
        let _inside = runtime.enter();
        call.as_mut().poll(context)
    })
    .await
}

/// The error without the password. A server that does not know AUTH repeats the arguments of the command.
fn without(password: Option<&str>, error: RedisError) -> Box<dyn Error + Send + Sync> {
    match password {
        Some(password) if !password.is_empty() && error.to_string().contains(password) => {
            error.to_string().replace(password, "***").into()
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{RedisError, parse_redis_value};

    use super::*;

    fn from_server(reply: &str) -> RedisError {
        parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap().extract_error().unwrap_err()
    }

    fn from_network(kind: io::ErrorKind) -> RedisError {
        io::Error::from(kind).into()
    }

    #[test]
    fn a_connection_is_replaced_after_errors_that_say_it_is_of_no_use() {
        for kind in
            [io::ErrorKind::BrokenPipe, io::ErrorKind::HostUnreachable, io::ErrorKind::PermissionDenied]
        {
            for silent in [true, false] {
                assert!(must_reconnect(&from_network(kind), silent), "{kind}");
            }
        }
        for reply in ["READONLY not a master", "MASTERDOWN no master"] {
            assert!(must_reconnect(&from_server(reply), false), "{reply}");
        }
    }

    #[test]
    fn a_timeout_replaces_a_connection_only_if_nothing_else_is_answered_on_it() {
        assert!(must_reconnect(&from_network(io::ErrorKind::TimedOut), true));
        assert!(!must_reconnect(&from_network(io::ErrorKind::TimedOut), false));
    }

    #[test]
    fn a_refusal_by_the_server_does_not_replace_the_connection() {
        for reply in
            ["OOM command not allowed", "WRONGTYPE not a string", "NOPERM no permissions", "ERR unknown"]
        {
            for silent in [true, false] {
                assert!(!must_reconnect(&from_server(reply), silent), "{reply}");
            }
        }
    }

    #[test]
    fn an_error_that_repeats_the_password_is_shown_without_it() {
        let error = || from_server("ERR unknown command 'AUTH', with args beginning with: 'hunter2'");
        assert!(error().to_string().contains("hunter2"), "the client hides it by now: delete `without`");
        let hidden = without(Some("hunter2"), error()).to_string();
        assert!(hidden.contains("AUTH") && hidden.contains("***") && !hidden.contains("hunter2"), "{hidden}");
        for harmless in [None, Some(""), Some("another")] {
            let kept = without(harmless, error());
            assert_eq!(kept.to_string(), error().to_string());
            assert!(kept.is::<RedisError>(), "the error of the client stays as it is");
        }
    }
}
