//! Pictures of a training at several sites: what every site reached, held, sent and did, round by round.

use std::fs;
use std::path::Path;

use widemargin::operation::distribute::{RandomizedFunction, Round};

use crate::failure::{CommandResult, Failure};
use crate::picture::{Chart, Draw, Scale, Series};

/// Sites that have a line each; of more the first are drawn.
const MOST_SITES: usize = 32;

/// One picture: its file, title and y axis, and the value of a site in a round.
struct Picture {
    file: &'static str,
    title: &'static str,
    axis: &'static str,
    value: fn(&[Round], usize, usize) -> Option<f64>,
}

const PICTURES: [Picture; 4] = [
    Picture {
        file: "objective.svg",
        title: "Dual objective",
        axis: "share of the best one",
        value: share_of_best,
    },
    Picture {
        file: "rows.svg",
        title: "Rows that every site holds",
        axis: "rows",
        value: |history, round, site| history[round].held.get(site).map(|&held| held as f64),
    },
    Picture {
        file: "sent.svg",
        title: "Vectors that every site has sent",
        axis: "vectors",
        value: |history, round, site| history[round].sent.get(site).map(|&sent| sent as f64),
    },
    Picture {
        file: "work.svg",
        title: "Work of every site",
        axis: "pair steps in the round",
        value: steps_of_round,
    },
];

fn share_of_best(history: &[Round], round: usize, site: usize) -> Option<f64> {
    let duals = history.iter().flat_map(|round| &round.duals).copied();
    let best = duals.filter(|dual| dual.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let own = *history[round].duals.get(site)?;
    (own.is_finite() && best > 0.0).then_some(own / best)
}

fn steps_of_round(history: &[Round], round: usize, site: usize) -> Option<f64> {
    let steps = |round: usize| history[round].steps.get(site).copied();
    let before = if round == 0 { 0 } else { steps(round - 1)? };
    Some(steps(round)?.saturating_sub(before) as f64)
}

/// Draws the rounds of sites that exchanged support vectors or sums.
pub(super) fn draw(folder: &Path, history: &[Round]) -> CommandResult<()> {
    create(folder)?;
    let sites = history.first().map_or(0, |round| round.held.len());
    let note = (sites > MOST_SITES).then(|| format!("the first {MOST_SITES} of {sites} sites"));
    for picture in &PICTURES {
        let mut series = Vec::new();
        for site in 0..sites.min(MOST_SITES) {
            let value = |round| Some(((round + 1) as f64, (picture.value)(history, round, site)?));
            let points = (0..history.len()).filter_map(value).collect();
            let name = format!("site {}", site + 1);
            series.push(Series::new(name, Draw::Marked, points).styled(site));
        }
        save(&folder.join(picture.file), picture.title, note.clone(), picture.axis, series)?;
    }
    Ok(())
}

/// Draws the violators and support vectors of random working sets, function by function.
pub(super) fn draw_working_sets(
    folder: &Path,
    functions: &[RandomizedFunction],
) -> CommandResult<()> {
    create(folder)?;
    type Counts = fn(&RandomizedFunction) -> &[usize];
    let pictures: [(&str, &str, Counts); 2] = [
        ("violators.svg", "Fewest violators of a working set", |function| &function.violators),
        ("support.svg", "Support vectors of that working set", |function| &function.support),
    ];
    for (file, title, counts) in pictures {
        let mut series = Vec::new();
        for (f, function) in functions.iter().take(MOST_SITES).enumerate() {
            let counts = counts(function).iter().enumerate();
            let points = counts.map(|(round, &count)| ((round + 1) as f64, count as f64));
            let name = format!("function {}", f + 1);
            series.push(Series::new(name, Draw::Marked, points.collect()).styled(f));
        }
        save(&folder.join(file), title, None, "rows", series)?;
    }
    Ok(())
}

fn create(folder: &Path) -> CommandResult<()> {
    let message = |error| Failure::Message(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(message)
}

fn save(
    path: &Path,
    title: &str,
    note: Option<String>,
    axis: &str,
    series: Vec<Series>,
) -> CommandResult<()> {
    let values = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        series.iter().flat_map(|series| series.points.iter().map(of)).collect()
    };
    let x = Scale::linear(values(|point| point.0));
    let y = Scale::linear(values(|point| point.1));
    let chart = Chart {
        title: title.to_owned(),
        note,
        x: ("round".to_owned(), x),
        y: (axis.to_owned(), y),
        series,
        shades: None,
        size: (640.0, 400.0),
    };
    chart.draw(path)
}
