//! Online machines against the batch machines, and the promises of their single steps.

use crate::context::Context;
use crate::data::{Dataset, Dense, Label, Labels, Matrix};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::machine::{
    AllInOne, ClassWeights, Epochs, Lasvm, Machine, Model, MulticlassSvc, OnlineSchedule,
    OnlineSvc, Precision, SolverOptions, Svc, WorkingSetStrategy as Choice,
};
use crate::numeric::InstructionSet;
use crate::solver::Status;
use crate::solver::s2do::{Patterns, Pool, WorkingSet};
use proptest::prelude::*;

/// Rows around the corners of a polygon, one per class, overlapping.
fn blobs(rows: usize, classes: usize) -> Dataset {
    let mut state = 11_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for i in 0..rows {
        let class = i % classes;
        let angle = std::f64::consts::TAU * class as f64 / classes as f64;
        values.push(angle.cos() + 1.5 * (next() - 0.5));
        values.push(angle.sin() + 1.5 * (next() - 0.5));
        labels.push(class as i64);
    }
    let table = Dense::new(rows, 2, values).unwrap();
    Dataset::new(Matrix::DenseF64(table), Labels::Int(labels)).unwrap()
}

fn batch(machine: AllInOne, c: f64) -> MulticlassSvc {
    let options =
        SolverOptions { tol: 1e-7, precision: Precision::F64, ..SolverOptions::default() };
    MulticlassSvc { machine, c, options, ..MulticlassSvc::default() }
}

fn batch_dual(machine: AllInOne, c: f64, data: &Dataset) -> f64 {
    let svc = batch(machine, c);
    svc.fit(data, &Context::new()).unwrap().training.unwrap().outcome.dual
}

#[test]
fn passes_until_optimal_reach_the_batch_optimum() {
    let data = blobs(45, 3);
    for machine in AllInOne::ALL {
        for c in [0.3, 5.0] {
            let best = batch_dual(machine, c, &data);
            for &strategy in Choice::ALL {
                if strategy == Choice::LaRank && machine != AllInOne::CrammerSinger {
                    continue;
                }
                let epochs = Epochs::UntilOptimal;
                let online =
                    OnlineSvc { machine, c, strategy, epochs, tol: 1e-5, ..OnlineSvc::default() };
                let model = online.fit(&data, &Context::new()).unwrap();
                let outcome = model.training.unwrap().outcome;
                let place = format!("{machine} {strategy} C = {c}: {outcome:?}, best {best}");
                assert_eq!(outcome.status, Status::Solved, "{place}");
                assert!((outcome.dual - best).abs() <= 1e-5 * best, "{place}");
                assert!(outcome.primal >= best * (1.0 - 1e-7), "{place}");
                assert!(outcome.primal <= best * (1.0 + 1e-2), "{place}");
            }
        }
    }
}

#[test]
fn one_pass_is_below_the_optimum_and_repeatable() {
    let data = blobs(200, 4);
    let best = batch_dual(AllInOne::CrammerSinger, 1.0, &data);
    let online = OnlineSvc { machine: AllInOne::CrammerSinger, ..OnlineSvc::default() };
    let model = online.fit(&data, &Context::new()).unwrap();
    let dual = model.training.as_ref().unwrap().outcome.dual;
    assert!(dual <= best * (1.0 + 1e-9) && dual > 0.8 * best, "{dual} of {best}");
    let again = online.fit(&data, &Context::new()).unwrap();
    assert_eq!(model.functions(), again.functions());
    let fixed = OnlineSvc { schedule: OnlineSchedule::Fixed { old: 4, supports: 4 }, ..online };
    let dual = fixed.fit(&data, &Context::new()).unwrap().training.unwrap().outcome.dual;
    assert!(dual > 0.9 * best, "{dual} of {best}");
}

#[test]
fn a_budget_bounds_the_patterns() {
    let data = blobs(200, 4);
    let context = Context::new();
    let online = OnlineSvc { budget: Some(30), ..OnlineSvc::default() };
    let model = online.fit(&data, &context).unwrap();
    assert!(model.support_count() <= 30);
    let predictions = model.predictor(&context).unwrap().predict(data.features()).unwrap();
    let right = (0..data.rows()).filter(|&i| predictions.get(i) == data.labels().get(i)).count();
    assert!(right > 130, "{right} of 200 right");
}

#[test]
fn classes_may_come_late_unless_all_were_declared() {
    let data = blobs(60, 3);
    let context = Context::new();
    let only = |classes: &[i64]| {
        let Labels::Int(labels) = data.labels() else { unreachable!() };
        let rows: Vec<usize> = (0..60).filter(|&i| classes.contains(&labels[i])).collect();
        data.select_rows(&rows)
    };
    for machine in AllInOne::ALL {
        let online = OnlineSvc { machine, c: 10.0, ..OnlineSvc::default() };
        let mut learner = online.learner(&context).unwrap();
        learner.partial_fit(&only(&[1])).unwrap();
        let predictions = learner.model().unwrap();
        let predictions =
            predictions.predictor(&context).unwrap().predict(data.features()).unwrap();
        assert!((0..60).all(|i| predictions.get(i) == Some(Label::Int(1))));
        learner.partial_fit(&only(&[0, 1])).unwrap();
        for _ in 0..5 {
            learner.partial_fit(&data).unwrap();
        }
        let model = learner.model().unwrap();
        let outcome = model.training.as_ref().unwrap().outcome;
        assert!((outcome.dual - learner.dual()).abs() < 1e-6 * outcome.dual, "{machine}");
        let predictions = model.predictor(&context).unwrap().predict(data.features()).unwrap();
        let right = (0..60).filter(|&i| predictions.get(i) == data.labels().get(i)).count();
        assert!(right >= 45, "{machine}: {right} of 60 right");

        let classes = Some(vec![Label::Int(0), Label::Int(1)]);
        let mut strict = OnlineSvc { classes, ..online }.learner(&context).unwrap();
        assert!(matches!(strict.partial_fit(&data), Err(Error::Labels { .. })));
    }
}

#[test]
fn lasvm_reaches_the_binary_optimum() {
    let data = blobs(120, 2);
    let context = Context::new();
    let options =
        SolverOptions { tol: 1e-7, precision: Precision::F64, ..SolverOptions::default() };
    let kernel = Kernel::Gaussian { gamma: 1.0 };
    for c in [0.5, 10.0] {
        let svc = Svc { c, kernel: kernel.clone(), options, ..Svc::default() };
        let batch = svc.fit(&data, &context).unwrap();
        let epochs = Epochs::UntilOptimal;
        let online = Lasvm { c, kernel: kernel.clone(), epochs, tol: 1e-6, ..Lasvm::default() };
        let model = online.fit(&data, &context).unwrap();
        let (best, found) =
            (batch.training.as_ref().unwrap().outcome, model.training.as_ref().unwrap().outcome);
        assert_eq!(found.status, Status::Solved);
        assert!((found.dual - best.dual).abs() <= 1e-6 * best.dual, "{found:?} {best:?}");
        assert!(found.gap() >= -1e-9 && found.gap() <= 1e-4 * best.dual, "{found:?}");
        let values = |m: &crate::machine::Model| {
            m.predictor(&context).unwrap().decision_values(data.features()).unwrap()
        };
        let (a, b) = (values(&batch), values(&model));
        for i in 0..data.rows() {
            assert!((a.row(i)[0] - b.row(i)[0]).abs() < 1e-3, "row {i}");
        }
        let sum: f64 = model.functions()[0].parts[0].coefficients.iter().sum();
        assert!(sum.abs() < 1e-9 * c);
    }
}

/// Patterns with a dense kernel matrix, stepped by S2DO.
struct Bench {
    patterns: Patterns,
    kernel: Vec<Vec<f64>>,
}

impl Bench {
    fn new(machine: AllInOne, data: &Dataset, classes: usize, c: f64) -> Self {
        let n = data.rows();
        let mut values = vec![vec![0.0; 2]; n];
        (0..n).for_each(|i| data.features().copy_row(i, &mut values[i]));
        let distance = |a: &[f64], b: &[f64]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
        let kernel: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| (-distance(&values[i], &values[j])).exp()).collect())
            .collect();
        let mut patterns = Patterns::new(machine.loss(classes), classes);
        let zero = vec![0.0; patterns.columns()];
        for i in 0..n {
            patterns.push((i % classes) as u32, c, 1.0, &zero);
        }
        Self { patterns, kernel }
    }

    fn apply(&mut self, changes: Vec<(usize, Vec<f64>)>) {
        for (i, change) in changes {
            self.patterns.update(&self.kernel[i], &change, InstructionSet::detect());
        }
    }

    /// One step; `None` when nothing violates.
    fn step(&mut self, pool: Pool, tol: f64) -> Option<f64> {
        let (set, all) = (InstructionSet::detect(), 0..self.patterns.len());
        let chosen = match self.patterns.first(all.clone(), pool, tol, set)? {
            WorkingSet::One(first) => {
                self.patterns.partner(first, all, pool, &self.kernel[first.0], set)
            }
            pair => pair,
        };
        let k = match chosen {
            WorkingSet::Two(a, b) => self.kernel[a.0][b.0],
            WorkingSet::One(_) => 0.0,
        };
        let (gain, changes) = self.patterns.solve(chosen, k);
        self.apply(changes);
        Some(gain)
    }

    fn is_feasible(&self, machine: AllInOne) -> bool {
        use AllInOne::{Adm, Atm, CrammerSinger};
        (0..self.patterns.len()).all(|i| {
            let (alpha, upper) = (self.patterns.alpha(i), self.patterns.upper(i));
            let sum: f64 = alpha.iter().sum();
            let shared = matches!(machine, Adm | Atm | CrammerSinger);
            alpha.iter().all(|a| (0.0..=upper).contains(a))
                && (!shared || sum <= upper * (1.0 + 1e-12))
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 27, ..ProptestConfig::default() })]

    #[test]
    fn steps_on_many_patterns_reach_the_optimum(
        machine in 0..9_usize, classes in 2..5_usize, c in 0.05..20.0_f64, size in 2..24_usize,
    ) {
        let machine = AllInOne::ALL[machine];
        let data = blobs(24, classes);
        let mut bench = Bench::new(machine, &data, classes, c);
        let (set, n) = (InstructionSet::detect(), bench.patterns.len());
        let mut last = 0.0;
        for _ in 0..20_000 {
            let violations = bench.patterns.violations(0..n, set);
            for (i, violation) in violations.iter().enumerate() {
                prop_assert!((violation - bench.patterns.violation_at(i)).abs() < 1e-12);
            }
            let mut block: Vec<usize> = (0..n).collect();
            block.sort_by(|&a, &b| violations[b].total_cmp(&violations[a]));
            if violations[block[0]] < 1e-7 { break }
            block.truncate(size);
            block.sort_by_key(|&i| (bench.patterns.code(i), i));
            let values: Vec<f64> = block
                .iter()
                .flat_map(|&i| block.iter().map(move |&j| (i, j)))
                .map(|(i, j)| bench.kernel[i][j])
                .collect();
            let (_, changes) = bench.patterns.solve_together(&block, &values, 5e-8, 1000, set);
            let rows: Vec<&[f64]> =
                changes.patterns.iter().map(|&i| &bench.kernel[i][..]).collect();
            let gain = bench.patterns.update_all(&rows, &changes, set);
            prop_assert!(gain >= -1e-12 * last, "{}", gain);
            prop_assert!(bench.is_feasible(machine));
            last = bench.patterns.dual();
        }
        let exact = bench.patterns.objective_and_gap().0;
        prop_assert!((exact - last).abs() <= 1e-9 * exact.max(1.0));
        let best = batch_dual(machine, c, &data);
        prop_assert!((exact - best).abs() <= 1e-6 * best.max(1e-3), "{} {}: {} of {}", machine, c, exact, best);
    }

    #[test]
    fn steps_never_lower_the_dual_and_stay_feasible(
        machine in 0..9_usize, classes in 2..5_usize, c in 0.05..20.0_f64,
    ) {
        let machine = AllInOne::ALL[machine];
        let data = blobs(24, classes);
        let mut bench = Bench::new(machine, &data, classes, c);
        let mut last = 0.0;
        for step in 0..20_000 {
            let pool = if step % 3 == 2 { Pool::Supports } else { Pool::Patterns };
            let Some(gain) = bench.step(pool, 1e-7) else {
                if pool == Pool::Patterns { break }
                continue;
            };
            prop_assert!(gain >= 0.0 && bench.patterns.dual() >= last, "step {}", step);
            prop_assert!(bench.is_feasible(machine), "step {}", step);
            last = bench.patterns.dual();
        }
        let exact = bench.patterns.objective_and_gap().0;
        prop_assert!((exact - last).abs() <= 1e-9 * exact.max(1.0));
        let best = batch_dual(machine, c, &data);
        prop_assert!((exact - best).abs() <= 1e-6 * best.max(1e-3), "{} {}: {} of {}", machine, c, exact, best);

        // An example that is taken away and comes back changes nothing.
        let change = bench.patterns.clear(5);
        bench.apply(vec![(5, change)]);
        let without = bench.patterns.objective_and_gap().0;
        prop_assert!((without - bench.patterns.dual()).abs() <= 1e-9 * exact.max(1.0));
        prop_assert!(without <= exact * (1.0 + 1e-12) + 1e-12);
        for _ in 0..20_000 {
            if bench.step(Pool::Patterns, 1e-7).is_none() { break }
        }
        prop_assert!((bench.patterns.dual() - exact).abs() <= 1e-6 * exact.max(1e-3));
    }
}

#[test]
fn parts_blocks_and_threads_change_nothing() {
    use crate::kernel::{KernelBlocks, KernelRows, RowCaching};
    use crate::solver::s2do::{Options, Problem, solve};
    let data = blobs(2400, 4);
    let order: Vec<usize> = (0..4).flat_map(|c| (0..600).map(move |i| 4 * i + c)).collect();
    let dual = |machine: AllInOne, cache: usize, threads: usize| {
        let context = Context::new().with_threads(threads).unwrap();
        let set = context.instruction_set();
        let kernel = Kernel::Gaussian { gamma: 2.0 };
        let blocks =
            KernelBlocks::<f64>::on_cpu(&kernel, data.features(), Some(&order), set).unwrap();
        let rows = KernelRows::new(blocks, vec![0, 2400], RowCaching::All, cache);
        let problem = Problem {
            loss: machine.loss(4),
            classes: 4,
            codes: order.iter().map(|i| (i % 4) as u32).collect(),
            upper: vec![0.5; 2400],
            start: None,
            bias: false,
        };
        let options = Options { tol: 1e-4, ..Options::default() };
        let solution =
            context.install(|| solve(&rows.view(&[0], &context), &problem, &options, &context));
        assert_eq!(solution.outcome.status, Status::Solved);
        (solution.outcome.dual, solution.coefficients)
    };
    for machine in [AllInOne::WestonWatkins, AllInOne::Adm, AllInOne::Ats] {
        let whole = 1 << 28;
        let (best, coefficients) = dual(machine, whole, 1);
        assert_eq!(
            coefficients,
            dual(machine, whole, 3).1,
            "{machine}: another result on three threads"
        );
        // Half of it holds the kernel matrix of 400 rows.
        let parts = 2 * 8 * 400 * 400;
        let (found, coefficients) = dual(machine, parts, 1);
        assert!((found - best).abs() <= 1e-5 * best, "{machine}: {found} of {best}");
        assert_eq!(
            coefficients,
            dual(machine, parts, 2).1,
            "{machine}: another result on two threads"
        );
    }
}

#[test]
fn learning_goes_on_from_a_model() {
    let data = blobs(60, 4);
    let rows = |range: std::ops::Range<usize>| data.select_rows(&range.collect::<Vec<_>>());
    let classes: Vec<Label> = (0..4).map(Label::Int).collect();
    let context = Context::new();
    for machine in AllInOne::ALL {
        let online =
            OnlineSvc { machine, c: 3.0, classes: Some(classes.clone()), ..OnlineSvc::default() };
        let mut learner = online.learner(&context).unwrap();
        learner.partial_fit(&rows(0..30)).unwrap();
        let model = learner.model().unwrap();
        let mut resumed = online.resume(&model, &context).unwrap();
        assert_eq!(resumed.support_count(), model.support_count(), "{machine}");
        // Kernel values are single precision; their last bit depends on what is packed together.
        let values = |model: &Model| {
            let predictor = model.predictor(&context).unwrap();
            predictor.decision_values(data.features()).unwrap().into_values()
        };
        let (before, after) = (values(&model), values(&resumed.model().unwrap()));
        for (a, b) in before.iter().zip(&after) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{machine}: {b}, not {a}");
        }
        let (now, then) = (resumed.dual(), learner.dual());
        let svc = MulticlassSvc { classes: Some(classes.clone()), ..batch(machine, 3.0) };
        let best = svc.fit(&rows(0..30), &context).unwrap().training.unwrap().outcome.dual;
        assert!(now >= then * (1.0 - 1e-6), "{machine}: {now}, below {then}");
        assert!(now <= best * (1.0 + 1e-6), "{machine}: {now}, above the optimum {best}");
        // Where a shift of the variables leaves all scores as they are, the best one is taken.
        if !matches!(machine, AllInOne::Ats | AllInOne::Atm | AllInOne::Reinforced) {
            assert!(now <= then * (1.0 + 1e-6), "{machine}: {now}, not {then}");
        }
        let before = now;
        learner.partial_fit(&rows(30..60)).unwrap();
        resumed.partial_fit(&rows(30..60)).unwrap();
        let (now, then) = (resumed.dual(), learner.dual());
        // Random choices begin anew, and one pass is an approximation: of the same optimum, from the same start.
        let best = svc.fit(&rows(0..60), &context).unwrap().training.unwrap().outcome.dual;
        assert!((now - then).abs() <= 0.2 * then, "{machine}: {now}, not {then}");
        assert!(now >= before * (1.0 - 1e-6), "{machine}: {now}, below the {before} before");
        assert!(now <= best * (1.0 + 1e-6), "{machine}: {now}, above the optimum {best}");
        assert!(now >= 0.8 * best, "{machine}: {now} of {best}");
    }
    let other = OnlineSvc { machine: AllInOne::CrammerSinger, ..OnlineSvc::default() };
    let model = OnlineSvc::default().fit(&data, &Context::new()).unwrap();
    assert!(matches!(other.resume(&model, &Context::new()), Err(Error::Parameter { .. })));
}

#[test]
fn a_learner_stops_when_it_is_asked_to_and_goes_on_afterwards() {
    let data = blobs(60, 4);
    let rows = |range: std::ops::Range<usize>| data.select_rows(&range.collect::<Vec<_>>());
    let context = Context::new();
    let mut whole = OnlineSvc::default().learner(&context).unwrap();
    let mut stopped = OnlineSvc::default().learner(&context).unwrap();
    for learner in [&mut whole, &mut stopped] {
        learner.partial_fit(&rows(0..30)).unwrap();
    }
    let limit = context.clone().with_time_limit(std::time::Duration::ZERO);
    let status = stopped.partial_fit_in_time(&rows(30..60), &limit).unwrap();
    assert_eq!(status, Some(Status::TimeLimit));
    let (model, before) = (stopped.model().unwrap(), whole.model().unwrap());
    let (training, unstopped) = (model.training.unwrap(), before.training.unwrap());
    assert_eq!((training.rows, training.outcome.status), (30, Status::TimeLimit));
    assert_eq!(training.outcome.dual, unstopped.outcome.dual);
    assert_eq!(stopped.partial_fit_in_time(&rows(30..60), &context).unwrap(), None);
    whole.partial_fit(&rows(30..60)).unwrap();
    assert_eq!(stopped.dual(), whole.dual());
    let training = stopped.model().unwrap().training.unwrap();
    assert_eq!((training.rows, training.outcome.status), (60, Status::IterationLimit));
}

#[test]
fn weights_of_classes_reach_the_batch_optimum() {
    let data = blobs(45, 3);
    let class_weights = ClassWeights::Given(vec![(Label::Int(0), 3.0), (Label::Int(2), 0.25)]);
    for machine in [AllInOne::WestonWatkins, AllInOne::CrammerSinger] {
        let weighted =
            MulticlassSvc { class_weights: class_weights.clone(), ..batch(machine, 1.0) };
        let best = weighted.fit(&data, &Context::new()).unwrap().training.unwrap().outcome.dual;
        let online = OnlineSvc {
            machine,
            epochs: Epochs::UntilOptimal,
            class_weights: class_weights.clone(),
            tol: 1e-5,
            ..OnlineSvc::default()
        };
        let outcome = online.fit(&data, &Context::new()).unwrap().training.unwrap().outcome;
        assert!((outcome.dual - best).abs() <= 1e-4 * best, "{machine}: {outcome:?}, best {best}");
        // The same rows in portions: no row may have more than the bound of its class.
        let mut learner = online.learner(&Context::new()).unwrap();
        learner.partial_fit(&data).unwrap();
        assert!(learner.dual() <= best * (1.0 + 1e-6) && learner.dual() > 0.5 * best);
    }
    let balanced = OnlineSvc { class_weights: ClassWeights::Balanced, ..OnlineSvc::default() };
    assert!(balanced.fit(&data, &Context::new()).is_ok());
    assert!(matches!(balanced.learner(&Context::new()), Err(Error::Parameter { .. })));
}

#[test]
fn training_ends_at_a_gap_or_a_dual_objective() {
    let data = blobs(300, 3);
    let exact = OnlineSvc { epochs: Epochs::UntilOptimal, c: 10.0, ..OnlineSvc::default() };
    let outcome =
        |online: &OnlineSvc| online.fit(&data, &Context::new()).unwrap().training.unwrap().outcome;
    let best = outcome(&exact);
    let early = outcome(&OnlineSvc { gap: Some(0.2), ..exact.clone() });
    assert_eq!(early.status, Status::Solved);
    assert!(early.primal - early.dual <= 0.2 * early.primal, "{early:?}");
    assert!(early.dual <= best.dual && early.iterations <= best.iterations);
    let target = 0.5 * best.dual;
    let reached = outcome(&OnlineSvc { target_dual: Some(target), ..exact.clone() });
    assert!(reached.dual >= target && reached.iterations <= best.iterations, "{reached:?}");
}

#[test]
fn lasvm_without_an_offset_meets_the_optimality_conditions() {
    let data = blobs(80, 2);
    let kernel = Kernel::Gaussian { gamma: 1.0 };
    let c = 2.0;
    let epochs = Epochs::UntilOptimal;
    let lasvm =
        Lasvm { c, kernel: kernel.clone(), epochs, bias: false, tol: 1e-6, ..Lasvm::default() };
    let model = lasvm.fit(&data, &Context::new()).unwrap();
    assert_eq!(model.training.as_ref().unwrap().outcome.status, Status::Solved);
    assert_eq!(model.offsets(), [0.0]);
    let mut alpha = vec![0.0; 80];
    let body = model.expansion().unwrap();
    for (&row, a) in body.support_rows.iter().zip(&body.functions[0].parts[0].coefficients) {
        alpha[row] = *a;
    }
    let point = |i: usize| {
        let mut row = [0.0; 2];
        data.features().copy_row(i, &mut row);
        row
    };
    for i in 0..80 {
        let value: f64 = (0..80)
            .map(|j| {
                let ([a, b], [x, z]) = (point(i), point(j));
                alpha[j] * (-((a - x).powi(2) + (b - z).powi(2))).exp()
            })
            .sum();
        // Rows alternate between the classes; the first is positive.
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        let (margin, own) = (sign * value, sign * alpha[i]);
        assert!((0.0..=c).contains(&own), "{own}");
        assert!(own > 0.0 || margin >= 1.0 - 1e-5, "row {i}: {margin}");
        assert!(own < c || margin <= 1.0 + 1e-5, "row {i}: {margin}");
        assert!(own == 0.0 || own == c || (margin - 1.0).abs() <= 1e-5, "row {i}: {margin}");
    }
}
