//! Charts of bars, drawn on the server. The same figures are in a table beneath each.

use maud::{Markup, html};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 180.0;
/// Where the bars begin and end.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 152.0;
const TOP: f64 = 10.0;

/// Values of one kind, one for each span of time.
pub struct Series {
    pub name: &'static str,
    /// The class, which has the colour.
    pub class: &'static str,
    pub values: Vec<i64>,
}

/// How the bars of several series stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// On each other: their sum counts.
    Stacked,
    /// Beside each other.
    Grouped,
}

/// Draws a chart. `labels` name the spans, `format` writes a value.
pub fn chart(title: &str, labels: &[String], series: &[Series], layout: Layout, format: fn(i64) -> String) -> Markup {
    let sum = |at: usize| series.iter().map(|one| one.values[at]).sum::<i64>();
    let largest = |at: usize| series.iter().map(|one| one.values[at]).max().unwrap_or_default();
    let spans = 0..labels.len();
    let highest = match layout {
        Layout::Stacked => spans.clone().map(sum).max(),
        Layout::Grouped => spans.clone().map(largest).max(),
    };
    let highest = highest.unwrap_or_default();
    let scale = (BOTTOM - TOP) / (highest.max(1) as f64);
    let step = (WIDTH - LEFT) / labels.len().max(1) as f64;
    let bar = |at: usize, number: usize| -> (f64, f64, f64, f64) {
        let height = series[number].values[at] as f64 * scale;
        match layout {
            Layout::Stacked => {
                let below = series[..number].iter().map(|one| one.values[at]).sum::<i64>() as f64 * scale;
                (LEFT + at as f64 * step + step * 0.1, BOTTOM - below - height, step * 0.8, height)
            }
            Layout::Grouped => {
                let width = step * 0.8 / series.len() as f64;
                (LEFT + at as f64 * step + step * 0.1 + number as f64 * width, BOTTOM - height, width, height)
            }
        }
    };
    let of_label = |at: usize| LEFT + (at as f64 + 0.5) * step;
    // The first, one in the middle and the last are named.
    let named: Vec<usize> = match labels.len() {
        0 => Vec::new(),
        count => vec![0, count / 2, count - 1],
    };
    html! {
        section.chart {
            h2 { (title) }
            p.legend aria-hidden="true" { @for one in series { span class=(one.class) { (one.name) } } }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (title) ", at most " (format(highest)) "; the figures are in the table" } {
                line.axis x1=(LEFT) y1=(BOTTOM) x2=(WIDTH) y2=(BOTTOM) {}
                line.grid x1=(LEFT) y1=(TOP) x2=(WIDTH) y2=(TOP) {}
                text x=(LEFT - 6.0) y=(TOP + 4.0) text-anchor="end" { (format(highest)) }
                text x=(LEFT - 6.0) y=(BOTTOM) text-anchor="end" { (format(0)) }
                @for at in spans.clone() {
                    @for (number, one) in series.iter().enumerate() {
                        @if one.values[at] > 0 {
                            @let (x, y, width, height) = bar(at, number);
                            rect class=(one.class) x=(format!("{x:.1}")) y=(format!("{y:.1}")) width=(format!("{width:.1}")) height=(format!("{:.1}", height.max(1.0))) {
                                title { (labels[at]) ": " (one.name) " " (format(one.values[at])) }
                            }
                        }
                    }
                }
                @for at in named {
                    text x=(format!("{:.1}", of_label(at))) y=(BOTTOM + 18.0)
                        text-anchor=(if at == 0 { "start" } else if at + 1 == labels.len() { "end" } else { "middle" }) { (labels[at]) }
                }
            }
            details { summary { "Figures" }
                table.list tabindex="0" {
                    caption.hidden { (title) }
                    thead { tr { th scope="col" { "From (UTC)" } @for one in series { th.right scope="col" { (one.name) } } } }
                    tbody { @for at in spans { tr { th scope="row" { (labels[at]) } @for one in series { td.right { (format(one.values[at])) } } } } }
                }
            }
        }
    }
}
