# The two commands of the README are `make demo` and `make test`; both need only Rust (and a shell).

DATA ?= $(WIDEMARGIN_DATA)
FUZZ_SECONDS ?= 600
PYTHON = bench/.venv/bin/python

.PHONY: help demo test lint bench bench-setup exactness dropin fuzz clean-demo

help:
	@echo 'make demo       build the program, train on real data, draw a picture (in demo/)'
	@echo 'make test       build and run every test'
	@echo 'make lint       formatting, clippy and rustdoc, all warnings are errors'
	@echo 'make bench      the table against scikit-learn, scikit-learn-intelex and libsvm-rs'
	@echo 'make exactness  the same optimum as LIBSVM, every KKT condition verified'
	@echo 'make dropin     our programs in the place of LIBSVM'"'"'s, and models both ways'
	@echo 'make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS) seconds'
	@echo 'bench and exactness read data sets from the folder WIDEMARGIN_DATA'

demo:
	@cargo build --release --locked -p widemargin-cli
	@scripts/demo.sh

test:
	cargo test --workspace --locked

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
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

clean-demo:
	rm -rf demo
