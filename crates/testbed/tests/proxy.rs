//! The proxy does to a connection what it is told, and nothing else.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a delay is measured by the test's own clock")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use testbed::{Bait, Held, Mode, Proxy, Snap, wait_until_blocking};

const SOON: Duration = Duration::from_secs(10);
/// How long nothing must arrive for us to believe that nothing arrives.
const SILENCE: Duration = Duration::from_millis(100);

/// A server that answers every line with itself, and says what it was asked.
fn echo(name: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, tell) = (stream.unwrap(), tell.clone());
            thread::spawn(move || {
                for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                    let Ok(line) = line else { return };
                    // The test may have ended, and the connection may have been cut.
                    tell.send(line.clone()).ok();
                    stream.write_all(format!("{name}{line}\n").as_bytes()).ok();
                }
            });
        }
    });
    (address, heard)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }

    fn hears_nothing(&mut self) -> bool {
        self.0.get_ref().set_read_timeout(Some(SILENCE)).unwrap();
        let silent = self.0.fill_buf().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        self.0.get_ref().set_read_timeout(Some(SOON)).unwrap();
        silent
    }

    /// Closed in order, or broken off: what a client sees of a dead connection.
    fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.0.read(&mut byte) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn bytes_pass_both_ways_and_so_does_the_end() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    assert_eq!(client.ask("hello"), "hello");
    let long = "x".repeat(300_000);
    assert_eq!(client.ask(&long), long);
    client.0.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(client.is_closed());
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn a_refusing_proxy_closes_refuses_and_comes_back_on_its_own_port() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    for round in 0..20 {
        let mut client = Client::new(&proxy);
        assert_eq!(client.ask("hello"), "hello");
        proxy.set(Mode::Refuse);
        assert!(client.is_closed(), "round {round}");
        let refused = TcpStream::connect(proxy.address()).map_err(|error| error.kind());
        assert_eq!(refused.unwrap_err(), ErrorKind::ConnectionRefused, "round {round}");
        proxy.set(Mode::Forward);
    }
    assert_eq!(Client::new(&proxy).ask("again"), "again");
}

#[test]
fn a_stalled_direction_holds_its_bytes_and_the_other_does_not() {
    for (mode, server_hears) in
        [(Mode::Stall, false), (Mode::StallRequests, false), (Mode::StallReplies, true)]
    {
        let (server, heard) = echo("");
        let proxy = Proxy::new(server);
        let mut client = Client::new(&proxy);
        assert_eq!(client.ask("before"), "before");
        assert_eq!(heard.recv_timeout(SOON).unwrap(), "before");
        proxy.set(mode);
        client.say("meanwhile");
        if server_hears {
            assert_eq!(heard.recv_timeout(SOON).unwrap(), "meanwhile");
        }
        assert!(client.hears_nothing(), "{mode:?}");
        assert_eq!(heard.try_recv().ok(), None, "{mode:?}");
        let mut newcomer = Client::new(&proxy);
        newcomer.say("new");
        assert!(newcomer.hears_nothing(), "{mode:?}");
        proxy.set(Mode::Forward);
        assert_eq!(client.hear(), "meanwhile");
        assert_eq!(newcomer.hear(), "new");
    }
}

#[test]
fn a_cut_closes_what_is_open_and_lets_new_connections_in() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    let mut clients: Vec<_> = (0..5).map(|_| Client::new(&proxy)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("hello"), "hello");
    }
    proxy.cut();
    assert!(clients.iter_mut().all(Client::is_closed));
    assert_eq!(Client::new(&proxy).ask("again"), "again");
}

#[test]
fn a_stalled_connection_can_be_cut() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    proxy.set(Mode::Stall);
    client.say("lost");
    proxy.cut();
    assert!(client.is_closed());
}

#[test]
fn a_delay_is_added_in_each_direction() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    proxy.set(Mode::Delay(Duration::from_millis(60)));
    let asked = Instant::now();
    assert_eq!(client.ask("slow"), "slow");
    assert!(asked.elapsed() >= Duration::from_millis(120), "{:?}", asked.elapsed());
}

#[test]
fn a_swallowed_reply_means_done_and_not_known() {
    let (server, heard) = echo("");
    let proxy = Proxy::new(server);
    let (mut client, mut bystander) = (Client::new(&proxy), Client::new(&proxy));
    proxy.swallow_reply_once("needle");
    assert_eq!(client.ask("hay"), "hay");
    client.say("hay and needle");
    assert!(client.is_closed());
    assert_eq!(proxy.swallowed(), 1);
    assert_eq!(heard.recv_timeout(SOON).unwrap(), "hay");
    assert_eq!(heard.recv_timeout(SOON).unwrap(), "hay and needle");
    assert_eq!(bystander.ask("needle"), "needle", "only once");
    assert_eq!(Client::new(&proxy).ask("needle"), "needle", "only once");
}

#[test]
fn a_needle_that_comes_in_two_pieces_is_found() {
    let (server, heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    proxy.swallow_reply_once("needle");
    client.say("hay nee");
    assert_eq!(client.hear(), "hay nee");
    proxy.swallow_reply_once("nee\ndle");
    client.say("hay nee");
    assert_eq!(client.hear(), "hay nee");
    client.say("dle");
    assert!(client.is_closed());
    assert_eq!(heard.iter().take(3).collect::<Vec<_>>(), ["hay nee", "hay nee", "dle"]);
}

fn wait_for_catch(proxy: &Proxy) {
    wait_until_blocking(SOON, || match proxy.swallowed() {
        1 => Ok(()),
        caught => Err(format!("{caught} were caught")),
    });
}

#[test]
fn a_request_that_is_held_reaches_the_server_when_it_is_let_go() {
    let (server, heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    proxy.trap(Bait::Bytes(b"needle".to_vec()), Snap::HoldRequest, 1);
    client.say("needle");
    wait_for_catch(&proxy);
    assert!(heard.recv_timeout(SILENCE).is_err());
    proxy.let_go(Held::Passes);
    assert_eq!(client.hear(), "needle");
    assert_eq!(client.ask("needle"), "needle", "only once");
}

#[test]
fn a_reply_that_is_held_is_heard_when_it_is_let_go_and_those_after_it_are_not_held() {
    let (server, heard) = echo("");
    let proxy = Proxy::new(server);
    let mut client = Client::new(&proxy);
    proxy.trap(Bait::Bytes(b"needle".to_vec()), Snap::HoldReply, 1);
    client.say("needle");
    wait_for_catch(&proxy);
    assert_eq!(heard.recv_timeout(SOON).unwrap(), "needle");
    proxy.let_go(Held::Passes);
    assert_eq!(client.hear(), "needle");
    assert_eq!(client.ask("needle"), "needle");
}

#[test]
fn what_is_held_may_be_dropped_with_its_connection() {
    for snap in [Snap::HoldRequest, Snap::HoldReply] {
        let (server, heard) = echo("");
        let proxy = Proxy::new(server);
        let mut client = Client::new(&proxy);
        proxy.trap(Bait::Bytes(b"needle".to_vec()), snap, 1);
        client.say("needle");
        wait_for_catch(&proxy);
        proxy.let_go(Held::Ends);
        assert!(client.is_closed());
        assert_eq!(heard.recv_timeout(SILENCE).is_ok(), snap == Snap::HoldReply);
    }
}

#[test]
fn a_server_that_moved_is_found_again() {
    let ((old, _old_heard), (new, _new_heard)) = (echo("old "), echo("new "));
    let proxy = Proxy::new(old);
    let mut client = Client::new(&proxy);
    assert_eq!(client.ask("hello"), "old hello");
    proxy.set_backend(new);
    assert_eq!(client.ask("hello"), "old hello");
    assert_eq!(Client::new(&proxy).ask("hello"), "new hello");
}

#[test]
fn a_server_that_is_gone_looks_like_one_that_hangs_up() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = Proxy::new(gone);
    assert!(Client::new(&proxy).is_closed());
}

#[test]
fn a_dropped_proxy_closes_its_port_and_its_connections() {
    let (server, _heard) = echo("");
    let proxy = Proxy::new(server);
    let address = proxy.address();
    let mut client = Client::new(&proxy);
    assert_eq!(client.ask("hello"), "hello");
    drop(proxy);
    assert!(client.is_closed());
    wait_until_blocking(SOON, || match TcpStream::connect(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        other => Err(format!("{other:?}")),
    });
}
