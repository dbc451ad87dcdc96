//! Weighted images: those of one function, which merging works on, and those that several functions
//! share, Ψ_f = Σᵢ A_{fi}Φ(xᵢ).

/// A weighted sum of images, Σ wᵢΦ(vᵢ).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expansion {
    pub(super) vectors: Vec<Vec<f64>>,
    pub(super) weights: Vec<f64>,
}

impl Expansion {
    /// The vectors of either sign, positive ones first.
    pub(super) fn by_sign(&self) -> Vec<Self> {
        let side = |positive: bool| {
            let all = self.vectors.iter().zip(&self.weights);
            let chosen = all.filter(|(_, w)| (**w > 0.0) == positive);
            let (vectors, weights) = chosen.map(|(v, &w)| (v.clone(), w)).unzip();
            Self { vectors, weights }
        };
        vec![side(true), side(false)]
    }
}

/// Vectors with a weight in each of several functions.
///
/// Vectors belong to groups (classes, or the signs of a single function), and a function uses the
/// vectors of some groups only; its weights of all others are 0 and stay 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct VectorPool {
    pub(super) vectors: Vec<Vec<f64>>,
    /// Group of every vector.
    pub(super) groups: Vec<usize>,
    /// Function after function, a weight for every vector.
    pub(super) weights: Vec<Vec<f64>>,
    /// Function after function, whether it uses the vectors of each group.
    pub(super) uses: Vec<Vec<bool>>,
}

impl VectorPool {
    /// The vectors of one function, grouped by sign.
    pub(super) fn single(expansion: Expansion) -> Self {
        let groups = expansion.weights.iter().map(|&w| usize::from(w < 0.0)).collect();
        let Expansion { vectors, weights } = expansion;
        Self { vectors, groups, weights: vec![weights], uses: vec![vec![true; 2]] }
    }

    /// Number of vectors.
    pub(super) fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Number of functions.
    pub(super) fn functions(&self) -> usize {
        self.weights.len()
    }

    /// Features of a vector.
    pub(super) fn columns(&self) -> usize {
        self.vectors.first().map_or(0, Vec::len)
    }

    /// Function `f` alone.
    pub(super) fn function(&self, f: usize) -> Expansion {
        let used = self.used_by(f);
        Expansion {
            vectors: used.iter().map(|&v| self.vectors[v].clone()).collect(),
            weights: used.iter().map(|&v| self.weights[f][v]).collect(),
        }
    }

    /// The vectors that function `f` may use.
    pub(super) fn used_by(&self, f: usize) -> Vec<usize> {
        (0..self.len()).filter(|&v| self.uses[f][self.groups[v]]).collect()
    }

    /// What is merged: the vectors of each group, each with the length of its weights in all
    /// functions, ‖A_{·i}‖.
    pub(super) fn lists(&self) -> Vec<Expansion> {
        let count = self.uses.first().map_or(0, Vec::len);
        let mut lists = vec![Expansion::default(); count];
        for (v, vector) in self.vectors.iter().enumerate() {
            let length = self.weights.iter().map(|w| w[v] * w[v]).sum::<f64>().sqrt();
            if length > 0.0 {
                let list = &mut lists[self.groups[v]];
                list.vectors.push(vector.clone());
                list.weights.push(length);
            }
        }
        lists
    }

    /// The vectors named by `keep` alone.
    pub(super) fn selection(&self, keep: &[usize]) -> Self {
        let pick = |weights: &Vec<f64>| keep.iter().map(|&v| weights[v]).collect();
        Self {
            vectors: keep.iter().map(|&v| self.vectors[v].clone()).collect(),
            groups: keep.iter().map(|&v| self.groups[v]).collect(),
            weights: self.weights.iter().map(pick).collect(),
            uses: self.uses.clone(),
        }
    }

    /// The same functions, without weights yet, over the vectors of merged lists.
    pub(super) fn over(&self, lists: Vec<Expansion>) -> Self {
        let (mut vectors, mut groups) = (Vec::new(), Vec::new());
        for (group, list) in lists.into_iter().enumerate() {
            groups.resize(groups.len() + list.vectors.len(), group);
            vectors.extend(list.vectors);
        }
        let weights = vec![vec![0.0; vectors.len()]; self.functions()];
        Self { vectors, groups, weights, uses: self.uses.clone() }
    }
}
