//! The proxy between a client and a server that says everything twice.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// Answers each piece with itself; counts the bytes it got.
fn echo() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let got = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&got);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counted) = (stream.unwrap(), Arc::clone(&counted));
            std::thread::spawn(move || {
                let mut bytes = [0; 1024];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    counted.fetch_add(count, Ordering::SeqCst);
                    if stream.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, got)
}

fn client(proxy: &TcpProxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

fn asked(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes())?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

/// Polls, since what a proxy's thread has done shows a little later.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a real proxy needs real time")]
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn bytes_pass_both_ways_and_are_counted() {
    let (server, _) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    let mut stream = client(&proxy);
    assert_eq!(asked(&mut stream, "hello").unwrap(), "hello");
    let counts = proxy.counts();
    assert_eq!((counts.connections, counts.open, counts.cut), (1, 1, 0));
    until("all bytes count", || {
        let counts = proxy.counts();
        (counts.to_server_bytes, counts.to_client_bytes) == (5, 5)
    });
    drop(stream);
    until("a closed connection is not open", || proxy.counts().open == 0);
    assert_eq!(proxy.counts().cut, 0);
}

#[test]
fn a_delay_is_a_latency_and_keeps_the_order() {
    let (server, _) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    let mut stream = client(&proxy);
    asked(&mut stream, "warm").unwrap();
    proxy.delay(Direction::ToClient, Duration::from_millis(100));
    #[allow(clippy::disallowed_methods, reason = "a real proxy needs real time")]
    let start = Instant::now();
    stream.write_all(b"ab").unwrap();
    stream.write_all(b"cd").unwrap();
    stream.write_all(b"ef").unwrap();
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"abcdef");
    assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
}

#[test]
fn what_is_held_arrives_after_the_release() {
    let (server, got) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    let mut stream = client(&proxy);
    asked(&mut stream, "warm").unwrap();
    proxy.hold(Direction::ToServer);
    stream.write_all(b"held").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut answer = [0; 4];
    let silent = stream.read_exact(&mut answer).unwrap_err();
    assert!(matches!(silent.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silent}");
    assert_eq!(got.load(Ordering::SeqCst), 4, "nothing but the first word");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    proxy.release(Direction::ToServer);
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"held");
}

#[test]
fn all_connections_are_cut_and_new_ones_welcome() {
    let (server, _) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    let (mut one, mut two) = (client(&proxy), client(&proxy));
    asked(&mut one, "a").unwrap();
    asked(&mut two, "b").unwrap();
    proxy.cut_all();
    assert!(asked(&mut one, "a").is_err());
    assert!(asked(&mut two, "b").is_err());
    assert_eq!(asked(&mut client(&proxy), "c").unwrap(), "c");
    until("both are counted", || proxy.counts().cut == 2);
}

#[test]
fn a_pattern_cuts_before_the_server_sees_it() {
    let (server, got) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    proxy.cut_on("XA COMMIT", CutMoment::BeforeForwarding, 1);
    let mut stream = client(&proxy);
    assert_eq!(asked(&mut stream, "INSERT; XA COM").unwrap(), "INSERT; XA COM");
    assert!(asked(&mut stream, "MIT 'x'").is_err(), "the pattern came in two pieces");
    assert_eq!(got.load(Ordering::SeqCst), "INSERT; XA COM".len());
    assert_eq!(asked(&mut client(&proxy), "XA COMMIT").unwrap(), "XA COMMIT", "it is used up");
    until("it is counted", || proxy.counts().cut_by_pattern == 1);
}

#[test]
fn a_pattern_cuts_when_the_server_has_acted() {
    let (server, got) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    proxy.cut_on("COMMIT", CutMoment::AfterAnswer, 1);
    let mut stream = client(&proxy);
    assert!(asked(&mut stream, "COMMIT").is_err(), "the answer is cut off");
    assert_eq!(got.load(Ordering::SeqCst), 6, "the server has it");
}

#[test]
fn a_pattern_cuts_right_after_it_was_passed_on() {
    let (server, got) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    proxy.cut_on("PREPARE", CutMoment::AfterForwarding, 1);
    let mut stream = client(&proxy);
    assert!(asked(&mut stream, "PREPARE").is_err());
    until("the server gets it", || got.load(Ordering::SeqCst) == 7);
}

#[test]
fn a_closed_door_refuses_and_opens_again_at_the_same_port() {
    let (server, _) = echo();
    let proxy = TcpProxy::start(server).unwrap();
    let mut open = client(&proxy);
    asked(&mut open, "a").unwrap();
    proxy.refuse().unwrap();
    proxy.refuse().unwrap();
    let refused = TcpStream::connect(proxy.address()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(asked(&mut open, "b").unwrap(), "b", "those that are open stay");
    proxy.accept().unwrap();
    proxy.accept().unwrap();
    assert_eq!(asked(&mut client(&proxy), "c").unwrap(), "c");
}

#[test]
fn a_server_that_refuses_is_counted() {
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let proxy = TcpProxy::start(nobody).unwrap();
    assert!(asked(&mut client(&proxy), "a").is_err());
    assert_eq!(proxy.counts().unreachable, 1);
}

#[test]
fn a_url_keeps_all_but_its_address() {
    let proxy = TcpProxy::start((Ipv4Addr::LOCALHOST, 1).into()).unwrap();
    let at = proxy.address();
    assert_eq!(proxy.in_url("mysql://u:p@127.0.0.1:3306/shop?a=b"), format!("mysql://u:p@{at}/shop?a=b"));
    assert_eq!(proxy.in_url("kafka://127.0.0.1:9092"), format!("kafka://{at}"));
}

#[tokio::test]
async fn it_can_be_dropped_in_an_async_test() {
    drop(TcpProxy::start((Ipv4Addr::LOCALHOST, 1).into()).unwrap());
}
