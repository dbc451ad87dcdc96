//! The program, run as a user does.

#[path = "../common/mod.rs"]
mod common;

#[path = "../classic.rs"]
mod classic;
#[path = "../compress.rs"]
mod compress;
#[path = "../distribute.rs"]
mod distribute;
#[path = "../files.rs"]
mod files;
#[path = "../help.rs"]
mod help;
#[path = "../honesty.rs"]
mod honesty;
#[path = "../interrupt.rs"]
mod interrupt;
#[path = "../liblinear.rs"]
mod liblinear;
#[path = "../libsvm.rs"]
mod libsvm;
#[path = "../memory.rs"]
mod memory;
#[path = "../mistakes.rs"]
mod mistakes;
#[path = "../multiple_kernels.rs"]
mod multiple_kernels;
#[path = "../online.rs"]
mod online;
#[path = "../pictures.rs"]
mod pictures;
#[path = "../ranking.rs"]
mod ranking;
#[path = "../resources.rs"]
mod resources;
#[path = "../semi_supervised.rs"]
mod semi_supervised;
#[path = "../sequence.rs"]
mod sequence;
#[path = "../strings.rs"]
mod strings;
#[path = "../train_predict.rs"]
mod train_predict;
#[path = "../tune.rs"]
mod tune;
