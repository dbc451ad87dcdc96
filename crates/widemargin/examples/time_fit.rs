//! Scratch timing tool.
use std::time::Instant;
use widemargin::Context;
use widemargin::data::read::{ReadOptions, read_dataset};
use widemargin::kernel::Kernel;
use widemargin::machine::{Machine, Svc};

fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    let own: f64 = stat.split(' ').next().unwrap().parse().unwrap();
    let mut total = own;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        if task.file_name().to_string_lossy() != std::process::id().to_string() {
            let s = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            total += s.split(' ').next().unwrap().parse::<f64>().unwrap_or(0.0);
        }
    }
    total / 1e9
}

fn main() {
    let dir = std::env::var("CACHE").unwrap();
    let args: Vec<String> = std::env::args().collect();
    let threads: usize = std::env::var("THREADS").ok().map_or(1, |t| t.parse().unwrap());
    let repeat: usize = std::env::var("REPEAT").ok().map_or(3, |t| t.parse().unwrap());
    for name in &args[1..] {
        let (c, gamma) = match name.as_str() {
            "digits" => (10.0, 0.25),
            "letter" => (16.0, 4.0),
            "a9a" => (1.0, 1.0 / 32.0),
            n if n.starts_with("mnist") => (10.0, 0.02),
            _ => (1.0, 0.05),
        };
        let load = |part: &str| {
            let o = ReadOptions::new().labels_path(format!("{dir}/{name}/{part}.labels.npy"));
            read_dataset(format!("{dir}/{name}/{part}.f32.npy"), &o).unwrap()
        };
        let data = load("train");
        let context = Context::new().with_threads(threads).unwrap().with_cache_bytes(1000 << 20);
        let svc = Svc { c, kernel: Kernel::Gaussian { gamma }, ..Svc::default() };
        for _ in 0..repeat {
            let (wall, start) = (Instant::now(), cpu());
            let model = svc.fit(&data, &context).unwrap();
            let (wall, used) = (wall.elapsed().as_secs_f64(), cpu() - start);
            let o = model.training.as_ref().unwrap().outcome;
            println!(
                "{name}: cpu {used:.3} wall {wall:.3} nsv {} dual {:.4} gap {:.2e} viol {:.2e} iter {} blocks {} rows {} {}",
                model.support_count(),
                o.dual,
                o.gap(),
                o.violation,
                o.iterations,
                o.blocks,
                o.kernel_rows,
                o.status
            );
            if std::env::var("TEST").is_ok() {
                let test = load("test");
                let (wall, start) = (Instant::now(), cpu());
                let p = model.predictor(&context).unwrap().predict(test.features()).unwrap();
                let (wall, used) = (wall.elapsed().as_secs_f64(), cpu() - start);
                let right = (0..test.rows()).filter(|&i| p.get(i) == test.labels().get(i)).count();
                println!(
                    "   predict cpu {used:.4} wall {wall:.4} acc {:.4}",
                    right as f64 / test.rows() as f64
                );
            }
        }
    }
}
