//! Contexts for trainings inside an operation, whose own events would drown those of the operation.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::context::{Context, Event};

/// The context with an observer that passes warnings on, those that differ in their numbers alone once.
pub(super) fn warnings_only(context: &Context) -> Context {
    let outer = context.clone();
    let told: Mutex<HashSet<String>> = Mutex::new(HashSet::new());
    context.clone().with_observer(move |event: &Event| {
        let Event::Warning { message } = event else { return };
        let words: Vec<&str> = message
            .split_whitespace()
            .filter(|word| !word.contains(|c: char| c.is_ascii_digit()))
            .collect();
        if told.lock().unwrap_or_else(PoisonError::into_inner).insert(words.join(" ")) {
            outer.report(event);
        }
    })
}
