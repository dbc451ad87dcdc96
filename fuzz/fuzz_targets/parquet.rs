#![no_main]

#[path = "../src/readers.rs"]
#[allow(dead_code)]
mod readers;

// The fuzzer's own hook ends the program at panics of the Parquet decoder, which its reader catches.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| {
    readers::parquet(bytes);
});
