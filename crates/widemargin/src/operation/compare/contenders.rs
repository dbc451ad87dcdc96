//! The machines that are compared, each with the few settings it chooses from.
//!
//! Every machine sees standardised features, so that γ is told in units of 1 / features.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::machine::{
    Covariance, Fisher, GaussianMixture, KNearest, KernelFisher, Machine, MixtureBayes,
    NetworkInput, Parzen, ProbabilisticNetwork, Scaled, ScalingRule, Shrinkage, Svc, WindowWidth,
};

/// Rows beyond which the kernel discriminant expands in landmarks.
const MOST_LANDMARKS: usize = 500;

/// A machine and its settings.
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// Settings in words, and the machine they make.
    pub(super) candidates: Vec<(String, Box<dyn Machine>)>,
}

const NAMES: [&str; 8] =
    ["svm-rbf", "svm-linear", "fisher", "kernel-fisher", "gmm-bayes", "knn", "parzen", "pnn"];

/// The names of the machines that can be compared.
pub fn contender_names() -> &'static [&'static str] {
    &NAMES
}

/// The named machines, or all.
pub(super) fn chosen(names: &[String], data: &Dataset) -> Result<Vec<Contender>> {
    if let Some(name) = names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(Error::parameter("machines", format!("one of {}", NAMES.join(", ")), name));
    }
    let wanted = |name: &&str| names.is_empty() || names.iter().any(|other| other == name);
    Ok(NAMES.into_iter().filter(wanted).map(|name| contender(name, data)).collect())
}

fn scaled(machine: impl Machine + 'static) -> Box<dyn Machine> {
    Box::new(Scaled { rule: ScalingRule::Standard, machine: Box::new(machine) })
}

fn contender(name: &'static str, data: &Dataset) -> Contender {
    let unit = 1.0 / data.columns().max(1) as f64;
    let widths = [0.25, 1.0, 4.0];
    let mut candidates: Vec<(String, Box<dyn Machine>)> = Vec::new();
    match name {
        "svm-rbf" => {
            for c in [1.0, 10.0, 100.0] {
                for width in widths {
                    let kernel = Kernel::Gaussian { gamma: width * unit };
                    let words = format!("C={c}, gamma={width}/features");
                    candidates.push((words, scaled(Svc { c, kernel, ..Svc::default() })));
                }
            }
        }
        "svm-linear" => {
            for c in [0.1, 1.0] {
                let machine = Svc { c, kernel: Kernel::Linear, ..Svc::default() };
                candidates.push((format!("C={c}"), scaled(machine)));
            }
        }
        "fisher" => {
            for shrinkage in [Shrinkage::None, Shrinkage::Auto] {
                let machine = Fisher { shrinkage, ..Fisher::default() };
                candidates.push((format!("shrinkage={shrinkage}"), scaled(machine)));
            }
        }
        "kernel-fisher" => {
            for mu in [1e-3, 1e-1] {
                for width in widths {
                    let machine = KernelFisher {
                        kernel: Kernel::Gaussian { gamma: width * unit },
                        mu,
                        landmarks: Some(MOST_LANDMARKS),
                        ..KernelFisher::default()
                    };
                    let words = format!("mu={mu}, gamma={width}/features");
                    candidates.push((words, scaled(machine)));
                }
            }
        }
        "gmm-bayes" => {
            for covariance in [Covariance::Full, Covariance::Diagonal] {
                for components in [1, 2, 4] {
                    let floor = 1e-3;
                    let mixture = GaussianMixture {
                        components,
                        covariance,
                        floor,
                        tol: 1e-3,
                        ..GaussianMixture::default()
                    };
                    let words = format!("components={components}, covariance={covariance}");
                    let machine = MixtureBayes { mixture, ..MixtureBayes::default() };
                    candidates.push((words, scaled(machine)));
                }
            }
        }
        "knn" => {
            for k in [1, 5, 15, 31] {
                let machine = KNearest { k, ..KNearest::default() };
                candidates.push((format!("k={k}"), scaled(machine)));
            }
        }
        "parzen" => {
            for width in [WindowWidth::LeaveOneOut, WindowWidth::Silverman] {
                let machine = Parzen { width, ..Parzen::default() };
                candidates.push((format!("width={width}"), scaled(machine)));
            }
        }
        _ => {
            for input in [NetworkInput::Distance, NetworkInput::Lifted { radius: 0.0 }] {
                let machine = ProbabilisticNetwork { input, ..ProbabilisticNetwork::default() };
                candidates.push((format!("input={input}"), scaled(machine)));
            }
        }
    }
    Contender { name, candidates }
}
