//! The binary in a root with nothing beside it but what the image's base has: libraries of C and CA certificates.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tests::mortise;

/// What `gcr.io/distroless/cc-debian12` has of libraries.
const LIBRARIES: [&str; 8] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A folder that goes when it is dropped.
struct Root(PathBuf);

impl Root {
    /// With the binary, the libraries it is linked to, and certificates where this machine has any.
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("mortise-root-{}", std::process::id()));
        let root = Self(root);
        root.take(&mortise(), Path::new("/mortise"));
        for library in libraries() {
            root.take(&library, &library);
        }
        if Path::new(CERTIFICATES).exists() {
            root.take(Path::new(CERTIFICATES), Path::new(CERTIFICATES));
        }
        root
    }

    fn take(&self, file: &Path, to: &Path) {
        let to = self.0.join(to.strip_prefix("/").unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, to).unwrap();
    }

    /// Runs the binary there, as the root of a user namespace. Without the right to one nothing can be said.
    fn run(&self, arguments: &[&str]) -> Output {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "chroot"])
            .arg(&self.0)
            .arg("/mortise")
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .unwrap()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Where the dynamic linker finds what the binary needs.
fn libraries() -> BTreeSet<PathBuf> {
    let output = Command::new("ldd").arg(mortise()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|it| it.starts_with('/'));
    words.map(PathBuf::from).collect()
}

fn is_possible() -> bool {
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "chroot", "/", "true"])
        .output();
    let is_possible = tried.is_ok_and(|it| it.status.success());
    if !is_possible {
        eprintln!("skipped: nobody may change the root of a process here");
    }
    is_possible
}

#[test]
fn it_is_linked_to_nothing_that_the_base_of_the_image_lacks() {
    if !tests::has_program("ldd", "--version") {
        return;
    }
    for library in libraries() {
        let name = library.file_name().unwrap().to_str().unwrap();
        assert!(LIBRARIES.contains(&name), "{}", library.display());
    }
}

#[test]
fn it_starts_in_an_empty_root() {
    if !is_possible() || !tests::has_program("ldd", "--version") {
        return;
    }
    let root = Root::new();
    let demo = root.run(&["demo", "--until", "settled", "-o", "json"]);
    let told = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success() && told.contains("ledger"), "{demo:?}");

    let controller = root.run(&[
        "controller",
        "--metrics-port",
        "0",
        "--health-probe-port",
        "0",
    ]);
    let told = String::from_utf8_lossy(&controller.stderr);
    assert!(told.contains("no cluster was found"), "{controller:?}");
}
