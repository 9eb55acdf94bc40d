//! Coming up, and refusing to.

use std::error::Error;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use runner::internal::ledger::{LedgerError, Operators, Reader, SqliteLedger};
use sqlx::{Connection, SqliteConnection};

use super::peer::{self, Peer};
use super::scene::{self, JOB, Scene, options};

#[tokio::test]
async fn four_processes_that_open_a_fresh_file_at_once_all_come_up() {
    let name = testbed::test_name!(four_processes_that_open_a_fresh_file_at_once_all_come_up);
    if let Some(role) = peer::role() {
        peer::wait_for_start();
        let ledger = scene::open(&role.file).await;
        let job = format!("job-{}", role.number);
        scene::register(&ledger, &[&job]).await;
        return;
    }
    let scene = Scene::new();
    for peer in Peer::start_together(name, &scene.file(), 4) {
        peer.finish();
    }
    let jobs = scene::open(&scene.file()).await.jobs().await.expect("jobs");
    let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["job-0", "job-1", "job-2", "job-3"]);
}

#[tokio::test]
async fn an_open_ledger_can_be_opened_by_another() {
    let scene = Scene::new();
    let first = scene.ledger().await;
    let second = scene::open(&scene.file()).await;
    assert_eq!(first.jobs().await.expect("jobs"), second.jobs().await.expect("jobs"));
}

#[tokio::test]
async fn a_ledger_in_memory_needs_no_file_and_is_its_own() {
    let open = || SqliteLedger::open(options("sqlite::memory:", true));
    let (one, other) = (open().await.expect("memory"), open().await.expect("memory"));
    scene::register(&one, &[JOB]).await;
    assert_eq!(one.jobs().await.expect("jobs").len(), 1);
    assert_eq!(other.jobs().await.expect("jobs").len(), 0);
}

#[tokio::test]
async fn migrating_names_what_was_applied_and_applies_it_once() {
    let scene = Scene::new();
    let options = options(&scene::url(&scene.file()), true);
    assert_eq!(SqliteLedger::migrate(&options).await.expect("migrated"), ["0001_ledger", "0002_server"]);
    assert!(SqliteLedger::migrate(&options).await.expect("migrated").is_empty());
}

#[tokio::test]
async fn the_files_of_a_ledger_can_be_read_and_written_by_their_owner_only() {
    let modes = |scene: &Scene| {
        let mut modes = Vec::new();
        for entry in std::fs::read_dir(scene.dir()).expect("readable") {
            let entry = entry.expect("readable");
            let mode = entry.metadata().expect("there").permissions().mode() & 0o777;
            modes.push((entry.file_name().into_string().expect("text"), mode));
        }
        modes.sort();
        modes
    };
    let private = ["runner.db", "runner.db-shm", "runner.db-wal", "runner.db.lock"]
        .map(|file| (file.to_owned(), 0o600));
    let scene = Scene::new();
    let first = scene.ledger().await;
    assert_eq!(modes(&scene), private);
    // As an older program has left them.
    for (file, _) in &private {
        std::fs::set_permissions(scene.dir().join(file), Permissions::from_mode(0o644)).expect("ours");
    }
    let second = scene.ledger().await;
    assert_eq!(modes(&scene), private);
    drop((first, second));
}

#[tokio::test]
async fn without_leave_to_migrate_a_missing_file_is_not_made() {
    let scene = Scene::new();
    assert_eq!(hint(&scene, false).await, "does not exist; run `runner migrate`");
    assert_eq!(std::fs::read_dir(scene.dir()).expect("readable").count(), 0, "nothing was written");
}

#[tokio::test]
async fn without_leave_to_migrate_an_empty_database_is_refused() {
    let scene = Scene::new();
    std::fs::write(scene.file(), []).expect("written");
    assert_eq!(hint(&scene, false).await, "lacks 0001_ledger; run `runner migrate`");
}

#[tokio::test]
async fn without_leave_to_migrate_a_finished_ledger_opens() {
    let scene = Scene::new();
    scene.ledger().await;
    let ledger = SqliteLedger::open(options(&scene::url(&scene.file()), false)).await;
    assert_eq!(ledger.expect("opened").jobs().await.expect("jobs").len(), 1);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let scene = Scene::new();
    std::fs::write(scene.file(), "scheduled_at,job,state\n".repeat(100)).expect("written");
    assert_eq!(hint(&scene, true).await, "is not a SQLite database");
}

#[tokio::test]
async fn a_directory_that_does_not_take_files_is_refused() {
    let error = SqliteLedger::open(options("sqlite:/proc/runner.db", true)).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "cannot open the ledger: /proc/runner.db or a file beside it cannot be written"
    );
    assert!(error.source().is_some());
}

#[tokio::test]
async fn a_ledger_of_a_newer_program_is_refused() {
    let scene = Scene::new();
    scene.ledger().await;
    let mut conn = SqliteConnection::connect(&scene::url(&scene.file())).await.expect("connected");
    sqlx::query("INSERT INTO runner_migrations VALUES (9000, 'future', '', 1, x'00', 0)")
        .execute(&mut conn)
        .await
        .expect("inserted");
    for migrate in [true, false] {
        assert_eq!(hint(&scene, migrate).await, "has migration 9000 of a newer runner; use that one");
    }
}

#[tokio::test]
async fn a_ledger_made_from_other_migrations_is_refused() {
    let scene = Scene::new();
    scene.ledger().await;
    let mut conn = SqliteConnection::connect(&scene::url(&scene.file())).await.expect("connected");
    sqlx::query("UPDATE runner_migrations SET checksum = x'00'").execute(&mut conn).await.expect("updated");
    for migrate in [true, false] {
        assert_eq!(hint(&scene, migrate).await, "was not made by this runner's migrations");
    }
}

#[tokio::test]
async fn a_missing_directory_is_told_apart() {
    let scene = Scene::new();
    let url = format!("sqlite:{}/missing/runner.db", scene.dir().display());
    let error = SqliteLedger::open(options(&url, true)).await.expect_err("refused");
    assert!(
        error.to_string().contains("there is no directory /") && error.to_string().ends_with("/missing"),
        "{error}"
    );
}

#[tokio::test]
async fn a_url_without_a_path_or_with_parameters_is_refused() {
    for (url, wanted) in [("sqlite:", "needs a path"), ("sqlite:runner.db?mode=ro", "without parameters")] {
        let error = SqliteLedger::open(options(url, true)).await.expect_err("refused");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

#[tokio::test]
async fn tables_of_the_user_may_live_in_the_same_file() {
    let scene = Scene::new();
    let mut conn = SqliteConnection::connect(&format!("{}?mode=rwc", scene::url(&scene.file())))
        .await
        .expect("connected");
    sqlx::query("CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY)")
        .execute(&mut conn)
        .await
        .expect("created");
    let ledger = scene.ledger().await;
    assert!(ledger.pause(JOB, "me", "lunch").await.expect("paused"));
}

/// What opening the scene's file is refused with, after the file's name.
async fn hint(scene: &Scene, migrate: bool) -> String {
    let opened = SqliteLedger::open(options(&scene::url(&scene.file()), migrate)).await;
    match opened {
        Err(LedgerError::Unusable { hint, .. }) => {
            let name = scene.file().display().to_string();
            hint.strip_prefix(&name).expect("the file is named").trim_start().to_owned()
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}
