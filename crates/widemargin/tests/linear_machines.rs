//! What holds for linear machines beside their optimum: threads, starts, paths, files, mistakes.

use widemargin::data::{Csr, Dataset, Dense, Label, Labels, Matrix};
use widemargin::machine::{
    Bias, ClassWeights, FitInput, KMeans, LinearLoss, LinearMulticlass, LinearOneClass,
    LinearOptions, LinearSolver, LinearSvc, LinearSvr, Machine, MachineKind, Model, Penalty,
    Precision, RankSvm, Start, WarmStart,
};
use widemargin::{Context, Error};

fn number(i: usize) -> f64 {
    (i.wrapping_mul(2_654_435_761) % 1_000_003) as f64 / 1_000_003.0 - 0.5
}

/// Sparse rows of three noisy topics over many words.
fn topics(rows: usize, words: usize) -> Dataset {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut labels = Vec::new();
    for i in 0..rows {
        let topic = i % 3;
        let mut own: Vec<u32> = (0..12)
            .map(|k| {
                let word = ((number(i * 13 + k) + 0.5).powi(3) * words as f64) as usize;
                let shifted = if k % 2 == 0 { word / 3 * 3 + topic } else { word };
                shifted.min(words - 1) as u32
            })
            .collect();
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|&j| 1.0 + number(j as usize + i)));
        indices.extend(own);
        starts.push(indices.len());
        labels.push((topic as i64 + i64::from(i % 17 == 0)) % 3);
    }
    let table = Csr::new(words, starts, indices, values).unwrap();
    Dataset::new(Matrix::SparseF64(table), Labels::Int(labels)).unwrap()
}

fn two_sides(data: &Dataset) -> Dataset {
    let Labels::Int(labels) = data.labels() else { unreachable!() };
    let sides = labels.iter().map(|&y| i64::from(y == 0)).collect();
    data.clone().with_labels(Labels::Int(sides)).unwrap()
}

fn every_machine(max_iterations: Option<u64>) -> Vec<Box<dyn Machine>> {
    let options = LinearOptions { max_iterations, ..LinearOptions::default() };
    let svc = LinearSvc { options, ..LinearSvc::default() };
    let mut machines: Vec<Box<dyn Machine>> = Vec::new();
    for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
        for solver in [LinearSolver::Dual, LinearSolver::Blocks, LinearSolver::Newton] {
            let suits = match loss {
                LinearLoss::Hinge => solver != LinearSolver::Newton,
                LinearLoss::SquaredHinge => true,
                LinearLoss::Logistic => solver != LinearSolver::Blocks,
            };
            if suits {
                machines.push(Box::new(LinearSvc { loss, solver, ..svc.clone() }));
            }
        }
        if loss != LinearLoss::Hinge {
            machines.push(Box::new(LinearSvc {
                loss,
                penalty: Penalty::L1,
                ..LinearSvc::default()
            }));
        }
    }
    let multiclass = LinearMulticlass::CrammerSinger;
    machines.push(Box::new(LinearSvc { multiclass, ..svc.clone() }));
    for (squared, solver) in [(false, LinearSolver::Blocks), (true, LinearSolver::Newton)] {
        machines.push(Box::new(LinearSvr { squared, solver, options, ..LinearSvr::default() }));
    }
    machines.push(Box::new(LinearOneClass { nu: 0.2, options }));
    machines
}

/// A model without the time it took.
fn bytes(mut model: Model) -> Vec<u8> {
    model.training.as_mut().unwrap().seconds = 0.0;
    model.to_bytes().unwrap()
}

#[test]
fn a_model_has_the_same_bits_on_any_number_of_threads() {
    // Large enough for several parts, wide enough for features to be reordered.
    let data = topics(12_000, 5000);
    let one = Context::new();
    let many = Context::new().with_threads(3).unwrap();
    for (index, machine) in every_machine(Some(4)).iter().enumerate() {
        let (first, second) =
            (machine.fit(&data, &one).unwrap(), machine.fit(&data, &many).unwrap());
        assert_eq!(bytes(first), bytes(second), "machine {index}");
    }
}

#[test]
fn algorithms_agree() {
    let data = two_sides(&topics(900, 5000));
    let context = Context::new();
    let options = LinearOptions { tol: Some(1e-7), ..LinearOptions::default() };
    for loss in [LinearLoss::Hinge, LinearLoss::SquaredHinge, LinearLoss::Logistic] {
        let objective = |solver| {
            let svc = LinearSvc { loss, solver, options, ..LinearSvc::default() };
            svc.fit(&data, &context).unwrap().training.unwrap().outcome.primal
        };
        let first = objective(LinearSolver::Dual);
        let other = match loss {
            LinearLoss::Logistic => LinearSolver::Newton,
            _ => LinearSolver::Blocks,
        };
        let second = objective(other);
        assert!((first - second).abs() < 1e-6 * first, "{loss}: {first} and {second}");
    }
}

/// Classes that are learnt in a batch, up to eight, end where each of them ends alone.
#[test]
fn company_changes_no_class() {
    let data = topics(600, 5000);
    let Labels::Int(topic) = data.labels() else { unreachable!() };
    for count in [3, 11] {
        let class = |(row, y): (usize, &i64)| (y + 3 * row as i64) % count;
        let labels: Vec<i64> = topic.iter().enumerate().map(class).collect();
        let weights = (0..data.rows()).map(|row| if row % 7 == 0 { 0.0 } else { 1.5 }).collect();
        let data = data.clone().with_labels(Labels::Int(labels.clone())).unwrap();
        let data = data.with_weights(weights).unwrap();
        for (loss, penalty) in [(LinearLoss::Hinge, 1.0), (LinearLoss::SquaredHinge, 0.3)] {
            let options = LinearOptions { tol: Some(1e-7), ..LinearOptions::default() };
            let solver = LinearSolver::Dual;
            let class_weights = ClassWeights::Given(vec![(Label::Int(1), 2.5)]);
            let svc = LinearSvc { c: penalty, loss, solver, options, ..LinearSvc::default() };
            let all = LinearSvc { class_weights, ..svc.clone() };
            let one = all.fit(&data, &Context::new()).unwrap();
            let four = all.fit(&data, &Context::new().with_threads(4).unwrap()).unwrap();
            assert_eq!(bytes(one.clone()), bytes(four), "{loss}");
            let alone = |class: i64| {
                let side = |y: &i64| i64::from(*y != class);
                let sides = Labels::Int(labels.iter().map(side).collect());
                let factor = if class == 1 { 2.5 } else { 1.0 };
                let class_weights = ClassWeights::Given(vec![(Label::Int(0), factor)]);
                let svc = LinearSvc { class_weights, ..svc.clone() };
                let model = svc.fit(&data.clone().with_labels(sides).unwrap(), &Context::new());
                model.unwrap().training.unwrap().outcome
            };
            let (outcome, alone) =
                (one.training.unwrap().outcome, (0..count).map(alone).map(|o| o.primal));
            let expected: f64 = alone.sum();
            let difference = (outcome.primal - expected).abs();
            assert!(difference < 1e-7 * expected, "{loss}: {outcome:?} and {expected}");
            assert!(outcome.gap() < 1e-6 * expected, "{loss}: {outcome:?}");
        }
    }
}

/// To a coarse tolerance many classes are learnt in single precision, unless double was asked for:
/// nearly the same machine, with the same bits on any number of threads.
#[test]
fn single_precision_is_coarse_but_the_same_everywhere() {
    let data = topics(900, 5000);
    let Labels::Int(topic) = data.labels() else { unreachable!() };
    let labels = topic.iter().enumerate().map(|(row, y)| (y + 3 * row as i64) % 21).collect();
    let data = data.clone().with_labels(Labels::Int(labels)).unwrap();
    let (one, three) = (Context::new(), Context::new().with_threads(3).unwrap());
    let reductions = [LinearMulticlass::OneVsRest, LinearMulticlass::CrammerSinger];
    for (multiclass, loss) in
        reductions.into_iter().zip([LinearLoss::SquaredHinge, LinearLoss::Hinge])
    {
        let machine = |precision| {
            let options = LinearOptions { precision, ..LinearOptions::default() };
            let solver = LinearSolver::Dual;
            LinearSvc { multiclass, loss, solver, options, ..LinearSvc::default() }
        };
        let single = machine(Precision::F32).fit(&data, &one).unwrap();
        let again = machine(Precision::F32).fit(&data, &three).unwrap();
        assert_eq!(bytes(single.clone()), bytes(again), "{multiclass}");
        let double = machine(Precision::F64).fit(&data, &one).unwrap();
        assert_ne!(bytes(single.clone()), bytes(double.clone()), "{multiclass}");
        let [single, double] = [single, double].map(|model| model.training.unwrap().outcome);
        assert!((single.primal - double.primal).abs() < 1e-3 * double.primal, "{multiclass}");
        assert!(single.dual <= single.primal, "{single:?}");
    }
}

/// More rows than a sample needs: a guess is made of some of them first.
#[test]
fn a_guess_from_a_sample_changes_nothing() {
    let columns = 5;
    let values: Vec<f64> = (0..3000 * columns).map(number).collect();
    let side = |row: &[f64]| i64::from(row[0] - row[1] + 0.8 * number(row.len()) > 0.1 * row[2]);
    let labels = values.chunks_exact(columns).map(side).collect();
    let rows = Matrix::DenseF64(Dense::new(3000, columns, values.clone()).unwrap());
    let data = Dataset::new(rows, Labels::Int(labels)).unwrap();
    let context = Context::new();
    let options = LinearOptions { tol: Some(1e-8), ..LinearOptions::default() };
    for loss in [LinearLoss::SquaredHinge, LinearLoss::Logistic] {
        let fit = |solver, bias| {
            let svc = LinearSvc { loss, solver, bias, options, ..LinearSvc::default() };
            svc.fit(&data, &context).unwrap().training.unwrap().outcome
        };
        let charged = Bias::Appended(1.0);
        let (dual, newton) = (fit(LinearSolver::Dual, charged), fit(LinearSolver::Newton, charged));
        assert!((dual.primal - newton.primal).abs() < 1e-7 * dual.primal, "{loss}");
        let free = fit(LinearSolver::Newton, Bias::Free);
        assert!(free.primal <= newton.primal && free.gap().abs() < 1e-6 * free.primal, "{loss}");
        let sparse = LinearSvc { loss, penalty: Penalty::L1, options, ..LinearSvc::default() };
        let outcome = sparse.fit(&data, &context).unwrap().training.unwrap().outcome;
        assert!(outcome.gap() < 1e-5 * outcome.primal, "{loss}: {outcome:?}");
    }
}

#[test]
fn a_start_changes_the_way_and_not_the_optimum() {
    let data = topics(900, 5000);
    let context = Context::new();
    let options = LinearOptions { tol: Some(1e-6), ..LinearOptions::default() };
    for (loss, solver) in [
        (LinearLoss::Hinge, LinearSolver::Dual),
        (LinearLoss::SquaredHinge, LinearSolver::Newton),
        (LinearLoss::Logistic, LinearSolver::Dual),
    ] {
        let svc = LinearSvc { loss, solver, options, ..LinearSvc::default() };
        let cold = svc.fit(&data, &context).unwrap().training.unwrap().outcome;
        let near = LinearSvc { c: 0.8, ..svc.clone() }.fit(&data, &context).unwrap();
        let warm = svc
            .fit_from(FitInput::new(&data), Start::of(&near, &svc), &context)
            .unwrap()
            .training
            .unwrap()
            .outcome;
        assert!((cold.primal - warm.primal).abs() < 1e-6 * cold.primal, "{loss}");
        let path = svc.path(&data, &[0.5, 0.8, 1.0], &context).unwrap();
        let last = path[2].model.training.as_ref().unwrap().outcome;
        assert!((cold.primal - last.primal).abs() < 1e-6 * cold.primal, "{loss}");
        if loss == LinearLoss::SquaredHinge {
            assert!(warm.iterations < cold.iterations, "{} {}", warm.iterations, cold.iterations);
        }
    }
}

#[test]
fn regression_paths_end_where_single_fits_do() {
    let data = topics(400, 300);
    let Labels::Int(labels) = data.labels() else { unreachable!() };
    let targets = labels.iter().enumerate().map(|(i, &y)| y as f64 + number(i)).collect();
    let data = data.clone().with_labels(Labels::Real(targets)).unwrap();
    let options = LinearOptions { tol: Some(1e-7), ..LinearOptions::default() };
    for squared in [false, true] {
        let svr = LinearSvr { squared, options, ..LinearSvr::default() };
        let path = [(0.1, 0.3), (1.0, 0.3), (1.0, 0.1)];
        let steps = svr.path(&data, &path, &Context::new()).unwrap();
        for (step, (c, epsilon)) in steps.iter().zip(path) {
            let alone =
                LinearSvr { c, epsilon, ..svr.clone() }.fit(&data, &Context::new()).unwrap();
            let (found, expected) = (&step.model, alone.training.as_ref().unwrap().outcome.primal);
            let found = found.training.as_ref().unwrap().outcome.primal;
            assert!((found - expected).abs() < 1e-5 * expected, "{squared} {c} {epsilon}");
        }
    }
}

#[test]
fn models_survive_every_format() {
    let data = topics(300, 200);
    let context = Context::new();
    for machine in every_machine(None) {
        let model = machine.fit(&data, &context).unwrap();
        let values = |model: &Model| {
            let predictor = model.predictor(&context).unwrap();
            predictor.decision_values(data.features()).unwrap().values().to_vec()
        };
        let native = Model::load_from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(native, model);
        let text = model.to_liblinear_bytes().unwrap();
        let read = Model::load_from_bytes(&text).unwrap();
        assert_eq!(read.kind, model.kind);
        assert_eq!(values(&read), values(&model), "{}", model.kind);
        assert_eq!(
            read.to_liblinear_bytes().map(|t| t.len()).unwrap(),
            read.to_liblinear_bytes().unwrap().len()
        );
        let sorted = read.clone().with_sorted_classes();
        sorted.validate().unwrap();
        let predictions =
            |model: &Model| model.predictor(&context).unwrap().predict(data.features()).unwrap();
        assert_eq!(predictions(&sorted), predictions(&model));
    }
}

#[test]
fn logistic_regression_knows_probabilities() {
    let data = two_sides(&topics(600, 100));
    let context = Context::new();
    let svc = LinearSvc { loss: LinearLoss::Logistic, ..LinearSvc::default() };
    let model = svc.fit(&data, &context).unwrap();
    assert_eq!(model.kind, MachineKind::Logistic);
    let predictor = model.predictor(&context).unwrap();
    let values = predictor.decision_values(data.features()).unwrap();
    let shares = predictor.probabilities(data.features()).unwrap();
    for i in 0..data.rows() {
        let expected = 1.0 / (1.0 + (-values.row(i)[0]).exp());
        assert!((shares.row(i)[0] - expected).abs() < 1e-6);
        assert!((shares.row(i)[0] + shares.row(i)[1] - 1.0).abs() < 1e-12);
    }
}

#[test]
fn time_runs_out_with_a_model() {
    let data = topics(3000, 5000);
    let limit = std::time::Duration::from_nanos(1);
    for machine in every_machine(None) {
        let context = Context::new().with_time_limit(limit);
        let model = machine.fit(&data, &context).unwrap();
        let status = model.training.unwrap().outcome.status;
        assert!(matches!(status, widemargin::Status::TimeLimit | widemargin::Status::Solved));
    }
}

#[test]
fn mistakes_are_told() {
    let rows = Matrix::DenseF64(Dense::new(2, 1, vec![1.0, 2.0]).unwrap());
    let data = Dataset::new(rows, Labels::Int(vec![0, 1])).unwrap();
    let context = Context::new();
    let message = |svc: LinearSvc| match svc.fit(&data, &context) {
        Err(error @ Error::Parameter { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let svc = LinearSvc::default();
    let said = message(LinearSvc { c: 0.0, ..svc.clone() });
    assert_eq!(said, "parameter c: expected a finite number above 0, found 0");
    let said = message(LinearSvc { bias: Bias::Appended(-1.0), ..svc.clone() });
    assert_eq!(said, "parameter bias: expected a finite number above 0, found -1");
    let said = message(LinearSvc { loss: LinearLoss::Hinge, penalty: Penalty::L1, ..svc.clone() });
    assert!(said.starts_with("parameter penalty: expected l2 with a hinge"), "{said}");
    let solver = LinearSolver::Newton;
    let said = message(LinearSvc { loss: LinearLoss::Hinge, solver, ..svc.clone() });
    assert!(said.starts_with("parameter solver: expected dual or blocks"), "{said}");
    let options = LinearOptions { tol: Some(f64::NAN), ..LinearOptions::default() };
    let said = message(LinearSvc { options, ..svc });
    assert!(said.starts_with("parameter tol"), "{said}");
    let svr = LinearSvr { epsilon: -0.5, ..LinearSvr::default() };
    assert!(svr.fit(&data, &context).is_err());
    let said = "squared".parse::<LinearLoss>().unwrap_err().to_string();
    assert!(said.contains("one of hinge, squared-hinge, logistic"), "{said}");
}

#[test]
fn damaged_liblinear_files_are_refused_with_the_place() {
    let sound = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-1 \n";
    assert!(Model::load_from_bytes(sound.as_bytes()).is_ok());
    for (from, to, expected) in [
        ("L2R_LR", "L9R", "1:13: expected one of L2R_LR"),
        ("nr_class 2", "nr_class 0", "2:10: expected at least one class"),
        ("label 1 -1", "label 1 x", "3:9: expected a whole number, found 'x'"),
        ("label 1 -1\n", "", "'label'"),
        ("nr_feature 2", "nr_feature 4000000000", "too short"),
        ("-1 \n", "nan\n", "expected a finite"),
        ("-1 \n", "", "a weight"),
        ("-1 \n", "-1 7\n", "the end of the file"),
        ("label 1 -1", "label 1 1", "distinct class labels"),
        ("bias -1", "bais -1", "expected solver_type, nr_class"),
    ] {
        let damaged = match from {
            "-1 \n" => sound.strip_suffix("-1 \n").unwrap().to_owned() + to,
            _ => sound.replacen(from, to, 1),
        };
        let error = Model::load_from_bytes(damaged.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}

/// Rows of which four columns have values, at these places of so many columns.
fn scattered(places: [u32; 4], columns: usize) -> Dataset {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..40 {
        for (k, &place) in places.iter().enumerate().filter(|(k, _)| (i + k) % 3 != 0) {
            indices.push(place);
            values.push(number(7 * i + k) + (i % 2) as f64 * 0.3);
        }
        starts.push(indices.len());
    }
    let table = Csr::new(columns, starts, indices, values).unwrap();
    let labels = Labels::Int((0..40).map(|i| i % 2 + i64::from(i % 5 == 0)).collect());
    Dataset::new(Matrix::SparseF64(table), labels).unwrap()
}

#[test]
fn columns_that_do_not_occur_change_no_prediction() {
    // Too many columns for a number for each and every function.
    let places = [0, 5, 70_000_000, u32::MAX - 2];
    let (wide, narrow) = (scattered(places, u32::MAX as usize), scattered([0, 1, 2, 3], 4));
    let context = Context::new();
    let mut machines = every_machine(None);
    machines.push(Box::new(RankSvm::default()));
    machines.push(Box::new(KMeans { clusters: 3, ..KMeans::default() }));
    for (at, machine) in machines.iter().enumerate() {
        let [a, b] = [&wide, &narrow].map(|data| {
            let model = machine.fit(data, &context).unwrap();
            let bytes = model.to_bytes().unwrap();
            assert!(bytes.len() < 100_000, "machine {at}: {} bytes", bytes.len());
            let model = Model::load_from_bytes(&bytes).unwrap();
            assert_eq!(model.features(), data.columns());
            let predictor = model.predictor(&context).unwrap();
            predictor.decision_values(data.features()).unwrap().values().to_vec()
        });
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * (1.0 + b.abs());
        assert!(a.iter().zip(&b).all(close), "machine {at}: {a:?} {b:?}");
    }
    // A start is a model of all columns.
    let machine = LinearSvc { loss: LinearLoss::Logistic, ..LinearSvc::default() };
    let first = machine.fit(&wide, &context).unwrap();
    let input = FitInput::new(&wide);
    let again = machine.fit_from(input, Start::of(&first, &machine), &context).unwrap();
    let outcome = |model: &Model| model.training.as_ref().unwrap().outcome;
    assert!((outcome(&again).primal - outcome(&first).primal).abs() <= 1e-2);
    assert_eq!(again.features(), wide.columns());
}
