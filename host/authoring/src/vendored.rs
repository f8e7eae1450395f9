//! Files of the SDK that a folder carries, and the stamp by which changes by hand are told.
//!
//! The stamp is the version and a line for each file as `sha256sum` writes it. Folders from before there was one are
//! held against what their version wrote.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use sha2::{Digest, Sha256};

use crate::language::Language;
use crate::templates;

/// Of what this program carries: that of the interface, which `guest-sdk` has too.
pub(crate) const SDK_VERSION: Version = Version([0, 2, 0]);
/// The stamp of a folder.
pub(crate) const STAMP: &str = "sdk.lock";
const HEAD: &str = "# Vendored by `mortise policy new`; `mortise policy upgrade` tells by this what was changed by hand.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) [u32; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = [0; 3];
        let mut parts = text.split('.');
        for number in &mut numbers {
            *number = parts.next().and_then(|it| it.parse().ok()).ok_or(())?;
        }
        if parts.next().is_some() {
            return Err(());
        }
        Ok(Self(numbers))
    }
}

/// Files by their path in the folder.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What a folder of the language carries beside the author's own files.
pub(crate) fn files(lang: Language) -> Files {
    let mut files = Files::new();
    match lang {
        Language::Expr => {}
        Language::Rust => {
            let sdk = templates::rust::sdk().into_iter();
            files.extend(sdk.map(|(file, content)| (format!("sdk/{file}"), content)));
        }
        Language::Js => {
            files.insert("lifecycle.js".to_owned(), templates::js::LIFECYCLE.into());
            files.extend(wit());
        }
        Language::Go => {
            let sdk = templates::go::SDK.into_iter();
            files.extend(sdk.map(|(file, content)| (format!("sdk/{file}"), content.into())));
            files.extend(wit());
        }
        Language::C => {
            files.insert("mortise_policy.h".to_owned(), templates::c::HEADER.into());
            files.extend(wit());
        }
    }
    files
}

fn wit() -> impl Iterator<Item = (String, Vec<u8>)> {
    let files = templates::WIT.into_iter();
    files.map(|(file, content)| (format!("wit/{file}"), content.into()))
}

/// Which files of which version a folder was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VendorStamp {
    pub(crate) version: Version,
    /// Digests of the files by path.
    pub(crate) digests: BTreeMap<String, String>,
}

impl VendorStamp {
    /// That of what this program writes.
    pub(crate) fn of(files: &Files) -> Self {
        let digests = files.iter().map(|(file, it)| (file.clone(), digest(it)));
        Self {
            version: SDK_VERSION,
            digests: digests.collect(),
        }
    }

    /// That of a folder; one from before there were stamps has that of its version.
    pub(crate) fn read(folder: &Path, lang: Language) -> anyhow::Result<Self> {
        let path = folder.join(STAMP);
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::released(folder, lang),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn released(folder: &Path, lang: Language) -> anyhow::Result<Self> {
        let version = unstamped_version(folder, lang)?;
        if version == SDK_VERSION {
            return Ok(Self::of(&files(lang)));
        }
        let known = templates::RELEASED.iter();
        let mut known = known.filter(|(of, _)| *of == lang);
        let found = known.find_map(|(_, text)| {
            let stamp = Self::parse(text).ok()?;
            (stamp.version == version).then_some(stamp)
        });
        found.with_context(|| {
            format!(
                "{} has no {STAMP}, and what SDK {version} wrote is not known here: make a folder by `new` and \
                 move your source there",
                folder.display()
            )
        })
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut version = None;
        let mut digests = BTreeMap::new();
        for line in text.lines().filter(|it| !it.starts_with('#')) {
            if let Some(found) = line.strip_prefix("sdk ") {
                version = found.parse().ok();
            } else if let Some((digest, file)) = line.split_once("  ") {
                digests.insert(file.to_owned(), digest.to_owned());
            } else if !line.is_empty() {
                bail!(
                    "{line:?} is neither a version nor a digest and a file: restore the file, or remove it"
                );
            }
        }
        // A path that leads out of the folder would be replaced or removed there.
        let is_inside = |file: &String| {
            let mut parts = Path::new(file).components();
            parts.all(|it| matches!(it, std::path::Component::Normal(_)))
        };
        if let Some(file) = digests.keys().find(|it| !is_inside(it)) {
            bail!("{file} is not inside the folder: restore the file, or remove it");
        }
        let version =
            version.context("there is no line `sdk VERSION`: restore it, or remove the file")?;
        Ok(Self { version, digests })
    }

    pub(crate) fn text(&self) -> String {
        let Self { version, digests } = self;
        let mut text = format!("{HEAD}\nsdk {version}\n");
        for (file, digest) in digests {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{digest}  {file}");
        }
        text
    }
}

/// What the interface beside the source says of itself; a crate vendors no interface, but the SDK as one.
fn unstamped_version(folder: &Path, lang: Language) -> anyhow::Result<Version> {
    let (file, before, after) = match lang {
        Language::Rust => ("sdk/Cargo.toml", "version = \"", '"'),
        Language::Expr | Language::Js | Language::C | Language::Go => {
            ("wit/policy.wit", "package mortise:policy@", ';')
        }
    };
    let path = folder.join(file);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "{} tells which SDK the folder carries, and cannot be read",
            path.display()
        )
    })?;
    let line = text.lines().find_map(|it| it.strip_prefix(before));
    let version = line.and_then(|it| it.split(after).next()?.parse().ok());
    version.with_context(|| format!("{} tells no version of the SDK", path.display()))
}

pub(crate) fn digest(content: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(content) {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_sdk_and_of_the_interface() {
        let cargo = templates::rust::sdk();
        let cargo = cargo.iter().find(|(file, _)| file == "Cargo.toml").unwrap();
        let cargo = String::from_utf8(cargo.1.clone()).unwrap();
        assert!(cargo.contains(&format!("version = \"{SDK_VERSION}\"")));
        let wit = templates::WIT.iter().find(|it| it.0 == "policy.wit");
        let package = format!("package mortise:policy@{SDK_VERSION};");
        assert!(wit.unwrap().1.contains(&package));
    }

    #[test]
    fn a_stamp_is_read_as_it_was_written_and_stays_inside_the_folder() {
        let stamp = VendorStamp::of(&files(Language::C));
        assert_eq!(stamp.digests.len(), 8);
        assert_eq!(VendorStamp::parse(&stamp.text()).unwrap(), stamp);
        for (text, words) in [
            ("abc  wit/types.wit\n", "sdk VERSION"),
            ("sdk 0.2\n", "sdk VERSION"),
            ("sdk 0.2.0\nabc  ../other\n", "inside the folder"),
            ("sdk 0.2.0\nabc  /etc/passwd\n", "inside the folder"),
            ("sdk 0.2.0\nabc\n", "neither a version"),
        ] {
            let error = VendorStamp::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
