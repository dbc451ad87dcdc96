//! Stub.
#![allow(clippy::all)]
#![allow(missing_docs)]
use super::*;
use crate::data::Matrix;
use std::ops::Range;
pub struct KernelBlocks<T: Real> {
    x: Vec<Vec<f64>>,
    kernel: Kernel,
    diag: Vec<T>,
}
impl<T: Real> KernelBlocks<T> {
    pub fn new(
        kernel: &Kernel,
        rows: &Matrix,
        order: Option<&[usize]>,
        _set: InstructionSet,
    ) -> crate::Result<Self> {
        let all: Vec<usize> = (0..rows.rows()).collect();
        let x: Vec<Vec<f64>> = order
            .unwrap_or(&all)
            .iter()
            .map(|&i| {
                let mut o = vec![0.0; rows.columns()];
                rows.copy_row(i, &mut o);
                o
            })
            .collect();
        let mut s = Self { x, kernel: kernel.clone(), diag: vec![] };
        s.diag = (0..s.x.len()).map(|i| s.k(i, i)).collect();
        Ok(s)
    }
    fn k(&self, i: usize, j: usize) -> T {
        self.kk(&self.x[i], &self.x[j], j)
    }
    fn kk(&self, a: &[f64], b: &[f64], j: usize) -> T {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        T::from_f64(match &self.kernel {
            Kernel::Linear => dot,
            Kernel::Gaussian { gamma } => {
                (-gamma * a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()).exp()
            }
            Kernel::Precomputed => a[j],
            _ => 0.0,
        })
    }
    pub fn len(&self) -> usize {
        self.x.len()
    }
    pub fn diagonal(&self) -> &[T] {
        &self.diag
    }
    pub fn block(&self, left: &[usize], columns: Range<usize>, out: &mut [&mut [T]]) {
        for (l, o) in left.iter().zip(out) {
            for (j, o) in columns.clone().zip(o.iter_mut()) {
                *o = self.k(*l, j);
            }
        }
    }
    pub fn subset(&self, keep: &[usize]) -> Self {
        Self {
            x: keep.iter().map(|&i| self.x[i].clone()).collect(),
            kernel: self.kernel.clone(),
            diag: keep.iter().map(|&i| self.diag[i]).collect(),
        }
    }

    pub fn prepare(&self, q: &Matrix, r: Range<usize>) -> crate::Result<Queries<T>> {
        Ok(Queries {
            x: r.map(|i| {
                let mut o = vec![0.0; q.columns()];
                q.copy_row(i, &mut o);
                o
            })
            .collect(),
            t: vec![],
        })
    }
    pub fn query_block(
        &self,
        q: &Queries<T>,
        rows: Range<usize>,
        cols: Range<usize>,
        out: &mut [T],
        stride: usize,
    ) {
        for (r, i) in rows.enumerate() {
            for (c, j) in cols.clone().enumerate() {
                out[r * stride + c] = self.kk(&q.x[i], &self.x[j], 0);
            }
        }
    }
}
pub struct Queries<T> {
    x: Vec<Vec<f64>>,
    t: Vec<T>,
}
impl<T> Queries<T> {
    pub fn self_similarities(&self) -> &[T] {
        &self.t
    }
}
