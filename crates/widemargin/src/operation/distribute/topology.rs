//! Which sites send support vectors to which.
//!
//! A directed graph that has to be strongly connected: only then does what any site knows reach every
//! other one.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::numeric::random::Generator;

/// The directed links between sites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Topology {
    /// Every site sends to every other.
    #[default]
    Full,
    /// Every site sends to the next, the last one to the first: the fewest links there can be.
    Ring,
    /// A ring in random order and further links, all equally likely.
    RandomStrong {
        /// Number of links.
        links: usize,
    },
    /// A binary tree; parents and children send to each other.
    Tree,
    /// The links (from, to), sites counted from 0.
    Custom(Vec<(usize, usize)>),
}

impl Topology {
    /// The sites that each of `sites` sites sends to, ascending; `seed` decides random links.
    ///
    /// # Errors
    /// [`Error::Parameter`] for links that do not exist or a graph that is not strongly connected; the
    /// message lists its strongly connected components.
    pub fn links(&self, sites: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
        let mut out = vec![Vec::new(); sites];
        match self {
            Self::Full => {
                for (from, to) in out.iter_mut().enumerate() {
                    to.extend((0..sites).filter(|to| *to != from));
                }
            }
            Self::Ring => add_ring(&mut out, &(0..sites).collect::<Vec<_>>()),
            Self::RandomStrong { links } => random(&mut out, *links, seed)?,
            Self::Tree => {
                for child in 1..sites {
                    let parent = (child - 1) / 2;
                    out[parent].push(child);
                    out[child].push(parent);
                }
            }
            Self::Custom(links) => custom(&mut out, links)?,
        }
        out.iter_mut().for_each(|to| to.sort_unstable());
        let components = components(&out);
        if components.len() > 1 {
            let list = |sites: &Vec<usize>| {
                let names: Vec<String> = sites.iter().map(ToString::to_string).collect();
                format!("{{{}}}", names.join(", "))
            };
            let lists: Vec<String> = components.iter().map(list).collect();
            let found = format!("the strongly connected components {}", lists.join(", "));
            return Err(Error::parameter("topology", "a strongly connected graph", found));
        }
        Ok(out)
    }
}

impl FromStr for Topology {
    type Err = Error;

    /// Reads `full`, `ring`, `tree`, `random:LINKS` or links such as `0>1,1>0`.
    fn from_str(text: &str) -> Result<Self> {
        let custom = || -> Option<Vec<(usize, usize)>> {
            let link = |link: &str| {
                let (from, to) = link.split_once('>')?;
                Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
            };
            text.split(',').map(link).collect()
        };
        match text {
            "full" => Ok(Self::Full),
            "ring" => Ok(Self::Ring),
            "tree" => Ok(Self::Tree),
            _ => match text.strip_prefix("random:").map(str::parse) {
                Some(Ok(links)) => Ok(Self::RandomStrong { links }),
                None if text.contains('>') => custom().map(Self::Custom).ok_or(()),
                _ => Err(()),
            }
            .map_err(|()| {
                let expected = "full, ring, tree, random:LINKS or links such as 0>1,1>2,2>0";
                Error::parameter("topology", expected, text)
            }),
        }
    }
}

fn add_ring(out: &mut [Vec<usize>], order: &[usize]) {
    if order.len() > 1 {
        for (place, &site) in order.iter().enumerate() {
            out[site].push(order[(place + 1) % order.len()]);
        }
    }
}

fn random(out: &mut [Vec<usize>], links: usize, seed: u64) -> Result<()> {
    let sites = out.len();
    let (fewest, most) = (if sites > 1 { sites } else { 0 }, sites * sites.saturating_sub(1));
    if !(fewest..=most).contains(&links) {
        let expected = format!("random:{fewest} to random:{most} for {sites} sites");
        return Err(Error::parameter("topology", expected, format!("random:{links}")));
    }
    let mut generator = Generator::new(seed);
    let mut order: Vec<usize> = (0..sites).collect();
    generator.shuffle(&mut order);
    add_ring(out, &order);
    let mut others: Vec<(usize, usize)> = (0..sites)
        .flat_map(|from| (0..sites).map(move |to| (from, to)))
        .filter(|(from, to)| from != to && !out[*from].contains(to))
        .collect();
    generator.shuffle(&mut others);
    others.iter().take(links - fewest).for_each(|&(from, to)| out[from].push(to));
    Ok(())
}

fn custom(out: &mut [Vec<usize>], links: &[(usize, usize)]) -> Result<()> {
    let sites = out.len();
    for &(from, to) in links {
        if from >= sites || to >= sites || from == to {
            let expected = format!("links between different sites 0 to {}", sites.max(1) - 1);
            return Err(Error::parameter("topology", expected, format!("{from}>{to}")));
        }
        if !out[from].contains(&to) {
            out[from].push(to);
        }
    }
    Ok(())
}

/// The strongly connected components, ascending (Kosaraju and Sharir: sites in the order in which a
/// search along the links ends, then searches against the links).
fn components(out: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut against = vec![Vec::new(); out.len()];
    for (from, to) in out.iter().enumerate() {
        to.iter().for_each(|&to| against[to].push(from));
    }
    let mut seen = vec![false; out.len()];
    let mut ended = Vec::new();
    for site in 0..out.len() {
        search(out, site, &mut seen, &mut ended);
    }
    seen.fill(false);
    let mut found = Vec::new();
    for &site in ended.iter().rev() {
        let mut component = Vec::new();
        search(&against, site, &mut seen, &mut component);
        if !component.is_empty() {
            component.sort_unstable();
            found.push(component);
        }
    }
    found.sort();
    found
}

/// Depth-first search from `start`; pushes sites in the order in which they end.
fn search(links: &[Vec<usize>], start: usize, seen: &mut [bool], ended: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((site, next)) = path.last_mut() {
        match links[*site].get(*next) {
            None => {
                ended.push(*site);
                path.pop();
            }
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    path.push((to, 0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether every site reaches every other, by repeated squaring of the relation.
    fn reaches_all(out: &[Vec<usize>]) -> bool {
        let n = out.len();
        let mut reach = vec![vec![false; n]; n];
        for from in 0..n {
            reach[from][from] = true;
            out[from].iter().for_each(|&to| reach[from][to] = true);
        }
        for via in 0..n {
            for from in 0..n {
                for to in 0..n {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        reach.iter().flatten().all(|r| *r)
    }

    #[test]
    fn every_topology_is_strongly_connected_and_has_its_links() {
        for sites in 1..=32 {
            let count = |topology: &Topology, seed| {
                let links = topology.links(sites, seed).unwrap();
                assert!(reaches_all(&links), "{topology:?} {sites}");
                links.iter().map(Vec::len).sum::<usize>()
            };
            assert_eq!(count(&Topology::Full, 0), sites * (sites - 1));
            assert_eq!(count(&Topology::Ring, 0), if sites > 1 { sites } else { 0 });
            assert_eq!(count(&Topology::Tree, 0), 2 * (sites - 1));
            if sites > 2 {
                for (seed, links) in [(1, sites), (2, sites + 1), (3, sites * (sites - 1))] {
                    assert_eq!(count(&Topology::RandomStrong { links }, seed), links);
                }
            }
        }
    }

    #[test]
    fn components_agree_with_mutual_reachability() {
        let mut generator = Generator::new(3);
        let (mut strong, mut weak) = (0, 0);
        for _ in 0..500 {
            let sites = 2 + generator.below(5);
            let links = (0..generator.below(3 * sites) + 1)
                .map(|_| (generator.below(sites), generator.below(sites)))
                .filter(|(from, to)| from != to)
                .collect();
            let mut out = vec![Vec::new(); sites];
            let topology = Topology::Custom(links);
            if let Topology::Custom(links) = &topology {
                links.iter().for_each(|&(from, to)| out[from].push(to));
            }
            let accepted = topology.links(sites, 0).is_ok();
            assert_eq!(accepted, reaches_all(&out), "{out:?}");
            if accepted { strong += 1 } else { weak += 1 }
        }
        assert!(strong > 20 && weak > 20, "{strong} {weak}");
    }

    #[test]
    fn what_is_not_strongly_connected_is_refused_with_its_components() {
        let error = Topology::Custom(vec![(0, 1), (1, 0), (1, 2)]).links(3, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter topology: expected a strongly connected graph, found the strongly connected \
             components {0, 1}, {2}"
        );
        assert!(Topology::Custom(vec![(0, 3)]).links(3, 0).is_err());
        assert!(Topology::RandomStrong { links: 2 }.links(3, 0).is_err());
    }

    #[test]
    fn topologies_are_read() {
        assert_eq!("random:13".parse::<Topology>().unwrap(), Topology::RandomStrong { links: 13 });
        let links = "0>1, 1>0".parse::<Topology>().unwrap();
        assert_eq!(links, Topology::Custom(vec![(0, 1), (1, 0)]));
        for bad in ["", "star", "random", "random:x", "0>1,2"] {
            assert!(bad.parse::<Topology>().is_err(), "{bad}");
        }
    }
}
