# The two commands of the README are `make demo` and `make test`. The first needs only Rust and a
# shell; the second also Python 3.11 or newer, and fetches the rest into .venv-test.

DATA ?= $(WIDEMARGIN_DATA)
FUZZ_SECONDS ?= 600
PYTHON = bench/.venv/bin/python
PYTHON3 ?= python3
TEST_BIN = .venv-test/bin
# One choice of packages and features for every build of the tests, so that each crate is built once.
WORKSPACE = --workspace --locked --features widemargin-cli/parquet
LIBRARY_SUFFIX = $(if $(filter Darwin,$(shell uname)),dylib,so)

.PHONY: help demo test test-rust test-python test-sdist test-mpi lint bench bench-setup exactness dropin fuzz memcheck clean-demo

help:
	@echo 'make demo       build the program, train on real data, draw a picture (in demo/)'
	@echo 'make test       build and run every test, of Rust and of Python'
	@echo 'make test-mpi   the program for MPI, where MPI is installed'
	@echo 'make lint       formatting, clippy, rustdoc and ruff, all warnings are errors'
	@echo 'make bench      the table against scikit-learn, scikit-learn-intelex and libsvm-rs'
	@echo 'make exactness  the same optimum as LIBSVM, every KKT condition verified'
	@echo 'make dropin     our programs in the place of LIBSVM'"'"'s, and models both ways'
	@echo 'make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds'
	@echo 'make memcheck   the unit tests of code with unsafe parts, under valgrind'
	@echo 'bench and exactness read data sets from the folder WIDEMARGIN_DATA'

demo:
	@cargo build --release --locked -p widemargin-cli
	@scripts/demo.sh

test: test-rust test-python test-sdist

test-rust:
	cargo test $(WORKSPACE)

# The tests of the package, its examples in the documentation, its types, the scripts in examples/ and
# scikit-learn's own tests of the estimators. `maturin develop` would choose other features and so build the
# library once more. spark.py can only be imported where PySpark is installed, which the tests do without.
test-python: export PYTHONPATH = $(CURDIR)/python
test-python: .venv-test/ready
	cargo build --quiet --lib --tests $(WORKSPACE)
	cp target/debug/libwidemargin_python.$(LIBRARY_SUFFIX) python/widemargin/_core.abi3.so
	$(TEST_BIN)/python -m pytest -q
	MPLBACKEND=agg $(TEST_BIN)/python -m pytest -q --doctest-modules --doctest-glob='*.md' \
		--ignore=python/widemargin/spark.py python/widemargin docs/coming-from-scikit-learn.md
	$(TEST_BIN)/python python/sklearn_suite/run.py
	$(TEST_BIN)/mypy

# The source distribution, installed as `pip install widemargin` does where there is no wheel: in an
# environment of its own, from the archive alone. The workspace inside it lacks the other crates, so that
# Cargo.lock is not the one of the repository. Unoptimised, because only the packaging is tested.
test-sdist: .venv-test/ready
	rm -rf target/sdist
	$(TEST_BIN)/maturin sdist --out target/sdist
	$(PYTHON3) -m venv target/sdist/venv
	CARGO_TARGET_DIR='$(CURDIR)/target' CARGO_PROFILE_DEV_OPT_LEVEL=0 \
		MATURIN_PEP517_ARGS='--profile dev' target/sdist/venv/bin/pip install --quiet \
		--disable-pip-version-check target/sdist/*.tar.gz
	cd target/sdist && venv/bin/python ../../scripts/check_install.py

# The program for MPI, which is no member of the workspace; says so where MPI is not installed.
test-mpi:
	scripts/test_mpi.sh

.venv-test/ready: python/requirements-test.txt
	$(PYTHON3) -m venv .venv-test
	$(TEST_BIN)/pip install --quiet --disable-pip-version-check -r $<
	touch $@

lint: .venv-test/ready
	cargo fmt --all --check
	cargo fmt --check --manifest-path crates/mpi/Cargo.toml
	$(TEST_BIN)/ruff format --check
	$(TEST_BIN)/ruff check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked

bench-setup:
	bench/setup.sh

bench: bench-setup
	cargo build --release --locked -p widemargin-cli
	WIDEMARGIN_DATA='$(DATA)' $(PYTHON) bench/compare.py

exactness: bench-setup
	cargo build --release --locked -p widemargin-cli
	WIDEMARGIN_DATA='$(DATA)' $(PYTHON) bench/exactness.py

dropin:
	cargo build --release --locked -p widemargin-cli
	bench/dropin.sh

# cargo-fuzz wants a nightly compiler's flags; RUSTC_BOOTSTRAP lets the stable one take them.
fuzz:
	@cd fuzz && for target in $$(RUSTC_BOOTSTRAP=1 cargo fuzz list); do \
		echo "fuzzing $$target for $(FUZZ_SECONDS) s"; \
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- \
			-max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 || exit 1; \
	done

# Reads and writes outside of what was allocated, in the folders and files with `unsafe`. Slow: part of no other
# target. Valgrind knows no AVX-512, which the tests then leave out.
MEMCHECK = kernel::block kernel::rows numeric::simd solver::linear::rows solver::pair_scan

memcheck:
	PROPTEST_CASES=4 cargo test $(WORKSPACE) --lib \
		--config "target.'cfg(all())'.runner = 'valgrind --quiet --error-exitcode=99'" \
		-- --test-threads=1 $(MEMCHECK)

clean-demo:
	rm -rf demo
