//! A wire between a process and an API server: it writes down what is asked, unless that is TLS, and can be cut.
//!
//! It understands HTTP/1.1 as far as where a request ends, and changes nothing that passes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use locks::lock;

/// A request that came over the wire.
#[derive(Debug, Clone)]
pub struct Asked {
    pub at: Instant,
    pub verb: String,
    /// With the query.
    pub path: String,
    pub user_agent: String,
}

impl Asked {
    /// Whether it may change anything.
    pub fn is_change(&self) -> bool {
        self.verb != "GET"
    }

    /// Whether that part of Mortise asked, as it says itself.
    pub fn is_by(&self, part: &str) -> bool {
        let said = self.user_agent.strip_prefix("mortise/");
        said.and_then(|it| it.rsplit_once(' '))
            .is_some_and(|it| it.1 == part)
    }

    /// Whether it is about who leads.
    pub fn is_of_lease(&self) -> bool {
        self.path.contains("/leases")
    }
}

#[derive(Debug, Default)]
struct Line {
    asked: Mutex<Vec<Asked>>,
    is_cut: AtomicBool,
}

impl Line {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        lock(&self.asked)
    }
}

/// The wire; its threads end with their connections.
pub struct Wire {
    line: Arc<Line>,
    address: SocketAddr,
}

impl Wire {
    /// Leads to the API server of a demo's kubeconfig, and writes another beside it that leads to the wire.
    pub fn of_kubeconfig(kubeconfig: &Path, name: &str) -> (Self, PathBuf) {
        let fails = |what: &str| panic!("{}: {what}", kubeconfig.display());
        let text = std::fs::read_to_string(kubeconfig).unwrap_or_default();
        let Some((_, rest)) = text.split_once("http://") else {
            fails("names no server")
        };
        let server = rest.split('/').next().unwrap_or_default();
        let wire = Self::to(server);
        let changed = text.replace(server, &wire.address.to_string());
        let beside = kubeconfig.with_extension(name);
        if std::fs::write(&beside, changed).is_err() {
            fails("nothing can be written beside it");
        }
        (wire, beside)
    }

    /// Leads to a server, which is a host and a port.
    pub fn to(server: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let bound = listener.and_then(|it| Ok((it.local_addr()?, it)));
        let (address, listener) = bound.unwrap_or_else(|error| panic!("no port is free: {error}"));
        let server = server.to_owned();
        let line = Arc::new(Line::default());
        let accepting = Arc::clone(&line);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let line = Arc::clone(&accepting);
                let server = server.clone();
                std::thread::spawn(move || connect(&near, &server, &line));
            }
        });
        Self { line, address }
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was asked, oldest first.
    pub fn asked(&self) -> Vec<Asked> {
        self.line.asked().clone()
    }

    /// From now on nothing passes, in neither direction, and nobody is told. What is asked is still written down.
    pub fn cut(&self) {
        self.line.is_cut.store(true, Ordering::Relaxed);
    }
}

/// Passes on what comes on one connection until it ends.
fn connect(near: &TcpStream, server: &str, line: &Arc<Line>) {
    let Ok(far) = TcpStream::connect(server) else {
        return;
    };
    for stream in [near, &far] {
        stream.set_nodelay(true).ok();
    }
    let (Ok(mut from_server), Ok(mut to_client)) = (far.try_clone(), near.try_clone()) else {
        return;
    };
    let answering = Arc::clone(line);
    std::thread::spawn(move || {
        pass(&mut from_server, &mut to_client, &answering, |_| {});
        to_client.shutdown(std::net::Shutdown::Both).ok();
    });
    let mut requests = Requests::default();
    let note = |bytes: &[u8]| requests.read(bytes, &mut line.asked());
    let (mut from_client, mut to_server) = (near, &far);
    pass(&mut from_client, &mut to_server, line, note);
    far.shutdown(std::net::Shutdown::Both).ok();
}

fn pass(from: &mut impl Read, to: &mut impl Write, line: &Line, mut note: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        note(&buffer[..count]);
        if !line.is_cut.load(Ordering::Relaxed) && to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// What of a request was read so far.
#[derive(Default)]
struct Requests {
    /// Not known before the first byte.
    is_tls: Option<bool>,
    head: Vec<u8>,
    /// Bytes of the body that are to come.
    body: usize,
}

impl Requests {
    /// The first byte of a connection tells.
    fn is_tls(&mut self, bytes: &[u8]) -> bool {
        const HANDSHAKE: u8 = 22;
        let tells = || bytes.first() == Some(&HANDSHAKE);
        *self.is_tls.get_or_insert_with(tells)
    }

    fn read(&mut self, bytes: &[u8], asked: &mut Vec<Asked>) {
        if self.is_tls(bytes) {
            return;
        }
        for byte in bytes {
            if self.body > 0 {
                self.body -= 1;
                continue;
            }
            self.head.push(*byte);
            if self.head.ends_with(b"\r\n\r\n") {
                let head = std::mem::take(&mut self.head);
                let head = String::from_utf8_lossy(&head);
                let mut lines = head.lines();
                let mut words = lines
                    .next()
                    .unwrap_or_default()
                    .split(' ')
                    .map(str::to_owned);
                let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
                let header = |name: &str| {
                    let mut found = headers.iter();
                    let found = found.find(|it| it.0.eq_ignore_ascii_case(name));
                    found.map(|it| it.1.trim()).unwrap_or_default()
                };
                asked.push(Asked {
                    at: Instant::now(),
                    verb: words.next().unwrap_or_default(),
                    path: words.next().unwrap_or_default(),
                    user_agent: header("user-agent").to_owned(),
                });
                self.body = header("content-length").parse().unwrap_or(0);
            }
        }
    }
}
