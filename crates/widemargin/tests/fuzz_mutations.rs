//! The fuzz targets on mutated seeds, for machines without a fuzzer: a fixed sequence of mutations of the
//! committed corpus, the first `INPUTS` for each target or as many as `WIDEMARGIN_FUZZ_SECONDS` allows.
//!
//! Unlike `cargo fuzz` it is blind to coverage. An input that fails is written to the temporary folder and
//! named by the message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{exchanges, models, readers};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Text and numbers that parsers treat specially.
const WORDS: [&[u8]; 14] = [
    b"nan",
    b"-inf",
    b"1e309",
    b"-0",
    b"4294967296",
    b"18446744073709551616",
    b":",
    b"\n",
    b"\r\n",
    b",",
    b"\"",
    b"\xef\xbb\xbf",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
];

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{target}: {e}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Inputs of each target, always the same ones; `WIDEMARGIN_FUZZ_SECONDS` sets a time instead.
const INPUTS: u64 = 2000;

/// One change of some bytes.
fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let length = 1 + random.below(8);
    let end = (at + length).min(bytes.len());
    match random.below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = random.next() as u8,
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        4 => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..at, word.iter().copied());
        }
        5 => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..end, word.iter().copied());
        }
        6 => bytes.truncate(at),
        _ => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

fn run(target: &str, body: fn(&[u8])) {
    let limit = std::env::var("WIDEMARGIN_FUZZ_SECONDS")
        .ok()
        .map(|text| Duration::from_secs_f64(text.parse().expect("a number of seconds")));
    let started = Instant::now();
    let seeds = seeds(target);
    let mut random = Random(7);
    let mut count = 0_u64;
    while limit.map_or(count < INPUTS, |limit| started.elapsed() < limit) {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(6) {
            mutate(&mut bytes, &seeds, &mut random);
        }
        count += 1;
        if catch_unwind(AssertUnwindSafe(|| body(&bytes))).is_err() {
            let path = std::env::temp_dir().join(format!("widemargin-{target}-{count}"));
            std::fs::write(&path, &bytes).unwrap();
            panic!("{target}: input {count} failed; it is in {}", path.display());
        }
    }
    println!("{target}: {count} inputs in {:?}", started.elapsed());
}

macro_rules! targets {
    ($($name:ident in $module:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            run(stringify!($name), $module::$name);
        }
    )*};
}

targets! {
    libsvm in readers, csv in readers, idx in readers, npy in readers, range_file in readers,
    label_file in readers, weight_file in readers, archive in readers, any_file in readers, parquet in readers,
    model_native in models, model_libsvm in models, model_liblinear in models,
    model_structure in models, sequences in readers, templates in readers, exchange in exchanges,
}
