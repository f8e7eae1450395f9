//! What the program is asked to do.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;

const USAGE: &str = "usage: fleet MORTISE [--families fleet,diverse,plain] [--pods 500,2000,5000] [--seeds N|FROM-TO] \
    [--ways at-once,stream] [--pods-per-second 50] [--kubeconfig FILE] [--minutes 20] [--least ROWS] [-o text|json] \
    [-- OPTIONS OF THE DEMO OR THE CONTROLLER]";

/// How pods come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    AtOnce,
    Stream,
}

impl Way {
    fn parse(word: &str) -> anyhow::Result<Self> {
        match word {
            "at-once" => Ok(Self::AtOnce),
            "stream" => Ok(Self::Stream),
            _ => bail!("--ways {word}: at-once or stream"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Asked {
    /// The binary.
    pub(crate) mortise: PathBuf,
    pub(crate) families: Vec<String>,
    pub(crate) pods: Vec<usize>,
    pub(crate) seeds: RangeInclusive<u64>,
    pub(crate) ways: Vec<Way>,
    /// Of a stream.
    pub(crate) pods_per_second: u32,
    /// A cluster to run on instead of the demo.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How long is watched once all pods run.
    pub(crate) watched: Duration,
    /// How many rows have to reach every goal.
    pub(crate) rows_min: usize,
    pub(crate) prints_json: bool,
    /// For the demo or the controller.
    pub(crate) more: Vec<String>,
}

impl Asked {
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mortise = words.next().context(USAGE)?;
        let mut asked = Self {
            mortise: mortise.into(),
            families: list("fleet,diverse,plain"),
            pods: vec![500, 2000, 5000],
            seeds: 1..=1,
            ways: vec![Way::AtOnce, Way::Stream],
            pods_per_second: 50,
            kubeconfig: None,
            watched: Duration::from_mins(20),
            rows_min: 0,
            prints_json: false,
            more: Vec::new(),
        };
        while let Some(name) = words.next() {
            if name == "--" {
                asked.more.extend(words.by_ref());
                break;
            }
            let value = words.next().with_context(|| USAGE.to_owned())?;
            asked
                .set(&name, &value)
                .with_context(|| format!("{name} {value}"))?;
        }
        if asked.kubeconfig.is_some() {
            // A real controller manager has its own pace.
            asked.ways = vec![Way::Stream];
        }
        Ok(asked)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--families" => self.families = list(value),
            "--pods" => {
                let pods = list(value).into_iter().map(|it| it.parse());
                self.pods = pods.collect::<Result<_, _>>()?;
            }
            "--seeds" => {
                let (from, to) = value.split_once('-').unwrap_or(("1", value));
                self.seeds = from.parse()?..=to.parse()?;
            }
            "--ways" => {
                let ways = list(value).into_iter().map(|it| Way::parse(&it));
                self.ways = ways.collect::<Result<_, _>>()?;
            }
            "--pods-per-second" => self.pods_per_second = value.parse()?,
            "--kubeconfig" => self.kubeconfig = Some(value.into()),
            "--minutes" => self.watched = Duration::from_mins(value.parse()?),
            "--least" => self.rows_min = value.parse()?,
            "-o" => self.prints_json = value == "json",
            _ => bail!(USAGE),
        }
        Ok(())
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> anyhow::Result<Asked> {
        Asked::read(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_asked_is_done() {
        let asked = read(
            "m --families plain --pods 500,700 --seeds 3-4 --ways stream --least 2 -o json -- --seed 7",
        );
        let asked = asked.unwrap();
        assert_eq!(asked.families, ["plain"]);
        assert_eq!((asked.pods, asked.seeds), (vec![500, 700], 3..=4));
        assert_eq!((asked.ways, asked.prints_json), (vec![Way::Stream], true));
        assert_eq!(asked.rows_min, 2);
        assert_eq!(asked.more, ["--seed", "7"]);
        assert_eq!(read("m --seeds 5").unwrap().seeds, 1..=5);
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for words in [
            "",
            "m --pods many",
            "m --ways sideways",
            "m --rows 3",
            "m --pods",
        ] {
            assert!(read(words).is_err(), "{words}");
        }
    }
}
