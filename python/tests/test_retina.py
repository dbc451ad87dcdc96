"""The pipelines for spike trains in examples/retina against closed forms and planted cells."""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "retina"


def module(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


generator, pipelines = module("generator"), module("pipelines")


def test_a_moving_window_has_the_response_at_its_end():
    window = pipelines.moving_window(np.array([0, 0, 5, 4, 3, 2, 1]), 4)
    assert window.tolist() == [[0, 0, 5, 4], [0, 5, 4, 3], [5, 4, 3, 2], [4, 3, 2, 1]]
    with pytest.raises(ValueError, match="from 1 to 3"):
        pipelines.moving_window(np.zeros(3), 4)


def test_emissions_are_distributions_and_level_zero_is_silent():
    table = pipelines.emissions()
    assert np.isfinite(table).all()
    assert np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert table[0].tolist() == [1.0] + [0.0] * 39
    # Level 2 fires twice a frame: p(1) / p(0) = 2.
    assert table[2, 1] / table[2, 0] == pytest.approx(2)


def test_histograms_count_frames_and_bad_counts_are_refused():
    counts = np.array([0, 0, 3, 60, 39])
    assert pipelines.histogram(counts).sum() == 5
    assert pipelines.histogram(counts)[[0, 3, 39]].tolist() == [2, 1, 2]
    for bad in ([-1, 0], [0.5, 1], [np.nan, 1]):
        with pytest.raises(ValueError, match="whole numbers"):
            pipelines.histogram(np.array(bad))


def test_likelihood_is_the_sum_over_all_paths():
    from widemargin import CategoricalHMM

    rng = np.random.default_rng(0)
    stimulus, counts = np.array([0, 255, 100, 40]), np.array([0, 3, 1, 8])
    hmm = CategoricalHMM(3, n_features=40, n_inputs=8, params="st", init_params="st")
    hmm.startprob_ = rng.dirichlet(np.ones(3))
    hmm.transmat_ = rng.dirichlet(np.ones(3), (8, 3))
    hmm.emissionprob_ = pipelines.emissions()[[0, 2, 4]]
    inputs = pipelines.symbols(stimulus)
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        p = hmm.startprob_[path[0]] * hmm.emissionprob_[path[0], counts[0]]
        for t in range(1, 4):
            p *= hmm.transmat_[inputs[t - 1], path[t - 1], path[t]]
            p *= hmm.emissionprob_[path[t], counts[t]]
        total += p
    assert hmm.score(counts[:, None], inputs=inputs) == pytest.approx(np.log(total), abs=1e-10)


def test_transition_features_are_distributions_and_silent_segments_have_them():
    stimulus = np.random.default_rng(1).integers(0, 256, 60).astype(float)
    found = pipelines.transitions(stimulus, np.zeros(60), starts=1, iterations=5, uniform_below=0.1)
    rows = found.reshape(-1, 10)
    assert found.shape == (800,)
    assert np.allclose(rows.sum(axis=1), 1)


def test_filters_and_the_signs_of_their_drift_are_recovered():
    cells = [
        generator.Cell("grows", (0.2, 0.6, 0.3, 0.1, 0.1), 3.0, {1: 0.6}),
        generator.Cell("shrinks", (-0.2, -0.6, -0.3, -0.1, -0.1), 3.0, {1: -0.6}),
    ]
    recording = generator.record(cells, 0, 24_000)
    for cell, planted in enumerate(cells):
        found = pipelines.filters(recording.stimulus, recording.counts[:, cell])
        mean = found.mean()[::-1]
        expected = np.zeros(20)
        expected[:5] = planted.weights
        assert np.corrcoef(mean, expected)[0, 1] > 0.95
        slopes, errors = found.drift()
        drift = planted.drift[1] * planted.weights[1]
        assert slopes[-2] * drift > 0
        assert abs(slopes[-2]) > 3 * errors[-2]


def test_a_recording_of_your_own_is_read(tmp_path, capsys):
    retina = module("retina")
    recording = generator.record(generator.three_cells(), 2, 3_000)
    lines = ["stimulus,left,right"]
    table = zip(recording.stimulus, recording.counts, strict=True)
    lines += [f"{s:.0f},{counts[0]},{counts[1]}" for s, counts in table]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(lines) + "\n")
    retina.main(["drift", "--spikes", str(path), "--cells", "2"])
    assert "| right |" in capsys.readouterr().out
    words = ["identify", "--spikes", str(path), "--splits", "1", "--iterations", "3"]
    retina.main([*words, "--starts", "1"])
    assert "fused" in capsys.readouterr().out
    path.write_text("frame,left\n0,1\n")
    with pytest.raises(SystemExit, match="'stimulus'"):
        retina.main(["drift", "--spikes", str(path)])
