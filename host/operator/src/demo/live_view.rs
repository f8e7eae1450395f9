//! The live view of a terminal: a header with bars, a line a node, the last decisions with their reasons.
//!
//! Rendering is a pure function from a frame to lines; only [`Screen`] touches the terminal.

use std::io::{self, Write as _};

use crossterm::style::Stylize as _;
use crossterm::{cursor, execute, queue, terminal};

use super::frame::{Frame, NodeLine, NodeStatus};

/// Lines kept for decisions when the terminal is small.
const DECISION_LINES_MIN: usize = 5;

/// The terminal while the view is drawn; it is given back on drop.
pub(crate) struct Screen {
    out: io::Stderr,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        let mut out = io::stderr();
        execute!(out, terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(Self { out })
    }

    /// Draws a frame over the last one.
    pub(crate) fn draw(&mut self, frame: &Frame, decisions: &[String]) -> io::Result<()> {
        let (width, height) = terminal::size().unwrap_or((100, 30));
        queue!(self.out, cursor::MoveTo(0, 0))?;
        for line in render(frame, decisions, usize::from(width), usize::from(height)) {
            queue!(self.out, terminal::Clear(terminal::ClearType::CurrentLine))?;
            write!(self.out, "{line}\r\n")?;
        }
        queue!(
            self.out,
            terminal::Clear(terminal::ClearType::FromCursorDown)
        )?;
        self.out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(self.out, cursor::Show, terminal::LeaveAlternateScreen);
    }
}

/// The lines of a frame, at most `height - 1` of them.
pub(crate) fn render(
    frame: &Frame,
    decisions: &[String],
    width: usize,
    height: usize,
) -> Vec<String> {
    let mut lines = header(frame, width);
    let room = height.saturating_sub(lines.len() + 4);
    // A third of the room at least, and whatever the nodes leave.
    let decision_room = DECISION_LINES_MIN
        .max(room / 3)
        .max(room.saturating_sub(frame.nodes.len()))
        .min(decisions.len());
    let node_room = room.saturating_sub(decision_room);
    let name_width = name_width(width);
    let heading = format!(
        "{:<name_width$} {:<18} {:<11} {:<10} {:>9} {:>5}  {:<21}",
        "NODE", "TYPE", "ZONE", "CAPACITY", "USD/H", "PODS", "CPU"
    );
    lines.push(cut(&heading, width).dim().to_string());
    let shown = frame.nodes.len().min(node_room);
    let shown_nodes = frame.nodes.iter().take(shown);
    lines.extend(shown_nodes.map(|node| node_line(node, width)));
    if shown < frame.nodes.len() {
        lines.push(
            format!("… and {} more nodes", frame.nodes.len() - shown)
                .dim()
                .to_string(),
        );
    }
    lines.push(String::new());
    let first = decisions.len().saturating_sub(decision_room);
    lines.extend(decisions.iter().skip(first).map(|line| cut(line, width)));
    lines.truncate(height.saturating_sub(1));
    lines
}

/// Names give way where a terminal is narrow: they are long, and their beginning tells them apart.
fn name_width(width: usize) -> usize {
    const OTHER_COLUMNS: usize = 82;
    width.saturating_sub(OTHER_COLUMNS).clamp(12, 34)
}

fn header(frame: &Frame, width: usize) -> Vec<String> {
    let minutes = (frame.virtual_seconds / 60.0).floor();
    let seconds = frame.virtual_seconds - minutes * 60.0;
    let title = format!(
        "mortise  {minutes:.0}:{seconds:04.1}   {} nodes (+{} starting)   {} pods running, {} pending   {:.3} USD/h",
        frame.nodes.len(),
        frame.nodes_starting,
        frame.pods_running,
        frame.pods_pending,
        frame.price_per_hour(),
    );
    let cells = (width.saturating_sub(56) / 2).clamp(4, 24);
    let bars = format!(
        "cpu {}   memory {}   {} launched, {} terminated",
        bar(frame.mean(|node| node.cpu_utilization), cells),
        bar(frame.mean(|node| node.memory_utilization), cells),
        frame.launches,
        frame.terminations,
    );
    vec![
        cut(&title, width).bold().to_string(),
        cut(&bars, width),
        String::new(),
    ]
}

fn node_line(node: &NodeLine, width: usize) -> String {
    let name_width = name_width(width);
    let line = format!(
        "{:<name_width$} {:<18} {:<11} {:<10} {:>9.4} {:>5}  {}",
        cut(&node.name, name_width),
        node.instance_type,
        node.zone,
        node.capacity_type,
        node.price_per_hour,
        node.pods,
        match node.status {
            NodeStatus::Ready => bar(node.cpu_utilization, 16),
            NodeStatus::Starting | NodeStatus::Leaving => node.status.word().to_owned(),
        }
    );
    let line = cut(&line, width);
    match node.status {
        NodeStatus::Ready => line,
        NodeStatus::Starting => line.yellow().to_string(),
        NodeStatus::Leaving => line.red().to_string(),
    }
}

/// A bar of `width` cells and the percentage behind it.
fn bar(share: f64, width: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    let filled = (1..=width)
        .filter(|cell| *cell as f64 <= share * width as f64 + 0.5)
        .count();
    format!(
        "{}{} {:>3.0}%",
        "█".repeat(filled),
        "░".repeat(width - filled),
        share * 100.0
    )
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> NodeLine {
        NodeLine {
            name: name.to_owned(),
            instance_type: "m7g.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: "spot".to_owned(),
            price_per_hour: 0.0326,
            pods: 7,
            cpu_utilization: 0.5,
            memory_utilization: 0.25,
            status: NodeStatus::Ready,
        }
    }

    #[test]
    fn a_frame_never_needs_more_lines_than_the_terminal_has() {
        let frame = Frame {
            nodes: (0..100)
                .map(|number| node(&format!("node-{number}")))
                .collect(),
            ..Frame::default()
        };
        let decisions: Vec<String> = (0..50).map(|number| format!("decision {number}")).collect();
        for height in [8, 24, 60] {
            let lines = render(&frame, &decisions, 100, height);
            assert!(lines.len() < height, "{} lines for {height}", lines.len());
        }
        let lines = render(&frame, &decisions, 100, 24).join("\n");
        assert!(lines.contains("more nodes") && lines.contains("decision 49"));
        let idle = render(&Frame::default(), &decisions, 100, 24).join("\n");
        assert!(
            idle.contains("decision 49") && idle.contains("decision 36"),
            "{idle}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let frame = Frame {
            nodes: (0..30)
                .map(|number| node(&format!("node-of-a-long-name-in-the-cluster-{number}")))
                .collect(),
            ..Frame::default()
        };
        let decisions = ["a decision with a long reason ".repeat(8)];
        for width in [40, 80, 100, 115, 160] {
            for line in render(&frame, &decisions, width, 24) {
                let shown = without_style(&line);
                assert!(shown.chars().count() <= width, "{width}: {shown}");
            }
        }
    }

    #[test]
    fn nothing_costs_nothing() {
        let lines = header(&Frame::default(), 115).join("\n");
        assert!(lines.contains(" 0.000 USD/h"), "{lines}");
    }

    /// Without the escapes that colour it.
    fn without_style(line: &str) -> String {
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |shown, part| {
            shown + part.split_once('m').map_or("", |(_, text)| text)
        })
    }

    #[test]
    fn bars_are_full_at_one_and_empty_at_nothing() {
        assert_eq!(bar(1.0, 4), "████ 100%");
        assert_eq!(bar(0.0, 4), "░░░░   0%");
    }
}
