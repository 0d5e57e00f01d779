//! Plots as SVG.

use crate::report::time;
use crate::tables::growth::Series;
use crate::tables::peers::Row;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use std::path::Path;

type Result = std::result::Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const FONT: &str = "sans-serif";
const GREY: RGBColor = RGBColor(120, 120, 120);

/// Returns the colour of an engine, which is the same in all plots.
fn color(engine: &str) -> RGBColor {
    match engine {
        "AgentScript" => RGBColor(200, 50, 60),
        "QuickJS" => RGBColor(30, 110, 170),
        "node --jitless" => RGBColor(150, 200, 110),
        "node" => RGBColor(50, 130, 60),
        _ => RGBColor(230, 160, 40),
    }
}

/// Draws time by size, with a chart for each series. Both axes are logarithmic; a line parallel to the grey one shows linear
/// growth.
///
/// # Errors
/// The file cannot be written.
pub fn growth(path: &Path, series: &[&Series]) -> Result {
    let width = 460 * series.len() as u32;
    let root = SVGBackend::new(path, (width, 320)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, series) in root.split_evenly((1, series.len())).iter().zip(series) {
        chart(area, series)?;
    }
    root.present()?;
    Ok(())
}

fn chart(area: &Area<'_>, series: &Series) -> Result {
    let (Some(first), Some(last)) = (series.sizes.first(), series.sizes.last()) else { return Ok(()) };
    let (first, last) = (*first as f64, *last as f64);
    let all = || series.lines.iter().flat_map(|(_, seconds)| seconds.iter().copied());
    let low = all().fold(f64::INFINITY, f64::min) / 1.5;
    let high = all().fold(0.0, f64::max) * 1.5;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{}: time by {}", series.name, series.unit), (FONT, 18))
        .margin(10)
        .margin_right(30)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d((first..last).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.1))
        .x_labels(4)
        .x_label_formatter(&|size| crate::report::count(*size))
        .y_label_formatter(&|seconds| time(*seconds))
        .label_style((FONT, 14))
        .draw()?;
    // Linear growth, from the lower left corner.
    let slope = |size: f64| (size, low * 1.2 * size / first);
    chart.draw_series(LineSeries::new([slope(first), slope(last.min(first * high / low / 1.2))], GREY.mix(0.5)))?;
    for (engine, seconds) in &series.lines {
        let style = color(engine).stroke_width(if *engine == "AgentScript" { 3 } else { 2 });
        let points: Vec<(f64, f64)> =
            series.sizes.iter().map(|size| *size as f64).zip(seconds.iter().copied()).collect();
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(*engine)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 14))
        .draw()?;
    Ok(())
}

/// Draws the time of each engine on each case relative to one engine: bars to the left are faster, bars to the right slower.
///
/// # Errors
/// The file cannot be written.
pub fn bars(path: &Path, rows: &[Row], engines: &[&str], base: usize) -> Result {
    const BAR: u32 = 5;
    let compared: Vec<usize> = (0..engines.len()).filter(|engine| *engine != base).collect();
    let group = compared.len() as f64 + 1.5;
    let height = (rows.len() as f64 * group) as u32 * BAR + 90;
    let root = SVGBackend::new(path, (820, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("Time as a multiple of {}'s", engines[base]), (FONT, 18))
        .margin(10)
        .margin_right(30)
        .x_label_area_size(30)
        .y_label_area_size(110)
        .build_cartesian_2d((0.01..100.0).log_scale(), rows.len() as f64 * group..0.0)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.1))
        .disable_y_mesh()
        .y_labels(0)
        .x_label_formatter(&|ratio| format!("{ratio} ×"))
        .label_style((FONT, 14))
        .draw()?;
    let name_style = TextStyle::from((FONT, 14)).pos(Pos::new(HPos::Right, VPos::Center));
    for (number, row) in rows.iter().enumerate() {
        let middle = (number as f64 + 0.5) * group;
        let (x, y) = chart.backend_coord(&(0.01, middle));
        root.draw(&Text::new(row.name.clone(), (x - 8, y), name_style.clone()))?;
    }
    for (place, engine) in compared.iter().enumerate() {
        let fill = color(engines[*engine]).filled();
        let bars = rows.iter().enumerate().filter_map(|(number, row)| {
            let ratio = row.seconds.get(*engine).copied()?? / row.seconds.get(base).copied()??;
            let top = number as f64 * group + 0.75 + place as f64;
            Some(Rectangle::new([(1.0, top), (ratio.clamp(0.01, 100.0), top + 1.0)], fill))
        });
        chart
            .draw_series(bars)?
            .label(engines[*engine])
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], fill));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 14))
        .draw()?;
    root.present()?;
    Ok(())
}
