"""Which cell fired, which cells are linear, which filters drift: retinal ganglion cells.

    python examples/retina/retina.py identify [--splits 20] [--seed 0] [--filters other] [-o FOLDER]
    python examples/retina/retina.py linear   [--repetitions 10] [--cells 1-17]
    python examples/retina/retina.py drift
    python examples/retina/retina.py linear --spikes recording.csv

Without --spikes the recordings are those of generator.py. A recording of your own is a table
with a header: the column 'stimulus' has an intensity from 0 to 255 for each frame, every other
column the number of spikes of a cell in that frame. With -o figures are drawn into a folder.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import pipelines
from generator import (
    FILTERS,
    FRAMES,
    OTHER_FILTERS,
    Recording,
    record,
    seventeen_cells,
    three_cells,
)


def read(path: str) -> Recording:
    """Read a recording from a table."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "stimulus" not in rows[0]:
        raise SystemExit(f"{path}: expected a header with a column 'stimulus' and rows below it")
    names = tuple(name for name in rows[0] if name != "stimulus")
    if not names:
        raise SystemExit(f"{path}: expected a column of counts beside 'stimulus'")
    try:
        stimulus = np.array([float(row["stimulus"]) for row in rows])
        counts = np.array([[float(row[name]) for name in names] for row in rows])
    except (TypeError, ValueError) as error:
        raise SystemExit(f"{path}: expected a number in every column: {error}") from None
    if not ((stimulus >= 0) & (stimulus <= 255)).all():
        raise SystemExit(f"{path}: expected intensities from 0 to 255 in 'stimulus'")
    return Recording(stimulus, pipelines.clipped(counts), names)


def figure(path: Path, width: float, height: float, draw) -> None:
    """Draw into a file; without matplotlib nothing is drawn."""
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError:
        print("matplotlib is not installed: no figures", file=sys.stderr)
        return
    picture = pyplot.figure(figsize=(width, height), layout="constrained")
    draw(picture)
    picture.savefig(path)
    pyplot.close(picture)


def draw_transitions(data: pipelines.Segments, names: tuple[str, ...], folder: Path) -> None:
    """Draw the mean transition matrices of every cell, one column for each input."""
    shape = (-1, pipelines.INPUTS, pipelines.LEVELS, pipelines.LEVELS)

    def draw(picture) -> None:
        axes = picture.subplots(len(names), pipelines.INPUTS, squeeze=False)
        for cell, row in enumerate(axes):
            mean = data.transitions[data.cells == cell].reshape(shape).mean(axis=0)
            for k, axis in enumerate(row):
                axis.imshow(mean[k], vmin=0, vmax=1, cmap="Greys")
                axis.set(xticks=[], yticks=[], title=f"input {k}" if cell == 0 else "")
            row[0].set_ylabel(names[cell])

    figure(folder / "transitions.svg", 12, 1.7 * len(names), draw)


def identify(arguments: argparse.Namespace, recording: Recording) -> None:
    """Print how often the cell of a segment is not recognised."""
    data = pipelines.segments(
        recording.stimulus,
        recording.counts,
        lag=arguments.lag,
        starts=arguments.starts,
        iterations=arguments.iterations,
        uniform_below=arguments.uniform_below,
    )
    train = round(len(data.cells) * 180 / 315)
    errors, weights = pipelines.identify(data, arguments.splits, train, arguments.c, arguments.seed)
    print("| features | test error, % | s.d. |\n|--|--|--|")
    for name, values in errors.items():
        print(f"| {name} | {values.mean():.3f} | {values.std():.3f} |")
    print(f"\nmean weights of the fused kernels: {weights.mean(axis=0).round(3).tolist()}")
    single = min(errors["transitions, K1"].mean(), errors["histograms, K2"].mean())
    better = errors["transitions, K1"]
    if errors["histograms, K2"].mean() == single:
        better = errors["histograms, K2"]
    gain = better - errors["fused, K1 and K2"]
    print(f"better single kernel minus fused, mean over splits: {gain.mean():.3f}")
    if arguments.output:
        draw_transitions(data, recording.names, arguments.output)


def chosen(recording: Recording, cells: str | None) -> list[int]:
    """Return the places of the cells that were asked for, such as 1-3,5."""
    if cells is None:
        return list(range(len(recording.names)))
    places: list[int] = []
    for part in cells.split(","):
        first, _, last = part.partition("-")
        places += range(int(first) - 1, int(last or first))
    if not all(0 <= place < len(recording.names) for place in places):
        raise SystemExit(f"--cells {cells}: expected numbers from 1 to {len(recording.names)}")
    return places


def linear(arguments: argparse.Namespace, recording: Recording) -> None:
    """Print which cells a linear model explains as well as polynomial kernels do."""
    print("| cell | polynomial | linear | p | |\n|--|--|--|--|--|")
    found = []
    places = chosen(recording, arguments.cells)
    for cell in places:
        errors = pipelines.verify(
            recording.stimulus, recording.counts[:, cell], arguments.repetitions, arguments.c
        )
        simple, combined = errors.T
        p = pipelines.paired_p_value(simple, combined)
        # Of many cells some differ by chance: each is tested at its share of 5 %.
        differs = p < 0.05 / len(places) and combined.mean() < 0.8 * simple.mean()
        found += [recording.names[cell]] if differs else []
        verdict = "not linear" if differs else ""
        name = recording.names[cell]
        print(
            f"| {name} | {combined.mean():.3f} | {simple.mean():.3f} | {p:.4f} | {verdict} |",
            flush=True,
        )
    print(f"\nnot linear: {', '.join(found) or 'none'}")


def drift(arguments: argparse.Namespace, recording: Recording) -> None:
    """Print the weights of the last frames and whether they drift."""
    print(
        "| cell | weight of lag 0 | lag 1 | lag 2 | lag 3 | lags that drift |\n|--|--|--|--|--|--|"
    )
    kept = {}
    for cell in chosen(recording, arguments.cells):
        found = pipelines.filters(recording.stimulus, recording.counts[:, cell], arguments.c)
        slopes, errors = found.drift()
        mean = found.mean()[::-1]
        ratio = (slopes / np.where(errors > 0, errors, np.inf))[::-1]
        drifting = [
            f"{lag} {'grows' if ratio[lag] * mean[lag] > 0 else 'shrinks'}"
            for lag in range(5)
            if abs(ratio[lag]) > 3
        ]
        name = recording.names[cell]
        weights = " | ".join(f"{value:.3f}" for value in mean[:4])
        print(f"| {name} | {weights} | {', '.join(drifting)} |", flush=True)
        kept[name] = found
    if arguments.output:
        draw_filters(kept, arguments.output)


def draw_filters(kept: dict[str, pipelines.Filters], folder: Path) -> None:
    """Draw the mean filter of each cell, and the weights of the last four frames over time."""

    def means(picture) -> None:
        axis = picture.subplots()
        for name, found in kept.items():
            axis.plot(np.arange(1 - pipelines.WINDOW, 1), found.mean(), label=name)
        axis.set(xlabel="frame", ylabel="mean weight")
        axis.legend(ncols=2, fontsize="small")

    def series(picture) -> None:
        axes = picture.subplots(len(kept), 4, squeeze=False, sharex=True)
        for (name, found), row in zip(kept.items(), axes, strict=True):
            for lag, axis in enumerate(row):
                axis.plot(found.frames, found.weights[:, -1 - lag])
                axis.set_title(f"{name}, lag {lag}", fontsize="small")

    figure(folder / "filters.svg", 7, 4, means)
    figure(folder / "drift.svg", 12, 1.6 * len(kept), series)


def main(words: list[str] | None = None) -> None:
    """Run one of the pipelines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pipeline", choices=["identify", "linear", "drift"])
    parser.add_argument("--spikes", help="a recording of your own")
    parser.add_argument("--seed", type=int, default=0, help="of the generator and of the splits")
    parser.add_argument("--frames", type=int, default=FRAMES, help="length of generated recordings")
    parser.add_argument("--filters", choices=["usual", "other"], default="usual")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--uniform-below", type=float, default=0.0)
    parser.add_argument("--lag", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--cells", help="numbers from 1, such as 1-3,5")
    parser.add_argument("-c", type=float, default=None, help="penalty C [identify: 16, else 1]")
    parser.add_argument("-o", "--output", type=Path, help="folder for figures")
    arguments = parser.parse_args(words)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
    if arguments.c is None:
        arguments.c = 16.0 if arguments.pipeline == "identify" else 1.0
    if arguments.spikes:
        recording = read(arguments.spikes)
    elif arguments.pipeline == "identify":
        filters = FILTERS if arguments.filters == "usual" else OTHER_FILTERS
        recording = record(three_cells(filters), arguments.seed, arguments.frames)
    else:
        recording = record(seventeen_cells(), arguments.seed, arguments.frames)
    {"identify": identify, "linear": linear, "drift": drift}[arguments.pipeline](
        arguments, recording
    )


if __name__ == "__main__":
    main()
