//! Trains and tests `libsvm-rs` on one problem and prints what it cost as one line of JSON.
//!
//! `peers-rs TRAIN TEST C GAMMA TOL CACHE_MB MODEL`: both data files are LIBSVM text, MODEL is
//! written as a LIBSVM model file so that its objective is computed outside, by the same function
//! as everybody else's.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use libsvm_rs::io::{LoadOptions, load_problem_from_reader_with_options, save_model};
use libsvm_rs::predict::predict;
use libsvm_rs::train::svm_train;
use libsvm_rs::{KernelType, SvmParameterBuilder, SvmProblem, SvmType, set_quiet};

fn load(path: &str) -> Result<SvmProblem, Box<dyn Error>> {
    let reader = BufReader::new(File::open(path)?);
    Ok(load_problem_from_reader_with_options(reader, &LoadOptions::trusted_input())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [train, test, c, gamma, tol, cache, model_path] = arguments.as_slice() else {
        return Err("usage: peers-rs TRAIN TEST C GAMMA TOL CACHE_MB MODEL".into());
    };
    set_quiet(true);
    let problem = load(train)?;
    let unseen = load(test)?;
    let parameters = SvmParameterBuilder::new()
        .svm_type(SvmType::CSvc)
        .kernel_type(KernelType::Rbf)
        .c(c.parse()?)
        .gamma(gamma.parse()?)
        .eps(tol.parse()?)
        .cache_size(cache.parse()?)
        .build()?;

    let (cpu, wall) = (ProcessTime::now(), Instant::now());
    let model = svm_train(&problem, &parameters);
    let (fit_cpu, fit_wall) = (cpu.elapsed(), wall.elapsed());

    let (cpu, wall) = (ProcessTime::now(), Instant::now());
    let predicted: Vec<f64> = unseen.instances.iter().map(|row| predict(&model, row)).collect();
    let (predict_cpu, predict_wall) = (cpu.elapsed(), wall.elapsed());

    let right = predicted.iter().zip(&unseen.labels).filter(|(a, b)| a == b).count();
    save_model(Path::new(model_path), &model)?;
    println!(
        "{{\"fit_cpu\": {}, \"fit_wall\": {}, \"predict_cpu\": {}, \"predict_wall\": {}, \
         \"support_vectors\": {}, \"accuracy\": {}}}",
        fit_cpu.as_secs_f64(),
        fit_wall.as_secs_f64(),
        predict_cpu.as_secs_f64(),
        predict_wall.as_secs_f64(),
        model.sv.len(),
        right as f64 / unseen.labels.len() as f64,
    );
    Ok(())
}
