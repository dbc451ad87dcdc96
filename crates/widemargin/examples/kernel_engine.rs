//! Measures the kernel block engine against what the processor can do at best.
//!
//! `cargo run --release --example kernel_engine [instruction set [part of a name]]` prints one line per
//! workload: best time of many runs, per kernel value, and its share of the peak where that makes
//! sense. Data is synthetic with the shape and sparsity of the data sets named.

// The peak is measured with instructions of the processor, the clock through the C library.
#![allow(unsafe_code)]

use std::hint::black_box;

use widemargin::InstructionSet;
use widemargin::data::{Csr, Dense, Matrix};
use widemargin::internal::{Block, accumulate, block_f32, block_f64, multiply};
use widemargin::kernel::Kernel;

fn main() {
    let set = match std::env::args().nth(1) {
        Some(name) => name.parse().expect("portable, sse2, avx2 or avx512"),
        None => InstructionSet::detect(),
    };
    let only = std::env::args().nth(2).unwrap_or_default();
    let clock = clock_rate();
    let peak = fma_rate();
    println!("instruction set {set}, clock {:.2} GHz", clock / 1e9);
    println!("peak, multiply-adds in registers: {:.1} GF/s", peak / 1e9);
    let gemm = matrixmultiply_rate();
    println!("matrixmultiply 512 x 20000 x 784: {:.1} GF/s", gemm / 1e9);
    println!("{:44} {:>10} {:>12} {:>8}", "workload", "ns/value", "cycles/value", "of peak");

    let mut random = Random(42);
    let gaussian = |gamma| Kernel::Gaussian { gamma };
    let wide = dense(20_000, 784, &mut random);
    let narrow = dense(20_000, 20, &mut random);
    let adult = one_hot(32_561, 14, 123, &mut random);
    let images = images(10_000, &mut random);
    let text = text(11_000, 26_747, 80, &mut random);
    for (name, kernel, data, rows) in [
        ("linear, 784 dense", Kernel::Linear, &wide, 512),
        ("rbf, 784 dense", gaussian(0.001), &wide, 512),
        ("rbf, 784 dense", gaussian(0.001), &wide, 64),
        ("rbf, 784 dense", gaussian(0.001), &wide, 8),
        ("linear, 20 dense", Kernel::Linear, &narrow, 512),
        ("rbf, 20 dense", gaussian(0.05), &narrow, 512),
        ("rbf, 20 dense", gaussian(0.05), &narrow, 64),
        ("rbf, 20 dense", gaussian(0.05), &narrow, 8),
        ("laplacian, 20 dense", Kernel::Laplacian { gamma: 0.05 }, &narrow, 64),
        ("linear, a9a-like", Kernel::Linear, &adult, 512),
        ("rbf, a9a-like", gaussian(0.05), &adult, 512),
        ("rbf, a9a-like", gaussian(0.05), &adult, 64),
        ("rbf, a9a-like", gaussian(0.05), &adult, 8),
        ("rbf, MNIST-like", gaussian(0.02), &images, 512),
        ("rbf, MNIST-like", gaussian(0.02), &images, 64),
        ("rbf, MNIST-like", gaussian(0.02), &images, 8),
        ("rbf, 20-newsgroups-like", gaussian(0.02), &text, 512),
        ("rbf, 20-newsgroups-like", gaussian(0.02), &text, 64),
    ] {
        if !format!("{name}, {rows} rows").contains(&only) {
            continue;
        }
        let features = if name.contains("dense") { data.columns() } else { 0 };
        let line = |seconds: f64, label: &str| {
            let per_value = seconds / (rows * data.rows()) as f64;
            let share = 2.0 * features as f64 / per_value / peak * 100.0;
            let share = if features > 0 { format!("{share:.0} %") } else { String::new() };
            println!(
                "{:44} {:>10.3} {:>12.2} {:>8}",
                format!("{name} {label}, {rows} rows"),
                per_value * 1e9,
                per_value * clock,
                share
            );
        };
        let block = block_f32(&kernel, data, set).expect("suitable data");
        line(time_block(&block, data.rows(), rows), "f32");
        if rows == 512 {
            let block = block_f64(&kernel, data, set).expect("suitable data");
            line(time_block(&block, data.rows(), rows), "f64");
        }
    }
    print_primitives(set, clock);
}

/// Best time of a block of `rows` rows against all `n`.
fn time_block<T: Clone + Default>(block: &Block<T>, n: usize, rows: usize) -> f64 {
    let left: Vec<usize> = (0..rows).map(|r| r * 7919 % n).collect();
    let mut out = vec![T::default(); rows * n];
    let mut slices: Vec<&mut [T]> = out.chunks_mut(n).collect();
    best(|| block(&left, &mut slices))
}

fn print_primitives(set: InstructionSet, clock: f64) {
    let n = 20_000;
    let rows: Vec<Vec<f32>> = (0..64).map(|r| vec![r as f32 * 0.1; n]).collect();
    let slices: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let coefficients = vec![1e-3; 64];
    let mut gradient = vec![0.0; n];
    let seconds = best(|| accumulate(set, &mut gradient, &slices, &coefficients));
    let each = seconds / (64 * n) as f64;
    println!("{:44} {:>10.3} {:>12.2}", "accumulate, 64 rows", each * 1e9, each * clock);
    for outputs in [1, 10, 45] {
        let block = vec![0.5_f32; 64 * 2048];
        let product = multiply(set, 2048, vec![0.25_f32; outputs * 2048]);
        let mut out = vec![0.0; 64 * outputs];
        let seconds = best(|| product(&block, &mut out));
        let each = seconds / (64 * 2048 * outputs) as f64;
        let name = format!("multiply, 64 rows, {outputs} outputs");
        println!("{name:44} {:>10.3} {:>12.2}", each * 1e9, each * clock);
    }
}

/// Shortest processor time of the runs that fit into a second or so, at least three.
fn best(mut work: impl FnMut()) -> f64 {
    let begin = processor_time();
    let mut shortest = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || processor_time() - begin < 0.7 {
        let start = processor_time();
        work();
        shortest = shortest.min(processor_time() - start);
        runs += 1;
    }
    shortest
}

/// Seconds that this thread has run, which other programs on the machine do not lengthen.
#[cfg(target_os = "linux")]
fn processor_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on every Linux, and `time` is where it writes.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> f64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

/// Additions per second in a chain, one per clock cycle.
#[cfg(target_arch = "x86_64")]
fn clock_rate() -> f64 {
    let count = 1_000_000;
    let seconds = best(|| {
        let mut x = 1_u64;
        for _ in 0..count / 10 {
            // SAFETY: ten additions to a register.
            unsafe {
                std::arch::asm!(
                    "add {0}, {0}", "add {0}, {0}", "add {0}, {0}", "add {0}, {0}", "add {0}, {0}",
                    "add {0}, {0}", "add {0}, {0}", "add {0}, {0}", "add {0}, {0}", "add {0}, {0}",
                    inout(reg) x
                );
            }
        }
        black_box(x);
    });
    f64::from(count) / seconds
}

#[cfg(not(target_arch = "x86_64"))]
fn clock_rate() -> f64 {
    f64::NAN
}

/// Single-precision operations per second of multiply-adds that never leave the registers.
#[cfg(target_arch = "x86_64")]
fn fma_rate() -> f64 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    fn wide(count: usize) -> f32 {
        let factor = _mm512_set1_ps(0.999);
        let mut sums = [_mm512_set1_ps(0.5); 16];
        for _ in 0..count {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(*sum, factor, factor);
            }
        }
        sums.iter().map(|&sum| _mm512_reduce_add_ps(sum)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    fn narrow(count: usize) -> f32 {
        let factor = _mm256_set1_ps(0.999);
        let mut sums = [_mm256_set1_ps(0.5); 12];
        for _ in 0..count {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(*sum, factor, factor);
            }
        }
        sums.iter().map(|&sum| _mm256_cvtss_f32(sum)).sum()
    }

    let count = 100_000;
    let operations;
    let seconds = if InstructionSet::Avx512.is_available() {
        operations = 2.0 * 16.0 * 16.0;
        // SAFETY: the processor has the instructions.
        best(|| _ = black_box(unsafe { wide(black_box(count)) }))
    } else if InstructionSet::Avx2.is_available() {
        operations = 2.0 * 8.0 * 12.0;
        // SAFETY: the processor has the instructions.
        best(|| _ = black_box(unsafe { narrow(black_box(count)) }))
    } else {
        return f64::NAN;
    };
    operations * count as f64 / seconds
}

#[cfg(not(target_arch = "x86_64"))]
fn fma_rate() -> f64 {
    f64::NAN
}

/// What a general matrix product reaches on the largest workload.
fn matrixmultiply_rate() -> f64 {
    let (m, n, k) = (512, 20_000, 784);
    let left = vec![0.5_f32; m * k];
    let right = vec![0.25_f32; n * k];
    let mut out = vec![0.0_f32; m * n];
    let (row, depth, width) = (k as isize, 1_isize, n as isize);
    let seconds = best(|| {
        let out = out.as_mut_ptr();
        // SAFETY: the three buffers have the shapes and strides stated.
        unsafe {
            matrixmultiply::sgemm(
                m,
                k,
                n,
                1.0,
                left.as_ptr(),
                row,
                depth,
                right.as_ptr(),
                depth,
                row,
                0.0,
                out,
                width,
                1,
            );
        }
    });
    2.0 * (m * n * k) as f64 / seconds
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn dense(rows: usize, columns: usize, random: &mut Random) -> Matrix {
    let values = (0..rows * columns).map(|_| random.next() as f32 - 0.5).collect();
    Matrix::DenseF32(Dense::new(rows, columns, values).expect("a value per place"))
}

/// Rows of `groups` ones, one in each group of columns, as a9a has.
fn one_hot(rows: usize, groups: usize, columns: usize, random: &mut Random) -> Matrix {
    sparse(rows, columns, |row| {
        for group in 0..groups {
            let (begin, end) = (group * columns / groups, (group + 1) * columns / groups);
            let share = random.next() * random.next();
            row.push((begin + (share * (end - begin) as f64) as usize, 1.0));
        }
    })
}

/// Pictures of 28 × 28 with 19 % ink, most of it in the middle, as MNIST has.
fn images(rows: usize, random: &mut Random) -> Matrix {
    sparse(rows, 784, |row| {
        for at in 0..784 {
            let (x, y) = ((at % 28) as f64 - 13.5, (at / 28) as f64 - 13.5);
            let ink = 0.75 * (-(x * x / 40.0 + y * y / 80.0)).exp();
            if random.next() < ink + 0.01 * (-(x * x + y * y) / 300.0).exp() {
                row.push((at, random.next() as f32 + 0.01));
            }
        }
    })
}

/// Rows of about `terms` words whose frequencies follow Zipf's law.
fn text(rows: usize, columns: usize, terms: usize, random: &mut Random) -> Matrix {
    sparse(rows, columns, |row| {
        let mut words: Vec<usize> = (0..terms)
            .map(|_| ((columns as f64).powf(random.next()) - 1.0) as usize % columns)
            .collect();
        words.sort_unstable();
        words.dedup();
        row.extend(words.into_iter().map(|word| (word, random.next() as f32)));
    })
}

fn sparse(rows: usize, columns: usize, mut fill: impl FnMut(&mut Vec<(usize, f32)>)) -> Matrix {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut row = Vec::new();
    for _ in 0..rows {
        row.clear();
        fill(&mut row);
        indices.extend(row.iter().map(|&(column, _)| column as u32));
        values.extend(row.iter().map(|&(_, value)| value));
        starts.push(indices.len());
    }
    Matrix::SparseF32(Csr::new(columns, starts, indices, values).expect("columns ascend"))
}
