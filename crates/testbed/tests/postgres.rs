//! The private PostgreSQL keeps its promises.

use std::path::Path;

use testbed::PrivatePostgres;

#[test]
fn a_server_gives_every_test_an_empty_database() {
    let server = PrivatePostgres::start();
    let (one, two) = (server.create_database(), server.create_database());
    PrivatePostgres::sql_at(&one, "CREATE TABLE t (x int); INSERT INTO t VALUES (7)");
    assert_eq!(PrivatePostgres::sql_at(&one, "SELECT x FROM t"), "7");
    assert_eq!(PrivatePostgres::sql_at(&two, "SELECT count(*) FROM pg_tables WHERE tablename = 't'"), "0");
}

#[test]
fn what_was_committed_is_there_after_a_crash_on_the_same_port() {
    let server = PrivatePostgres::start();
    let url = server.create_database();
    PrivatePostgres::sql_at(&url, "CREATE TABLE t (x int); INSERT INTO t VALUES (7)");
    server.stop();
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.start_again();
    assert_eq!(PrivatePostgres::sql_at(&url, "SELECT x FROM t"), "7");
}

#[test]
fn a_frozen_server_can_be_ended_and_leaves_nothing_behind() {
    let server = PrivatePostgres::start();
    let home = server.socket_dir().to_owned();
    server.pause();
    server.resume();
    assert_eq!(server.sql("SELECT 1"), "1");
    server.pause();
    drop(server);
    assert!(!Path::new(&home).exists());
}

#[test]
fn the_shared_server_is_one_server() {
    assert_eq!(PrivatePostgres::shared().port(), PrivatePostgres::shared().port());
    assert_eq!(PrivatePostgres::shared().sql("SELECT 1"), "1");
}
