//! Trainings whose participants get bytes: the same optimum, also when a site starts again.

use super::*;
use crate::data::Census;
use crate::data::read::{ReadOptions, read};
use crate::machine::MachineKind;
use crate::operation::distribute::{Distribution, Schedule, Topology, split};

fn iris() -> Dataset {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/iris.csv");
    read(path, &ReadOptions::new()).unwrap().dataset
}

fn specification(kind: MachineKind, words: &[(&str, &str)]) -> Specification {
    let mut specification = Specification::new(kind);
    for (name, text) in words {
        specification.parse(name, text).unwrap();
    }
    specification
}

/// Rows of a data set in the order of their parts, and these.
fn divided(data: &Dataset, sites: usize) -> (Dataset, Vec<Dataset>) {
    let parts = split(data.rows(), sites, 3).unwrap();
    let of = |rows: &Vec<usize>| data.select_rows(rows);
    (data.select_rows(&parts.concat()), parts.iter().map(of).collect())
}

fn plan(
    specification: &Specification,
    parts: &[Dataset],
    distribution: Distribution,
) -> DistributedPlan {
    use MachineKind::{CSvc, LinearSvc, Logistic};
    let classes = matches!(specification.kind(), CSvc | LinearSvc | Logistic);
    let counts = parts.iter().map(|part| Census::of(part, classes).unwrap());
    let census = counts.reduce(|a, b| a.joined(b).unwrap()).unwrap();
    let census = Census::from_bytes(&census.to_bytes().unwrap()).unwrap();
    let plan =
        DistributedPlan::new(specification.clone(), census, distribution, parts.len(), 1).unwrap();
    DistributedPlan::from_bytes(&plan.to_bytes().unwrap()).unwrap()
}

fn site(plan: &DistributedPlan, parts: &[Dataset], index: usize) -> RemoteSite {
    let first = parts[..index].iter().map(|part| part.rows() as u64).sum();
    RemoteSite::new(plan, index, parts[index].clone(), first).unwrap()
}

/// Brings every envelope; before the `crash`th delivery a site loses all but its own rows.
fn run(plan: &DistributedPlan, parts: &[Dataset], crash: Option<(usize, usize)>) -> Distributed {
    let context = Context::new();
    let mut sites: Vec<RemoteSite> =
        (0..parts.len()).map(|index| site(plan, parts, index)).collect();
    let mut coordinator = RemoteCoordinator::new(plan).unwrap();
    let mut under_way = coordinator.start().unwrap();
    let mut delivered = 0;
    while coordinator.ending().is_none() {
        if under_way.is_empty() {
            under_way = coordinator.tick().unwrap();
        }
        for envelope in std::mem::take(&mut under_way) {
            delivered += 1;
            if let Some((at, index)) = crash
                && at == delivered
            {
                sites[index] = site(plan, parts, index);
                under_way.extend(sites[index].join().unwrap());
            }
            under_way.extend(match envelope.to {
                Address::Coordinator => coordinator.receive(&envelope).unwrap(),
                Address::Site(to) => sites[to as usize].receive(&[envelope], &context).unwrap(),
            });
        }
    }
    let wanted = coordinator.wanted();
    let site_results = |(index, site): (usize, &RemoteSite)| {
        site.site_result((index == wanted.site).then_some(wanted)).unwrap()
    };
    let site_results: Vec<Vec<u8>> = sites.iter().enumerate().map(site_results).collect();
    coordinator.finish(&site_results, &context).unwrap()
}

#[test]
fn machines_end_where_one_place_does() {
    let classes = iris();
    let numbers = classes.labels().classes(crate::data::ClassOrder::Sorted).unwrap().codes;
    let numbers = numbers.iter().map(|&code| f64::from(code)).collect();
    let targets = classes.clone().with_labels(crate::data::Labels::Real(numbers)).unwrap();
    let common = [("tol", "1e-8"), ("precision", "f64")];
    let cases = [
        (&classes, MachineKind::CSvc, ("class-weight", "balanced"), ("gamma", "scale")),
        (&targets, MachineKind::EpsilonSvr, ("epsilon", "0.2"), ("gamma", "scale")),
        (&classes, MachineKind::OneClass, ("nu", "0.3"), ("gamma", "auto")),
    ];
    for (data, kind, first, second) in cases {
        let (whole, parts) = divided(data, 3);
        let specification = specification(kind, &[common[0], common[1], first, second]);
        let machine = specification.build(&whole, 1).unwrap();
        let expected = machine.fit(&whole, &Context::new()).unwrap().training.unwrap().outcome;
        for schedule in [Schedule::Parallel, Schedule::Sequential, Schedule::Asynchronous] {
            let topology = Topology::Ring;
            let distribution = Distribution { topology, schedule, ..Distribution::default() };
            let plan = plan(&specification, &parts, distribution);
            for crash in [None, Some((7, 1)), Some((20, 0))] {
                let result = run(&plan, &parts, crash);
                let found = result.model.training.as_ref().unwrap();
                assert_eq!(result.report.ending, Ending::Verified, "{kind} {schedule:?}");
                assert_eq!(found.rows, whole.rows());
                let difference = (found.outcome.dual - expected.dual).abs();
                assert!(difference <= 1e-6 * expected.dual.abs(), "{kind} {schedule:?}");
                assert!(result.report.traffic.vectors > 0);
            }
        }
    }
}

#[test]
fn linear_machines_end_where_one_place_does() {
    let classes = iris();
    let numbers = classes.labels().classes(crate::data::ClassOrder::Sorted).unwrap().codes;
    let weights = numbers.iter().map(|&code| 0.5 + f64::from(code)).collect();
    let numbers = numbers.iter().map(|&code| f64::from(code)).collect();
    let targets = classes.clone().with_labels(crate::data::Labels::Real(numbers)).unwrap();
    let classes = classes.with_weights(weights).unwrap();
    let common = [("tol", "1e-9"), ("gap", "1e-9"), ("solver", "newton")];
    let cases = [
        (&classes, MachineKind::LinearSvc, ("class-weight", "balanced")),
        (&classes, MachineKind::Logistic, ("c", "3")),
        (&targets, MachineKind::LinearSvr, ("loss", "squared-hinge")),
    ];
    for (data, kind, own) in cases {
        let (whole, parts) = divided(data, 5);
        let specification = specification(kind, &[common[0], common[1], common[2], own]);
        let machine = specification.build(&whole, 1).unwrap();
        let expected = machine.fit(&whole, &Context::new()).unwrap();
        let plan = plan(&specification, &parts, Distribution::default());
        let crashed = run(&plan, &parts, Some((40, 2)));
        let plain = train_parts(&plan, parts, &Context::new()).unwrap();
        for result in [&plain, &crashed] {
            let found = result.model.training.as_ref().unwrap().outcome;
            let best = expected.training.as_ref().unwrap().outcome.primal;
            assert_eq!(found.status, Status::Solved, "{kind}");
            assert!((found.primal - best).abs() <= 1e-8 * best, "{kind} {found:?} {best}");
            assert!(found.gap() <= 1e-9 * best, "{kind} {found:?}");
            assert_eq!(result.report.traffic.vectors, 0);
        }
        assert_eq!(plain.model.body, crashed.model.body, "{kind}");
        let names = |model: &crate::machine::Model| model.classes.clone().map(|c| c.names);
        assert_eq!(names(&plain.model), names(&expected));
    }
}

#[test]
fn what_sums_cannot_do_is_refused() {
    let census = Census::of(&iris(), true).unwrap();
    let refused = [
        (("loss", "hinge"), "squared-hinge or logistic"),
        (("penalty", "l1"), "l2"),
        (("multiclass", "crammer-singer"), "ovr"),
        (("intercept", "free"), "none or a number"),
        (("approximate", "rff:50"), "several sites"),
        (("solver", "dual"), "auto or newton"),
    ];
    let new = |specification, distribution| {
        DistributedPlan::new(specification, census.clone(), distribution, 2, 0)
            .unwrap_err()
            .to_string()
    };
    for (option, expected) in refused {
        let specification = specification(MachineKind::LinearSvc, &[option]);
        let found = new(specification, Distribution::default());
        assert!(found.contains(expected), "{found}");
    }
    let ring = Distribution { topology: Topology::Ring, ..Distribution::default() };
    assert!(new(Specification::new(MachineKind::LinearSvc), ring).contains("coordinator"));
}

#[test]
fn support_rows_are_rows_of_all_sites() {
    let (whole, parts) = divided(&iris(), 4);
    let specification = specification(MachineKind::CSvc, &[("kernel", "linear")]);
    let plan = plan(&specification, &parts, Distribution::default());
    let model = run(&plan, &parts, None).model;
    let context = Context::new();
    let expected = specification.build(&whole, 1).unwrap().fit(&whole, &context).unwrap();
    assert_eq!(model.support_rows(), expected.support_rows());
    assert_eq!(model.classes.unwrap().names, expected.classes.unwrap().names);
}

#[test]
fn checkpoints_are_starts_of_the_same_training() {
    let (_, parts) = divided(&iris(), 2);
    let linear = specification(MachineKind::CSvc, &[("kernel", "linear")]);
    let plan_a = plan(&linear, &parts, Distribution::default());
    let context = Context::new();
    let order = RemoteCoordinator::new(&plan_a).unwrap().start().unwrap();
    let mut first = site(&plan_a, &parts, 0);
    assert_eq!(first.checkpoint().unwrap(), None);
    first.receive(&order[..1], &context).unwrap();
    let saved = first.checkpoint().unwrap().unwrap();
    let mut again = site(&plan_a, &parts, 1);
    again.restore(&saved).unwrap();
    let inner = |site: &RemoteSite| match &site.site {
        SiteKind::Exchange(site) => (site.held(), site.dual()),
        SiteKind::Sums(_) => panic!("a linear site"),
    };
    assert!(inner(&again).0 > parts[1].rows());
    again.receive(&order[1..], &context).unwrap();
    assert!(inner(&again).1 >= inner(&first).1);
    let other = specification(MachineKind::CSvc, &[("kernel", "linear"), ("c", "2")]);
    let plan_b = plan(&other, &parts, Distribution::default());
    let refused = site(&plan_b, &parts, 0).restore(&saved).unwrap_err().to_string();
    assert!(refused.contains("other parameters"), "{refused}");
    assert!(again.restore(&saved[1..]).is_err());
}

#[test]
fn a_site_that_takes_its_time_is_not_lost_where_the_transport_tells_who_is() {
    let (_, parts) = divided(&iris(), 2);
    for kind in [MachineKind::CSvc, MachineKind::Logistic] {
        let solver = if kind == MachineKind::Logistic { &[("solver", "newton")][..] } else { &[] };
        for schedule in [Schedule::Parallel, Schedule::Asynchronous] {
            if kind == MachineKind::Logistic && schedule != Schedule::Parallel {
                continue;
            }
            let distribution = Distribution { schedule, ..Distribution::default() };
            let plan = plan(&specification(kind, solver), &parts, distribution);
            let silent = |patience| {
                let mut coordinator = RemoteCoordinator::with_patience(&plan, patience).unwrap();
                coordinator.start().unwrap();
                (0..1000).for_each(|_| drop(coordinator.tick().unwrap()));
                coordinator.ending().cloned()
            };
            assert_eq!(silent(None), None);
            assert_eq!(silent(Some(PATIENCE)), Some(Ending::SitesLost(vec![0, 1])));
        }
    }
}

#[test]
fn scalings_and_other_machines_are_refused() {
    let data = iris();
    let census = Census::of(&data, true).unwrap();
    let new = |specification: Specification| {
        DistributedPlan::new(specification, census.clone(), Distribution::default(), 1, 0)
            .unwrap_err()
            .to_string()
    };
    let scaled = specification(MachineKind::CSvc, &[("scale", "standard")]);
    assert!(new(scaled).contains("scale the files"));
    assert!(new(Specification::new(MachineKind::NuSvc)).contains("several places"));
}
