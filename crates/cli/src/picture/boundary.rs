//! Boundaries between the classes of the nodes of a square lattice, by marching squares.

use std::collections::HashMap;

/// A place in units of the lattice.
pub(super) type Node = (f64, f64);

/// Areas of one class and the lines between them.
pub(super) struct Areas {
    /// Class and corners of every piece; together they cover the lattice.
    pub(super) pieces: Vec<(usize, Vec<Node>)>,
    /// The boundaries.
    pub(super) lines: Vec<Vec<Node>>,
}

/// Divides a lattice of `nodes` × `nodes` classes, the first axis running fastest. `crossing` says for two
/// neighbours of different classes how far from the first one the boundary is, from 0 to 1.
pub(super) fn areas(
    nodes: usize,
    classes: &[usize],
    crossing: &dyn Fn(usize, usize) -> f64,
) -> Areas {
    let mut pieces: Vec<(usize, Vec<Node>)> = Vec::new();
    let mut segments = Vec::new();
    for row in 0..nodes.saturating_sub(1) {
        let mut run: Option<(usize, usize)> = None;
        let flush = |run: &mut Option<(usize, usize)>, end: usize, pieces: &mut Vec<_>| {
            if let Some((start, class)) = run.take() {
                let [x0, x1, y] = [start, end, row].map(|v| v as f64);
                pieces.push((class, vec![(x0, y), (x1, y), (x1, y + 1.0), (x0, y + 1.0)]));
            }
        };
        for column in 0..nodes - 1 {
            let first = row * nodes + column;
            let corners = [first, first + 1, first + nodes + 1, first + nodes];
            let class = classes[first];
            if corners.iter().all(|&corner| classes[corner] == class) {
                if run.is_none_or(|(_, other)| other != class) {
                    flush(&mut run, column, &mut pieces);
                    run = Some((column, class));
                }
                continue;
            }
            flush(&mut run, column, &mut pieces);
            square(nodes, classes, crossing, corners, &mut pieces, &mut segments);
        }
        flush(&mut run, nodes - 1, &mut pieces);
    }
    Areas { pieces, lines: joined(&segments) }
}

/// Divides one square whose corners have several classes.
fn square(
    nodes: usize,
    classes: &[usize],
    crossing: &dyn Fn(usize, usize) -> f64,
    corners: [usize; 4],
    pieces: &mut Vec<(usize, Vec<Node>)>,
    segments: &mut Vec<[Node; 2]>,
) {
    let place = |node: usize| ((node % nodes) as f64, (node / nodes) as f64);
    let between = |a: usize, b: usize| {
        // The same from both sides, to the last bit.
        let (a, b) = (a.min(b), a.max(b));
        let (from, to, share) = (place(a), place(b), crossing(a, b).clamp(0.0, 1.0));
        (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
    };
    let changes: Vec<usize> =
        (0..4).filter(|&i| classes[corners[i]] != classes[corners[(i + 1) % 4]]).collect();
    let crossings: Vec<Node> =
        changes.iter().map(|&i| between(corners[i], corners[(i + 1) % 4])).collect();
    let middle = place(corners[0]);
    let middle = (middle.0 + 0.5, middle.1 + 0.5);
    for (k, &change) in changes.iter().enumerate() {
        let next = (k + 1) % changes.len();
        let mut piece = vec![crossings[k]];
        let mut corner = (change + 1) % 4;
        let class = classes[corners[corner]];
        loop {
            piece.push(place(corners[corner]));
            if corner == changes[next] {
                break;
            }
            corner = (corner + 1) % 4;
        }
        piece.push(crossings[next]);
        if changes.len() > 2 {
            piece.push(middle);
            segments.push([crossings[k], middle]);
        }
        pieces.push((class, piece));
    }
    if let [from, to] = crossings[..] {
        segments.push([from, to]);
    }
}

/// Joins segments that share an end to lines.
fn joined(segments: &[[Node; 2]]) -> Vec<Vec<Node>> {
    let key = |node: Node| (node.0.to_bits(), node.1.to_bits());
    let mut at: HashMap<(u64, u64), Vec<usize>> = HashMap::new();
    for (i, segment) in segments.iter().enumerate() {
        for end in segment {
            at.entry(key(*end)).or_default().push(i);
        }
    }
    let mut is_used = vec![false; segments.len()];
    let mut lines = Vec::new();
    for start in 0..segments.len() {
        if is_used[start] {
            continue;
        }
        is_used[start] = true;
        let mut line = segments[start].to_vec();
        for _ in 0..2 {
            while let Some(&end) = line.last() {
                let next = at[&key(end)].iter().copied().find(|&i| !is_used[i]);
                let Some(next) = next else { break };
                is_used[next] = true;
                let [a, b] = segments[next];
                line.push(if key(a) == key(end) { b } else { a });
            }
            line.reverse();
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(corners: &[Node]) -> f64 {
        let next = corners.iter().cycle().skip(1);
        let twice: f64 = corners.iter().zip(next).map(|(a, b)| a.0 * b.1 - b.0 * a.1).sum();
        0.5 * twice.abs()
    }

    #[test]
    fn a_circle_is_round_and_its_line_closed() {
        let (nodes, radius) = (41, 13.3);
        let value = |node: usize| {
            let (x, y) = ((node % nodes) as f64 - 20.0, (node / nodes) as f64 - 20.0);
            radius - x.hypot(y)
        };
        let classes: Vec<usize> =
            (0..nodes * nodes).map(|node| usize::from(value(node) > 0.0)).collect();
        let found = areas(nodes, &classes, &|a, b| value(a) / (value(a) - value(b)));
        assert_eq!(found.lines.len(), 1);
        let line = &found.lines[0];
        assert_eq!(line.first(), line.last());
        for (x, y) in line {
            assert!(((x - 20.0).hypot(y - 20.0) - radius).abs() < 0.02);
        }
        let inside: f64 = found.pieces.iter().filter(|p| p.0 == 1).map(|p| area(&p.1)).sum();
        let all: f64 = found.pieces.iter().map(|p| area(&p.1)).sum();
        assert!((inside - std::f64::consts::PI * radius * radius).abs() < 2.0);
        assert!((all - 1600.0).abs() < 1e-9);
    }

    #[test]
    fn three_classes_meet_in_a_point() {
        let found = areas(2, &[0, 1, 2, 1], &|_, _| 0.5);
        assert_eq!(found.pieces.len(), 3);
        let all: f64 = found.pieces.iter().map(|p| area(&p.1)).sum();
        assert!((all - 1.0).abs() < 1e-12);
        assert!(areas(3, &[4; 9], &|_, _| 0.5).lines.is_empty());
    }
}
