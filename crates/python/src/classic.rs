//! Parameters of the classical machines as Python holds them, and what their models know.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::str::FromStr;
use widemargin::data::{Label, Matrix};
use widemargin::machine::{
    Affinity, Body, Classic, Fisher, Gamma, GaussianMixture, KMeans, KNearest, KernelDefaults,
    KernelDensity, KernelExpression, KernelFisher, Machine, MixtureBayes, MixtureStart, Model,
    NetworkInput, Parzen, Priors, ProbabilisticNetwork, Spectral, WindowWidth,
};
use widemargin::{CancelToken, Context};

use crate::errors::exception;
use crate::machines::{GammaSetting, context};
use crate::model;
use crate::table::Table;
use crate::training::{Order, Targets, train};

/// The items of a dictionary by name.
struct Settings<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Settings<'_, 'py> {
    fn item(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        self.item(name)?.extract::<T>().map_err(Into::into)
    }

    /// A choice by name.
    fn choice<T: FromStr<Err = widemargin::Error>>(&self, name: &str) -> PyResult<T> {
        self.get::<String>(name)?.parse().map_err(exception)
    }

    /// A choice by name, or none.
    fn optional<T: FromStr<Err = widemargin::Error>>(&self, name: &str) -> PyResult<Option<T>> {
        match self.get::<Option<String>>(name)? {
            Some(text) => text.parse().map(Some).map_err(exception),
            None => Ok(None),
        }
    }

    fn numbers(&self, name: &str) -> PyResult<Option<Vec<f64>>> {
        let array: Option<PyReadonlyArray1<'py, f64>> = self.get(name)?;
        match array {
            None => Ok(None),
            Some(array) => Ok(Some(crate::training::slice(&array)?.to_vec())),
        }
    }

    fn priors(&self) -> PyResult<Priors> {
        if let Ok(name) = self.get::<String>("priors") {
            return match name.as_str() {
                "frequencies" => Ok(Priors::Frequencies),
                "equal" => Ok(Priors::Equal),
                other => Err(PyValueError::new_err(format!("unknown priors '{other}'"))),
            };
        }
        Ok(self.numbers("priors")?.map_or(Priors::Frequencies, Priors::Given))
    }

    fn width(&self) -> PyResult<WindowWidth> {
        match self.get::<f64>("width") {
            Ok(width) => Ok(WindowWidth::Value(width)),
            Err(_) => self.choice("width"),
        }
    }

    fn gamma(&self) -> PyResult<Gamma> {
        self.get::<GammaSetting>("gamma")?.rule()
    }

    fn mixture(&self) -> PyResult<GaussianMixture> {
        Ok(GaussianMixture {
            components: self.get("components")?,
            criterion: self.optional("criterion")?,
            covariance: self.choice("covariance")?,
            floor: self.get("floor")?,
            shrinkage: self.get("shrinkage")?,
            stop: self.choice("stop")?,
            tol: self.get("tol")?,
            max_iterations: self.get("max_iterations")?,
            starts: self.get("starts")?,
            initialisation: self.choice("init")?,
            start: MixtureStart {
                weights: self.numbers("start_weights")?,
                means: self.numbers("start_means")?,
                precisions: self.numbers("start_precisions")?,
            },
        })
    }

    fn machine(&self, features: &Matrix) -> PyResult<Box<dyn Machine>> {
        let kind: Classic = self.choice("machine")?;
        Ok(match kind {
            Classic::Fisher => Box::new(Fisher {
                threshold: self.choice("threshold")?,
                shrinkage: self.choice("shrinkage")?,
                priors: self.priors()?,
                unbiased: self.get("unbiased")?,
                directions: self.get("directions")?,
            }),
            Classic::KernelFisher => {
                let defaults = KernelDefaults {
                    gamma: self.gamma()?,
                    coef0: self.get("coef0")?,
                    degree: self.get("degree")?,
                };
                let kernel = KernelExpression::parse(&self.get::<String>("kernel")?, defaults)
                    .and_then(|expression| expression.resolve(features))
                    .map_err(exception)?;
                Box::new(KernelFisher {
                    kernel,
                    mu: self.get("mu")?,
                    ridge: self.choice("ridge")?,
                    threshold: self.choice("threshold")?,
                    priors: self.priors()?,
                    landmarks: self.get("landmarks")?,
                })
            }
            Classic::Mixture => Box::new(self.mixture()?),
            Classic::MixtureBayes => Box::new(MixtureBayes {
                mixture: self.mixture()?,
                priors: self.priors()?,
                loss: self.numbers("loss")?,
                unbiased: self.get("unbiased")?,
                unlabelled: self.get::<Option<String>>("unlabelled")?.map(Label::Text),
            }),
            Classic::Neighbours | Classic::NeighboursRegression => Box::new(KNearest {
                k: self.get("k")?,
                weighting: self.choice("weights")?,
                metric: self.choice("metric")?,
                search: self.choice("search")?,
                regression: kind == Classic::NeighboursRegression,
            }),
            Classic::Parzen => Box::new(Parzen {
                window: self.choice("window")?,
                width: self.width()?,
                priors: self.priors()?,
            }),
            Classic::Density => {
                let (window, width) = (self.choice("window")?, self.width()?);
                Box::new(KernelDensity { window, width })
            }
            Classic::ProbabilisticNetwork => {
                let mut input: NetworkInput = self.choice("input")?;
                if let (NetworkInput::Lifted { radius }, Some(given)) =
                    (&mut input, self.get::<Option<f64>>("radius")?)
                {
                    *radius = given;
                }
                let (width, priors) = (self.width()?, self.priors()?);
                Box::new(ProbabilisticNetwork { input, width, priors })
            }
            Classic::KMeans => Box::new(KMeans {
                clusters: self.get("clusters")?,
                starts: self.get("starts")?,
                max_iterations: self.get("max_iterations")?,
                tol: self.get("tol")?,
                centres: self.numbers("centres")?,
            }),
            Classic::Spectral => {
                let affinity = match self.get::<Option<usize>>("neighbours")? {
                    Some(count) => Affinity::Neighbours { count },
                    None => Affinity::Gaussian { gamma: self.gamma()?.resolve(features) },
                };
                Box::new(Spectral {
                    clusters: self.get("clusters")?,
                    affinity,
                    cut: self.choice("cut")?,
                    starts: self.get("starts")?,
                })
            }
        })
    }

    fn context(&self, cancel: CancelToken) -> PyResult<Context> {
        context(self.get("threads")?, self.get("seed")?, cancel)
    }
}

/// Trains a classical machine; returns the model and the warnings.
#[pyfunction]
#[pyo3(signature = (settings, features, targets=None, names=None))]
pub(crate) fn fit_classic<'py>(
    py: Python<'py>,
    settings: Bound<'py, PyDict>,
    features: Table<'py>,
    targets: Option<Targets<'py>>,
    names: Option<Vec<String>>,
) -> PyResult<(model::Model, Vec<String>)> {
    let settings = Settings(&settings);
    let cancel = CancelToken::new();
    let context = settings.context(cancel.clone())?;
    let matrix = features.matrix()?;
    let machine = settings.machine(&matrix)?;
    let order = Order {
        machine,
        matrix,
        weights: None,
        names,
        start: None,
        calibration: None,
        context,
        cancel,
        on_event: None,
    };
    let (model, _, warnings) = train(py, order, targets)?;
    Ok((model, warnings))
}

/// What a classical machine left in a model, by name.
pub(crate) fn describe<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let items = PyDict::new(py);
    let array = |values: &[f64]| values.to_vec().into_pyarray(py);
    match &model.body {
        Body::Discriminant(part) => {
            items.set_item("ratios", array(&part.ratios))?;
            items.set_item("separability", part.separability)?;
            items.set_item("feature_scores", array(&part.feature_scores))?;
            items.set_item("regularisation", part.regularisation)?;
            items.set_item("directions", part.projections.len())?;
        }
        Body::Mixtures(part) => {
            items.set_item("covariance", part.covariance.to_string())?;
            items.set_item("components", part.components.clone())?;
            items.set_item("weights", array(&part.weights))?;
            items.set_item("covariances", array(&part.covariances))?;
            items.set_item("log_priors", array(&part.log_priors))?;
            items.set_item("log_likelihood", part.log_likelihood)?;
            let parameters: usize = part
                .components
                .iter()
                .map(|&count| {
                    let features = model.features();
                    count - 1 + count * features + part.covariance.parameters(count, features)
                })
                .sum();
            items.set_item("parameters", parameters)?;
        }
        Body::Neighbours(part) => {
            items.set_item("k", part.k)?;
            items.set_item("weights", part.weighting.to_string())?;
            items.set_item("targets", array(&part.targets))?;
        }
        Body::Windows(part) => {
            items.set_item("window", part.window.to_string())?;
            items.set_item("input", part.input.to_string())?;
            items.set_item("widths", array(&part.widths))?;
            items.set_item("log_priors", array(&part.log_priors))?;
        }
        _ => {}
    }
    Ok(items)
}
