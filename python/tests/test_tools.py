"""The estimators inside scikit-learn's tools."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as Reference

from widemargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM


def test_pipeline_and_grid_search_choose_what_scikit_learn_chooses():
    X, y = load_breast_cancer(return_X_y=True)
    grid = {"svc__C": [0.1, 1, 10], "svc__gamma": [0.01, 0.1, "scale"]}
    found, expected = (
        GridSearchCV(make_pipeline(StandardScaler(), estimator), grid, cv=3).fit(X, y)
        for estimator in (SVC(), Reference())
    )
    assert found.best_params_ == expected.best_params_
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.004
    )


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_cross_validation_in_parallel(backend):
    import joblib

    X, y = load_iris(return_X_y=True)
    with joblib.parallel_backend(backend, n_jobs=2):
        scores = cross_val_score(SVC(), X, y, cv=5)
    np.testing.assert_array_equal(scores, cross_val_score(Reference(), X, y, cv=5))


def test_precomputed_kernels_are_cut_in_cross_validation():
    X, y = load_iris(return_X_y=True)
    np.testing.assert_array_equal(
        cross_val_predict(SVC(kernel="precomputed"), X @ X.T, y),
        cross_val_predict(SVC(kernel="linear"), X, y),
    )


def test_calibration():
    X, y = load_iris(return_X_y=True)
    found, expected = (
        CalibratedClassifierCV(estimator, ensemble=False).fit(X, y).predict_proba(X)
        for estimator in (SVC(tol=1e-6), Reference(tol=1e-6))
    )
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    "build",
    [
        lambda: BaggingClassifier(SVC(), n_estimators=3, random_state=0),
        lambda: AdaBoostClassifier(SVC(), n_estimators=3, random_state=0),
        lambda: StackingClassifier([("svc", SVC()), ("nu", NuSVC(nu=0.2))]),
        lambda: OneVsRestClassifier(SVC()),
        lambda: OneVsOneClassifier(SVC()),
        lambda: OutputCodeClassifier(SVC(), random_state=0),
        lambda: RFE(SVC(kernel="linear"), n_features_to_select=2),
        lambda: SequentialFeatureSelector(SVC(), n_features_to_select=2),
    ],
)
def test_meta_estimators(build):
    X, y = load_iris(return_X_y=True)
    model = build().fit(X, y)
    if hasattr(model, "predict"):
        assert model.score(X, y) > 0.9
    else:
        assert model.transform(X).shape == (150, 2)


def test_multi_output_and_importance():
    X, y = load_diabetes(return_X_y=True)
    model = MultiOutputRegressor(SVR(C=100)).fit(X, np.column_stack([y, -y]))
    np.testing.assert_allclose(*(model.predict(X).T * [[1], [-1]]), rtol=1e-3)
    importance = permutation_importance(SVR(C=100).fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.shape == (10,)


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD])
def test_clone_keeps_every_parameter(Estimator):
    model = Estimator(kernel="laplacian", gamma=0.3, tol=1e-4, n_jobs=2, max_time=9.0)
    assert clone(model).get_params() == model.get_params()
    assert "max_time=9.0" in repr(model)


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_parameters_of_scikit_learn_keep_their_defaults(Estimator):
    reference = getattr(sklearn.svm, Estimator.__name__)().get_params()
    ours = Estimator().get_params()
    assert {name: ours[name] for name in reference} == reference


def test_metadata_routing():
    X, y = load_iris(return_X_y=True)
    weights = np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        result = cross_validate(pipeline, X, y, params={"sample_weight": weights})
        assert len(result["test_score"]) == 5
        with pytest.raises(Exception, match="sample_weight"):
            cross_validate(make_pipeline(scaler, SVC()), X, y, params={"sample_weight": weights})


def test_set_output_of_what_stands_before():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), SVC()).set_output(transform="pandas").fit(X, y)
    assert isinstance(pipeline[:-1].transform(X), pd.DataFrame)
    np.testing.assert_array_equal(pipeline[-1].feature_names_in_, X.columns)


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "dag", "ecoc"])
def test_schemes_of_many_classes(scheme):
    X, y = load_iris(return_X_y=True)
    model = SVC(multi_class=scheme, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.decision_function(X).shape == (150, 3)
    agrees = np.mean(model.predict(X) == np.argmax(model.decision_function(X), axis=1))
    assert agrees > 0.98


def test_squared_hinge_charges_squares():
    # The dual of the squared hinge is that of the hard margin with 1/(2C) on the diagonal.
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    K = X @ X.T
    model = SVC(kernel="linear", loss="squared_hinge", C=0.5, tol=1e-8).fit(X, y)
    reference = Reference(kernel="precomputed", C=1e10, tol=1e-8, cache_size=1000)
    reference.fit(K + np.eye(len(X)) / (2 * 0.5), y)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), _values(reference, K), atol=1e-4)


def _values(model, K):
    return K[:, model.support_] @ model.dual_coef_.ravel() + model.intercept_
