use super::*;
use crate::context::Context;
use crate::machine::sequence::{TagConstraints, TagLoss};
use crate::machine::{AllInOne, LinearSvc, OnlineSvc, PathMachine, Svc};

thread_local! {
    static READ: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Keeps the names of parameters whose values were asked for on this thread.
pub(super) fn note_read(name: &str) {
    READ.with_borrow_mut(|read| read.push(name.to_owned()));
}

fn data() -> Dataset {
    let rows = Dense::new(6, 2, vec![0.0, 1.0, 1.0, 0.0, 2.0, 1.0, 0.5, 3.0, 1.5, 2.0, 3.0, 3.0]);
    Dataset::new(Matrix::DenseF64(rows.unwrap()), Labels::Int(vec![0, 0, 0, 1, 1, 1])).unwrap()
}

#[test]
fn every_default_is_a_value_of_its_parameter() {
    for specification in Specification::all() {
        let mut names: Vec<&str> = Vec::new();
        for parameter in specification.entry().parameters() {
            assert!(!names.contains(&parameter.name), "{specification} {}", parameter.name);
            names.push(parameter.name);
            if let Some(value) = parameter.default.value() {
                assert_eq!(parameter.check(value.clone()).unwrap(), value, "{}", parameter.name);
                assert_eq!(parameter.parse(&value.to_string()).unwrap(), value);
            }
        }
        specification.build(&data(), 0).unwrap();
    }
}

#[test]
fn every_parameter_is_read_when_its_machine_is_built() {
    for mut specification in Specification::all() {
        if MachineKind::LINEAR.contains(&specification.kind()) {
            specification.set("approximate", "rff:4").unwrap();
        }
        READ.with_borrow_mut(Vec::clear);
        specification.build(&data(), 0).unwrap();
        let read = READ.with_borrow(Clone::clone);
        for parameter in specification.entry().parameters() {
            // Logistic regression has one loss.
            let single = matches!(parameter.domain, Domain::Choice([_]));
            let name = parameter.name;
            assert!(single || read.iter().any(|own| own == name), "{specification}: {name}");
        }
    }
}

#[test]
fn every_name_of_a_choice_builds() {
    for specification in Specification::all() {
        for parameter in specification.entry().parameters() {
            let names = match parameter.domain {
                Domain::Choice(names) => names,
                Domain::Real { names, .. } | Domain::Integer { names, .. } => names,
                Domain::Reals(names) => names,
                _ => &[],
            };
            for name in names {
                let mut one = specification.clone();
                one.parse(parameter.name, name).unwrap();
                if parameter.name == "gamma" && MachineKind::LINEAR.contains(&one.kind()) {
                    one.parse("approximate", "rff:4").unwrap();
                }
                match parameter.name {
                    "repair" => one.parse("kernels", "linear, rbf").unwrap(),
                    "decoding" => one.parse("multiclass", "ecoc").unwrap(),
                    "distance-price" => one.parse("loss", "centroid").unwrap(),
                    _ => {}
                }
                one.build(&data(), 0).unwrap_or_else(|error| panic!("{one}: {error}"));
            }
        }
    }
}

#[test]
fn defaults_are_those_of_the_machines() {
    let features = data().into_features();
    let kernel = Kernel::Gaussian { gamma: crate::machine::Gamma::Scale.resolve(&features) };
    let built = Specification::new(MachineKind::CSvc).build(&data(), 0).unwrap();
    let built = built.penalty_path().unwrap();
    assert_eq!(built.penalty(), Svc::default().c);
    assert_eq!(built.without_penalty(), PathMachine::Svc(Svc { kernel, ..Svc::default() }));
    let mut linear = Specification::new(MachineKind::LinearSvc);
    linear.parse("tol", "auto").unwrap();
    assert_eq!(linear.linear_svc().unwrap(), LinearSvc::default());
}

#[test]
fn what_a_machine_does_not_have_is_refused_by_name() {
    let weston = MachineKind::AllInOne(AllInOne::WestonWatkins);
    let online = |kind| Specification::online(kind).unwrap();
    for (specification, name) in [
        (online(weston), "shrinking"),
        (online(weston), "max-iter"),
        (online(weston), "loss"),
        (online(MachineKind::CSvc), "strategy"),
        (online(MachineKind::CSvc), "loss"),
        (Specification::new(MachineKind::CSvc), "bias"),
        (Specification::new(MachineKind::LinearSvr), "penalty"),
        (Specification::new(weston), "loss"),
        (Specification::new(MachineKind::LinearSvc), "kernel"),
    ] {
        let mut specification = specification;
        let message = specification.set(name, "none").unwrap_err().to_string();
        let start = format!("{} has no parameter '{name}'; it has ", specification.name());
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn values_are_checked_and_typed() {
    let mut svc = Specification::new(MachineKind::CSvc);
    svc.set("degree", 2.0).unwrap();
    assert_eq!(svc.value("degree"), Some(Value::Integer(2)));
    assert!(svc.set("degree", 1.41).is_err());
    svc.set("c", 4_u64).unwrap();
    assert_eq!(svc.value("c"), Some(Value::Real(4.0)));
    for bad in ["0", "-1", "nan", "much"] {
        assert!(svc.parse("c", bad).is_err(), "{bad}");
    }
    assert!(Specification::new(MachineKind::EpsilonSvr).parse("c", "inf").is_err());
    svc.parse("c", "inf").unwrap();
    let hard = svc.build(&data(), 0).unwrap();
    assert_eq!(hard.penalty_path().unwrap().penalty(), crate::machine::HARD_MARGIN);
    svc.parse("c", "2^-15").unwrap();
    assert_eq!(svc.value("c"), Some(Value::Real(0.000_030_517_578_125)));
    assert!(svc.parse("kernel", "rfb").is_err());
    svc.parse("class-weight", "1=2,x=0.5").unwrap();
    let Some(Value::Weights(found)) = svc.value("class-weight") else { panic!() };
    assert_eq!(found[0], (crate::data::Label::Text("1".into()), 2.0));
}

#[test]
fn a_kernel_without_the_parameter_is_told() {
    let mut svc = Specification::new(MachineKind::CSvc);
    svc.set("degree", 2_u64).unwrap();
    assert!(svc.check_kernel_parameters().is_err());
    svc.set("kernel", "0.5*rbf + poly(gamma=1)").unwrap();
    svc.check_kernel_parameters().unwrap();
    svc.set("kernel", "poly(degree=4)").unwrap();
    assert!(svc.check_kernel_parameters().is_err());
}

#[test]
fn a_specification_is_the_same_after_a_file() {
    let mut linear = Specification::new(MachineKind::LinearSvc);
    linear.set("c", 1.0).unwrap();
    linear.set("scale", "minmax:0,1").unwrap();
    linear.set("approximate", "rff:100").unwrap();
    linear.set("gamma", 0.25).unwrap();
    linear.set("max-iter", 7_u64).unwrap();
    linear.set("shrinking", false).unwrap();
    linear.parse("class-weight", "a=2,b=1").unwrap();
    let mut mixture = Specification::new("gmm".parse().unwrap());
    mixture.set("start-weights", vec![1.0, 2.0]).unwrap();
    let online = Specification::online(MachineKind::CSvc).unwrap();
    for specification in [linear, mixture, online] {
        let text = serde_json::to_string(&specification).unwrap();
        assert_eq!(serde_json::from_str::<Specification>(&text).unwrap(), specification, "{text}");
    }
    let unknown = r#"{"machine": "c-svc", "parameters": {"bias": true}}"#;
    assert!(serde_json::from_str::<Specification>(unknown).is_err());
}

#[test]
fn default_grids_vary_what_the_machine_has() {
    let grid = |text: &str| Specification::new(text.parse().unwrap()).default_grid();
    assert_eq!(grid("linear-svc"), ["c=2^-5:2^15:11"]);
    assert_eq!(grid("knn").len(), 2);
    let mut svc = Specification::new(MachineKind::CSvc);
    assert_eq!(svc.default_grid().len(), 2);
    svc.set("kernel", "linear").unwrap();
    assert_eq!(svc.default_grid(), ["c=2^-5:2^15:11"]);
    let mut approximated = Specification::new(MachineKind::Logistic);
    approximated.set("approximate", "rff:10").unwrap();
    assert_eq!(approximated.default_grid().len(), 2);
}

#[test]
fn scaling_and_feature_map_are_part_of_the_machine() {
    let mut logistic = Specification::new(MachineKind::Logistic);
    logistic.set("gamma", 1.0).unwrap();
    assert!(logistic.build(&data(), 0).is_err(), "gamma without approximate");
    logistic.set("approximate", "nystroem:4").unwrap();
    logistic.set("scale", "standard").unwrap();
    let context = Context::new();
    let model = logistic.build(&data(), 0).unwrap().fit(&data(), &context).unwrap();
    assert!(model.preparation.scaler.is_some() && model.preparation.map.is_some());
}

#[test]
fn every_kind_has_an_entry_and_chains_are_built_for_sequences_only() {
    for kind in MachineKind::all().chain(MachineKind::SEQUENCES) {
        assert!(!Specification::new(kind).entry().summary.is_empty(), "{kind}");
    }
    let mut chain = Specification::new(MachineKind::ChainSvc);
    assert_eq!(chain.chain_svc(data().features()).unwrap(), ChainSvc::default());
    let error = chain.build(&data(), 0).err().unwrap().to_string();
    assert!(error.contains("chain-svc, which is trained on sequences with tags"), "{error}");
    for (name, value) in [("c", "2"), ("kernel", "rbf"), ("gamma", "0.5"), ("loss", "0,1,2,0")] {
        chain.parse(name, value).unwrap();
    }
    for (name, value) in [("constraints", "bio"), ("cut-at-unknown", "true"), ("max-iter", "7")] {
        chain.parse(name, value).unwrap();
    }
    let expected = ChainSvc {
        c: 2.0,
        kernel: Kernel::Gaussian { gamma: 0.5 },
        loss: TagLoss::Table(vec![0.0, 1.0, 2.0, 0.0]),
        constraints: TagConstraints::Bio,
        cut_at_unknown: true,
        tol: 0.01,
        max_iterations: 7,
    };
    assert_eq!(chain.chain_svc(data().features()).unwrap(), expected);
    let text = serde_json::to_string(&chain).unwrap();
    assert_eq!(serde_json::from_str::<Specification>(&text).unwrap(), chain);
    assert!(Specification::new(MachineKind::CSvc).chain_svc(data().features()).is_err());
}

#[test]
fn the_online_machine_of_the_library_has_the_defaults_of_the_table() {
    let library = OnlineSvc::default();
    let table = |name: &str| {
        let mut parameters = super::online::ONLINE.parameters();
        let found = parameters.find(|parameter| parameter.name == name);
        found.and_then(|parameter| parameter.default.value()).map(|value| value.to_string())
    };
    assert_eq!(table("strategy"), Some(library.strategy.to_string()));
    assert_eq!(table("c"), Some(library.c.to_string()));
    assert_eq!(table("tol"), Some(library.tol.to_string()));
    assert_eq!(table("shuffle"), Some(library.shuffle.to_string()));
    assert_eq!((table("budget"), library.budget), (None, None));
}

#[test]
fn codes_and_their_decoding_belong_to_ecoc() {
    let mut svc = Specification::new(MachineKind::CSvc);
    svc.set("code", vec![1.0, 1.0, -1.0, 0.0]).unwrap();
    assert!(svc.build(&data(), 0).is_err(), "one-vs-one has no code");
    svc.set("multiclass", "ecoc").unwrap();
    svc.set("decoding", "hamming").unwrap();
    // The second column has one class alone.
    let machine = svc.build(&data(), 0).unwrap();
    let error = machine.fit(&data(), &Context::new()).unwrap_err().to_string();
    assert!(error.contains("both signs in every column"), "{error}");
    svc.set("code", vec![1.0, -1.0, -1.0, 1.0]).unwrap();
    let model = svc.build(&data(), 0).unwrap().fit(&data(), &Context::new()).unwrap();
    let crate::machine::Scheme::ErrorCorrecting(code) = model.classes.unwrap().scheme else {
        panic!("a code")
    };
    assert_eq!(code.rows, [vec![1, -1], vec![-1, 1]]);
    assert_eq!(code.decoding, crate::machine::Decoding::Hamming);
    for bad in [vec![1.0, -1.0, 1.0], vec![1.0, 2.0], vec![]] {
        svc.set("code", bad).unwrap();
        assert!(svc.build(&data(), 0).is_err());
    }
}

#[test]
fn gamma_by_the_median_distance_needs_classes() {
    let mut svc = Specification::new(MachineKind::CSvc);
    svc.set("gamma", "jaakkola").unwrap();
    // Squared distances between the classes: 4.25, 3.25, 13, 9.25, 4.25, 13, 6.25, 1.25, 5.
    let machine = svc.build(&data(), 0).unwrap();
    assert_eq!(machine.kernel(), Some(&Kernel::Gaussian { gamma: 0.5 / 5.0 }));
    svc.set("kernel", "linear").unwrap();
    assert_eq!(svc.build(&data(), 0).unwrap().kernel(), Some(&Kernel::Linear));
    svc.set("kernel", "rbf").unwrap();
    assert!(svc.kernel(data().features()).is_err(), "features alone");
    let rows = data().into_features();
    let novelty = Specification::new(MachineKind::OneClass);
    let mut novelty = novelty;
    novelty.set("gamma", "jaakkola-nearest").unwrap();
    assert!(novelty.build(&Dataset::new(rows, Labels::None).unwrap(), 0).is_err());
}
