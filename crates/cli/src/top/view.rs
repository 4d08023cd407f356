//! What is on the screen: a function of the figures of the last two looks.

use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table as Grid};

use super::figures::Figures;

/// A part of the screen that shows one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    Nodes,
    Pools,
    Latency,
    Leases,
    HotKeys,
    Slow,
}

impl Panel {
    /// Its title, and its columns: what the console calls them, what they are called here, and how wide they are at least.
    fn columns(self) -> (&'static str, &'static [(&'static str, &'static str, u16)]) {
        match self {
            Self::Nodes => (
                "nodes",
                &[
                    ("node", "node", 22),
                    ("pool", "pool", 8),
                    ("role", "role", 8),
                    ("state", "state", 8),
                    ("connections", "conns", 6),
                    ("private_connections", "own", 5),
                    ("outstanding", "waiting", 8),
                    ("round_trip_us", "rtt us", 8),
                    ("failures", "failures", 9),
                    ("last_failure", "last failure", 12),
                ],
            ),
            Self::Pools => (
                "pools",
                &[
                    ("pool", "pool", 10),
                    ("placement", "placement", 10),
                    ("nodes", "nodes", 6),
                    ("nodes_down", "down", 5),
                    ("connections", "conns", 6),
                    ("outstanding", "waiting", 8),
                    ("subscriptions", "subs", 5),
                ],
            ),
            Self::Latency => (
                "latency, us",
                &[
                    ("of", "of", 22),
                    ("samples", "samples", 9),
                    ("mean_us", "mean", 7),
                    ("p50_us", "p50", 7),
                    ("p99_us", "p99", 7),
                    ("p999_us", "p99.9", 7),
                    ("max_us", "max", 8),
                ],
            ),
            Self::Leases => (
                "leases",
                &[("client", "client", 7), ("node", "node", 16), ("reason", "reason", 12), ("age_ms", "ms", 8)],
            ),
            Self::HotKeys => ("hot keys", &[("key", "key", 20), ("seen", "seen", 7), ("command", "command", 10)]),
            Self::Slow => ("slow requests", &[("total_us", "us", 9), ("node", "node", 16), ("command", "command", 30)]),
        }
    }
}

/// What the screen shows.
#[derive(Debug)]
pub(super) struct Look {
    place: String,
    last: Figures,
    /// When the last look was taken: there may have been a pause, or looks that failed.
    taken: Option<Instant>,
    before: Option<(Figures, Duration)>,
    trouble: Option<String>,
    pub(super) is_paused: bool,
}

impl Look {
    pub(super) fn new(place: String) -> Self {
        Self { place, last: Figures::default(), taken: None, before: None, trouble: None, is_paused: false }
    }

    /// Takes in the figures of a look. Rates are those since the look before it, however long ago that was.
    pub(super) fn take(&mut self, figures: Figures, at: Instant) {
        let before = std::mem::replace(&mut self.last, figures);
        self.before = self.taken.map(|taken| (before, at.saturating_duration_since(taken)));
        self.taken = Some(at);
        let missing = self.last.missing;
        self.trouble = (missing > 0).then(|| format!("{missing} workers did not answer in time"));
    }

    /// The server could not be asked: what is shown is what was seen last.
    pub(super) fn fail(&mut self, words: &str) {
        self.trouble = Some(words.to_owned());
    }

    /// How much a figure has grown in a second.
    fn rate(&self, name: &str) -> Option<f64> {
        let (before, after) = self.before.as_ref()?;
        let grown = self.last.number(name)?.checked_sub(before.number(name)?)?;
        Some(grown as f64 / after.as_secs_f64().max(0.001))
    }

    /// The share of reads that found their key since the last look, in per cent.
    fn hit_rate(&self) -> Option<f64> {
        let (before, _) = self.before.as_ref()?;
        let grown = |name: &str| self.last.number(name)?.checked_sub(before.number(name)?);
        let (hits, misses) = (grown("keyspace_hits")?, grown("keyspace_misses")?);
        (hits + misses > 0).then(|| 100.0 * hits as f64 / (hits + misses) as f64)
    }

    fn head(&self) -> Line<'static> {
        let shown =
            |figure: Option<f64>, unit: &str| figure.map_or("-".to_owned(), |figure| format!("{figure:.0}{unit}"));
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let number = |name: &str| shown(self.last.number(name).map(|figure| figure as f64), "");
        let mut spans = vec![
            Span::styled(format!("respool {}  ", self.place), bold),
            Span::raw(format!("ops/s {}  ", shown(self.rate("requests"), ""))),
            Span::raw(format!("clients {}  ", number("clients"))),
            Span::raw(format!("hits {}  ", shown(self.hit_rate(), "%"))),
            Span::raw(format!("slow/s {}  ", shown(self.rate("slow_requests"), ""))),
            Span::raw(format!("timeouts {}  ", number("timeouts"))),
            Span::raw(format!("lost connections {}", number("upstream_losses"))),
        ];
        if let Some(trouble) = &self.trouble {
            spans.push(Span::styled(format!("  {trouble}"), Style::new().fg(Color::Red)));
        } else if self.is_paused {
            spans.push(Span::styled("  paused", Style::new().fg(Color::Yellow)));
        }
        Line::from(spans)
    }
}

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, look: &Look) {
    let [head, nodes, middle, lower, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Percentage(30),
        Constraint::Percentage(30),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(look.head()), head);
    panel(frame, look, Panel::Nodes, nodes);
    let [pools, latency] = Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(middle);
    panel(frame, look, Panel::Pools, pools);
    panel(frame, look, Panel::Latency, latency);
    let [leases, keys, slow] =
        Layout::horizontal([Constraint::Percentage(30), Constraint::Percentage(30), Constraint::Percentage(40)])
            .areas(lower);
    panel(frame, look, Panel::Leases, leases);
    panel(frame, look, Panel::HotKeys, keys);
    panel(frame, look, Panel::Slow, slow);
    let dim = Style::new().fg(Color::DarkGray);
    frame.render_widget(Paragraph::new(Line::styled("q: quit  p: pause", dim)), foot);
}

fn panel(frame: &mut Frame<'_>, look: &Look, panel: Panel, area: Rect) {
    let (title, columns) = panel.columns();
    let names: Vec<&str> = columns.iter().map(|(name, ..)| *name).collect();
    let rows = look.last.table(panel).into_iter().flat_map(|table| table.columns(&names));
    let rows: Vec<Row<'_>> = rows.map(|cells| Row::new(cells.into_iter().map(coloured).collect::<Vec<_>>())).collect();
    let head = Row::new(columns.iter().map(|(_, title, _)| *title)).style(Style::new().add_modifier(Modifier::BOLD));
    let widths = columns.iter().enumerate().map(|(place, (_, _, width))| match place {
        // The last column takes what is left.
        place if place + 1 == columns.len() => Constraint::Min(*width),
        _ => Constraint::Length(*width),
    });
    frame.render_widget(Grid::new(rows, widths).header(head).block(Block::bordered().title(title)), area);
}

/// A cell; the words for nodes that are not in use are marked.
fn coloured(text: &str) -> Cell<'_> {
    let colour = match text {
        "down" => Color::Red,
        "paused" | "drained" => Color::Yellow,
        "up" => Color::Green,
        _ => return Cell::new(text),
    };
    Cell::new(text).style(Style::new().fg(colour))
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::figures::Table;

    fn figures(requests: u64, hits: u64, misses: u64) -> Figures {
        let mut figures = Figures::default();
        let nodes =
            b"*1\r\n%3\r\n$4\r\nnode\r\n$6\r\nnode-a\r\n$5\r\nstate\r\n$4\r\ndown\r\n$13\r\nround_trip_us\r\n:123\r\n";
        figures.tables.push((Panel::Nodes, Table::of(nodes)));
        figures.add_info(&format!("requests:{requests}\nkeyspace_hits:{hits}\nkeyspace_misses:{misses}\nclients:7\n"));
        figures
    }

    fn screen(look: &Look, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, look)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let mut look = Look::new("h:1".to_owned());
        let start = Instant::now();
        look.take(figures(100, 10, 0), start);
        look.take(figures(400, 13, 1), start + Duration::from_secs(2));
        let text = screen(&look, 140, 30);
        for part in
            ["respool h:1", "ops/s 150", "clients 7", "hits 75%", "node-a", "down", "123", "hot keys", "slow requests"]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_server_that_was_restarted_has_no_rates_for_a_moment() {
        let mut look = Look::new("h:1".to_owned());
        let start = Instant::now();
        look.take(figures(100, 10, 0), start);
        look.take(figures(5, 0, 0), start + Duration::from_secs(1));
        assert!(screen(&look, 140, 30).contains("ops/s -"));
        look.fail("Error: Server closed the connection");
        let text = screen(&look, 140, 30);
        assert!(text.contains("closed the connection") && text.contains("node-a"), "{text}");
    }

    #[test]
    fn any_size_of_terminal_is_drawn() {
        let mut look = Look::new("h:1".to_owned());
        look.take(figures(1, 1, 1), Instant::now());
        for (width, height) in [(1, 1), (5, 3), (40, 10), (300, 100)] {
            screen(&look, width, height);
        }
    }
}
