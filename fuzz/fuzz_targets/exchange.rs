#![no_main]

#[path = "../src/exchanges.rs"]
#[allow(dead_code)]
mod exchanges;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| exchanges::exchange(bytes));
