//! Rows whose labels are known to be equal or opposite: they share a vector v, one of them with the other's sign.

use std::collections::VecDeque;

/// Which rows share a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ties {
    /// Number of the vector of every row, in the order of their first rows.
    pub(super) group: Vec<usize>,
    /// Sign of every row, ±1.
    pub(super) sign: Vec<i8>,
    /// The sum of the signs of every group, never negative.
    pub(super) sums: Vec<usize>,
}

impl Ties {
    /// Rows a and b of (a, b, sign) have equal labels where the sign is 1 and opposite ones where it is −1.
    ///
    /// # Errors
    /// The rows of a link that contradicts others.
    pub(crate) fn new(rows: usize, links: &[(usize, usize, i8)]) -> Result<Self, (usize, usize)> {
        let mut neighbours: Vec<Vec<(usize, i8)>> = vec![Vec::new(); rows];
        for &(a, b, sign) in links {
            neighbours[a].push((b, sign));
            neighbours[b].push((a, sign));
        }
        let mut ties =
            Self { group: vec![usize::MAX; rows], sign: vec![1; rows], sums: Vec::new() };
        for first in 0..rows {
            if ties.group[first] != usize::MAX {
                continue;
            }
            let group = ties.sums.len();
            ties.group[first] = group;
            let (mut queue, mut members) = (VecDeque::from([first]), Vec::new());
            while let Some(row) = queue.pop_front() {
                members.push(row);
                for &(other, sign) in &neighbours[row] {
                    let expected = ties.sign[row] * sign;
                    if ties.group[other] == usize::MAX {
                        (ties.group[other], ties.sign[other]) = (group, expected);
                        queue.push_back(other);
                    } else if ties.sign[other] != expected {
                        return Err((row, other));
                    }
                }
            }
            let sum: i64 = members.iter().map(|&row| i64::from(ties.sign[row])).sum();
            if sum < 0 {
                members.iter().for_each(|&row| ties.sign[row] = -ties.sign[row]);
            }
            ties.sums.push(sum.unsigned_abs() as usize);
        }
        Ok(ties)
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.group.len()
    }

    /// Number of vectors.
    pub(crate) fn groups(&self) -> usize {
        self.sums.len()
    }

    /// The vectors of the rows from those of the groups.
    pub(crate) fn vectors_of_rows(&self, vectors: &[f64], width: usize) -> Vec<f64> {
        let rows = self.group.iter().zip(&self.sign);
        rows.flat_map(|(&group, &sign)| {
            vectors[group * width..][..width].iter().map(move |value| f64::from(sign) * value)
        })
        .collect()
    }

    /// The labels with the largest Σ yᵢ gainᵢ of which so many are +1 as is `allowed` (one entry for every number from
    /// 0), if any are.
    pub(super) fn best(&self, gains: &[f64], allowed: &[bool]) -> Option<Vec<i8>> {
        let mut of_groups = vec![0.0; self.groups()];
        for ((gain, &group), &sign) in gains.iter().zip(&self.group).zip(&self.sign) {
            of_groups[group] += f64::from(sign) * gain;
        }
        let labels = if self.groups() == self.rows() {
            largest_gains(&of_groups, allowed)
        } else {
            self.largest_sum(&of_groups, allowed)
        }?;
        let rows = self.group.iter().zip(&self.sign);
        Some(rows.map(|(&group, &sign)| labels[group] * sign).collect())
    }

    /// Labels of the groups by dynamic programming over the sum of the labels of the rows.
    fn largest_sum(&self, gains: &[f64], allowed: &[bool]) -> Option<Vec<i8>> {
        let n = self.rows();
        let width = 2 * n + 1;
        let mut best = vec![f64::NEG_INFINITY; width];
        best[n] = 0.0;
        let mut positive = vec![false; self.groups() * width];
        for (group, (&sum, gain)) in self.sums.iter().zip(gains).enumerate() {
            let mut next = vec![f64::NEG_INFINITY; width];
            for (at, next) in next.iter_mut().enumerate() {
                let plus = at.checked_sub(sum).map_or(f64::NEG_INFINITY, |from| best[from] + gain);
                let minus = best.get(at + sum).map_or(f64::NEG_INFINITY, |value| value - gain);
                positive[group * width + at] = plus >= minus;
                *next = plus.max(minus);
            }
            best = next;
        }
        // As many rows are +1 as half of what n and the sum of the labels make.
        let counts = (0..=n).filter(|&count| allowed[count] && best[2 * count].is_finite());
        let mut at = 2 * counts.max_by(|&a, &b| best[2 * a].total_cmp(&best[2 * b]))?;
        let mut labels = vec![-1; self.groups()];
        for group in (0..self.groups()).rev() {
            if positive[group * width + at] {
                labels[group] = 1;
                at -= self.sums[group];
            } else {
                at += self.sums[group];
            }
        }
        Some(labels)
    }
}

/// +1 for the largest gains, as many as is best.
fn largest_gains(gains: &[f64], allowed: &[bool]) -> Option<Vec<i8>> {
    let mut order: Vec<usize> = (0..gains.len()).collect();
    order.sort_by(|&a, &b| gains[b].total_cmp(&gains[a]).then(a.cmp(&b)));
    let mut best: Option<(f64, usize)> = None;
    let mut sum = 0.0;
    for (count, row) in (0..).zip(order.iter().map(Some).chain([None])) {
        if allowed[count] && best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, count));
        }
        sum += row.map_or(0.0, |&row| gains[row]);
    }
    let mut labels = vec![-1; gains.len()];
    order[..best?.1].iter().for_each(|&row| labels[row] = 1);
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    #[test]
    fn contradictions_are_found() {
        let ties = Ties::new(5, &[(0, 1, 1), (1, 2, -1), (3, 4, -1)]).unwrap();
        assert_eq!(ties.group, [0, 0, 0, 1, 1]);
        assert_eq!(ties.sign, [1, 1, -1, 1, -1]);
        assert_eq!(ties.sums, [1, 0]);
        assert!(Ties::new(3, &[(0, 1, 1), (1, 2, 1), (0, 2, -1)]).is_err());
        assert!(Ties::new(2, &[(1, 1, -1)]).is_err());
    }

    #[test]
    fn the_best_labels_are_those_of_a_search_of_all() {
        let mut generator = Generator::new(3);
        for case in 0..60 {
            let n = 3 + case % 6;
            let links: Vec<(usize, usize, i8)> = match case % 3 {
                0 => Vec::new(),
                1 => vec![(0, n - 1, -1)],
                _ => vec![(0, 1, 1), (1, n - 1, 1)],
            };
            let ties = Ties::new(n, &links).unwrap();
            let gains: Vec<f64> = (0..n).map(|_| generator.normal()).collect();
            let allowed: Vec<bool> = (0..=n).map(|count| (count + case) % 3 != 0).collect();
            let value =
                |y: &[i8]| -> f64 { y.iter().zip(&gains).map(|(y, g)| f64::from(*y) * g).sum() };
            let mut most = f64::NEG_INFINITY;
            for mask in 0..1_u32 << n {
                let y: Vec<i8> = (0..n).map(|i| if mask >> i & 1 == 1 { 1 } else { -1 }).collect();
                let fits = links.iter().all(|&(a, b, sign)| y[a] * y[b] == sign);
                if fits && allowed[mask.count_ones() as usize] {
                    most = most.max(value(&y));
                }
            }
            match ties.best(&gains, &allowed) {
                None => assert_eq!(most, f64::NEG_INFINITY, "{case}"),
                Some(y) => {
                    assert!((value(&y) - most).abs() < 1e-12, "{case}: {} {most}", value(&y));
                    assert!(allowed[y.iter().filter(|y| **y > 0).count()]);
                    assert!(links.iter().all(|&(a, b, sign)| y[a] * y[b] == sign));
                }
            }
        }
    }
}
