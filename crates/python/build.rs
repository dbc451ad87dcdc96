//! Tells the linker of macOS that the interpreter has Python's symbols, as maturin does.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
