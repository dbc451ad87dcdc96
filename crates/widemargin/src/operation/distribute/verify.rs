//! The verification of a solution: the elected site sends it to all others, every site tests its own rows, and
//! rows that violate it go to the elected site.
//!
//! A site knows the values of its own last solution w on its rows. On a row x the solution w′ to be
//! verified differs from it by at most ‖w − w′‖ √k(x, x), so that kernel values are computed only of rows whose
//! constraint this bound leaves open.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::local::LocalProblem;
use super::message::{Address, Message, Point, Row, Verification, digest};
use super::site::{Outbox, Site, Solution, check_points, ids};
use crate::context::Context;
use crate::error::Result;
use crate::machine::{KnownValues, distance};

/// Violators that a site sends at least, if it has them; more if the solution has more support vectors,
/// so that a verification at most doubles the problem of the elected site.
const VIOLATORS: usize = 100;

/// A solution of this site that the others verify.
pub(super) struct Election {
    pub(super) points: Vec<Point>,
    /// Rows that took part in it.
    held: usize,
    missing: BTreeSet<u32>,
    pub(super) found: Verification,
}

/// A solution of another site of which rows are on their way.
pub(super) struct PendingCheck {
    from: u32,
    serial: u32,
    digest: u32,
    points: Vec<Point>,
    rows: HashMap<u64, Row>,
}

/// A solution of another site that was verified.
pub(super) struct VerifiedSolution {
    pub(super) serial: u32,
    pub(super) digest: u32,
    pub(super) solution: Solution,
    /// What was found.
    reply: Message,
}

/// Rows whose values have to be computed: for every function places.
type OpenRows = Vec<Vec<usize>>;

impl<P: LocalProblem> Site<P> {
    /// Sends its solution to all others, or once more to those that have not replied.
    pub(super) fn elect(&mut self, serial: u32, context: &Context) -> Result<Outbox> {
        if self.election.as_ref().is_none_or(|election| election.found.serial != serial) {
            self.solve(context)?;
            let points: Vec<Point> = self.points.iter().flatten().cloned().collect();
            let missing: BTreeSet<u32> = (0..self.sites).filter(|&s| s != self.index).collect();
            let digest = digest(&points)?;
            let found = Verification { serial, digest, ..Verification::default() };
            self.election = Some(Election { points, held: self.ids.len(), missing, found });
        }
        let Some(election) = &self.election else { return Ok(Vec::new()) };
        let support = ids(election.points.iter());
        let (points, digest) = (election.points.clone(), election.found.digest);
        let mut out = Vec::new();
        for site in election.missing.clone() {
            let known = self.crossed.entry(site).or_default();
            let lacking: Vec<u64> =
                support.iter().copied().filter(|id| !known.contains(id)).collect();
            // The site keeps them, to verify the next solution.
            known.extend(&lacking);
            let mut chunks = self.chunks(&lacking).into_iter();
            let (points, rows) = (points.clone(), chunks.next().unwrap_or_default());
            let check = Message::Check { serial, digest, points, rows };
            let more = chunks.map(|rows| Message::CheckRows { serial, rows });
            let messages = std::iter::once(check).chain(more);
            out.extend(messages.map(|message| (Address::Site(site), message)));
        }
        out.extend(self.verification());
        Ok(out)
    }

    fn verification(&self) -> Option<(Address, Message)> {
        let election = self.election.as_ref()?;
        let missing = election.missing.iter().copied().collect();
        let found = Verification { missing, ..election.found.clone() };
        Some((Address::Coordinator, Message::Checked(found)))
    }

    /// Rows of its solution that another site lacks.
    pub(super) fn give_to_check(&self, to: u32, serial: u32, ids: &[u64]) -> Outbox {
        let chunks = self.chunks(ids).into_iter();
        chunks.map(|rows| (Address::Site(to), Message::CheckRows { serial, rows })).collect()
    }

    /// Takes a solution to verify.
    pub(super) fn begin_check(
        &mut self,
        from: u32,
        serial: u32,
        digest: u32,
        points: Vec<Point>,
        rows: Vec<Row>,
        context: &Context,
    ) -> Result<Outbox> {
        check_points(&points, self.problem.functions())?;
        if let Some(verified) = &self.verified
            && (verified.serial, verified.digest) == (serial, digest)
        {
            return Ok(vec![(Address::Site(from), verified.reply.clone())]);
        }
        let pending = self.pending.take();
        let earlier = pending.filter(|p| (p.serial, p.digest) == (serial, digest));
        let mut known = earlier.map_or_else(HashMap::new, |pending| pending.rows);
        known.extend(rows.into_iter().map(|row| (row.id, row)));
        self.pending = Some(PendingCheck { from, serial, digest, points, rows: known });
        let missing = self.missing();
        if missing.is_empty() {
            return self.finish_check(context);
        }
        Ok(vec![(Address::Site(from), Message::CheckWant { serial, ids: missing })])
    }

    /// Takes rows of the solution to verify.
    pub(super) fn go_on_checking(
        &mut self,
        from: u32,
        serial: u32,
        rows: Vec<Row>,
        context: &Context,
    ) -> Result<Outbox> {
        match &mut self.pending {
            Some(pending) if (pending.from, pending.serial) == (from, serial) => {
                pending.rows.extend(rows.into_iter().map(|row| (row.id, row)));
            }
            _ => return Ok(Vec::new()),
        }
        match self.missing().is_empty() {
            true => self.finish_check(context),
            false => Ok(Vec::new()),
        }
    }

    /// Rows of the solution to verify that are not here.
    fn missing(&self) -> Vec<u64> {
        let Some(pending) = &self.pending else { return Vec::new() };
        let here = |id: &u64| {
            self.places.contains_key(id)
                || pending.rows.contains_key(id)
                || self.verified_row(*id).is_some()
        };
        ids(pending.points.iter()).into_iter().filter(|id| !here(id)).collect()
    }

    /// A row of the solution that it verified last.
    fn verified_row(&self, id: u64) -> Option<&Row> {
        let rows = &self.verified.as_ref()?.solution.rows;
        rows.binary_search_by_key(&id, |row| row.id).ok().map(|at| &rows[at])
    }

    /// Tests its own rows against the solution, all rows of which are here.
    fn finish_check(&mut self, context: &Context) -> Result<Outbox> {
        let Some(pending) = self.pending.take() else { return Ok(Vec::new()) };
        let PendingCheck { from, serial, digest, points, mut rows } = pending;
        let row = |id: u64| match self.places.get(&id) {
            Some(&place) => Some(self.problem.row(&self.table, place, id)),
            None => rows.remove(&id).or_else(|| self.verified_row(id).cloned()),
        };
        let rows: Vec<Row> = ids(points.iter()).into_iter().filter_map(row).collect();
        let solution = Solution { points, rows };
        let reply = self.check(serial, digest, &solution, context)?;
        let out = vec![(Address::Site(from), reply.clone())];
        self.verified = Some(VerifiedSolution { serial, digest, solution, reply });
        Ok(out)
    }

    /// Tests its own rows against the solution of another site.
    fn check(
        &self,
        serial: u32,
        digest: u32,
        solution: &Solution,
        context: &Context,
    ) -> Result<Message> {
        let points = &solution.points;
        let mut support = self.problem.empty();
        self.problem.append(&mut support, &solution.rows)?;
        let places: HashMap<u64, usize> =
            solution.rows.iter().enumerate().map(|(place, row)| (row.id, place)).collect();
        let coefficients: Vec<Vec<(usize, f64)>> = points
            .iter()
            .map(|point| point.coefficients.iter().map(|(id, value)| (places[id], *value)))
            .map(Iterator::collect)
            .collect();
        let mut open = Vec::new();
        for (f, point) in points.iter().enumerate() {
            let moved = self.distance_to(f, point, &support, &coefficients[f], context)?;
            open.push(self.open_rows(f, point, moved));
        }
        let (mut loss, mut worst) = (0.0, vec![0.0_f64; self.own]);
        for (f, values) in
            self.values_of(&support, &coefficients, &open, context)?.into_iter().enumerate()
        {
            for (&place, value) in open[f].iter().zip(values) {
                let (label, weight) = self.problem.label(&self.table, place);
                let slack = self.problem.slack(f, label, value - points[f].offset);
                // Not a number would be no proof.
                let slack = if slack.is_nan() { f64::INFINITY } else { slack.max(0.0) };
                loss += self.problem.row_loss(label, weight, slack);
                worst[place] = worst[place].max(slack);
            }
        }
        let largest = worst.iter().copied().fold(0.0, f64::max);
        let violates = |&place: &usize| worst[place] > self.problem.tolerance();
        let mut found: Vec<usize> = (0..self.own).filter(violates).collect();
        let count = found.len() as u64;
        found.sort_by(|&a, &b| worst[b].total_cmp(&worst[a]).then(a.cmp(&b)));
        found.truncate(VIOLATORS.max(solution.rows.len()));
        let row = |place: usize| self.problem.row(&self.table, place, self.ids[place]);
        let rows = found.into_iter().map(row).collect();
        Ok(Message::Violators { serial, digest, count, largest, loss, rows })
    }

    /// ‖w − w′‖ at most, of its own function and that of a point; infinite where it is not known.
    fn distance_to(
        &self,
        function: usize,
        point: &Point,
        support: &P::Table,
        coefficients: &[(usize, f64)],
        context: &Context,
    ) -> Result<f64> {
        let (Some(own), Some(known)) = (&self.points[function], &self.known[function]) else {
            return Ok(f64::INFINITY);
        };
        if !self.problem.is_semidefinite() || !point.norm.is_finite() {
            return Ok(f64::INFINITY);
        }
        let (mut product, mut unknown) = (0.0, Vec::new());
        for ((id, value), &(place, _)) in point.coefficients.iter().zip(coefficients) {
            let here = self.places.get(id).and_then(|&place| known.of(place));
            match here.filter(|row| row.error == 0.0) {
                Some(row) => product += value * row.value,
                None => unknown.push((place, *value)),
            }
        }
        if 2 * unknown.len() > coefficients.len() {
            return Ok(f64::INFINITY);
        }
        let rows: Vec<usize> = unknown.iter().map(|&(place, _)| place).collect();
        if !rows.is_empty() {
            let values = self.own_values(function, own, support, &rows, context)?;
            product += unknown.iter().zip(values).map(|((_, c), value)| c * value).sum::<f64>();
        }
        Ok(distance(known.norm, point.norm, product))
    }

    /// The values of its own function on rows of a table.
    fn own_values(
        &self,
        function: usize,
        own: &Point,
        table: &P::Table,
        rows: &[usize],
        context: &Context,
    ) -> Result<Vec<f64>> {
        let ids: Vec<u64> = own.coefficients.iter().map(|&(id, _)| id).collect();
        let mut support = self.problem.empty();
        self.problem.append(&mut support, &self.chunks(&ids).concat())?;
        let mut coefficients = vec![Vec::new(); self.points.len()];
        coefficients[function] =
            own.coefficients.iter().enumerate().map(|(place, c)| (place, c.1)).collect();
        let values = self.problem.values(&support, &coefficients, table, rows, context)?;
        Ok(values.into_iter().skip(function).step_by(self.points.len()).collect())
    }

    /// Its own rows without a coefficient whose constraint may not hold at a point this far away.
    fn open_rows(&self, function: usize, point: &Point, moved: f64) -> Vec<usize> {
        let known = self.known[function].as_ref().filter(|_| moved.is_finite());
        let support: HashSet<u64> = point.coefficients.iter().map(|&(id, _)| id).collect();
        let is_open = |&place: &usize| {
            let (label, weight) = self.problem.label(&self.table, place);
            if weight == 0.0
                || !self.problem.takes(function, label)
                || support.contains(&self.ids[place])
            {
                return false;
            }
            let Some(row) = known.and_then(|known: &KnownValues| known.of(place)) else {
                return true;
            };
            let (value, radius) = (row.value - point.offset, row.error + moved * row.length);
            let slack = |value: f64| self.problem.slack(function, label, value);
            // Constraints are convex in the value; what is not a number proves nothing.
            !(slack(value - radius) <= 0.0 && slack(value + radius) <= 0.0)
        };
        (0..self.own).filter(is_open).collect()
    }

    /// The values of every function on its open rows: function by function, or of all functions together
    /// where that takes fewer kernel values.
    fn values_of(
        &self,
        support: &P::Table,
        coefficients: &[Vec<(usize, f64)>],
        open: &OpenRows,
        context: &Context,
    ) -> Result<Vec<Vec<f64>>> {
        let functions = coefficients.len();
        let union: BTreeSet<usize> = open.iter().flatten().copied().collect();
        let vectors: HashSet<usize> = coefficients.iter().flatten().map(|c| c.0).collect();
        let alone: usize = open.iter().zip(coefficients).map(|(o, c)| o.len() * c.len()).sum();
        if alone >= union.len() * vectors.len() {
            let rows: Vec<usize> = union.into_iter().collect();
            let values = self.problem.values(support, coefficients, &self.table, &rows, context)?;
            let at = |place: usize| rows.partition_point(|&other| other < place);
            let of = |(f, open): (usize, &Vec<usize>)| {
                open.iter().map(|&place| values[at(place) * functions + f]).collect()
            };
            return Ok(open.iter().enumerate().map(of).collect());
        }
        let of = |(f, open): (usize, &Vec<usize>)| -> Result<Vec<f64>> {
            let mut own = vec![Vec::new(); functions];
            own[f].clone_from(&coefficients[f]);
            let values = self.problem.values(support, &own, &self.table, open, context)?;
            Ok(values.into_iter().skip(f).step_by(functions).collect())
        };
        open.iter().enumerate().map(of).collect()
    }

    /// Takes what another site found.
    pub(super) fn violators(&mut self, from: u32, message: Message) -> Result<Outbox> {
        let Message::Violators { serial, digest, count, largest, loss, rows } = message else {
            return Ok(Vec::new());
        };
        self.append(&rows)?;
        let Some(election) = &mut self.election else { return Ok(Vec::new()) };
        let current = (election.found.serial, election.found.digest) == (serial, digest);
        if !current || !election.missing.remove(&from) {
            return Ok(Vec::new());
        }
        let new = rows.iter().filter(|row| self.places[&row.id] >= election.held).count();
        let found = &mut election.found;
        found.violators += count;
        found.gained += new as u64;
        found.largest = found.largest.max(largest);
        found.loss += loss;
        match election.missing.is_empty() {
            true => Ok(self.verification().into_iter().collect()),
            false => Ok(Vec::new()),
        }
    }
}
