//! What all machines have in common: they learn a model from a data set.

use super::{Model, Precision, Start, Svc};
use crate::context::Context;
use crate::data::{Dataset, Dense, Matrix};
use crate::error::{Error, Result};
use crate::kernel::Kernel;

/// A machine with its parameters set, ready to learn.
pub trait Machine: Send + Sync {
    /// Learns a model.
    ///
    /// # Errors
    /// Bad parameters, data that does not suit the machine, or an interruption before a model
    /// existed. Running out of time or iterations is no error but a
    /// [`Status`](crate::solver::Status) of the model.
    fn fit(&self, data: &Dataset, context: &Context) -> Result<Model>;

    /// Learns a model, starting from the solution `start` of a related problem: the same rows (or
    /// the same first rows) with other parameters, weights or labels.
    ///
    /// The optimum is that of [`fit`](Self::fit); a near start only saves time. Machines that
    /// cannot use the start ignore it.
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    fn fit_from(&self, data: &Dataset, start: &Model, context: &Context) -> Result<Model> {
        let _ = start;
        self.fit(data, context)
    }

    /// Learns from the rows of a data set named by `rows` alone, starting from the
    /// solution `start` of a related problem over rows of the same data set, if there is one.
    ///
    /// The `support_rows` of the model are rows of the whole data set, and so are the columns that
    /// a model of a precomputed kernel expects of its queries. The features are taken to have passed
    /// [`Matrix::validate`].
    ///
    /// # Errors
    /// As [`fit`](Self::fit).
    fn fit_rows(
        &self,
        data: &Dataset,
        rows: &[usize],
        start: Option<Start<'_>>,
        context: &Context,
    ) -> Result<Model> {
        let _ = start;
        let mut part = data.select_rows(rows);
        if self.kernel() == Some(&Kernel::Precomputed) {
            part = part.with_features(square(data.features(), rows)?)?;
        }
        let mut model = self.fit(&part, context)?;
        model.body.get_mut().rename_rows(rows);
        Ok(model)
    }

    /// The kernel it will use, if it uses one.
    fn kernel(&self) -> Option<&Kernel> {
        None
    }

    /// Number format of its kernel values.
    fn precision(&self) -> Precision {
        Precision::default()
    }

    /// Itself, if it is a classifier with a penalty: many of those can be trained together.
    fn as_svc(&self) -> Option<&Svc> {
        None
    }

    /// The same machine with another kernel, if it uses one; who trains it often can then compute
    /// the kernel values of a data set once and give them as a precomputed kernel.
    fn with_kernel(&self, kernel: Kernel) -> Option<Box<dyn Machine>> {
        let _ = kernel;
        None
    }
}

/// The [`Machine`] whose method `learn(rows, earlier solution, context)` does the work and whose fields
/// are named `kernel` and `options`; further methods may be given.
macro_rules! machine_with_kernel {
    ($machine:ident { $($more:item)? }) => {
        impl $crate::machine::Machine for $machine {
            fn fit(&self, data: &Dataset, context: &Context) -> Result<Model> {
                self.learn(RowsOf::all(data)?, Earlier::NONE, context)
            }

            fn fit_from(&self, data: &Dataset, start: &Model, context: &Context) -> Result<Model> {
                let start = $crate::machine::Start::of(start, &self.kernel);
                self.learn(RowsOf::all(data)?, Earlier::new(Some(start)), context)
            }

            fn fit_rows(
                &self,
                data: &Dataset,
                rows: &[usize],
                start: Option<$crate::machine::Start<'_>>,
                context: &Context,
            ) -> Result<Model> {
                self.learn(RowsOf::some(data, rows)?, Earlier::new(start), context)
            }

            fn kernel(&self) -> Option<&Kernel> {
                Some(&self.kernel)
            }

            fn precision(&self) -> $crate::machine::Precision {
                self.options.precision
            }

            fn with_kernel(&self, kernel: Kernel) -> Option<Box<dyn $crate::machine::Machine>> {
                Some(Box::new(Self { kernel, ..self.clone() }))
            }

            $($more)?
        }
    };
}
pub(in crate::machine) use machine_with_kernel;

/// The rows and columns `members` of a table of kernel values.
fn square(table: &Matrix, members: &[usize]) -> Result<Matrix> {
    if table.columns() != table.rows() {
        return Err(Error::Kernel {
            kernel: "precomputed".into(),
            expected: format!("one column for each of {} rows", table.rows()),
            found: format!("{} columns", table.columns()),
        });
    }
    let mut row_values = vec![0.0; table.columns()];
    let mut values = Vec::with_capacity(members.len() * members.len());
    for &row in members {
        table.copy_row(row, &mut row_values);
        values.extend(members.iter().map(|&column| row_values[column]));
    }
    Dense::new(members.len(), members.len(), values).map(Matrix::DenseF64)
}
