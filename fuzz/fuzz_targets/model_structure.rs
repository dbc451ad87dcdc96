#![no_main]

#[path = "../src/models.rs"]
#[allow(dead_code)]
mod models;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| models::model_structure(bytes));
