//! Tables of products ⟨x, z⟩ that the values of several kernels are functions of, each computed once.

use std::sync::Arc;

use super::KernelBlocks;
use super::feature_kernel::FeatureKernel;
use crate::context::Context;
use crate::error::Result;
use crate::kernel::fill_table;
use crate::numeric::simd::Real;

/// Rows of a table that one task transforms.
const TASK_ROWS: usize = 64;

/// The tables that are still needed, each with a kernel that has its products.
pub(super) struct SharedProducts<T: Real>(Vec<(FeatureKernel<T>, Vec<T>)>);

impl<T: Real> Default for SharedProducts<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Real> SharedProducts<T> {
    /// Whether there is a table for `own`: computes one when a kernel of `later` will need it too.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub(super) fn prepare(
        &mut self,
        own: &FeatureKernel<T>,
        later: &[KernelBlocks<T>],
        order: usize,
        context: &Context,
    ) -> Result<bool> {
        self.0.retain(|(known, _)| {
            let needs = |term: &KernelBlocks<T>| {
                term.feature_kernel().is_some_and(|term| term.has_products_of(known))
            };
            own.has_products_of(known) || later.iter().any(needs)
        });
        if self.of(own).is_some() {
            return Ok(true);
        }
        let shares = |term: &KernelBlocks<T>| {
            term.feature_kernel().is_some_and(|term| term.has_products_of(own))
        };
        if !later.iter().any(shares) {
            return Ok(false);
        }
        let mut products = Vec::new();
        let blocks = KernelBlocks { packed: Arc::new(own.products()) };
        fill_table(&blocks, order, &mut products, context)?;
        self.0.push((own.products(), products));
        Ok(true)
    }

    fn of(&self, own: &FeatureKernel<T>) -> Option<&[T]> {
        let known = self.0.iter().find(|(known, _)| known.has_products_of(own));
        known.map(|(_, products)| &products[..])
    }

    /// The values of `own` between all rows, of which a table was [prepared](Self::prepare).
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub(super) fn values(
        &self,
        own: &FeatureKernel<T>,
        order: usize,
        values: &mut Vec<T>,
        context: &Context,
    ) -> Result<()> {
        let products = self.of(own).unwrap_or(&[]);
        values.resize(products.len(), T::ZERO);
        let chunk = (TASK_ROWS * order).max(1);
        let task = |(t, out): (usize, &mut [T])| {
            if context.stop_request().is_some() {
                return;
            }
            let first = t * TASK_ROWS;
            let rows = out.chunks_mut(order.max(1)).zip(products[first * order..].chunks(order));
            for (r, (out, products)) in rows.enumerate() {
                own.of_products(first + r, products, out);
            }
        };
        context.for_each(values.chunks_mut(chunk).enumerate(), task);
        context.checkpoint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Layout, Matrix};
    use crate::error::Error;
    use crate::kernel::Kernel;
    use crate::numeric::random::Generator;
    use crate::numeric::simd::available;

    fn kernels() -> Vec<Kernel> {
        let view = |kernel| Kernel::View { columns: vec![0..3, 5..7], kernel: Box::new(kernel) };
        let poly = |degree| Kernel::Polynomial { gamma: 0.5, coef0: 1.0, degree };
        vec![
            Kernel::Linear,
            poly(2),
            Kernel::Gaussian { gamma: 0.3 },
            view(Kernel::Gaussian { gamma: 0.3 }),
            Kernel::Sigmoid { gamma: 0.1, coef0: 0.2 },
            Kernel::Laplacian { gamma: 0.4 },
            Kernel::Gaussian { gamma: 2.0 },
            Kernel::Laplacian { gamma: 1.4 },
            view(Kernel::Gaussian { gamma: 5.0 }),
            Kernel::Cosine,
            poly(3),
            view(Kernel::Linear),
            Kernel::Product(vec![Kernel::Cosine, poly(1)]),
        ]
    }

    fn table_of<T: Real>(blocks: &KernelBlocks<T>, context: &Context) -> Vec<T> {
        let mut values = Vec::new();
        fill_table(blocks, blocks.len(), &mut values, context).unwrap();
        values
    }

    fn shared_values_have_the_bits_of_kernels_alone<T: Real>() {
        let mut generator = Generator::new(4);
        let values: Vec<f64> =
            (0..37 * 9).map(|i| if i % 3 == 0 { 0.0 } else { generator.normal() }).collect();
        for (layout, set) in [Layout::Dense, Layout::Sparse]
            .into_iter()
            .flat_map(|l| available().map(move |s| (l, s)))
        {
            let kept = if matches!(layout, Layout::Dense) { 1 } else { 4 };
            let thinned =
                values.iter().enumerate().map(|(i, v)| if i % kept == 0 { *v } else { 0.0 });
            let dense = Dense::new(37, 9, thinned.collect()).unwrap();
            let rows = Matrix::DenseF64(dense).into_layout(layout);
            let context = Context::new().with_instruction_set(set).unwrap();
            let sum = Kernel::Sum(kernels().into_iter().map(|kernel| (1.0, kernel)).collect());
            let mut together = KernelBlocks::<T>::new(&sum, &rows, None, &context).unwrap();
            let alone: Vec<KernelBlocks<T>> = kernels()
                .iter()
                .map(|kernel| KernelBlocks::new(kernel, &rows, None, &context).unwrap())
                .collect();
            for (term, alone) in together.terms().iter().zip(&alone) {
                assert!(term.diagonal() == alone.diagonal());
                assert!(table_of(term, &context) == table_of(alone, &context));
            }
            let mut seen = 0;
            together
                .tabulate(&context, |at, values| {
                    assert!(*values == *table_of(&alone[at], &context), "{}", kernels()[at]);
                    seen += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, alone.len());
            // Other weights, of which most are 0: the sum of the two.
            let mut weights = vec![0.0; alone.len()];
            (weights[2], weights[10]) = (0.5, 2.0);
            together.reweight(&weights).unwrap();
            let (a, b) = (table_of(&alone[2], &context), table_of(&alone[10], &context));
            let expected = a.iter().zip(&b).map(|(a, b)| 0.5 * a.to_f64() + 2.0 * b.to_f64());
            for (found, expected) in table_of(&together, &context).iter().zip(expected) {
                assert!((found.to_f64() - expected).abs() <= 1e-5 * expected.abs().max(1.0));
            }
            together.reweight(&vec![0.0; alone.len()]).unwrap();
            assert!(table_of(&together, &context).iter().all(|value| *value == T::ZERO));
        }
    }

    #[test]
    fn shared_values_have_the_bits_of_kernels_alone_in_both_precisions() {
        shared_values_have_the_bits_of_kernels_alone::<f32>();
        shared_values_have_the_bits_of_kernels_alone::<f64>();
    }

    #[test]
    fn a_kernel_that_overflows_is_refused_although_it_shares_rows() {
        let rows = Matrix::DenseF64(Dense::new(2, 1, vec![1e10, 2e10]).unwrap());
        let power = Kernel::Polynomial { gamma: 1.0, coef0: 0.0, degree: 7 };
        let sum = Kernel::Sum(vec![(1.0, Kernel::Linear), (1.0, power)]);
        let packed = KernelBlocks::<f32>::new(&sum, &rows, None, &Context::new());
        assert!(matches!(packed, Err(Error::Overflow { .. })));
        assert!(KernelBlocks::<f64>::new(&sum, &rows, None, &Context::new()).is_ok());
    }
}
