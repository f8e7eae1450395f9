//! View of a run while it goes on, for people: a screen that is drawn anew, or lines.

use super::super::DemoPlan;
use super::super::live_view::Screen;
use super::Watcher;
use crate::cli::Output;
use std::time::{Duration, Instant};

/// Wall time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// Decisions kept for the live view.
const DECISIONS_KEPT: usize = 100;

/// Where what happens is shown: a screen, lines, or nowhere.
pub(crate) struct DemoView {
    screen: Option<Screen>,
    prints_lines: bool,
    drawn: Option<Instant>,
    seen: u64,
    decisions: Vec<String>,
}

impl DemoView {
    pub(crate) fn open(plan: &DemoPlan) -> anyhow::Result<Self> {
        let screen = if plan.is_terminal {
            Some(Screen::open()?)
        } else {
            None
        };
        let prints_lines = screen.is_none() && plan.output == Output::Text;
        Ok(Self {
            screen,
            prints_lines,
            drawn: None,
            seen: 0,
            decisions: Vec::new(),
        })
    }

    pub(super) fn show(&mut self, watcher: &Watcher<'_>, elapsed: Duration) -> anyhow::Result<()> {
        let lines = watcher
            .stack
            .map(|stack| stack.controllers.feed().since(self.seen))
            .unwrap_or_default();
        for line in lines {
            self.seen = line.number;
            let text = format!("{:>7.1}s  {}", elapsed.as_secs_f64(), line.text);
            if self.prints_lines {
                eprintln!("{text}");
            }
            self.decisions.push(text);
        }
        let surplus = self.decisions.len().saturating_sub(DECISIONS_KEPT);
        self.decisions.drain(..surplus);
        if let Some(screen) = &mut self.screen
            && self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY)
        {
            screen.draw(&watcher.frame(), &self.decisions)?;
            self.drawn = Some(Instant::now());
        }
        Ok(())
    }
}
