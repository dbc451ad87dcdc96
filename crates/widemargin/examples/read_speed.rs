//! Reads a data file and says how long it took: `read_speed FILE [THREADS]`.

use std::time::Instant;

use widemargin::Context;
use widemargin::data::read::{ReadOptions, read};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: read_speed FILE [THREADS]")?;
    let threads = arguments.next().map_or(Ok(1), |t| t.parse())?;
    let context = Context::new().with_threads(threads)?;
    let start = Instant::now();
    let loaded = context.install(|| read(&path, &ReadOptions::new()))?;
    println!("{:.3} s, {:?}", start.elapsed().as_secs_f64(), loaded.dataset.features());
    Ok(())
}
