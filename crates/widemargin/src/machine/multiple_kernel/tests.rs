//! Warnings, gradients of the training problems and rows without labels.

use std::sync::{Arc, Mutex};

use super::*;
use crate::data::{Dataset, Dense, Labels, Matrix};
use crate::machine::AllInOne;
use crate::numeric::random::Generator;
use crate::solver::kernel_weights::WeightedDual;

#[test]
fn negative_weights_are_warned_of() {
    let warnings = |weights: Vec<f64>| {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let seen = messages.clone();
        let context = Context::new().with_observer(move |event: &Event| {
            if let Event::Warning { message } = event {
                seen.lock().unwrap().push(message.clone());
            }
        });
        let found = Weights {
            weights,
            objective: 1.0,
            bound: 1.0,
            status: Status::Solved,
            rounds: 1,
            solves: 1,
            smallest_eigenvalue: Some(0.1),
            forms: Vec::new(),
        };
        warn_of_signed(&found, &context);
        messages.lock().unwrap().clone()
    };
    assert!(warnings(vec![0.4, 0.6]).is_empty());
    let [negative] = &warnings(vec![-0.4, 1.4])[..] else { panic!("one warning") };
    assert!(negative.contains("negative weights"), "{negative}");
}

fn rows(n: usize, labels: Labels) -> Dataset {
    let mut generator = Generator::new(5);
    let values = (0..2 * n).map(|i| (i / 2 % 3) as f64 + generator.normal()).collect();
    Dataset::new(Matrix::DenseF64(Dense::new(n, 2, values).unwrap()), labels).unwrap()
}

fn three_kernels(base: BaseMachine) -> MultipleKernel {
    let kernels = [0.1, 0.7, 4.0].map(|gamma| Kernel::Gaussian { gamma }).to_vec();
    MultipleKernel { kernels, ..MultipleKernel::new(base) }
}

#[test]
fn the_gradient_of_every_machine_equals_finite_differences() {
    let n = 18;
    let context = Context::new();
    let options = SolverOptions { precision: Precision::F64, ..SolverOptions::default() };
    let classes = || Labels::Int((0..n as i64).map(|i| i % 3).collect());
    let targets = Labels::Real((0..n).map(|i| (i % 3) as f64 + 0.1 * i as f64).collect());
    let machine = AllInOne::CrammerSinger;
    for (base, labels) in [
        (BaseMachine::Svc(Svc { c: 2.0, options, ..Svc::default() }), classes()),
        (
            BaseMachine::Multiclass(MulticlassSvc {
                machine,
                c: 2.0,
                options,
                ..Default::default()
            }),
            classes(),
        ),
        (BaseMachine::Svr(Svr { c: 2.0, options, ..Svr::default() }), targets),
        (BaseMachine::OneClass(OneClass { nu: 0.4, options, ..OneClass::default() }), classes()),
    ] {
        let data = rows(n, labels);
        let (machine, input) = (three_kernels(base), FitInput::new(&data));
        let formulation = Formulation::new(&machine.machine, input).unwrap();
        let candidates =
            Candidates::<f64>::new(&machine, input, &[], &formulation, &context).unwrap();
        let Candidates { rows, factors, .. } = candidates;
        let mut duals = KernelDuals::new(rows, factors, formulation.problems(), options, &context);
        let weights = [0.5, 0.2, 0.3];
        let forms = duals.solve(&weights, 1e-11).unwrap().forms;
        for (i, form) in forms.iter().enumerate() {
            let mut at = |step: f64| {
                let mut moved = weights;
                moved[i] += step;
                duals.solve(&moved, 1e-11).unwrap().primal
            };
            let difference = (at(1e-4) - at(-1e-4)) / 2e-4;
            assert!((difference + form).abs() < 1e-4 * form, "{difference} and {form}");
        }
    }
}

#[test]
fn rows_without_labels_count_for_the_traces_alone_and_labels_stay_numbers() {
    let words =
        |n: usize| (0..n).map(|i| if i % 4 == 3 { "?".into() } else { (i % 3).to_string() });
    let data = rows(24, Labels::Text(words(24).collect()));
    let machine = MultipleKernel {
        unlabelled: Some(Label::Text("?".into())),
        ..three_kernels(BaseMachine::Svc(Svc::default()))
    };
    let context = Context::new();
    let model = machine.fit(&data, &context).unwrap();
    assert_eq!(model.classes.as_ref().unwrap().names, [0, 1, 2].map(Label::Int));
    let training = model.training.unwrap();
    assert_eq!(training.rows, 24);
    assert!(training.parameters.contains(&("unlabelled-rows".into(), 6_usize.into())));
    // Gaussian kernels have the trace n whatever the rows: the labelled ones alone give the same optimum.
    let labelled: Vec<usize> = (0..24).filter(|i| i % 4 != 3).collect();
    let alone = MultipleKernel { unlabelled: None, ..machine.clone() };
    let alone = alone.fit(&data.select_rows(&labelled), &context).unwrap().training.unwrap();
    let (a, b) = (training.outcome.primal, alone.outcome.primal);
    assert!((a - b).abs() < 2e-3 * b, "{a} and {b}");
    let none = rows(3, Labels::Text(vec!["?".into(); 3]));
    let error = machine.fit(&none, &context).unwrap_err().to_string();
    assert_eq!(error, "expected at least one row with a label, found none");
    let one = rows(8, Labels::Text((0..8).map(|i| ["?", "a"][i % 2].into()).collect()));
    let error = machine.fit(&one, &context).unwrap_err().to_string();
    assert_eq!(error, "expected at least two classes, found only 'a'");
}

#[test]
fn a_candidate_whose_own_weights_are_all_zero_is_refused() {
    let data = rows(6, Labels::Int(vec![0, 1, 0, 1, 0, 1]));
    let mut machine = three_kernels(BaseMachine::Svc(Svc::default()));
    machine.kernels[1] = Kernel::Sum(vec![(0.0, Kernel::Linear), (0.0, Kernel::Cosine)]);
    let error = machine.fit(&data, &Context::new()).unwrap_err().to_string();
    assert_eq!(error, "parameter weight: expected a finite number other than 0, found 0");
}

#[test]
fn double_precision_goes_on_where_single_precision_ended() {
    let data = rows(150, Labels::Int((0..150).map(|i| i % 3).collect()));
    let context = Context::new();
    let options = SolverOptions { tol: 1e-9, ..SolverOptions::default() };
    for base in [
        BaseMachine::Svc(Svc { c: 20.0, options, ..Svc::default() }),
        BaseMachine::Multiclass(MulticlassSvc { c: 20.0, options, ..MulticlassSvc::default() }),
    ] {
        let machine = MultipleKernel { weights: WeightRule::Uniform, ..three_kernels(base) };
        let input = FitInput::new(&data);
        let formulation = Formulation::new(&machine.machine, input).unwrap();
        let single = machine.fit_in::<f32>(input, &[], &formulation, None, &context);
        let start = single.unwrap().1;
        let double = |start| {
            let (model, _) =
                machine.fit_in::<f64>(input, &[], &formulation, start, &context).unwrap();
            model.training.unwrap().outcome
        };
        let (warm, cold) = (double(Some(start)), double(None));
        assert!((warm.primal - cold.primal).abs() < 1e-8 * cold.primal);
        assert!(warm.iterations < cold.iterations, "{} {}", warm.iterations, cold.iterations);
    }
}
