//! Model selection against training every machine by itself, and estimates against brute force.

use std::path::PathBuf;
use std::time::Duration;

use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    ClassWeights, FitInput, Loss, Machine, NuSvc, PenaltyPath, ScalingRule, Scheme, SolverOptions,
    Start, Svc, Svr, WarmStart,
};
use widemargin::operation::folds::Folds;
use widemargin::operation::tune::{
    Axis, Criterion, Family, Found, Identity, Judge, Metric, Plan, Point, Reuse, Space, Strategy,
    Trial, Value, bootstrap, criterion, repeated, search,
};
use widemargin::{CancelToken, Context, Result};

fn iris() -> Dataset {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/iris.libsvm");
    read_dataset(path, &ReadOptions::new()).unwrap()
}

fn tight() -> SolverOptions {
    SolverOptions {
        tol: 1e-6,
        precision: widemargin::machine::Precision::F64,
        ..Default::default()
    }
}

fn number(point: &Point, name: &str) -> f64 {
    match point.get(name) {
        Some(Value::Real(number)) => *number,
        _ => panic!("no number {name}"),
    }
}

fn svc(point: &Point) -> Svc {
    let kernel = Kernel::Gaussian { gamma: number(point, "gamma") };
    Svc { c: number(point, "c"), kernel, options: tight(), ..Svc::default() }
}

fn space() -> Space {
    Space {
        axes: vec![
            Axis::logarithmic("gamma", 0.01, 1.0, 3).unwrap(),
            Axis::logarithmic("c", 0.1, 100.0, 4).unwrap(),
        ],
    }
}

fn plan(data: &Dataset, strategy: Strategy, metric: Metric) -> Plan {
    let folds = match data.labels() {
        Labels::Real(_) => Folds::Random(4),
        _ => Folds::Stratified(4),
    };
    let judge = Judge::Splits { splits: repeated(&folds, 1, data, None, 7).unwrap(), metric };
    Plan { strategy, judge, scaling: None, reuse: Reuse::Everything }
}

fn means(found: &Found) -> Vec<f64> {
    found.trials.iter().map(|trial| trial.mean().unwrap()).collect()
}

fn same_scores(data: &Dataset, family: impl Fn(&Point) -> Box<dyn Machine> + Sync, metric: Metric) {
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(family(point)) };
    for scaling in [None, Some(ScalingRule::Standard)] {
        for threads in [1, 2] {
            let context = Context::new().with_threads(threads).unwrap();
            let mut plan = plan(data, Strategy::Grid, metric);
            plan.scaling = scaling;
            let warm = search(&family, &space(), data, &plan, None, &context).unwrap();
            plan.reuse = Reuse::Nothing;
            let cold = search(&family, &space(), data, &plan, None, &context).unwrap();
            for (warm, cold) in means(&warm).iter().zip(means(&cold)) {
                assert!((warm - cold).abs() <= 1e-3 * (1.0 + cold.abs()), "{warm} {cold}");
            }
            assert!(warm.trials.iter().all(|trial| trial.failure.is_none()));
        }
    }
}

#[test]
fn a_warm_search_has_the_scores_of_a_cold_one() {
    let data = iris();
    same_scores(&data, |point| Box::new(svc(point)), Metric::Accuracy);
    same_scores(&data, |point| Box::new(svc(point)), Metric::BalancedAccuracy);
    same_scores(
        &data,
        |point| Box::new(Svc { scheme: Scheme::OneVsRest, loss: Loss::SquaredHinge, ..svc(point) }),
        Metric::F1,
    );
    same_scores(
        &data,
        |point| Box::new(Svc { class_weights: ClassWeights::Balanced, ..svc(point) }),
        Metric::BalancedAccuracy,
    );
    same_scores(
        &data,
        |point| {
            let Svc { kernel, options, .. } = svc(point);
            let nu = 0.05 + 0.1 * number(point, "c").log10().abs();
            Box::new(NuSvc { nu, kernel, options, ..NuSvc::default() })
        },
        Metric::Accuracy,
    );
}

#[test]
fn regressions_share_too() {
    let rows = 90;
    let x: Vec<f64> = (0..rows).map(|i| f64::from(i) / 15.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.1 * (37.0 * x).sin()).collect();
    let features = Matrix::DenseF64(Dense::new(rows as usize, 1, x).unwrap());
    let data = Dataset::new(features, Labels::Real(y)).unwrap();
    let family = |point: &Point| -> Box<dyn Machine> {
        let Svc { c, kernel, options, .. } = svc(point);
        Box::new(Svr { c, kernel, options, epsilon: 0.05, ..Svr::default() })
    };
    for metric in [Metric::SquaredError, Metric::AbsoluteError, Metric::Determination] {
        same_scores(&data, family, metric);
    }
}

/// The same rows with every feature `times` times.
fn with_repeated_features(data: &Dataset, times: usize) -> Dataset {
    let (rows, columns) = (data.rows(), data.columns());
    let mut row = vec![0.0; columns];
    let mut values = Vec::with_capacity(rows * columns * times);
    for i in 0..rows {
        data.features().copy_row(i, &mut row);
        (0..times).for_each(|_| values.extend(&row));
    }
    let features = Matrix::DenseF64(Dense::new(rows, columns * times, values).unwrap());
    Dataset::new(features, data.labels().clone()).unwrap()
}

#[test]
fn paths_reach_the_optimum_of_single_fits() {
    // The whole matrix; rows on demand; too little memory for the variables that take part.
    for bytes in [usize::MAX, 2 * 8 * 90 * 90, 2 * 8 * 20 * 20] {
        let context = Context::new().with_threads(1).unwrap().with_cache_bytes(bytes);
        paths_agree_with_single_fits(&iris(), 1.0, &context);
    }
    // Rows of many features are kept.
    let context = Context::new().with_threads(1).unwrap().with_cache_bytes(2 * 8 * 90 * 90);
    paths_agree_with_single_fits(&with_repeated_features(&iris(), 20), 0.05, &context);
}

fn paths_agree_with_single_fits(data: &Dataset, unit: f64, context: &Context) {
    let parts: Vec<Vec<usize>> =
        (0..5).map(|fold| (0..data.rows()).filter(|row| row % 5 != fold).collect()).collect();
    let rest: Vec<Vec<usize>> =
        (0..5).map(|fold| (0..data.rows()).filter(|row| row % 5 == fold).collect()).collect();
    let penalties = [0.05, 0.5, 5.0, 500.0];
    let keeps_values = context.cache_bytes() > 4 * 8 * penalties.len() * 3 * data.rows();
    for (scheme, loss) in [
        (Scheme::OneVsOne, Loss::Hinge),
        (Scheme::OneVsRest, Loss::Hinge),
        (Scheme::Dag, Loss::SquaredHinge),
    ] {
        let of_width = |gamma: f64| Svc {
            kernel: Kernel::Gaussian { gamma: unit * gamma },
            scheme: scheme.clone(),
            loss,
            options: tight(),
            ..Svc::default()
        };
        let (near, svc) = (of_width(0.4), of_width(0.3));
        let earlier =
            near.fit_paths(&penalties, data, &parts, &[], None, context).unwrap().unwrap();
        let earlier = earlier.into_starts();
        let paths = svc.fit_paths(&penalties, data, &parts, &rest, Some(&earlier), context);
        let paths = paths.unwrap().unwrap();
        for (part, rows) in parts.iter().enumerate() {
            for (at, &c) in penalties.iter().enumerate() {
                let model = paths.model(part, at).unwrap();
                let alone = Svc { c, ..svc.clone() };
                let alone =
                    alone.fit_with(FitInput::with_rows(data, rows).unwrap(), context).unwrap();
                let dual = |model: &widemargin::machine::Model| {
                    model.training.as_ref().unwrap().outcome.dual
                };
                let (found, expected) = (dual(&model), dual(&alone));
                assert!((found - expected).abs() <= 1e-7 * expected.abs(), "{found} {expected}");
                let values = |model: &widemargin::machine::Model| {
                    model.predictor(context).unwrap().decision_values(data.features()).unwrap()
                };
                let (found, expected) = (values(&model), values(&alone));
                for (found, expected) in found.values().iter().zip(expected.values()) {
                    assert!((found - expected).abs() < 1e-3, "{found} {expected}");
                }
                let predictor = model.predictor(context).unwrap();
                let values = predictor.decision_values_of(data.features(), &rest[part]).unwrap();
                let known = paths.held_out_values(part, at);
                // With pairs of three classes every row lacks the values of one pair.
                assert_eq!(known.is_some(), keeps_values && scheme == Scheme::OneVsRest);
                let known = known.iter().flat_map(|known| known.values());
                for (known, value) in known.zip(values.values()) {
                    assert!((known - value).abs() < 1e-3, "{known} {value}");
                }
                let winners = paths.winners(part, at);
                let wins = winners.iter().any(Option::is_some);
                assert_eq!(wins, keeps_values && scheme != Scheme::OneVsRest);
                for (winner, class) in winners.into_iter().zip(predictor.class_indices(&values)) {
                    assert!(winner.is_none_or(|winner| winner == class));
                }
                assert_eq!(model.training.unwrap().penalty(), Some(c));
            }
        }
    }
}

#[test]
fn a_bound_that_no_variable_reaches_may_grow() {
    let data = iris();
    let context = Context::new();
    let parts = [(0..data.rows()).filter(|row| row % 3 != 0).collect::<Vec<_>>()];
    for loss in [Loss::Hinge, Loss::SquaredHinge] {
        let kernel = Kernel::Gaussian { gamma: 8.0 };
        let svc = Svc { kernel, loss, ..Svc::default() };
        let paths = svc.fit_paths(&[0.5, 100.0, 1000.0], &data, &parts, &[], None, &context);
        let paths = paths.unwrap().unwrap();
        let largest = paths
            .model(0, 1)
            .unwrap()
            .functions()
            .iter()
            .flat_map(|f| &f.parts)
            .fold(0.0_f64, |largest, part| {
                part.coefficients.iter().fold(largest, |a, b| a.max(b.abs()))
            });
        assert!(largest < 100.0, "{largest}");
        assert!(!paths.repeats(0, 0, 1));
        // The squared loss has no bound; its penalty changes the matrix.
        assert_eq!(paths.repeats(0, 1, 2), loss == Loss::Hinge);
    }
}

#[test]
fn every_start_leads_to_the_optimum() {
    let data = iris();
    let context = Context::new();
    let rows: Vec<usize> = (0..data.rows()).filter(|row| row % 4 != 1).collect();
    let others: Vec<usize> = (0..data.rows()).filter(|row| row % 4 != 2).collect();
    let machine =
        Svc { c: 3.0, kernel: Kernel::Gaussian { gamma: 0.4 }, options: tight(), ..Svc::default() };
    let dual = |start: Option<Start<'_>>| {
        let input = FitInput::with_rows(&data, &rows).unwrap();
        let model = match start {
            Some(start) => machine.fit_from(input, start, &context).unwrap(),
            None => machine.fit_with(input, &context).unwrap(),
        };
        model.training.unwrap().outcome.dual
    };
    let cold = dual(None);
    for (c, gamma) in [(3.0, 0.4), (0.1, 0.4), (50.0, 0.4), (3.0, 2.0)] {
        let other = Svc { c, kernel: Kernel::Gaussian { gamma }, ..machine.clone() };
        let model = other.fit_with(FitInput::with_rows(&data, &others).unwrap(), &context).unwrap();
        for start in [Start::Values(&model), Start::Scaled(&model), Start::Support(&model)] {
            let warm = dual(Some(start));
            assert!((warm - cold).abs() <= 1e-7 * cold, "{warm} {cold}");
        }
    }
}

#[test]
fn every_strategy_finds_a_good_point() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let context = Context::new();
    let grid = search(
        &family,
        &space(),
        &data,
        &plan(&data, Strategy::Grid, Metric::Accuracy),
        None,
        &context,
    )
    .unwrap();
    let best = grid.best().unwrap().mean().unwrap();
    assert_eq!(grid.trials.len(), 12);
    assert!(grid.near_best().contains(&grid.best.unwrap()));
    for strategy in [
        Strategy::Refined { rounds: 2 },
        Strategy::Random { points: 12 },
        Strategy::Halving { factor: 3, smallest: 20 },
        Strategy::Race,
        Strategy::Surrogate { points: 12 },
    ] {
        let found = search(
            &family,
            &space(),
            &data,
            &plan(&data, strategy, Metric::Accuracy),
            None,
            &context,
        )
        .unwrap();
        let score = found.best().unwrap().mean().unwrap();
        assert!(score >= best - 0.03, "{strategy:?}: {score} {best}");
        match strategy {
            Strategy::Refined { .. } => assert!(score >= best && found.trials.len() > 20),
            Strategy::Halving { .. } => assert_eq!(found.best().unwrap().rows, grid.trials[0].rows),
            Strategy::Race => assert_eq!(score, best),
            _ => assert_eq!(found.trials.len(), 12),
        }
    }
}

/// Support vector machines under a name that tells them from others.
struct Named(&'static str);

impl Family for Named {
    fn machine(&self, point: &Point) -> Result<Box<dyn Machine>> {
        Ok(Box::new(svc(point)))
    }

    fn identity(&self, _: &[&str]) -> Option<Identity> {
        Some([("machine".to_owned(), self.0.to_owned())].into())
    }
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let data = iris();
    let family = Named("svc");
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let whole_plan = plan(&data, Strategy::Grid, Metric::Accuracy);
    let whole = search(&family, &space(), &data, &whole_plan, None, &Context::new()).unwrap();
    let token = CancelToken::new();
    let stop = token.clone();
    let steps = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = steps.clone();
    let context =
        Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
            if matches!(event, widemargin::Event::StageStep { .. })
                && counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 19
            {
                stop.cancel();
            }
        });
    let part = search(&family, &space(), &data, &whole_plan, Some(&journal), &context).unwrap();
    assert!(part.stopped.is_some());
    let done = part.trials.iter().flat_map(|t| &t.records).flatten().count();
    assert!((20..48).contains(&done), "{done}");
    let again = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = again.clone();
    let context = Context::new().with_observer(move |event: &widemargin::Event| {
        if matches!(event, widemargin::Event::StageStep { .. }) {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let rest = search(&family, &space(), &data, &whole_plan, Some(&journal), &context).unwrap();
    assert_eq!(again.load(std::sync::atomic::Ordering::Relaxed), 48 - done);
    assert_eq!(means(&rest), means(&whole));
    assert_eq!(rest.best, whole.best);
    let other = Plan { scaling: Some(ScalingRule::Standard), ..whole_plan };
    assert!(search(&family, &space(), &data, &other, Some(&journal), &Context::new()).is_err());
    let nameless = |point: &Point| family.machine(point);
    for other in [&Named("another") as &dyn Family, &nameless] {
        let plan = plan(&data, Strategy::Grid, Metric::Accuracy);
        assert!(search(other, &space(), &data, &plan, Some(&journal), &Context::new()).is_err());
    }
}

#[test]
fn a_time_limit_leaves_what_was_finished() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let context = Context::new().with_time_limit(Duration::ZERO);
    let plan = plan(&data, Strategy::Grid, Metric::Accuracy);
    let error = search(&family, &space(), &data, &plan, None, &context).unwrap_err();
    assert!(matches!(error, widemargin::Error::Interrupted), "{error}");
}

/// Rows of two classes that overlap, so that every penalty takes longer than the one before.
fn mixed(rows: usize) -> Dataset {
    let value = |i: usize| (i * 7919 % 1013) as f64 / 1013.0 - 0.5;
    let values = (0..rows).flat_map(|i| [value(3 * i), value(3 * i + 1), value(3 * i + 2)]);
    let labels = (0..rows as i64).map(|i| (i * i + i / 3) % 2).collect();
    let table = Dense::new(rows, 3, values.collect()).unwrap();
    Dataset::new(Matrix::DenseF64(table), Labels::Int(labels)).unwrap()
}

#[test]
fn a_time_limit_inside_the_first_path_keeps_the_penalties_that_were_finished() {
    let data = mixed(120);
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let penalties = Axis::logarithmic("c", 0.1, 1e2, 11).unwrap();
    let space = Space { axes: vec![Axis::list("gamma", vec![Value::Real(1.0)]), penalties] };
    let plan = plan(&data, Strategy::Grid, Metric::Accuracy);
    let whole = search(&family, &space, &data, &plan, None, &Context::new()).unwrap();
    let mut limit = Duration::from_millis(1);
    let mut stopped_inside = 0;
    loop {
        let context = Context::new().with_time_limit(limit);
        limit = limit.mul_f64(1.2);
        let found = match search(&family, &space, &data, &plan, None, &context) {
            Err(error) => {
                assert!(matches!(error, widemargin::Error::Interrupted), "{error}");
                continue;
            }
            Ok(found) => found,
        };
        for (trial, other) in found.trials.iter().zip(&whole.trials) {
            for (record, other) in trial.records.iter().zip(&other.records) {
                assert!(record.is_none_or(|record| Some(record.score) == other.map(|r| r.score)));
            }
        }
        let best = found.best().unwrap();
        assert!(best.partial_mean().is_some());
        if found.stopped.is_none() {
            break;
        }
        stopped_inside += usize::from(found.trials.iter().any(|trial| trial.mean().is_none()));
    }
    assert!(stopped_inside > 0, "every search was stopped before its first penalty or not at all");
}

#[test]
fn a_search_stopped_between_rounds_keeps_the_last_finished_one() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let token = CancelToken::new();
    let (stop, rounds) = (token.clone(), std::sync::atomic::AtomicUsize::new(0));
    let context =
        Context::new().with_cancel_token(token).with_observer(move |event: &widemargin::Event| {
            if matches!(event, widemargin::Event::Stage { .. })
                && rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1
            {
                stop.cancel();
            }
        });
    let halving = Strategy::Halving { factor: 3, smallest: 20 };
    let plan = plan(&data, halving, Metric::Accuracy);
    let found = search(&family, &space(), &data, &plan, None, &context).unwrap();
    assert!(found.stopped.is_some());
    let best = found.best().unwrap();
    assert_eq!(best.rows, 20);
    let first = found.trials.iter().filter(|trial| trial.rows == 20);
    let highest = first.filter_map(|trial| trial.mean()).fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(best.mean(), Some(highest));
}

#[test]
fn machines_that_refuse_are_passed_over() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> {
        let nu = number(point, "nu");
        Ok(Box::new(NuSvc { nu, options: tight(), ..NuSvc::default() }))
    };
    let space = Space { axes: vec![Axis::list("nu", vec![Value::Real(0.2), Value::Real(1.5)])] };
    let plan = plan(&data, Strategy::Grid, Metric::Accuracy);
    let found = search(&family, &space, &data, &plan, None, &Context::new()).unwrap();
    assert_eq!(found.best, Some(0));
    assert!(found.trials[1].mean().is_none());
    assert!(found.trials[1].failure.as_ref().unwrap().contains("nu"));
}

#[test]
fn probabilities_are_scored() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let plan = plan(&data, Strategy::Grid, Metric::LogLoss);
    let space = Space {
        axes: space()
            .axes
            .into_iter()
            .map(|mut axis| {
                axis.values.truncate(2);
                axis
            })
            .collect(),
    };
    let found = search(&family, &space, &data, &plan, None, &Context::new()).unwrap();
    // A guess by class shares has −ln 3.
    assert!(found.best().unwrap().mean().unwrap() > -0.5);
    let judged_by_area = Plan { judge: area_judge(&data), ..plan };
    let found = search(&family, &space, &data, &judged_by_area, None, &Context::new()).unwrap();
    assert!(found.best().unwrap().mean().unwrap() > 0.95);
}

fn area_judge(data: &Dataset) -> Judge {
    plan(data, Strategy::Grid, Metric::Auc).judge
}

/// Two overlapping classes on a line and a half.
fn overlapping(rows: usize) -> Dataset {
    let unit = |i: usize, k: usize| ((i * 7919 + k * 104_729) % 1009) as f64 / 1009.0;
    let value = |i: usize, k: usize| unit(i, k) + if i.is_multiple_of(2) { 0.0 } else { 0.45 };
    let values = (0..rows).flat_map(|i| [value(i, 1), value(i, 2)]).collect();
    let features = Matrix::DenseF64(Dense::new(rows, 2, values).unwrap());
    Dataset::new(features, Labels::Int((0..rows as i64).map(|i| i % 2).collect())).unwrap()
}

#[test]
fn estimates_stand_in_the_right_relation_to_leaving_one_out() {
    let data = overlapping(80);
    let context = Context::new();
    for (c, gamma) in [(1.0, 1.0), (5.0, 3.0), (0.5, 10.0)] {
        let svc = Svc { c, kernel: Kernel::Gaussian { gamma }, options: tight(), ..Svc::default() };
        let model = svc.fit(&data, &context).unwrap();
        let wrong = (0..data.rows())
            .filter(|&out| {
                let rows: Vec<usize> = (0..data.rows()).filter(|&row| row != out).collect();
                let model =
                    svc.fit_with(FitInput::with_rows(&data, &rows).unwrap(), &context).unwrap();
                let row = data.features().select_rows(&[out]);
                let prediction = model.predictor(&context).unwrap().predict(&row).unwrap();
                prediction != data.labels().select(&[out])
            })
            .count();
        let share = |which| criterion(which, &svc, &model, &data, &context).unwrap();
        let rows = data.rows() as f64;
        let approximate = share(Criterion::ApproximateLeaveOneOut) * rows;
        assert!((approximate - wrong as f64).abs() <= 3.0, "{approximate} {wrong}");
        assert!(share(Criterion::XiAlpha) * rows >= wrong as f64);
        assert!(share(Criterion::SpanBound) * rows >= wrong as f64);
    }
}

#[test]
fn a_search_by_estimate_needs_no_folds() {
    let data = iris();
    let family = |point: &Point| -> Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let judge = Judge::Estimate(Criterion::ApproximateLeaveOneOut);
    let plan = Plan { strategy: Strategy::Grid, judge, scaling: None, reuse: Reuse::Everything };
    let found = search(&family, &space(), &data, &plan, None, &Context::new()).unwrap();
    assert!(found.best().unwrap().mean().unwrap() > 0.94);
}

#[test]
fn a_grid_is_shifted_as_long_as_that_finds_something_better() {
    let data = iris();
    let space = Space {
        axes: vec![
            Axis::logarithmic("gamma", 0.004, 0.008, 2).unwrap(),
            Axis::logarithmic("c", 4.0, 8.0, 2).unwrap(),
        ],
    };
    let family =
        |point: &Point| -> widemargin::Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let plan = plan(&data, Strategy::Shifted, Metric::Accuracy);
    let found = search(&family, &space, &data, &plan, None, &Context::new()).unwrap();
    let score = |trial: &Trial| trial.mean().unwrap();
    let best = found.trials.iter().map(score).fold(0.0, f64::max);
    let inside = |trial: &&Trial| {
        let (gamma, c) = (number(&trial.point, "gamma"), number(&trial.point, "c"));
        (0.003..0.009).contains(&gamma) && (3.9..8.1).contains(&c)
    };
    let first = found.trials.iter().filter(inside).map(score).fold(0.0, f64::max);
    assert!(found.trials.iter().filter(inside).count() == 4 && best > first, "{best} {first}");
}

#[test]
fn a_pattern_search_ends_where_no_neighbour_is_better() {
    let data = iris();
    let space = Space {
        axes: vec![
            Axis::logarithmic("gamma", 1e-4, 1.0, 5).unwrap(),
            Axis::logarithmic("c", 0.1, 1000.0, 5).unwrap(),
        ],
    };
    let family =
        |point: &Point| -> widemargin::Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let plan = plan(&data, Strategy::Pattern { halvings: 2 }, Metric::Accuracy);
    let found = search(&family, &space, &data, &plan, None, &Context::new()).unwrap();
    let point = &found.best().unwrap().point;
    let (gamma, c) = (number(point, "gamma"), number(point, "c"));
    let best = found.best().unwrap().mean().unwrap();
    // Steps of a decade, halved twice: a ratio of 10^(1/4) up and down on either axis.
    let step = 10.0_f64.powf(0.25);
    for (other_gamma, other_c) in
        [(gamma * step, c), (gamma / step, c), (gamma, c * step), (gamma, c / step)]
    {
        let near = |point: &Point, name: &str, value: f64| {
            (number(point, name) / value - 1.0).abs() < 1e-9
        };
        let trial = found
            .trials
            .iter()
            .find(|t| near(&t.point, "gamma", other_gamma) && near(&t.point, "c", other_c));
        assert!(trial.unwrap().mean().unwrap() <= best);
    }
    assert!(found.trials.len() < 25, "fewer than the grid: {}", found.trials.len());
}

#[test]
fn the_bootstrap_scores_machines_trained_on_repeated_rows() {
    let data = iris();
    let splits = bootstrap(3, &data, None, 7).unwrap();
    let gamma = Axis::list("gamma", vec![Value::Real(0.1)]);
    let space = Space { axes: vec![gamma, Axis::logarithmic("c", 1.0, 10.0, 2).unwrap()] };
    let family =
        |point: &Point| -> widemargin::Result<Box<dyn Machine>> { Ok(Box::new(svc(point))) };
    let mut plan = plan(&data, Strategy::Grid, Metric::Accuracy);
    plan.judge = Judge::Splits { splits: splits.clone(), metric: Metric::Accuracy };
    let context = Context::new();
    let found = search(&family, &space, &data, &plan, None, &context).unwrap();
    for trial in &found.trials {
        for (s, split) in splits.iter().enumerate() {
            // By hand: a data set with the rows as often as they were drawn.
            let model = svc(&trial.point).fit(&data.select_rows(&split.train), &context).unwrap();
            let held = data.select_rows(&split.test);
            let predicted = model.predictor(&context).unwrap().predict(held.features()).unwrap();
            let right =
                (0..held.rows()).filter(|&i| predicted.get(i) == held.labels().get(i)).count();
            let score = trial.records[s].unwrap().score.unwrap();
            assert!((score - right as f64 / held.rows() as f64).abs() < 1e-12);
        }
    }
}
