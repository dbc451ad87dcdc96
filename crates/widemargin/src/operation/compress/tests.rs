use super::*;
use crate::data::read::{ReadOptions, read_dataset};
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::kernel::Kernel;
use crate::machine::{
    Machine, OneClass, Precision, Scheme, SolverOptions, Svc, Svdd, Svr, error_correcting_code,
};

fn shipped(name: &str) -> Dataset {
    let path = format!("{}/../../data/{name}", env!("CARGO_MANIFEST_DIR"));
    read_dataset(path, &ReadOptions::new()).unwrap()
}

/// Rows of the digits whose numbers leave `remainder` when divided by 3, pixels in [0, 1].
fn digits(keep: impl Fn(usize) -> bool) -> Dataset {
    let all = shipped("digits.libsvm.xz");
    let rows: Vec<usize> = (0..all.rows()).filter(|&i| keep(i)).collect();
    let mut values = Vec::new();
    let mut row = vec![0.0; all.features().columns()];
    for &i in &rows {
        all.features().copy_row(i, &mut row);
        values.extend(row.iter().map(|v| v / 16.0));
    }
    let features = Matrix::DenseF64(Dense::new(rows.len(), row.len(), values).unwrap());
    let labels: Vec<_> = rows.iter().filter_map(|&i| all.labels().get(i)).collect();
    Dataset::new(features, Labels::from_labels(&labels)).unwrap()
}

fn errors(model: &Model, data: &Dataset, context: &Context) -> usize {
    let predictions = model.predictor(context).unwrap().predict(data.features()).unwrap();
    (0..data.rows()).filter(|&i| predictions.get(i) != data.labels().get(i)).count()
}

/// The function after all merges.
fn all(merging: &bottom_up::Merging<'_>) -> VectorPool {
    VectorPool::single(merging.after(merging.costs().count()))
}

/// ‖Ψ‖² of every function.
fn norms(kernel: &Kernel, pool: &VectorPool, context: &Context) -> Vec<f64> {
    let values = sums::sums::<f64>(kernel, &pool.vectors, pool, context).unwrap();
    let functions = pool.functions();
    let norm = |f: usize| {
        let at = values.iter().skip(f).step_by(functions).zip(&pool.weights[f]);
        at.map(|(v, w)| v * w).sum()
    };
    (0..functions).map(norm).collect()
}

fn exact() -> SolverOptions {
    SolverOptions { precision: Precision::F64, ..SolverOptions::default() }
}

#[test]
fn digits_shrink_tenfold_at_hardly_any_loss() {
    let context = Context::new();
    let (train, test) = (digits(|i| i % 3 != 0), digits(|i| i % 3 == 0));
    for kernel in [
        Kernel::Gaussian { gamma: 0.1 },
        Kernel::Polynomial { gamma: 1.0 / 16.0, coef0: 0.0, degree: 3 },
    ] {
        let svc = Svc {
            c: 10.0,
            kernel: kernel.clone(),
            scheme: Scheme::OneVsRest,
            options: exact(),
            ..Svc::default()
        };
        let model = svc.fit(&train, &context).unwrap();
        let compressed = ModelCompression::new(CompressionTarget::Difference(1.0))
            .apply(&model, &context)
            .unwrap();
        let before: usize = compressed.functions.iter().map(|f| f.before).sum();
        let after: usize = compressed.functions.iter().map(|f| f.after).sum();
        assert_eq!(after, compressed.model.support_count());
        assert!(after * 8 < before, "{kernel}: {before} to {after}");
        let lost = errors(&compressed.model, &test, &context) as i64
            - errors(&model, &test, &context) as i64;
        assert!(lost <= 3, "{kernel}: {lost} errors more");
    }
}

#[test]
fn no_value_changes_by_more_than_the_residual() {
    let context = Context::new();
    let train = digits(|i| i % 3 != 0);
    let svc = Svc {
        c: 10.0,
        kernel: Kernel::Gaussian { gamma: 0.1 },
        scheme: Scheme::OneVsRest,
        options: exact(),
        ..Svc::default()
    };
    let model = svc.fit(&train, &context).unwrap();
    let compressed =
        ModelCompression::new(CompressionTarget::Ratio(0.3)).apply(&model, &context).unwrap();
    let probes = digits(|i| i % 3 == 0);
    let values =
        |m: &Model| m.predictor(&context).unwrap().decision_values(probes.features()).unwrap();
    let (old, new) = (values(&model), values(&compressed.model));
    let norms = norms(model.kernel().unwrap(), &together(&model), &context);
    for (f, norm) in norms.into_iter().enumerate() {
        let bound = (compressed.functions[f].relative_residual * norm).sqrt();
        for i in 0..probes.rows() {
            assert!((old.row(i)[f] - new.row(i)[f]).abs() <= bound + 1e-9);
        }
    }
}

#[test]
fn merging_alone_keeps_to_the_difference_asked_for() {
    let context = Context::new();
    let train = digits(|i| i % 3 == 1);
    let svc = Svc {
        kernel: Kernel::Gaussian { gamma: 0.1 },
        scheme: Scheme::OneVsRest,
        options: exact(),
        ..Svc::default()
    };
    let model = svc.fit(&train, &context).unwrap();
    let rule = MergeKernel::of(model.kernel().unwrap()).unwrap();
    for pool in separate(&model) {
        let original = pool.function(0);
        let merging = merge(&original, &rule, MergeStop::Difference(0.4), &context).unwrap();
        let lost =
            &compare::<f64>(model.kernel().unwrap(), &pool, &all(&merging), &context).unwrap()[0];
        assert!(lost.largest_difference <= 0.4 + 1e-8, "{lost:?}");
        assert!(all(&merging).len() < pool.len());
    }
}

#[test]
fn zero_difference_merges_duplicates_only_and_a_budget_of_one_leaves_a_vector_per_sign() {
    let original = Expansion {
        vectors: vec![vec![0.0, 1.0], vec![2.0, 0.0], vec![0.0, 1.0], vec![1.0, 1.0]],
        weights: vec![0.5, -1.0, 0.25, 0.25],
    };
    let context = Context::new();
    let kernel = Kernel::Gaussian { gamma: 0.7 };
    let rule = MergeKernel::of(&kernel).unwrap();
    let exact = merge(&original, &rule, MergeStop::Difference(0.0), &context).unwrap();
    assert_eq!(all(&exact).len(), 3);
    let pool = VectorPool::single(original.clone());
    let lost = &compare::<f64>(&kernel, &pool, &all(&exact), &context).unwrap()[0];
    assert!(lost.largest_difference < 1e-12, "{lost:?}");
    let least = all(&merge(&original, &rule, MergeStop::End, &context).unwrap());
    assert_eq!((least.len(), least.groups.iter().sum()), (2, 1));
    let rounds = merge_in_rounds(&pool.lists(), &rule, &[3, 1], &context).unwrap();
    let sizes = |lists: &[Expansion]| lists.iter().map(|l| l.vectors.len()).collect::<Vec<_>>();
    assert_eq!((sizes(&rounds[0]), sizes(&rounds[1])), (vec![2, 1], vec![1, 1]));
}

/// Two functions over six vectors of three groups, the second of which the first does not use.
pub(super) fn shared_pool() -> VectorPool {
    let groups = vec![0, 0, 1, 1, 2, 2];
    let uses = vec![vec![true, false, true], vec![true; 3]];
    let weight = |f: usize, v: usize| match uses[f][groups[v]] {
        true => (1.0 + f as f64) * (0.7 * v as f64 + 0.3).sin(),
        false => 0.0,
    };
    VectorPool {
        vectors: (0..6).map(|i| vec![(i as f64).sin(), (1.3 * i as f64).cos(), 0.2]).collect(),
        weights: (0..2).map(|f| (0..6).map(|v| weight(f, v)).collect()).collect(),
        groups,
        uses,
    }
}

#[test]
fn the_gradient_of_the_residual_is_that_of_its_differences() {
    let original = shared_pool();
    let context = Context::new();
    for kernel in
        [Kernel::Gaussian { gamma: 0.7 }, Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree: 3 }]
    {
        let rule = MergeKernel::of(&kernel).unwrap();
        let mut reduced = original.selection(&[0, 2, 5]);
        reweigh::<f64>(&kernel, &mut reduced, &original, &context).unwrap();
        assert_eq!(reduced.weights[0][1], 0.0, "a function stays off the groups of others");
        reduced.vectors[1][0] += 0.4;
        let shape = reduced.clone();
        let objective =
            objective::Objective::<f64>::new(&rule, &original, &shape, &context).unwrap();
        let point = objective.flatten(&reduced);
        let (value, gradient) = objective.evaluate(&point).unwrap();
        let residual = |pool: &VectorPool| -> f64 {
            let lost = compare::<f64>(&kernel, &original, pool, &context).unwrap();
            let norms = norms(&kernel, &original, &context);
            lost.iter().zip(norms).map(|(l, n)| 0.5 * n * (l.relative_residual - 1.0)).sum()
        };
        assert!((value - residual(&reduced)).abs() < 1e-10 * (1.0 + value.abs()));
        let unused = 9 + 1;
        assert_eq!(gradient[unused], 0.0);
        for i in (0..point.len()).filter(|&i| i != unused) {
            let nudged = |by: f64| {
                let mut nudged = point.clone();
                nudged[i] += by;
                residual(&objective.pool(&nudged))
            };
            let slope = (nudged(1e-5) - nudged(-1e-5)) / 2e-5;
            assert!((slope - gradient[i]).abs() < 1e-6 * (1.0 + slope.abs()), "{kernel} {i}");
        }
        let before = residual(&reduced);
        refine::refine::<f64>(&rule, &mut reduced, &original, 500, &context).unwrap();
        let after = residual(&reduced);
        assert!(after < before && reduced.weights[0][1] == 0.0);
        let steepest = |g: &[f64]| g.iter().map(|g| g.abs()).fold(0.0, f64::max);
        let (_, last) = objective.evaluate(&objective.flatten(&reduced)).unwrap();
        assert!(steepest(&last) < 0.02 * steepest(&gradient), "{kernel}: {last:?}");
    }
}

#[test]
fn a_top_down_vector_is_where_the_gradient_is_zero_and_one_vector_is_found_again() {
    let kernel = Kernel::Gaussian { gamma: 0.7 };
    let rule = MergeKernel::of(&kernel).unwrap();
    let context = Context::new();
    let one = VectorPool::single(Expansion { vectors: vec![vec![0.3, -0.2]], weights: vec![1.5] });
    for search in [VectorSearch::FixedPoint { gamma: 0.7 }, VectorSearch::Gradient] {
        let found = construct::<f64>(&kernel, &rule, &one, 1, search, &context).unwrap();
        assert!((found.vectors[0][0] - 0.3).abs() < 1e-9, "{:?}", found.vectors);
        assert!((found.weights[0][0] - 1.5).abs() < 1e-9);
    }
    let many = VectorPool::single(Expansion {
        vectors: (0..12).map(|i| vec![(i as f64).sin(), (1.3 * i as f64).cos()]).collect(),
        weights: (0..12).map(|i| (1.7 * i as f64).cos()).collect(),
    });
    let mut last = f64::INFINITY;
    for count in 1..5 {
        for search in [VectorSearch::FixedPoint { gamma: 0.7 }, VectorSearch::Gradient] {
            let found = construct::<f64>(&kernel, &rule, &many, count, search, &context).unwrap();
            let again = construct::<f64>(&kernel, &rule, &many, count, search, &context).unwrap();
            assert_eq!(found, again);
        }
        let search = VectorSearch::FixedPoint { gamma: 0.7 };
        let found = construct::<f64>(&kernel, &rule, &many, count, search, &context).unwrap();
        let lost = compare::<f64>(&kernel, &many, &found, &context).unwrap()[0].relative_residual;
        assert!(lost < last + 1e-12, "{count}: {lost}");
        last = lost;
        if count == 1 {
            let objective =
                objective::Objective::<f64>::new(&rule, &many, &found, &context).unwrap();
            let (_, gradient) = objective.evaluate(&objective.flatten(&found)).unwrap();
            assert!(gradient.iter().all(|g| g.abs() < 1e-8), "{gradient:?}");
        }
    }
}

#[test]
fn rounds_are_as_good_as_the_cheapest_pair_each_time() {
    let context = Context::new();
    let train = digits(|i| i % 3 != 0);
    for kernel in [
        Kernel::Gaussian { gamma: 0.1 },
        Kernel::Polynomial { gamma: 1.0 / 16.0, coef0: 0.0, degree: 3 },
        Kernel::Polynomial { gamma: 1.0 / 16.0, coef0: 0.5, degree: 3 },
    ] {
        let svc = Svc { c: 10.0, kernel: kernel.clone(), options: exact(), ..Svc::default() };
        let model = svc.fit(&train, &context).unwrap();
        for shared in [false, true] {
            let lost = |method: CompressionMethod| -> f64 {
                let usual = ModelCompression::new(CompressionTarget::Ratio(0.2));
                let compression = ModelCompression { method, shared, refinement: Some(0), ..usual };
                let compressed = compression.apply(&model, &context).unwrap();
                compressed.functions.iter().map(|f| f.relative_residual).sum()
            };
            let (rounds, greedy) =
                (lost(CompressionMethod::Merge), lost(CompressionMethod::Greedy));
            assert!(rounds < 1.05 * greedy, "{kernel} {shared}: {rounds} {greedy}");
        }
    }
}

#[test]
fn every_method_keeps_to_its_budget_and_construction_beats_selection() {
    let context = Context::new();
    let train = digits(|i| i % 6 == 1);
    let svc = Svc { c: 10.0, kernel: Kernel::Gaussian { gamma: 0.1 }, ..Svc::default() };
    let model = svc.fit(&train, &context).unwrap();
    for shared in [false, true] {
        let residual = |method: CompressionMethod| -> f64 {
            let usual = ModelCompression::new(CompressionTarget::Ratio(0.2));
            let compression = ModelCompression { method, shared, refinement: Some(0), ..usual };
            let compressed = compression.apply(&model, &context).unwrap();
            let total = match shared {
                true => model.support_count(),
                false => separate(&model).iter().map(VectorPool::len).sum(),
            };
            let count = compressed.model.support_count();
            assert!(count <= total / 5 + 45, "{method} {shared}: {count} of {total}");
            compressed.functions.iter().map(|f| f.relative_residual).sum()
        };
        let merged = residual(CompressionMethod::Merge);
        for method in
            [CompressionMethod::FixedPoint, CompressionMethod::Prune, CompressionMethod::L1]
        {
            let lost = residual(method);
            assert!(lost.is_finite() && (!method.selects() || lost > merged), "{method}: {lost}");
        }
    }
}

#[test]
fn regression_and_novelty_detection_shrink_too() {
    let context = Context::new();
    let rows = 300_u32;
    let x: Vec<f64> = (0..rows).map(|i| f64::from(i) / 30.0).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.05 * (37.0 * x).cos()).collect();
    let features = Matrix::DenseF64(Dense::new(300, 1, x).unwrap());
    let data = Dataset::new(features.clone(), Labels::Real(y)).unwrap();
    let svr = Svr { c: 10.0, epsilon: 0.02, options: exact(), ..Svr::default() };
    let model = svr.fit(&data, &context).unwrap();
    let compressed =
        ModelCompression::new(CompressionTarget::Vectors(20)).apply(&model, &context).unwrap();
    assert_eq!(compressed.model.support_count(), 20);
    assert!(compressed.functions[0].largest_difference < 0.05);
    let unlabelled = Dataset::new(features, Labels::None).unwrap();
    let one_class = OneClass { nu: 0.3, options: exact(), ..OneClass::default() };
    let model = one_class.fit(&unlabelled, &context).unwrap();
    let compressed =
        ModelCompression::new(CompressionTarget::Vectors(5)).apply(&model, &context).unwrap();
    assert_eq!(compressed.model.support_count(), 5);
    let svdd = Svdd { nu: 0.3, options: exact(), ..Svdd::default() };
    let model = svdd.fit(&unlabelled, &context).unwrap();
    let compressed =
        ModelCompression::new(CompressionTarget::Vectors(8)).apply(&model, &context).unwrap();
    assert_eq!(compressed.model.support_count(), 8);
    let values =
        |m: &Model| m.predictor(&context).unwrap().decision_values(unlabelled.features()).unwrap();
    let (old, new) = (values(&model), values(&compressed.model));
    let moved = old.values().iter().zip(new.values()).map(|(a, b)| (a - b).abs());
    assert!(moved.fold(0.0, f64::max) < 0.05);
}

#[test]
fn every_scheme_and_every_thread_count_gives_an_ordinary_model() {
    let train = digits(|i| i % 4 == 1);
    let code = Scheme::ErrorCorrecting(error_correcting_code(10, 1).into());
    for scheme in [Scheme::OneVsOne, Scheme::Dag, Scheme::OneVsRest, code] {
        let svc = Svc {
            kernel: Kernel::Gaussian { gamma: 0.1 },
            scheme: scheme.clone(),
            ..Svc::default()
        };
        let one = Context::new();
        let model = svc.fit(&train, &one).unwrap();
        let usual = ModelCompression::new(CompressionTarget::Ratio(0.3));
        let compression = ModelCompression { refinement: Some(5), ..usual };
        let compressed = compression.apply(&model, &one).unwrap();
        let two = Context::new().with_threads(2).unwrap();
        assert_eq!(compression.apply(&model, &two).unwrap().model, compressed.model);
        let bytes = compressed.model.to_bytes().unwrap();
        assert_eq!(Model::load_from_bytes(&bytes).unwrap(), compressed.model);
        let table = compressed.model.classes.as_ref().unwrap();
        assert_eq!(table.support.iter().sum::<usize>(), compressed.model.support_count());
        assert!(errors(&compressed.model, &train, &one) <= errors(&model, &train, &one) + 20);
    }
}

#[test]
fn impossible_wishes_are_refused() {
    let context = Context::new();
    let train = digits(|i| i % 6 == 1);
    let model = Svc::default().fit(&train, &context).unwrap();
    for target in [
        CompressionTarget::Difference(-1.0),
        CompressionTarget::Difference(f64::NAN),
        CompressionTarget::Vectors(0),
        CompressionTarget::Ratio(0.0),
        CompressionTarget::Ratio(1.5),
    ] {
        let refused = ModelCompression::new(target).apply(&model, &context);
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{target:?}");
    }
    let laplacian = Svc { kernel: Kernel::Laplacian { gamma: 0.1 }, ..Svc::default() };
    let model = laplacian.fit(&train, &context).unwrap();
    let refused = ModelCompression::new(CompressionTarget::Ratio(0.5)).apply(&model, &context);
    assert!(matches!(refused, Err(Error::Kernel { .. })));
    let pruned = ModelCompression {
        method: CompressionMethod::Prune,
        ..ModelCompression::new(CompressionTarget::Ratio(0.5))
    };
    let pruned = pruned.apply(&model, &context).unwrap();
    assert_eq!(pruned.model.support_count(), model.support_count().div_ceil(2));
    let both = ModelCompression {
        shared: true,
        ..ModelCompression::new(CompressionTarget::Difference(1.0))
    };
    assert!(matches!(both.apply(&model, &context), Err(Error::Parameter { .. })));
}

#[test]
fn a_loss_allowed_on_held_out_rows_is_used_but_not_exceeded() {
    let context = Context::new();
    let (train, test) = (digits(|i| i % 3 != 0), digits(|i| i % 3 == 0));
    let svc = Svc { c: 10.0, kernel: Kernel::Gaussian { gamma: 0.1 }, ..Svc::default() };
    let model = svc.fit(&train, &context).unwrap();
    let allowed = errors(&model, &test, &context) + test.rows() / 100;
    let how = ModelCompression {
        refinement: Some(20),
        ..ModelCompression::new(CompressionTarget::Vectors(1))
    };
    let smaller = smallest_within(&model, &test, 0.01, &how, &context).unwrap().unwrap();
    assert!(errors(&smaller.model, &test, &context) <= allowed);
    assert!(smaller.model.support_count() * 4 < model.support_count());
    assert!(smallest_within(&model, &test, 1.5, &how, &context).is_err());
    let curve = accuracy_by_size(&model, &test, &how, &context).unwrap();
    assert_eq!(curve[0].vectors, model.support_count());
    assert!(curve.windows(2).all(|pair| pair[1].vectors < pair[0].vectors));
    assert!(
        curve[1].score > curve[0].score - 0.01 && curve[curve.len() - 1].score < curve[0].score
    );
}

/// Random vectors with weights of both signs.
fn random_pool(n: usize, columns: usize) -> VectorPool {
    let mut generator = crate::numeric::random::Generator::new(n as u64);
    let vectors = (0..n).map(|_| (0..columns).map(|_| generator.normal()).collect()).collect();
    let weights = (0..n).map(|_| generator.normal()).collect();
    VectorPool::single(Expansion { vectors, weights })
}

/// Runs what takes much longer than its limit of 0.3 s, on a machine that may be busy.
fn ends_soon<T>(what: &str, work: impl FnOnce(&Context) -> Result<T>) -> Option<T> {
    let started = std::time::Instant::now();
    let context = Context::new().with_time_limit(std::time::Duration::from_millis(300));
    let found = work(&context);
    let seconds = started.elapsed().as_secs_f64();
    assert!(seconds < 4.0, "{what}: {seconds} s");
    match found {
        Err(Error::Interrupted) => None,
        found => Some(found.unwrap_or_else(|error| panic!("{what}: {error}"))),
    }
}

#[test]
fn every_way_to_fewer_vectors_ends_at_the_time_limit() {
    let kernel = Kernel::Gaussian { gamma: 0.5 };
    let rule = MergeKernel::of(&kernel).unwrap();
    let pool = random_pool(3_000, 10);
    // None is known to depend on others by then.
    let exact = ends_soon("lossless", |context| lossless::reduce(&kernel, &pool, context));
    assert_eq!(exact.unwrap(), pool);
    let quadratic = Kernel::Polynomial { gamma: 1.0, coef0: 1.0, degree: 2 };
    let wide = random_pool(2_500, 1_500);
    ends_soon("quadratic", |context| lossless::reduce(&quadratic, &wide, context));
    for method in [
        CompressionMethod::Prune,
        CompressionMethod::L1,
        CompressionMethod::FixedPoint,
        CompressionMethod::Gradient,
    ] {
        let name = method.to_string();
        let found =
            ends_soon(&name, |context| chosen::<f64>(method, &kernel, &pool, 1_000, context));
        assert!(found.is_none_or(|found| found.len() > 0), "{name}");
    }
    ends_soon("to a difference", |context| merged_within(&pool, &rule, 1e9, context));
    let lists = pool.lists();
    ends_soon("greedy", |context| merge_greedily(&lists, &rule, &[10], context));
    ends_soon("rounds", |context| merge_in_rounds(&lists, &rule, &[1_000], context));
    let mut half = pool.selection(&(0..1_500).collect::<Vec<_>>());
    ends_soon("weights", |context| reweigh::<f64>(&kernel, &mut half.clone(), &pool, context));
    ends_soon("refinement", |context| {
        refine::refine::<f64>(&rule, &mut half, &pool, 1_000, context)
    });
    assert_eq!(half.len(), 1_500);
}
