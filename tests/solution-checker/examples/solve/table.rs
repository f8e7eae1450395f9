//! The table of yardsticks: what Karpenter needs, what is to be reached, and what is measured here and now.
//!
//! Every problem is solved in a process of its own, so that its memory is its own too; the best of some solves counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// A line of the table. What a goal leaves out is infinite.
struct Row {
    name: &'static str,
    arguments: &'static [&'static str],
    karpenter: &'static str,
    ms_max: f64,
    bill_max: f64,
    mib_max: f64,
}

const NONE: f64 = f64::INFINITY;

const FILES: [Row; 6] = [
    file("fleet-5000", "27.6 s, 142.90, 234 MB", 200.0, 70.0, 60.0),
    file("fleet-2000", "8.24 s, 68.83", 80.0, 22.0, NONE),
    file("plain-5000", "2.37 s, 102.81", 30.0, 60.0, NONE),
    file("diverse-2000", "15.5 s, 27.58", 80.0, 18.0, NONE),
    file("prefs-500", "2.88 s, 6.28", 20.0, 6.285, NONE),
    file("plain-2000", "0.73 s, 31.85", 15.0, 23.0, NONE),
];

const GENERATED: [Row; 2] = [
    Row {
        name: "diverse, 20,000 pods",
        arguments: &["diverse", "1", "20000", "repeats=3"],
        karpenter: "66 s",
        ms_max: 600.0,
        bill_max: NONE,
        mib_max: NONE,
    },
    Row {
        name: "1,000,000 pods, 2,000 groups",
        arguments: &["groups", "1", "1000000"],
        karpenter: "not feasible",
        ms_max: 10_000.0,
        bill_max: NONE,
        mib_max: 1500.0,
    },
];

/// Sizes of the curve, which is to be near to a straight line.
const CURVE: [&str; 5] = ["5000", "10000", "20000", "50000", "100000"];

const fn file(
    name: &'static str,
    karpenter: &'static str,
    ms_max: f64,
    bill_max: f64,
    mib_max: f64,
) -> Row {
    Row {
        name,
        arguments: &["repeats=7", "check"],
        karpenter,
        ms_max,
        bill_max,
        mib_max,
    }
}

/// Prints the table; the files of the directory where one is given.
#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
pub(crate) fn print(directory: Option<&str>) -> Result<(), Failure> {
    println!(
        "| problem | Karpenter | goal | measured | nodes | errors, faults | Spot types | reached |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    if let Some(directory) = directory {
        let types = path_of(directory, "types");
        for row in &FILES {
            let problem = path_of(directory, row.name);
            let arguments = [&[problem.as_str(), types.as_str()], row.arguments].concat();
            println!("{}", row.line(&measure(&arguments)?));
        }
    }
    for row in &GENERATED {
        println!("{}", row.line(&measure(row.arguments)?));
    }
    for family in ["fleet", "diverse", "plain"] {
        println!("\n| {family}, pods | ms | ms of CPU | microseconds a pod | USD/h | nodes |");
        println!("|---|---|---|---|---|---|");
        for pods in CURVE {
            let it = measure(&[family, "1", pods])?;
            let of_pod = it.number("ms") * 1000.0 / it.number("pods");
            println!(
                "| {pods} | {:.0} | {:.0} | {of_pod:.1} | {:.2} | {} |",
                it.number("ms"),
                it.number("cpu_ms"),
                it.number("bill"),
                it.word("nodes"),
            );
        }
    }
    Ok(())
}

/// The packed file if there is one, else the other.
fn path_of(directory: &str, name: &str) -> String {
    let packed = Path::new(directory).join(format!("{name}.json.gz"));
    let plain = Path::new(directory).join(format!("{name}.json"));
    let path = if packed.is_file() { packed } else { plain };
    path.display().to_string()
}

/// The words of a result, by the word before each.
struct Measured(BTreeMap<String, String>);

impl Measured {
    fn word(&self, name: &str) -> &str {
        self.0.get(name).map_or("?", String::as_str)
    }

    fn number(&self, name: &str) -> f64 {
        self.word(name).parse().unwrap_or(f64::NAN)
    }
}

fn measure(arguments: &[&str]) -> Result<Measured, Failure> {
    let program = std::env::current_exe()?;
    let output = Command::new(program)
        .args(arguments)
        .arg("quiet")
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let text = String::from_utf8(output.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.as_chunks::<2>().0.iter();
    Ok(Measured(
        pairs
            .map(|[name, word]| ((*name).to_owned(), (*word).to_owned()))
            .collect(),
    ))
}

impl Row {
    fn line(&self, it: &Measured) -> String {
        let within = [
            ("ms", self.ms_max),
            ("bill", self.bill_max),
            ("mib", self.mib_max),
        ];
        let is_reached = within.iter().all(|(name, max)| it.number(name) <= *max)
            && it.word("errors") == "0"
            && matches!(it.word("faults"), "0" | "unknown");
        let goals = within.iter().zip([" ms", " USD/h", " MiB"]);
        let goals = goals.filter(|((_, max), _)| max.is_finite());
        let goals: Vec<String> = goals
            .map(|((_, max), unit)| format!("{max}{unit}"))
            .collect();
        format!(
            "| {} | {} | {} | {} ms ({} of CPU), {} USD/h, {} MiB | {} | {}, {} | {} | {} |",
            self.name,
            self.karpenter,
            goals.join(", "),
            it.word("ms"),
            it.word("cpu_ms"),
            it.word("bill"),
            it.word("mib"),
            it.word("nodes"),
            it.word("errors"),
            it.word("faults"),
            it.word("spot_types"),
            if is_reached { "yes" } else { "**no**" },
        )
    }
}
