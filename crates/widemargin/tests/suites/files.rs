//! Data files and model files.

#[path = "../bad_input_messages.rs"]
mod bad_input_messages;
#[path = "../bad_model_messages.rs"]
mod bad_model_messages;
#[path = "../common/mod.rs"]
mod common;
#[path = "../documentation.rs"]
mod documentation;
#[path = "../../../../fuzz/src/exchanges.rs"]
mod exchanges;
#[path = "../fuzz_corpus.rs"]
mod fuzz_corpus;
#[path = "../fuzz_models.rs"]
mod fuzz_models;
#[path = "../fuzz_mutations.rs"]
mod fuzz_mutations;
#[path = "../libsvm_models.rs"]
mod libsvm_models;
#[path = "../../../../fuzz/src/models.rs"]
mod models;
#[path = "../old_models.rs"]
mod old_models;
#[path = "../out_of_core.rs"]
mod out_of_core;
#[path = "../read_binary.rs"]
mod read_binary;
#[path = "../read_csv.rs"]
mod read_csv;
#[path = "../read_parquet.rs"]
mod read_parquet;
#[path = "../read_sequences.rs"]
mod read_sequences;
#[path = "../../../../fuzz/src/readers.rs"]
mod readers;
#[path = "../round_trip.rs"]
mod round_trip;
#[path = "../save_survives.rs"]
mod save_survives;
#[path = "../scaling.rs"]
mod scaling;
#[path = "../shipped_data.rs"]
mod shipped_data;
