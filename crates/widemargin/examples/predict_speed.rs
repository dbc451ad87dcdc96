//! Predicts a data file again and again and says what processor time a row takes: `predict_speed
//! MODEL FILE [REPEATS]`, one thread, models in the native format.

use cpu_time::ThreadTime;
use widemargin::Context;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::machine::Model;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: predict_speed MODEL FILE [REPEATS]";
    let model = Model::load(arguments.next().ok_or(usage)?)?;
    let rows = read_dataset(arguments.next().ok_or(usage)?, &ReadOptions::new())?;
    let repeats: usize = arguments.next().map_or(Ok(20), |t| t.parse())?;
    let context = Context::new();
    let predictor = model.predictor(&context)?;
    let mut best = f64::INFINITY;
    for _ in 0..repeats {
        let start = ThreadTime::now();
        let predictions = predictor.predict(rows.features())?;
        best = best.min(start.elapsed().as_secs_f64());
        assert_eq!(predictions.len(), rows.rows());
    }
    let vectors = model.support_count();
    println!("{vectors} vectors, {:.3} µs a row", 1e6 * best / rows.rows() as f64);
    Ok(())
}
