//! Machines by specification: a search varies its parameters.

use super::{Family, Identity, Point};
use crate::data::{Dataset, Matrix};
use crate::error::Result;
use crate::machine::{Machine, ScalingRule, Specification};

/// The machines of a specification with the parameters of a point.
///
/// Where the scaling is not searched itself, machines are built for scaled features and the search
/// scales them, once for all that share a split.
pub struct SpecifiedFamily<'a> {
    specification: Specification,
    data: &'a Dataset,
    /// The features after the scaling, where there is one: what `gamma=scale` looks at.
    scaled: Option<Matrix>,
    scaling: Option<ScalingRule>,
    seed: u64,
}

impl<'a> SpecifiedFamily<'a> {
    /// A family for a data set; `seed` decides the codes of `multiclass=ecoc`.
    ///
    /// # Errors
    /// Features that cannot be scaled.
    pub fn new(specification: Specification, data: &'a Dataset, seed: u64) -> Result<Self> {
        let scaling = specification.scaling()?;
        let scaled = match scaling {
            Some(rule) => Some(rule.fit(data.features())?.transform(data.features().clone())?),
            None => None,
        };
        Ok(Self { specification, data, scaled, scaling, seed })
    }

    /// The specification that is varied.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// The scaling that the search has to do.
    pub fn scaling(&self) -> Option<ScalingRule> {
        self.scaling
    }

    /// The specification of a point.
    ///
    /// # Errors
    /// Parameters that the machine does not have.
    pub fn specification_at(&self, point: &Point) -> Result<Specification> {
        let mut specification = self.specification.clone();
        for (name, value) in &point.0 {
            specification.set(name, value.clone())?;
        }
        Ok(specification)
    }
}

impl Family for SpecifiedFamily<'_> {
    fn machine(&self, point: &Point) -> Result<Box<dyn Machine>> {
        let specification = self.specification_at(point)?;
        if point.get("scale").is_some() {
            return specification.build(self.data, self.seed);
        }
        let features = self.scaled.as_ref().unwrap_or(self.data.features());
        specification.build_scaled(features, self.data.labels(), self.seed)
    }

    fn identity(&self, searched: &[&str]) -> Option<Identity> {
        let parameters = self.specification.entry().parameters().map(|parameter| parameter.name);
        let fixed = parameters.filter(|name| !searched.contains(name));
        let value = |name| Some((String::from(name), self.specification.value(name)?.to_string()));
        let mut identity: Identity = fixed.filter_map(value).collect();
        identity.insert("machine".into(), self.specification.name());
        identity.insert("seed".into(), self.seed.to_string());
        Some(identity)
    }
}
