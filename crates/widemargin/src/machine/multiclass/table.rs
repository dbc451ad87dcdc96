//! The machines as constants: margin, components, aggregation, targets.
//!
//! To add a machine, add a name to [`AllInOne`] and a line to its `entry`; solver, command line,
//! model files and Python take it from there (docs: "Adding a machine").

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::solver::s2do::{Aggregation, Components, Margin, MulticlassLoss};

/// A machine that learns the scores of all classes in one quadratic program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AllInOne {
    /// Weston and Watkins: every other class by a margin, errors summed.
    #[default]
    WestonWatkins,
    /// Crammer and Singer: the nearest other class by a margin.
    CrammerSinger,
    /// Lee, Lin and Wahba: every other class below −1, errors summed.
    LeeLinWahba,
    /// Absolute margins, the worst other class (Doğan, Glasmachers and Igel).
    Adm,
    /// Absolute margins, the worst of all classes.
    Atm,
    /// Absolute margins, errors of all classes summed.
    Ats,
    /// Maximum-margin regression: the own class alone.
    Mmr,
    /// One class against all others, each on its own.
    OneVsAll,
    /// Reinforced (Liu and Yuan): as ATS, with d − 1 asked of the own class.
    Reinforced,
}

/// One line of the table; the own class's target may depend on the number of classes.
struct Entry {
    name: &'static str,
    title: &'static str,
    margin: Margin,
    components: Components,
    aggregation: Aggregation,
    sum_to_zero: bool,
    own_target: fn(classes: usize) -> f64,
}

fn one(_: usize) -> f64 {
    1.0
}

fn others(classes: usize) -> f64 {
    classes as f64 - 1.0
}

impl AllInOne {
    /// Every machine.
    pub const ALL: [Self; 9] = [
        Self::WestonWatkins,
        Self::CrammerSinger,
        Self::LeeLinWahba,
        Self::Adm,
        Self::Atm,
        Self::Ats,
        Self::Mmr,
        Self::OneVsAll,
        Self::Reinforced,
    ];

    fn entry(self) -> Entry {
        use Aggregation::{Max, Sum};
        use Components::{All, Others, Own};
        use Margin::{Absolute, Relative};
        let line = |name, title, margin, components, aggregation, sum_to_zero, own_target| Entry {
            name,
            title,
            margin,
            components,
            aggregation,
            sum_to_zero,
            own_target,
        };
        match self {
            Self::WestonWatkins => line("ww", "Weston-Watkins", Relative, Others, Sum, true, one),
            Self::CrammerSinger => line("cs", "Crammer-Singer", Relative, Others, Max, true, one),
            Self::LeeLinWahba => line("llw", "Lee-Lin-Wahba", Absolute, Others, Sum, true, one),
            Self::Adm => line("adm", "absolute, largest other", Absolute, Others, Max, true, one),
            Self::Atm => line("atm", "absolute, largest of all", Absolute, All, Max, true, one),
            Self::Ats => line("ats", "absolute, sum of all", Absolute, All, Sum, true, one),
            Self::Mmr => line("mmr", "maximum-margin regression", Absolute, Own, Sum, true, one),
            Self::OneVsAll => line("ova", "one versus all", Absolute, All, Sum, false, one),
            Self::Reinforced => line("reinforced", "reinforced", Absolute, All, Sum, true, others),
        }
    }

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// The constants of the machine for a number of classes.
    pub(crate) fn loss(self, classes: usize) -> MulticlassLoss {
        let entry = self.entry();
        MulticlassLoss {
            margin: entry.margin,
            components: entry.components,
            aggregation: entry.aggregation,
            sum_to_zero: entry.sum_to_zero,
            own_target: (entry.own_target)(classes),
            other_target: 1.0,
        }
    }
}

impl fmt::Display for AllInOne {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AllInOne {
    type Err = Error;

    /// Reads a name; `dgi` is another name of `adm`.
    fn from_str(text: &str) -> Result<Self> {
        let name = if text == "dgi" { "adm" } else { text };
        Self::ALL.into_iter().find(|machine| machine.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameter("machine", format!("one of {names} (or dgi for adm)"), text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reinforced_machine_asks_its_own_class_for_the_margins_of_all_others() {
        assert_eq!(AllInOne::Reinforced.loss(5).own_target, 4.0);
        assert_eq!(AllInOne::WestonWatkins.loss(5).own_target, 1.0);
    }
}
