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

use super::local::LocalProblem;
use super::message::{
    Address, Message, Point, Progress, ROWS_BYTES, Row, RowValues, StartPoint, digest,
};
use super::verify::{Election, PendingCheck, VerifiedSolution};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::machine::{KnownValues, LocalStart, SolvedDual};

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

/// Share by which the objective of an offered point has to be better than that of the site's own for the site to
/// start from it. One that is better by less saves less than the values of the own point, which are known.
const START_GAIN: f64 = 0.1;

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
pub(super) fn check_points(points: &[Point], functions: usize) -> Result<()> {
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

/// What a neighbour said of its last solution.
#[derive(Default)]
struct Offered {
    duals: Vec<f64>,
    /// Its support vectors.
    ids: Vec<u64>,
}

/// One participant with rows.
pub(crate) struct Site<P: LocalProblem> {
    pub(super) problem: Arc<P>,
    pub(super) index: u32,
    pub(super) sites: u32,
    settings: SiteSettings,
    parents: Vec<u32>,
    children: Vec<u32>,
    pub(super) table: P::Table,
    /// Its own rows are the first.
    pub(super) own: usize,
    pub(super) ids: Vec<u64>,
    pub(super) places: HashMap<u64, usize>,
    pub(super) points: Vec<Option<Point>>,
    /// The values of its points on its rows.
    pub(super) known: Vec<Option<KnownValues>>,
    /// Functions with rows that came after their last solution.
    stale: Vec<bool>,
    /// The last offer of every parent.
    offers: BTreeMap<u32, Offered>,
    /// Whether an offer came that it has asked nothing about yet.
    has_new_offers: bool,
    /// The best point that neighbours sent, for each function.
    starts: Vec<Option<StartPoint>>,
    /// Rows that another site has, as far as this site knows.
    pub(super) crossed: BTreeMap<u32, HashSet<u64>>,
    offered: Option<u32>,
    last: Option<Progress>,
    /// Pair steps and working sets of all its solutions.
    effort: (u64, u64),
    /// Rows that it has sent.
    sent: u64,
    pub(super) election: Option<Election>,
    pub(super) pending: Option<PendingCheck>,
    /// The solution that it verified last.
    pub(super) verified: Option<VerifiedSolution>,
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
            known: vec![None; problem.functions()],
            stale: vec![true; problem.functions()],
            starts: vec![None; problem.functions()],
            problem,
            offers: BTreeMap::new(),
            has_new_offers: false,
            crossed: BTreeMap::new(),
            offered: None,
            last: None,
            effort: (0, 0),
            sent: 0,
            election: None,
            pending: None,
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
        for (function, point) in solution.points.into_iter().enumerate() {
            let Point { coefficients, dual, .. } = point;
            self.starts[function] =
                Some(StartPoint { function: function as u32, dual, coefficients });
        }
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
            (Address::Site(from), Message::Offer { duals, ids, rows }) => {
                self.take_offer(from, duals, ids, &rows).map(|()| Vec::new())
            }
            (Address::Site(from), Message::Want { ids, functions }) => {
                Ok(self.give(from, &ids, &functions))
            }
            (Address::Site(_), Message::Rows { starts, rows }) => {
                self.take_rows(starts, &rows).map(|()| Vec::new())
            }
            (Address::Site(from), Message::Join) => {
                self.crossed.remove(&from);
                Ok(self.offer_to(from))
            }
            (Address::Site(from), Message::Check { serial, digest, points, rows }) => {
                self.begin_check(from, serial, digest, points, rows, context)
            }
            (Address::Site(from), Message::CheckRows { serial, rows }) => {
                self.go_on_checking(from, serial, rows, context)
            }
            (Address::Site(from), Message::CheckWant { serial, ids }) => {
                Ok(self.give_to_check(from, serial, &ids))
            }
            (Address::Site(from), message @ Message::Violators { .. }) => {
                self.violators(from, message)
            }
            (from, message) => {
                Err(Error::message(format!("a message that {from:?} may send"), kind(&message)))
            }
        }
    }

    /// What it asks its neighbours after offers have come: every row that it lacks of one of them.
    pub(crate) fn requests(&mut self) -> Outbox {
        match std::mem::take(&mut self.has_new_offers) {
            true => self.wants(),
            false => Vec::new(),
        }
    }

    /// Counts the rows of messages that go out.
    pub(crate) fn count_sent(&mut self, out: &Outbox) {
        self.sent += out.iter().map(|(_, message)| message.rows().len() as u64).sum::<u64>();
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
        if let Some(own) = &self.election
            && (own.found.serial, own.found.digest) == (serial, digest)
        {
            return Some(self.with_rows(own.points.clone()));
        }
        let verified = self.verified.as_ref();
        let of_other = verified.filter(|v| (v.serial, v.digest) == (serial, digest));
        of_other.map(|verified| verified.solution.clone())
    }

    pub(super) fn with_rows(&self, points: Vec<Point>) -> Solution {
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
            sent: self.sent,
            steps: self.effort.0,
        };
        self.last = Some(progress);
        out.push(reply(progress));
        Ok(out)
    }

    /// Solves the functions with new rows; whether a dual objective moved.
    pub(super) fn solve(&mut self, context: &Context) -> Result<bool> {
        let starts: Vec<Option<LocalStart<'_>>> = (0..self.points.len())
            .map(|f| self.stale[f].then(|| self.start(f).unwrap_or_default()))
            .collect();
        let solved = self.problem.solve(&self.table, &starts, context)?;
        let mut changed = false;
        for (f, point) in solved.into_iter().enumerate() {
            let Some(point) = point else { continue };
            self.effort.0 += point.outcome.iterations;
            self.effort.1 += point.outcome.blocks;
            let (point, known) = self.named(point);
            let before = self.points[f].as_ref().map(|point| point.dual);
            changed |= before.is_none_or(|dual| self.moved(dual, point.dual));
            (self.points[f], self.known[f]) = (Some(point), known);
            self.stale[f] = false;
        }
        Ok(changed)
    }

    fn moved(&self, before: f64, after: f64) -> bool {
        before != after
            && ((after - before).abs() > self.settings.stop_tolerance * after.abs().max(1.0)
                || !before.is_finite())
    }

    /// A solution with rows named by their ids, and its values.
    fn named(&self, solved: SolvedDual) -> (Point, Option<KnownValues>) {
        let SolvedDual { coefficients, offset, outcome, known } = solved;
        let mut coefficients: Vec<(u64, f64)> =
            coefficients.into_iter().map(|(place, value)| (self.ids[place], value)).collect();
        coefficients.sort_unstable_by_key(|&(id, _)| id);
        let norm = match &known {
            Some(known) => known.norm,
            None if coefficients.is_empty() => 0.0,
            None => f64::NAN,
        };
        let point = Point {
            coefficients,
            offset,
            norm,
            dual: outcome.dual,
            primal: outcome.primal,
            violation: outcome.violation,
            status: outcome.status,
        };
        (point, known)
    }

    /// The best known feasible point of a function.
    fn start(&self, function: usize) -> Option<LocalStart<'_>> {
        if !self.settings.warm_start {
            return None;
        }
        let has_rows = |coefficients: &[(u64, f64)]| {
            coefficients.iter().all(|(id, _)| self.places.contains_key(id))
        };
        let own = self.points[function].as_ref().filter(|point| point.dual.is_finite());
        let least = own.map_or(f64::NEG_INFINITY, |own| worth_starting(own.dual));
        let other = self.starts[function].as_ref();
        let other = other.filter(|start| start.dual > least && has_rows(&start.coefficients));
        let (coefficients, known) = match (other, own) {
            (Some(other), _) => (&other.coefficients, None),
            (None, own) => (&own?.coefficients, self.known[function].as_ref()),
        };
        let place = |&(id, value): &(u64, f64)| (self.places[&id], value);
        let mut coefficients: Vec<(usize, f64)> = coefficients.iter().map(place).collect();
        coefficients.sort_unstable_by_key(|&(place, _)| place);
        Some(LocalStart { coefficients, known })
    }

    /// Ids of the rows with a coefficient in any function, ascending.
    fn support(&self) -> BTreeSet<u64> {
        ids(self.points.iter().flatten())
    }

    fn offer_to(&mut self, child: u32) -> Outbox {
        let duals = self.points.iter().map(|point| point.as_ref().map(|point| point.dual));
        let Some(duals) = duals.collect::<Option<Vec<f64>>>() else {
            return Vec::new();
        };
        let ids: Vec<u64> = self.support().into_iter().collect();
        let rows = match self.settings.exchange {
            RowExchange::OnDemand => Vec::new(),
            RowExchange::LinkMemory => {
                let crossed = self.crossed.entry(child).or_default();
                ids.iter().copied().filter(|id| crossed.insert(*id)).collect()
            }
        };
        let mut chunks = self.chunks(&rows).into_iter();
        let rows = chunks.next().unwrap_or_default();
        let offer = (Address::Site(child), Message::Offer { duals, ids, rows });
        let more =
            chunks.map(|rows| (Address::Site(child), Message::Rows { starts: Vec::new(), rows }));
        std::iter::once(offer).chain(more).collect()
    }

    /// Rows of ids that it holds, in lists of bounded size.
    pub(super) fn chunks(&self, ids: &[u64]) -> Vec<Vec<Row>> {
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

    fn take_offer(
        &mut self,
        from: u32,
        duals: Vec<f64>,
        ids: Vec<u64>,
        rows: &[Row],
    ) -> Result<()> {
        let functions = self.problem.functions();
        if duals.len() != functions {
            return Err(Error::message(format!("{functions} functions"), duals.len()));
        }
        self.append(rows)?;
        self.crossed.entry(from).or_default().extend(&ids);
        self.offers.insert(from, Offered { duals, ids });
        self.has_new_offers = true;
        Ok(())
    }

    /// Takes what it asked for.
    fn take_rows(&mut self, starts: Vec<StartPoint>, rows: &[Row]) -> Result<()> {
        let functions = self.problem.functions();
        for start in starts {
            let Some(best) = self.starts.get_mut(start.function as usize) else {
                return Err(Error::message(format!("{functions} functions"), start.function));
            };
            if start.coefficients.iter().any(|(_, value)| !value.is_finite()) {
                return Err(Error::message("finite coefficients", "others"));
            }
            if best.as_ref().is_none_or(|best| start.dual > best.dual) {
                *best = Some(start);
            }
        }
        self.append(rows)
    }

    /// Asks for rows of offers that it lacks and for points that it would start from, each from one
    /// neighbour.
    fn wants(&self) -> Outbox {
        let mut asked = HashSet::new();
        let mut wanted: BTreeMap<u32, (Vec<u64>, Vec<u32>)> = BTreeMap::new();
        for (&from, offer) in &self.offers {
            let lacking = offer.ids.iter().copied().filter(|id| !self.places.contains_key(id));
            let ids: Vec<u64> = lacking.filter(|id| asked.insert(*id)).collect();
            if !ids.is_empty() {
                wanted.entry(from).or_default().0 = ids;
            }
        }
        for function in 0..self.points.len() {
            if let Some(from) = self.best_offer(function) {
                wanted.entry(from).or_default().1.push(function as u32);
            }
        }
        let message =
            |(from, (ids, functions))| (Address::Site(from), Message::Want { ids, functions });
        wanted.into_iter().map(message).collect()
    }

    /// The neighbour whose point this site would start from and does not have.
    fn best_offer(&self, function: usize) -> Option<u32> {
        if !self.settings.warm_start {
            return None;
        }
        let own = self.points[function].as_ref().map(|point| point.dual);
        let least = own.filter(|dual| dual.is_finite()).map_or(0.0, worth_starting);
        let have = self.starts[function].as_ref().map_or(f64::NEG_INFINITY, |start| start.dual);
        let best = self.offers.iter().reduce(|best, other| {
            if other.1.duals[function] > best.1.duals[function] { other } else { best }
        })?;
        (best.1.duals[function] > least.max(have)).then_some(*best.0)
    }

    fn give(&mut self, to: u32, ids: &[u64], functions: &[u32]) -> Outbox {
        self.crossed.entry(to).or_default().extend(ids);
        let start = |&function: &u32| {
            let point = self.points.get(function as usize)?.as_ref()?;
            let (dual, coefficients) = (point.dual, point.coefficients.clone());
            Some(StartPoint { function, dual, coefficients })
        };
        let mut starts: Vec<StartPoint> = functions.iter().filter_map(start).collect();
        let mut chunks = self.chunks(ids);
        if chunks.is_empty() && !starts.is_empty() {
            chunks.push(Vec::new());
        }
        let message = |rows| {
            let starts = std::mem::take(&mut starts);
            (Address::Site(to), Message::Rows { starts, rows })
        };
        chunks.into_iter().map(message).collect()
    }

    /// Adds rows that are new.
    pub(super) fn append(&mut self, rows: &[Row]) -> Result<()> {
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
}

/// The objective from which on a point is worth starting from in the place of one with this objective.
fn worth_starting(dual: f64) -> f64 {
    dual + START_GAIN * dual.abs()
}

fn reply(progress: Progress) -> (Address, Message) {
    (Address::Coordinator, Message::Solved(progress))
}

pub(super) fn ids<'a>(points: impl Iterator<Item = &'a Point>) -> BTreeSet<u64> {
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
        Message::CheckWant { .. } => "a request for rows of a solution to verify",
        Message::CheckRows { .. } => "rows of a solution to verify",
        Message::Violators { .. } => "violators",
        Message::Checked(_) => "a verification",
    }
}
