//! `mortise shadow`: Mortise beside a Karpenter that runs, on a world of its own that has the cluster's workloads.
//!
//! Of the cluster it only reads, through a client that sends nothing else. What becomes of what is read, and the
//! report, is decided in the crate `shadow`.

pub(crate) mod arguments;
mod beside;
mod classes;
mod prices;
mod reading;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use shadow::{Happening, Report, cluster_role};
use tikv_jemalloc_ctl::{Access as _, AsName as _};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::api_client::{Asker, Guard, ReadsOnly};
use crate::controller;
use crate::output::print_text;
use arguments::{ReportOutput, ShadowArguments};
use beside::Beside;
use reading::{ReadNews, Readings};

/// How often pods of the shadow are looked at that are to end, and its own events are counted.
const TICK: Duration = Duration::from_secs(1);
/// Longer than anybody watches.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Exit code 0 when everything was read, 1 when something could not be, 2 when nothing could.
pub(crate) fn run(arguments: &ShadowArguments) -> anyhow::Result<ExitCode> {
    if arguments.rbac {
        print_text(&cluster_role())?;
        return Ok(ExitCode::SUCCESS);
    }
    share_one_arena();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .on_thread_start(share_one_arena)
        .enable_all()
        .build()?;
    let report = runtime.block_on(Box::pin(observe(arguments)))?;
    let text = match arguments.output {
        ReportOutput::Text => report.to_string(),
        ReportOutput::Json => format!("{}\n", serde_json::to_string_pretty(&report)?),
        ReportOutput::Yaml => serde_saphyr::to_string(&report)?,
    };
    print_text(&text)?;
    Ok(if report.unread.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One thread at a time does the work here, and it runs beside others on somebody's machine: what is freed is better
/// given to the next than kept by for each thread.
fn share_one_arena() {
    // An allocator that is built otherwise has nothing to share.
    let _ = b"thread.arena\0".name().write(0_u32);
    let _ = b"thread.tcache.enabled\0".name().write(false);
}

async fn observe(arguments: &ShadowArguments) -> anyhow::Result<Report> {
    let reads_only = ReadsOnly::default();
    let guard = Guard::reading(&reads_only);
    let kubeconfig = arguments.kubeconfig.as_deref();
    let client = controller::client(kubeconfig, &guard, Asker::Shadow).await?;
    let version = client.apiserver_version().await;
    let version = version.context("the Kubernetes API server does not answer")?;
    let mut readings = Readings::of(&client);
    let gathered = readings.gather().await?;
    let minor = controller::minor(&version);
    let mut beside = Beside::begin(arguments, minor, gathered).await?;
    for note in beside.notes() {
        eprintln!("note: {note}");
    }
    for fault in readings.unread() {
        eprintln!("not read: {fault}");
    }
    let mut view = View {
        is_live: arguments.output == ReportOutput::Text,
    };
    let mut lines = interval(arguments.every);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = Instant::now() + arguments.duration.unwrap_or(FOREVER);
    let mut stopped = std::pin::pin!(controller::stop_signal());
    loop {
        tokio::select! {
            biased;
            signal = &mut stopped => {
                signal?;
                break;
            }
            () = sleep_until(end) => break,
            _ = ticks.tick() => view.mortise(&beside.tick()),
            _ = lines.tick() => view.line(&beside.report(&readings, &reads_only)),
            news = readings.next() => match news {
                ReadNews::Changed(change) => view.karpenter(beside.change(change)),
                ReadNews::Said(sentence) => eprintln!("{sentence}"),
                ReadNews::Nothing => {}
            },
        }
    }
    view.mortise(&beside.tick());
    Ok(beside.report(&readings, &reads_only))
}

/// What is told while it goes on, on standard error.
struct View {
    is_live: bool,
}

impl View {
    fn line(&mut self, report: &Report) {
        if self.is_live {
            eprintln!("{}", report.line());
        }
    }

    fn karpenter(&mut self, happening: Option<Happening>) {
        if let Some(happening) = happening.filter(|_| self.is_live) {
            match happening {
                Happening::Launched { node_pool, bought } => {
                    eprintln!("  Karpenter launched {bought} for {node_pool}");
                }
                Happening::Ended { node_pool, bought } => {
                    eprintln!("  Karpenter ended {bought} of {node_pool}");
                }
            }
        }
    }

    fn mortise(&mut self, happenings: &[Happening]) {
        for happening in happenings.iter().filter(|_| self.is_live) {
            match happening {
                Happening::Launched { node_pool, bought } => {
                    eprintln!("  Mortise would launch {bought} for {node_pool}");
                }
                Happening::Ended { node_pool, bought } => {
                    eprintln!("  Mortise would end {bought} of {node_pool}");
                }
            }
        }
    }
}
