//! Pictures as SVG: what is drawn is handed in, nothing is computed here.

mod axis;
mod boundary;
mod chart;
mod confusion;
mod curve;
mod heat;
mod intervals;
mod legend;
mod regions;
mod shade;
mod sheet;
mod sizes;

use std::fmt::Display;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use widemargin::data::write::write_atomically;

pub(crate) use axis::Scale;
pub(crate) use chart::{Chart, Draw, Series};
pub(crate) use confusion::confusion;
pub(crate) use curve::{Curve, roc};
pub(crate) use heat::{HeatMap, heat};
pub(crate) use intervals::{Interval, Marks, intervals};
pub(crate) use regions::{Point, Regions, regions};
pub(crate) use shade::Shades;
pub(crate) use sizes::sizes;

use crate::failure::{CommandResult, Failure};
use sheet::Sheet;

/// Colours that people with colour blindness can distinguish (Okabe and Ito).
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
    RGBColor(240, 228, 66),
];

const FONT: &str = "sans-serif";

/// How many times finer than pixels the places of [`save_fine`] are.
const SCALE: u32 = 8;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn color(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// The colour mixed with white.
fn pale(index: usize) -> RGBColor {
    let RGBColor(r, g, b) = color(index);
    let mix = |v: u8| (f64::from(v) * 0.3 + 255.0 * 0.7) as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

fn drawing(error: impl Display) -> Failure {
    Failure::Message(format!("the picture could not be drawn: {error}"))
}

/// Draws on a white canvas and writes the file whole or not at all.
fn save(
    path: &Path,
    size: (u32, u32),
    draw: impl FnOnce(&Canvas<'_>) -> CommandResult<()>,
) -> CommandResult<()> {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        canvas.fill(&WHITE).map_err(drawing)?;
        draw(&canvas)?;
        canvas.present().map_err(drawing)?;
    }
    Ok(write_atomically(path, |out| out.write_all(svg.as_bytes()))?)
}

/// As [`save`], with places that are fractions of pixels.
fn save_fine(
    path: &Path,
    (width, height): (f64, f64),
    draw: impl FnOnce(&Sheet<'_, '_>) -> CommandResult<()>,
) -> CommandResult<()> {
    let [width, height] = [width, height].map(|side| side.ceil() as u32);
    let (fine_width, fine_height) = (SCALE * width, SCALE * height);
    let mut svg = String::new();
    {
        let size = (fine_width, fine_height);
        let canvas = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        canvas.fill(&WHITE).map_err(drawing)?;
        draw(&Sheet { canvas: &canvas })?;
        canvas.present().map_err(drawing)?;
    }
    // The backend's size is the size of its numbers; the picture is shown smaller.
    let finer = format!("width=\"{fine_width}\" height=\"{fine_height}\" viewBox");
    let shown = format!("width=\"{width}\" height=\"{height}\" viewBox");
    let svg = svg.replacen(&finer, &shown, 1);
    Ok(write_atomically(path, |out| out.write_all(svg.as_bytes()))?)
}
