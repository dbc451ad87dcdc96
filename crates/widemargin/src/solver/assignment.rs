//! The assignment of rows to columns of a table with the least total cost.
//!
//! Shortest augmenting paths with potentials (Kuhn's Hungarian method as of Jonker and Volgenant,
//! 1987), O(n³).

/// The column of every row; costs are row by row, with at least as many columns as rows.
pub(crate) fn least_cost(costs: &[f64], rows: usize, columns: usize) -> Vec<usize> {
    assert!(rows <= columns && costs.len() == rows * columns, "a table with room for every row");
    // Place 0 stands for no column and no row.
    let mut row_potential = vec![0.0; rows + 1];
    let mut column_potential = vec![0.0; columns + 1];
    let mut row_of = vec![0_usize; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut slack = vec![f64::INFINITY; columns + 1];
        let mut came_from = vec![0_usize; columns + 1];
        let mut visited = vec![false; columns + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            visited[column] = true;
            let here = row_of[column];
            let (mut least, mut next) = (f64::INFINITY, 0);
            for other in (1..=columns).filter(|&c| !visited[c]) {
                let cost = costs[(here - 1) * columns + other - 1];
                let reduced = cost - row_potential[here] - column_potential[other];
                if reduced < slack[other] {
                    slack[other] = reduced;
                    came_from[other] = column;
                }
                if slack[other] < least {
                    (least, next) = (slack[other], other);
                }
            }
            for other in 0..=columns {
                if visited[other] {
                    row_potential[row_of[other]] += least;
                    column_potential[other] -= least;
                } else {
                    slack[other] -= least;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[came_from[column]];
            column = came_from[column];
        }
    }
    let mut assigned = vec![0; rows];
    for column in 1..=columns {
        if row_of[column] != 0 {
            assigned[row_of[column] - 1] = column - 1;
        }
    }
    assigned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least cost over all ways to give the rows from `row` on columns not taken.
    fn by_trial(costs: &[f64], rows: usize, columns: usize, row: usize, taken: u32) -> f64 {
        if row == rows {
            return 0.0;
        }
        (0..columns)
            .filter(|column| taken & (1 << column) == 0)
            .map(|column| {
                costs[row * columns + column]
                    + by_trial(costs, rows, columns, row + 1, taken | (1 << column))
            })
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn no_other_assignment_costs_less(
            rows in 1_usize..6,
            extra in 0_usize..3,
            numbers in prop::collection::vec(-9_i8..10, 64),
        ) {
            let columns = rows + extra;
            let costs: Vec<f64> =
                numbers[..rows * columns].iter().map(|&v| f64::from(v)).collect();
            let found = least_cost(&costs, rows, columns);
            let mut used = found.clone();
            used.sort_unstable();
            used.dedup();
            prop_assert_eq!(used.len(), rows);
            let total: f64 = (0..rows).map(|i| costs[i * columns + found[i]]).sum();
            prop_assert!((total - by_trial(&costs, rows, columns, 0, 0)).abs() < 1e-9);
        }
    }
}
