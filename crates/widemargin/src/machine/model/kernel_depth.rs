//! A limit on the nesting of kernels, so that no file can ask for any amount of stack.

use super::validate::fail;
use crate::error::Result;
use crate::kernel::Kernel;

/// Deepest nesting of kernel sums and products in a model.
pub(crate) const MAX_KERNEL_DEPTH: usize = 16;

/// Checks that sums and products are not nested too deeply.
pub(super) fn check_depth(kernel: &Kernel) -> Result<()> {
    check_nested(kernel, MAX_KERNEL_DEPTH)
}

fn check_nested(kernel: &Kernel, depth: usize) -> Result<()> {
    let inner = |kernel: &Kernel| match depth.checked_sub(1) {
        Some(depth) => check_nested(kernel, depth),
        None => {
            fail(format!("expected kernels nested at most {MAX_KERNEL_DEPTH} deep, found more"))
        }
    };
    match kernel {
        Kernel::Sum(terms) => terms.iter().try_for_each(|(_, kernel)| inner(kernel)),
        Kernel::Product(factors) => factors.iter().try_for_each(inner),
        Kernel::View { kernel, .. } => inner(kernel),
        _ => Ok(()),
    }
}
