//! Names of features by number, and numbers by name.

use std::collections::HashMap;

/// A list of distinct names that grows while training data is read and is then closed.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    names: Vec<String>,
    places: HashMap<String, u32>,
    closed: bool,
}

impl Dictionary {
    /// An empty list that takes new names.
    pub fn new() -> Self {
        Self::default()
    }

    /// A list that takes no others; names that occur twice keep their first place.
    pub fn closed(names: &[String]) -> Self {
        let mut dictionary = Self::new();
        names.iter().for_each(|name| {
            dictionary.place(name);
        });
        dictionary.closed = true;
        dictionary
    }

    /// The place of a name, which is appended if it is new; nothing for a new name in a closed list.
    pub fn place(&mut self, name: &str) -> Option<u32> {
        if self.closed || self.places.contains_key(name) {
            return self.find(name);
        }
        let place = u32::try_from(self.names.len()).ok()?;
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        Some(place)
    }

    /// The place of a name, if it is there.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.places.get(name).copied()
    }

    /// The names in their order, without a copy.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The names in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}
