//! A site: it takes messages, solves and gives messages. It knows no network, no clock and no thread.
//!
//! A site merges the support vectors of its neighbours with its rows, solves, and offers its own support
//! vectors (Lu, "Kernel Optimization and Distributed Learning Algorithms for Support Vector Machines",
//! 2005, chapter 4). It never forgets a row, so that its dual objective never falls. A solve starts from
//! the best feasible point that the site knows: its own last one or one that a neighbour offered.
//!
//! No message has to arrive: what is lost is asked for again or found by the verification, which decides
//! alone whether a solution is the optimum over the rows of all sites.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::local::{LocalPoint, LocalProblem};
use super::message::{
    Address, Message, Point, Progress, ROWS_BYTES, Row, RowValues, Verification, digest,
};
use crate::context::Context;
use crate::error::{Error, Result};

/// Which rows go with an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RowExchange {
    /// None: the receiver asks for those that it lacks. The fewest rows, one more message each way.
    #[default]
    OnDemand,
    /// Those that did not cross the link yet, in either direction.
    LinkMemory,
}

/// Violators that a site sends at least, if it has them; more if the solution has more support vectors,
/// so that a verification at most doubles the problem of the elected site.
const VIOLATORS: usize = 100;

/// The settings of all sites of a training.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteSettings {
    pub(crate) exchange: RowExchange,
    /// Whether a site solves whenever it has new rows, without a request.
    pub(crate) asynchronous: bool,
    /// Whether solves start from known points.
    pub(crate) warm_start: bool,
    /// Relative change of a dual objective that counts as none.
    pub(crate) stop_tolerance: f64,
}

/// Messages to be delivered.
pub(crate) type Outbox = Vec<(Address, Message)>;

/// The functions of a solution with the rows that have coefficients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Solution {
    pub(crate) points: Vec<Point>,
    pub(crate) rows: Vec<Row>,
}

impl Solution {
    /// Checks that it has a point of every function and all rows of those, in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Message`] saying what it lacks.
    pub(crate) fn check(&self, functions: usize) -> Result<()> {
        check_points(&self.points, functions)?;
        if !self.rows.is_sorted_by(|a, b| a.id < b.id) {
            return Err(Error::message("rows in the order of their numbers", "another order"));
        }
        let numbers = self.points.iter().flat_map(|point| &point.coefficients);
        let known = |id: &u64| self.rows.binary_search_by_key(id, |row| row.id).is_ok();
        match numbers.map(|(id, _)| id).find(|id| !known(id)) {
            Some(id) => {
                Err(Error::message("all rows of a solution", format!("none of number {id}")))
            }
            None => Ok(()),
        }
    }
}

/// Checks that there is a point of every function, with finite coefficients.
fn check_points(points: &[Point], functions: usize) -> Result<()> {
    if points.len() != functions {
        let expected = format!("{functions} functions");
        return Err(Error::message(expected, format!("{}", points.len())));
    }
    let numbers = points.iter().flat_map(|point| &point.coefficients).map(|(_, value)| value);
    match numbers.copied().find(|value| !value.is_finite()) {
        Some(value) => Err(Error::message("finite coefficients", value)),
        None => Ok(()),
    }
}

/// A solution of this site that the others verify.
struct Election {
    points: Vec<Point>,
    /// Rows that took part in it.
    held: usize,
    missing: BTreeSet<u32>,
    found: Verification,
}

/// One participant with rows.
pub(crate) struct Site<P: LocalProblem> {
    problem: Arc<P>,
    index: u32,
    sites: u32,
    settings: SiteSettings,
    parents: Vec<u32>,
    children: Vec<u32>,
    table: P::Table,
    /// Its own rows are the first.
    own: usize,
    ids: Vec<u64>,
    places: HashMap<u64, usize>,
    points: Vec<Option<Point>>,
    /// Functions with rows that came after their last solution.
    stale: Vec<bool>,
    /// The last offer of every parent.
    offers: BTreeMap<u32, Vec<Point>>,
    /// Rows that both ends of a link hold, as far as this site knows.
    crossed: BTreeMap<u32, HashSet<u64>>,
    offered: Option<u32>,
    last: Option<Progress>,
    /// Pair steps and working sets of all its solutions.
    effort: (u64, u64),
    election: Option<Election>,
    /// Serial number, digest and content of the solution that it verified last.
    verified: Option<(u32, u32, Solution)>,
}

impl<P: LocalProblem> Site<P> {
    /// A site with its own rows; `links` are the sites that each site sends to.
    pub(crate) fn new(
        problem: Arc<P>,
        index: usize,
        links: &[Vec<usize>],
        table: P::Table,
        ids: Vec<u64>,
        settings: SiteSettings,
    ) -> Self {
        let parents = (0..links.len()).filter(|&from| links[from].contains(&index));
        Self {
            index: index as u32,
            sites: links.len() as u32,
            settings,
            parents: parents.map(|from| from as u32).collect(),
            children: links[index].iter().map(|&to| to as u32).collect(),
            table,
            own: ids.len(),
            places: ids.iter().enumerate().map(|(place, &id)| (id, place)).collect(),
            ids,
            points: vec![None; problem.functions()],
            stale: vec![true; problem.functions()],
            problem,
            offers: BTreeMap::new(),
            crossed: BTreeMap::new(),
            offered: None,
            last: None,
            effort: (0, 0),
            election: None,
            verified: None,
        }
    }

    /// What a site says that starts again after it lost all but its own rows.
    pub(crate) fn join(&mut self) -> Outbox {
        self.last = Some(Progress::default());
        self.parents.iter().map(|&parent| (Address::Site(parent), Message::Join)).collect()
    }

    /// Takes a solution with its rows, as of an offer, to start from.
    ///
    /// # Errors
    /// [`Error::Message`] for one of other functions.
    pub(crate) fn know(&mut self, solution: Solution) -> Result<()> {
        check_points(&solution.points, self.problem.functions())?;
        self.append(&solution.rows)?;
        self.offers.insert(self.index, solution.points);
        Ok(())
    }

    /// Takes a message.
    ///
    /// # Errors
    /// [`Error::Message`] for one that contradicts what the site knows; errors of the local solver.
    pub(crate) fn receive(
        &mut self,
        from: Address,
        message: Message,
        context: &Context,
    ) -> Result<Outbox> {
        match (from, message) {
            (Address::Coordinator, Message::Solve { round }) => match self.last {
                Some(last) if last.round == round => Ok(vec![reply(last)]),
                _ => self.work(round, context),
            },
            (Address::Coordinator, Message::Elect { serial }) => self.elect(serial, context),
            (Address::Site(from), Message::Offer { points, rows }) => {
                self.offered(from, points, &rows)
            }
            (Address::Site(from), Message::Want { ids }) => Ok(self.give(from, &ids)),
            (Address::Site(_), Message::Rows { rows }) => self.append(&rows).map(|()| Vec::new()),
            (Address::Site(from), Message::Join) => {
                self.crossed.remove(&from);
                Ok(self.offer_to(from))
            }
            (Address::Site(from), Message::Check { serial, digest, points, rows }) => {
                let reply = self.check(serial, digest, &points, &rows, context)?;
                Ok(vec![(Address::Site(from), reply)])
            }
            (Address::Site(from), message @ Message::Violators { .. }) => {
                self.violators(from, message)
            }
            (from, message) => {
                Err(Error::message(format!("a message that {from:?} may send"), kind(&message)))
            }
        }
    }

    /// What a site of an asynchronous training does when it has no messages.
    ///
    /// # Errors
    /// Those of the local solver.
    pub(crate) fn idle(&mut self, context: &Context) -> Result<Outbox> {
        match self.last {
            Some(last) if self.settings.asynchronous && self.stale.contains(&true) => {
                self.work(last.round + 1, context)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Rows that it holds.
    pub(crate) fn held(&self) -> usize {
        self.ids.len()
    }

    /// Pair steps and working sets of all its solutions.
    pub(crate) fn effort(&self) -> (u64, u64) {
        self.effort
    }

    /// Sum of its dual objectives.
    pub(crate) fn dual(&self) -> f64 {
        self.points.iter().map(|point| point.as_ref().map_or(f64::NEG_INFINITY, |p| p.dual)).sum()
    }

    /// Its last solution.
    pub(crate) fn solution(&self) -> Option<Solution> {
        Some(self.with_rows(self.points.iter().cloned().collect::<Option<_>>()?))
    }

    /// The solution of a verification, whether it was its own or that of another site.
    pub(crate) fn verified_solution(&self, serial: u32, digest: u32) -> Option<Solution> {
        match (&self.election, &self.verified) {
            (Some(own), _) if (own.found.serial, own.found.digest) == (serial, digest) => {
                Some(self.with_rows(own.points.clone()))
            }
            (_, Some((s, d, solution))) if (*s, *d) == (serial, digest) => Some(solution.clone()),
            _ => None,
        }
    }

    fn with_rows(&self, points: Vec<Point>) -> Solution {
        let ids: Vec<u64> = ids(points.iter()).into_iter().collect();
        Solution { rows: self.chunks(&ids).concat(), points }
    }

    /// Solves, offers and reports.
    fn work(&mut self, round: u32, context: &Context) -> Result<Outbox> {
        let changed = self.solve(context)?;
        let mut out = self.wants();
        let points: Vec<Point> = self.points.iter().flatten().cloned().collect();
        let digest = Some(digest(&points)?);
        if self.offered != digest {
            self.offered = digest;
            for child in self.children.clone() {
                out.extend(self.offer_to(child));
            }
        }
        let progress = Progress {
            round,
            dual: self.dual(),
            changed,
            held: self.ids.len() as u64,
            support: self.support().len() as u64,
        };
        self.last = Some(progress);
        out.push(reply(progress));
        Ok(out)
    }

    /// Solves the functions with new rows; whether a dual objective moved.
    fn solve(&mut self, context: &Context) -> Result<bool> {
        let starts: Vec<Option<Vec<(usize, f64)>>> = (0..self.points.len())
            .map(|f| self.stale[f].then(|| self.start(f).unwrap_or_default()))
            .collect();
        let solved = self.problem.solve(&self.table, &starts, context)?;
        let mut changed = false;
        for (f, point) in solved.into_iter().enumerate() {
            let Some(point) = point else { continue };
            self.effort.0 += point.outcome.iterations;
            self.effort.1 += point.outcome.blocks;
            let point = self.named(point);
            let before = self.points[f].as_ref().map(|point| point.dual);
            changed |= before.is_none_or(|dual| self.moved(dual, point.dual));
            self.points[f] = Some(point);
            self.stale[f] = false;
        }
        Ok(changed)
    }

    fn moved(&self, before: f64, after: f64) -> bool {
        before != after
            && ((after - before).abs() > self.settings.stop_tolerance * after.abs().max(1.0)
                || !before.is_finite())
    }

    /// A solution with rows named by their ids.
    fn named(&self, point: LocalPoint) -> Point {
        let mut coefficients: Vec<(u64, f64)> =
            point.coefficients.iter().map(|&(place, value)| (self.ids[place], value)).collect();
        coefficients.sort_unstable_by_key(|&(id, _)| id);
        let outcome = point.outcome;
        Point {
            coefficients,
            offset: point.offset,
            dual: outcome.dual,
            primal: outcome.primal,
            violation: outcome.violation,
            status: outcome.status,
        }
    }

    /// The best known feasible point of a function.
    fn start(&self, function: usize) -> Option<Vec<(usize, f64)>> {
        if !self.settings.warm_start {
            return None;
        }
        let own = self.points[function].as_ref();
        let offered = self.offers.values().map(|points| &points[function]);
        let complete = |point: &&Point| {
            point.dual.is_finite()
                && point.coefficients.iter().all(|(id, _)| self.places.contains_key(id))
        };
        // Of equal ones the first, the site's own.
        let best = own
            .into_iter()
            .chain(offered)
            .filter(complete)
            .reduce(|best, other| if other.dual > best.dual { other } else { best })?;
        let place = |&(id, value): &(u64, f64)| (self.places[&id], value);
        let mut start: Vec<(usize, f64)> = best.coefficients.iter().map(place).collect();
        start.sort_unstable_by_key(|&(place, _)| place);
        Some(start)
    }

    /// Ids of the rows with a coefficient in any function, ascending.
    fn support(&self) -> BTreeSet<u64> {
        ids(self.points.iter().flatten())
    }

    fn offer_to(&mut self, child: u32) -> Outbox {
        let Some(points) = self.points.iter().cloned().collect::<Option<Vec<Point>>>() else {
            return Vec::new();
        };
        let rows = match self.settings.exchange {
            RowExchange::OnDemand => Vec::new(),
            RowExchange::LinkMemory => {
                let crossed = self.crossed.entry(child).or_default();
                ids(points.iter()).into_iter().filter(|id| crossed.insert(*id)).collect()
            }
        };
        let mut chunks = self.chunks(&rows).into_iter();
        let rows = chunks.next().unwrap_or_default();
        let offer = (Address::Site(child), Message::Offer { points, rows });
        let more = chunks.map(|rows| (Address::Site(child), Message::Rows { rows }));
        std::iter::once(offer).chain(more).collect()
    }

    /// Rows of ids that it holds, in lists of bounded size.
    fn chunks(&self, ids: &[u64]) -> Vec<Vec<Row>> {
        let (mut chunks, mut bytes) = (Vec::new(), ROWS_BYTES);
        for id in ids {
            let Some(&place) = self.places.get(id) else { continue };
            let row = self.problem.row(&self.table, place, *id);
            let size = size(&row);
            if bytes + size > ROWS_BYTES {
                chunks.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            if let Some(chunk) = chunks.last_mut() {
                chunk.push(row);
            }
        }
        chunks
    }

    fn offered(&mut self, from: u32, points: Vec<Point>, rows: &[Row]) -> Result<Outbox> {
        check_points(&points, self.problem.functions())?;
        self.append(rows)?;
        self.crossed.entry(from).or_default().extend(ids(points.iter()));
        let wanted = self.lacking(&points);
        self.offers.insert(from, points);
        Ok(wanted.map(|message| (Address::Site(from), message)).into_iter().collect())
    }

    /// Asks again for rows of offers that did not come.
    fn wants(&self) -> Outbox {
        let offers = self.offers.iter();
        offers
            .filter_map(|(&from, points)| Some((Address::Site(from), self.lacking(points)?)))
            .collect()
    }

    fn lacking(&self, points: &[Point]) -> Option<Message> {
        let ids = ids(points.iter()).into_iter().filter(|id| !self.places.contains_key(id));
        let ids: Vec<u64> = ids.collect();
        (!ids.is_empty()).then_some(Message::Want { ids })
    }

    fn give(&mut self, to: u32, ids: &[u64]) -> Outbox {
        self.crossed.entry(to).or_default().extend(ids);
        let chunks = self.chunks(ids).into_iter();
        chunks.map(|rows| (Address::Site(to), Message::Rows { rows })).collect()
    }

    /// Adds rows that are new.
    fn append(&mut self, rows: &[Row]) -> Result<()> {
        let mut new: Vec<Row> = Vec::new();
        let mut seen = HashSet::new();
        for row in rows {
            match self.places.get(&row.id) {
                Some(&place)
                    if self.problem.label(&self.table, place) != (row.label, row.weight) =>
                {
                    let expected = format!("row {} with the label and weight known here", row.id);
                    return Err(Error::message(expected, format!("label {}", row.label)));
                }
                Some(_) => {}
                None if seen.insert(row.id) => new.push(row.clone()),
                None => {}
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.problem.append(&mut self.table, &new)?;
        for row in &new {
            self.places.insert(row.id, self.ids.len());
            self.ids.push(row.id);
            for (f, stale) in self.stale.iter_mut().enumerate() {
                *stale |= self.problem.takes(f, row.label);
            }
        }
        Ok(())
    }

    /// Sends its solution to all others, or once more to those that have not replied.
    fn elect(&mut self, serial: u32, context: &Context) -> Result<Outbox> {
        if self.election.as_ref().is_none_or(|election| election.found.serial != serial) {
            self.solve(context)?;
            let points: Vec<Point> = self.points.iter().flatten().cloned().collect();
            let missing: BTreeSet<u32> = (0..self.sites).filter(|&s| s != self.index).collect();
            let digest = digest(&points)?;
            let found = Verification { serial, digest, ..Verification::default() };
            self.election = Some(Election { points, held: self.ids.len(), missing, found });
        }
        let Some(election) = &self.election else { return Ok(Vec::new()) };
        let Solution { points, rows } = self.with_rows(election.points.clone());
        let check = Message::Check { serial, digest: election.found.digest, points, rows };
        let checks = election.missing.iter().map(|&site| (Address::Site(site), check.clone()));
        let mut out: Outbox = checks.collect();
        out.extend(self.verification());
        Ok(out)
    }

    fn verification(&self) -> Option<(Address, Message)> {
        let election = self.election.as_ref()?;
        let missing = election.missing.iter().copied().collect();
        let found = Verification { missing, ..election.found.clone() };
        Some((Address::Coordinator, Message::Checked(found)))
    }

    /// Tests its own rows against the solution of another site.
    fn check(
        &mut self,
        serial: u32,
        digest: u32,
        points: &[Point],
        rows: &[Row],
        context: &Context,
    ) -> Result<Message> {
        check_points(points, self.problem.functions())?;
        self.verified =
            Some((serial, digest, Solution { points: points.to_vec(), rows: rows.to_vec() }));
        let mut support = self.problem.empty();
        self.problem.append(&mut support, rows)?;
        let places: HashMap<u64, usize> = rows.iter().enumerate().map(|(p, r)| (r.id, p)).collect();
        let place = |(id, value): &(u64, f64)| match places.get(id) {
            Some(&place) => Ok((place, *value)),
            None => {
                Err(Error::message("the rows of every coefficient", format!("row {id} missing")))
            }
        };
        let coefficients = points
            .iter()
            .map(|point| point.coefficients.iter().map(place).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>()?;
        let own = 0..self.own;
        let values = self.problem.values(&support, &coefficients, &self.table, own, context)?;
        let (mut largest, mut loss, mut found) = (0.0_f64, 0.0, Vec::new());
        for place in 0..self.own {
            let (label, weight) = self.problem.label(&self.table, place);
            let mut worst = 0.0_f64;
            for (f, point) in points.iter().enumerate() {
                let has = |id: &u64| point.coefficients.binary_search_by_key(id, |c| c.0).is_ok();
                if weight == 0.0 || !self.problem.takes(f, label) || has(&self.ids[place]) {
                    continue;
                }
                let value = values[place * points.len() + f] - point.offset;
                let slack = self.problem.slack(f, label, value);
                // Not a number would be no proof.
                let slack = if slack.is_nan() { f64::INFINITY } else { slack.max(0.0) };
                loss += self.problem.row_loss(label, weight, slack);
                worst = worst.max(slack);
            }
            largest = largest.max(worst);
            if worst > self.problem.tolerance() {
                found.push((worst, place));
            }
        }
        let count = found.len() as u64;
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        found.truncate(VIOLATORS.max(rows.len()));
        let row =
            |&(_, place): &(f64, usize)| self.problem.row(&self.table, place, self.ids[place]);
        let rows = found.iter().map(row).collect();
        Ok(Message::Violators { serial, digest, count, largest, loss, rows })
    }

    /// Takes what another site found.
    fn violators(&mut self, from: u32, message: Message) -> Result<Outbox> {
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

fn reply(progress: Progress) -> (Address, Message) {
    (Address::Coordinator, Message::Solved(progress))
}

fn ids<'a>(points: impl Iterator<Item = &'a Point>) -> BTreeSet<u64> {
    points.flat_map(|point| point.coefficients.iter().map(|&(id, _)| id)).collect()
}

/// About how many bytes a row takes in a message.
fn size(row: &Row) -> usize {
    const OVERHEAD: usize = 32;
    OVERHEAD
        + match &row.values {
            RowValues::DenseF32(values) => 4 * values.len(),
            RowValues::DenseF64(values) => 8 * values.len(),
            RowValues::SparseF32(indices, _) => 9 * indices.len(),
            RowValues::SparseF64(indices, _) => 13 * indices.len(),
        }
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::Solve { .. } => "an order to solve",
        Message::Solved(_) => "a report",
        Message::Offer { .. } => "an offer",
        Message::Want { .. } => "a request for rows",
        Message::Rows { .. } => "rows",
        Message::Join => "a request to join",
        Message::Elect { .. } => "an election",
        Message::Check { .. } => "a solution to verify",
        Message::Violators { .. } => "violators",
        Message::Checked(_) => "a verification",
    }
}
