//! A private PgBouncer in front of a private PostgreSQL: transaction mode, loopback, ended on drop.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::template::{run, server_user};
use super::{PATIENCE, PrivatePostgres, free_port, text};

/// The number of server sessions. It is smaller than the number of clients in the tests, so that clients have to
/// share sessions.
const SERVERS: usize = 8;

/// A pooler in transaction mode: each transaction of a client may get another session of the server.
#[derive(Debug)]
pub struct PrivatePgBouncer {
    home: TempDir,
    port: u16,
    /// `None` while it is stopped.
    keeper: Mutex<Option<Child>>,
}

impl PrivatePgBouncer {
    /// Starts a pooler in front of `server` and waits until it answers.
    ///
    /// # Panics
    /// When `pgbouncer` is not installed, or does not come up.
    #[must_use]
    pub fn before(server: &PrivatePostgres) -> Self {
        Self::configured(server, "")
    }

    /// Like [`PrivatePgBouncer::before`], with additional lines in its configuration.
    ///
    /// # Panics
    /// When `pgbouncer` is not installed, or does not come up.
    #[must_use]
    pub fn configured(server: &PrivatePostgres, lines: &str) -> Self {
        let home =
            TempDir::with_prefix("runner-pool-").unwrap_or_else(|e| panic!("no temporary directory: {e}"));
        if let Some(user) = server_user() {
            chown(home.path(), Some(user.uid), Some(user.gid)).unwrap_or_else(|e| panic!("chown: {e}"));
        }
        let pooler = Self { home, port: free_port(), keeper: Mutex::new(None) };
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\n[pgbouncer]\npool_mode = transaction\n\
             listen_addr = 127.0.0.1\nlisten_port = {}\nunix_socket_dir =\nauth_type = any\n\
             max_client_conn = 500\ndefault_pool_size = {SERVERS}\n{lines}\n",
            server.port(),
            pooler.port,
        );
        fs::write(pooler.file(), settings).unwrap_or_else(|e| panic!("no file for pgbouncer: {e}"));
        pooler.start_again();
        pooler
    }

    /// The pooler that all tests of this process may share, in front of [`PrivatePostgres::shared`].
    ///
    /// It soon closes idle sessions. Each test has a database of its own, and the sessions of hundreds of finished
    /// tests would exceed the server's limit.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PrivatePgBouncer> = OnceLock::new();
        SHARED.get_or_init(|| Self::configured(PrivatePostgres::shared(), "server_idle_timeout = 1"))
    }

    /// The TCP port on loopback; it stays the same.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database of the server, through the pooler.
    ///
    /// # Panics
    /// When `database` is not a URL.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        let (_, name) = database.rsplit_once('/').unwrap_or_else(|| panic!("{database} is not a URL"));
        format!("postgres://postgres@127.0.0.1:{}/{name}", self.port)
    }

    /// The pooler's own text about its version.
    #[must_use]
    pub fn version() -> String {
        text(run(Command::new(binary()).arg("--version"))).lines().next().unwrap_or_default().to_owned()
    }

    /// Kills it, with all connections on both sides.
    pub fn stop(&self) {
        if let Some(mut keeper) = self.lock().take() {
            // The shell ends the pooler when its input ends.
            drop(keeper.stdin.take());
            keeper.wait().unwrap_or_else(|e| panic!("cannot wait for pgbouncer: {e}"));
        }
    }

    /// Starts it again on its port.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start_again(&self) {
        self.stop();
        *self.lock() = Some(self.launch());
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "pgbouncer does not answer:\n{}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A shell that ends the pooler when its input ends: when this value is dropped or the test process ends. The
    /// shell itself exits only when the port is free again.
    fn launch(&self) -> Child {
        const KEEPER: &str = r#""$1" "$2" > "$3" 2>&1 & read -r _; kill -KILL $!; wait"#;
        let mut command = Command::new("sh");
        if let Some(user) = server_user() {
            command.uid(user.uid).gid(user.gid);
        }
        let log = self.home.path().join("log");
        command
            .args(["-c", KEEPER, "sh"])
            .args([binary(), self.file(), log])
            .current_dir(self.home.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap_or_else(|e| panic!("cannot start a shell: {e}"))
    }

    fn file(&self) -> PathBuf {
        self.home.path().join("pgbouncer.ini")
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PrivatePgBouncer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Debian installs it in a directory that is only in root's PATH.
fn binary() -> PathBuf {
    let usual = PathBuf::from("/usr/sbin/pgbouncer");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(usual)
        .chain(std::env::split_paths(&path).map(|folder| folder.join("pgbouncer")))
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("pgbouncer was not found (Debian: apt-get install pgbouncer)"))
}
