//! The ranking machine against the quadratic program over all pairs, solved by Clarabel.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSolver, IPSolver, SolverStatus, SupportedConeT};
use widemargin::data::{Dataset, Dense, Labels, Layout, Matrix};
use widemargin::machine::specification::Value;
use widemargin::machine::{LinearOptions, Machine, MachineKind, Model, RankSvm, Specification};
use widemargin::operation::cross_validate::{Quality, cross_validate};
use widemargin::operation::folds::Folds;
use widemargin::{Context, Error, Status};

use crate::common::{conic_settings, signed_numbers};

const FEATURES: usize = 3;

/// Rows of queries of unequal sizes in mixed order, with noisy labels of some levels.
fn data(seed: u64, rows: usize, levels: f64, layout: Layout) -> Dataset {
    let mut next = signed_numbers(seed);
    let mut values = Vec::new();
    let (mut labels, mut groups) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> = (0..FEATURES).map(|_| next()).collect();
        let truth = row[0] - 0.5 * row[1] + 0.6 * next();
        labels.push(((truth + 1.5) / 3.0 * levels).floor().clamp(0.0, levels - 1.0));
        groups.push((next().abs() * 3.9) as i64 - 1);
        values.extend(row);
    }
    let table = Matrix::DenseF64(Dense::new(rows, FEATURES, values).unwrap()).into_layout(layout);
    Dataset::new(table, Labels::Real(labels)).unwrap().with_groups(groups).unwrap()
}

/// min ½‖w‖² + Σ cᵢⱼ ξᵢⱼ (or ξ²) with ⟨w, xᵢ − xⱼ⟩ ≥ 1 − ξᵢⱼ, ξ ≥ 0: its optimum and weights.
fn pairwise_program(data: &Dataset, c: f64, squared: bool) -> (f64, Vec<f64>) {
    let (labels, groups) = (data.labels().values().unwrap(), data.groups().unwrap());
    let row = |i: usize| {
        let mut row = vec![0.0; FEATURES];
        data.features().copy_row(i, &mut row);
        row
    };
    let n = data.rows();
    let weight = |i: usize| data.weights().map_or(1.0, |weights| weights[i]);
    let pairs: Vec<(usize, usize)> = (0..n)
        .flat_map(|i| (0..n).map(move |j| (i, j)))
        .filter(|&(i, j)| groups[i] == groups[j] && labels[i] > labels[j])
        .collect();
    let size = FEATURES + pairs.len();
    let price = |k: usize| c * weight(pairs[k].0);
    let diagonal: Vec<f64> = (0..size)
        .map(|j| match j {
            _ if j < FEATURES => 1.0,
            _ if squared => 2.0 * price(j - FEATURES),
            _ => 0.0,
        })
        .collect();
    let linear: Vec<f64> = (0..size)
        .map(|j| if j < FEATURES || squared { 0.0 } else { price(j - FEATURES) })
        .collect();
    let all: Vec<usize> = (0..size).collect();
    let p = CscMatrix::new_from_triplets(size, size, all.clone(), all, diagonal);
    let (mut rows, mut columns, mut values, mut bounds) = (vec![], vec![], vec![], vec![]);
    for (k, &(i, j)) in pairs.iter().enumerate() {
        let difference = row(i).into_iter().zip(row(j)).map(|(a, b)| a - b);
        let entries = difference.enumerate().map(|(f, d)| (2 * k, f, -d));
        let slack = FEATURES + k;
        for (r, column, value) in entries.chain([(2 * k, slack, -1.0), (2 * k + 1, slack, -1.0)]) {
            rows.push(r);
            columns.push(column);
            values.push(value);
        }
        bounds.extend([-1.0, 0.0]);
    }
    let a = CscMatrix::new_from_triplets(bounds.len(), size, rows, columns, values);
    let cones = [SupportedConeT::NonnegativeConeT(bounds.len())];
    let settings = conic_settings(1e-11);
    let mut solver = DefaultSolver::new(&p, &linear, &a, &bounds, &cones, settings).unwrap();
    solver.solve();
    let solved =
        matches!(solver.solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved);
    assert!(solved, "{:?}", solver.solution.status);
    (solver.solution.obj_val, solver.solution.x[..FEATURES].to_vec())
}

fn weights(model: &Model) -> Vec<f64> {
    let mut weights = vec![0.0; FEATURES];
    model.linear().unwrap().weights.copy_row(0, &mut weights);
    weights
}

#[test]
fn the_optimum_is_that_of_the_program_over_all_pairs() {
    let context = Context::new();
    let mut case = 0;
    for levels in [2.0, 4.0, 50.0] {
        for (c, squared) in [(0.01, false), (0.1, true), (1.0, false), (1.0, true), (30.0, false)] {
            case += 1;
            let layout = if case % 2 == 0 { Layout::Sparse } else { Layout::Dense };
            let mut data = data(case, 40, levels, layout);
            if case % 3 == 0 {
                let weights =
                    data.groups().unwrap().iter().map(|g| 2.0 + *g as f64 * 0.5).collect();
                data = data.with_weights(weights).unwrap();
            }
            let (optimum, expected) = pairwise_program(&data, c, squared);
            let options = LinearOptions { gap: 1e-8, ..LinearOptions::default() };
            let model = RankSvm { c, squared, options }.fit(&data, &context).unwrap();
            let outcome = model.training.as_ref().unwrap().outcome;
            assert_eq!(outcome.status, Status::Solved, "{levels} {c} {squared}");
            let near = 1e-7 * optimum;
            assert!(outcome.dual <= optimum + near && optimum <= outcome.primal + near);
            assert!(outcome.gap() <= 1e-8 * outcome.primal, "{levels} {c} {squared}");
            // ½‖w − w*‖² is at most the distance of the objective from the optimum.
            let distance: f64 =
                weights(&model).iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(0.5 * distance <= 2.0 * near, "{distance:e} for {optimum}");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_model() {
    let data = data(7, 9000, 5.0, Layout::Dense);
    let machine = RankSvm { c: 1e-5, ..RankSvm::default() };
    let fit = |threads| {
        let context = Context::new().with_threads(threads).unwrap();
        weights(&machine.fit(&data, &context).unwrap())
    };
    assert_eq!(fit(1), fit(3));
}

#[test]
fn data_without_queries_is_one_query() {
    let context = Context::new();
    let data = data(3, 30, 3.0, Layout::Dense);
    let one = Dataset::new(data.features().clone(), data.labels().clone()).unwrap();
    let grouped = one.clone().with_groups(vec![8; 30]).unwrap();
    let fit = |data: &Dataset| weights(&RankSvm::default().fit(data, &context).unwrap());
    assert_eq!(fit(&one), fit(&grouped));
    assert_ne!(fit(&one), fit(&data));
}

#[test]
fn what_cannot_be_ranked_is_refused() {
    let context = Context::new();
    let data = data(3, 12, 3.0, Layout::Dense);
    let fit = |data: &Dataset| RankSvm::default().fit(data, &context).unwrap_err();
    let constant = data.clone().with_labels(Labels::Int(vec![2; 12])).unwrap();
    assert!(matches!(fit(&constant), Error::Labels { .. }));
    let alone = data.clone().with_groups((0..12).collect()).unwrap();
    assert!(matches!(fit(&alone), Error::Labels { .. }));
    let mut weights = vec![1.0; 12];
    weights[3] = 2.0;
    let uneven = data.clone().with_groups(vec![1; 12]).unwrap().with_weights(weights).unwrap();
    let message = fit(&uneven).to_string();
    assert!(message.contains("one weight for all rows of a query"), "{message}");
    let words = Labels::from_labels(&[widemargin::data::Label::Text("a".into())]);
    let words = data.clone().with_labels(words.select(&[0; 12])).unwrap();
    assert!(matches!(fit(&words), Error::Labels { .. }));
    let machine = RankSvm { c: 0.0, ..RankSvm::default() };
    assert!(matches!(machine.fit(&data, &context), Err(Error::Parameter { .. })));
}

#[test]
fn a_stopped_training_tells_how_far_it_came() {
    let data = data(3, 200, 4.0, Layout::Dense);
    let options = LinearOptions { gap: 1e-9, max_iterations: Some(2), ..LinearOptions::default() };
    let model = RankSvm { options, ..RankSvm::default() }.fit(&data, &Context::new()).unwrap();
    let outcome = model.training.unwrap().outcome;
    assert_eq!(outcome.status, Status::IterationLimit);
    assert!(outcome.gap() > 1e-9 * outcome.primal && outcome.dual <= outcome.primal);
}

#[test]
fn files_specifications_and_cross_validation_know_it() {
    let context = Context::new();
    let data = data(11, 120, 4.0, Layout::Dense);
    let mut specification = Specification::new(MachineKind::RankSvm);
    specification.set("c", Value::Real(0.1)).unwrap();
    specification.set("loss", "squared-hinge").unwrap();
    let machine = specification.build(&data, 0).unwrap();
    let model = machine.fit(&data, &context).unwrap();
    let again = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
    let scores = |model: &Model| {
        model.predictor(&context).unwrap().decision_values(data.features()).unwrap()
    };
    assert_eq!(scores(&model), scores(&again));
    let result = cross_validate(&*machine, &data, &Folds::Grouped(3), &context).unwrap();
    let Some(Quality::Orders(orders)) = result.quality else { panic!("{result:?}") };
    assert!(orders.kendall_tau > 0.4 && orders.queries == 4, "{orders:?}");
}
