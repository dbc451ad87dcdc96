//! Tables of products ⟨x, z⟩ that the values of several kernels are functions of, each computed once.

use std::sync::Arc;

use super::KernelBlocks;
use super::feature_kernel::FeatureKernel;
use super::of_products::OfProducts;
use crate::context::Context;
use crate::data::Dense;
use crate::error::Result;
use crate::kernel::fill_table;
use crate::numeric::simd::Real;

/// Which kernels of a sum read the table of which: the first of those with the same products, for every kernel
/// that is not alone with its products.
pub(super) fn groups<T: Real>(terms: &[KernelBlocks<T>]) -> Vec<Option<usize>> {
    let mut firsts: Vec<Option<usize>> = Vec::with_capacity(terms.len());
    let mut known: Vec<(usize, &FeatureKernel<T>)> = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let own = term.feature_kernel().filter(|own| own.has_products());
        let first = own.map(|own| {
            let first = known.iter().find(|(_, other)| own.has_products_of(other));
            let first = first.map_or(at, |(first, _)| *first);
            if first == at {
                known.push((at, own));
            }
            first
        });
        firsts.push(first);
    }
    let mut members = vec![0; terms.len()];
    firsts.iter().flatten().for_each(|&first| members[first] += 1);
    firsts.into_iter().map(|first| first.filter(|&first| members[first] > 1)).collect()
}

/// The tables made so far, with the kernel that was the first to need each.
pub(super) struct SharedProducts<T: Copy>(Vec<(usize, Dense<T>)>);

impl<T: Real> SharedProducts<T> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// The rows of `own` over the table of the kernel `first`, which is made when it is asked for first.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) at a request to stop.
    pub(super) fn over_table(
        &mut self,
        own: &FeatureKernel<T>,
        first: usize,
        order: usize,
        context: &Context,
    ) -> Result<OfProducts<T>> {
        let known = self.0.iter().find(|(other, _)| *other == first);
        let table = match known {
            Some((_, table)) => table.clone(),
            None => {
                let mut products = Vec::new();
                let blocks = KernelBlocks { packed: Arc::new(own.products()) };
                fill_table(&blocks, order, &mut products, context)?;
                let table = Dense::new(order, order, products)?;
                self.0.push((first, table.clone()));
                table
            }
        };
        Ok(own.of_products(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Layout, Matrix};
    use crate::error::Error;
    use crate::kernel::{Kernel, TermScratch, TermSums};
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
            // Eight kernels in three groups that share products, and five with tables of their own.
            assert_eq!(together.tables(), 8);
            together.tabulate(&context, |_, _| Ok(())).unwrap();
            assert_eq!(together.terms().len(), alone.len());
            let keep = [3, 4, 5, 20, 36];
            let among = together.subset(&keep);
            for (at, alone) in alone.iter().enumerate() {
                let values = table_of(alone, &context);
                assert!(table_of(&together.terms()[at], &context) == values, "{}", kernels()[at]);
                let places = keep.iter().flat_map(|i| keep.map(|j| i * 37 + j));
                let part: Vec<T> = places.map(|place| values[place]).collect();
                assert!(table_of(&among.terms()[at], &context) == part, "{}", kernels()[at]);
                let one = together.terms()[at].subset(&keep);
                assert!(table_of(&one, &context) == part, "{}", kernels()[at]);
            }
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

    fn kernels_together_have_the_values_of_each_alone<T: Real>(unit: f64) {
        let mut generator = Generator::new(9);
        let values: Vec<f64> = (0..37 * 5).map(|_| 0.6 * generator.normal()).collect();
        let rows = Matrix::DenseF64(Dense::new(37, 5, values).unwrap()).into_layout(Layout::Sparse);
        let mut kernels = kernels();
        kernels.truncate(2);
        let widths = [0.05, 0.1, 0.2, 0.3, 0.4, 0.8, 1.6, 3.2];
        kernels.extend(widths.map(|gamma| Kernel::Gaussian { gamma }));
        kernels.push(Kernel::Laplacian { gamma: 0.4 });
        let weights: Vec<f64> = (0..kernels.len()).map(|_| generator.normal()).collect();
        let pairs: Vec<f64> = (0..27 * 31).map(|_| generator.normal()).collect();
        for set in available() {
            let context = Context::new().with_instruction_set(set).unwrap();
            let sum = Kernel::Sum(kernels.iter().map(|kernel| (1.0, kernel.clone())).collect());
            let mut together = KernelBlocks::<T>::new(&sum, &rows, None, &context).unwrap();
            together.tabulate(&context, |_, _| Ok(())).unwrap();
            let mut sums = vec![0.0; kernels.len()];
            let terms = TermSums::new(&together.terms(), set);
            terms.add(3..30, 5..36, &pairs, &mut TermScratch::default(), &mut sums);
            together.reweight(&weights).unwrap();
            let found = table_of(&together, &context);
            let (mut total, mut size) = (vec![0.0; 37 * 37], vec![0.0; 37 * 37]);
            for ((kernel, weight), sum) in kernels.iter().zip(&weights).zip(&sums) {
                let alone = KernelBlocks::<f64>::new(kernel, &rows, None, &context).unwrap();
                let values = table_of(&alone, &context);
                for (at, value) in values.iter().enumerate() {
                    total[at] += weight * value;
                    size[at] += (weight * value).abs();
                }
                let places = (3..30).flat_map(|i| (5..36).map(move |j| i * 37 + j));
                let products = places.zip(&pairs).map(|(at, pair)| values[at] * pair);
                let (exact, room) =
                    products.fold((0.0, 0.0), |(sum, size), v: f64| (sum + v, size + v.abs()));
                assert!((sum - exact).abs() <= 30.0 * unit * room, "{kernel}: {sum} {exact}");
            }
            for ((found, total), size) in found.iter().zip(&total).zip(&size) {
                assert!((found.to_f64() - total).abs() <= 30.0 * unit * size, "{found} {total}");
            }
        }
    }

    #[test]
    fn single_precision_together_has_the_values_of_each_alone() {
        kernels_together_have_the_values_of_each_alone::<f32>(f64::from(f32::EPSILON));
    }

    #[test]
    fn double_precision_together_has_the_values_of_each_alone() {
        kernels_together_have_the_values_of_each_alone::<f64>(f64::EPSILON);
    }
}
