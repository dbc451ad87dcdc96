//! The command line of widemargin.

fn main() {}
