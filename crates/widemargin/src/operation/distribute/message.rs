//! The messages between sites and their coordinator, as bytes.
//!
//! A message is a frame around a `postcard` document: two bytes that name the protocol, its version, the
//! fingerprint of the problem, the CRC-32 of the document and its length (all little-endian). Sites of
//! another version or with another kernel, parameters, classes or number of features are refused by the
//! frame, damaged messages by the checksum, and a frame that announces too much before anything is
//! allocated.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::compact::{ascending, exact, rounded, short};
use crate::error::{Error, Result};
use crate::outcome::Status;

/// First bytes of every message.
const MAGIC: [u8; 2] = *b"WX";

/// Version of the messages; all participants have to have the same one.
const VERSION: u8 = 2;

/// Bytes of the frame.
pub(crate) const FRAME: usize = 19;

/// Largest document of a message; larger lists of rows are sent in several.
pub(crate) const MAX_DOCUMENT: usize = 1 << 28;

/// Rows of one message are at most about this many bytes.
pub(crate) const ROWS_BYTES: usize = 1 << 24;

/// Sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Address {
    /// The coordinator, which starts rounds of solving.
    Coordinator,
    /// A site, counted from 0.
    Site(u32),
}

/// A message with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender.
    pub from: Address,
    /// The receiver.
    pub to: Address,
    /// The message.
    pub bytes: Vec<u8>,
}

/// The values of a row, as they are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum RowValues {
    DenseF32(Vec<f32>),
    DenseF64(Vec<f64>),
    SparseF32(Vec<u32>, Vec<f32>),
    SparseF64(Vec<u32>, Vec<f64>),
}

/// A training row that left its site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its number among all rows of all sites. Rows are identified by it, never by their values.
    pub(crate) id: u64,
    /// Class or target.
    #[serde(with = "short")]
    pub(crate) label: f64,
    #[serde(with = "short")]
    pub(crate) weight: f64,
    pub(crate) values: RowValues,
}

/// A feasible point of one dual problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Rows with a coefficient, ascending.
    #[serde(with = "exact")]
    pub(crate) coefficients: Vec<(u64, f64)>,
    pub(crate) offset: f64,
    /// ‖w‖², not a number where it is not known.
    pub(crate) norm: f64,
    pub(crate) dual: f64,
    pub(crate) primal: f64,
    /// KKT violation over the rows of the site that found it.
    pub(crate) violation: f64,
    pub(crate) status: Status,
}

/// A feasible point of one function, to start from: what rounding changes of it, the solver repairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartPoint {
    pub(crate) function: u32,
    pub(crate) dual: f64,
    #[serde(with = "rounded")]
    pub(crate) coefficients: Vec<(u64, f64)>,
}

/// What a site says about its last solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) round: u32,
    /// Sum of the dual objectives.
    pub(crate) dual: f64,
    /// Whether a dual objective moved.
    pub(crate) changed: bool,
    /// Rows that the site holds.
    pub(crate) held: u64,
    /// Support vectors.
    pub(crate) support: u64,
    /// Rows that it has sent.
    pub(crate) sent: u64,
    /// Pair steps of all its solutions.
    pub(crate) steps: u64,
}

/// What a verification found until now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verification {
    pub(crate) serial: u32,
    /// Of the solution.
    pub(crate) digest: u32,
    /// Sites that have not replied.
    pub(crate) missing: Vec<u32>,
    /// Rows beyond the tolerance.
    pub(crate) violators: u64,
    /// Those that took no part in the solution of the elected site.
    pub(crate) gained: u64,
    /// Largest KKT violation of a row outside of the elected site.
    pub(crate) largest: f64,
    /// What those rows add to the primal objective, at most.
    pub(crate) loss: f64,
}

/// A message between participants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Coordinator to site: solve, offer and report.
    Solve { round: u32 },
    /// Site to coordinator.
    Solved(Progress),
    /// Site to neighbour: the dual objectives and the support vectors of a solution, with the rows that the
    /// neighbour probably lacks.
    Offer {
        duals: Vec<f64>,
        #[serde(with = "ascending")]
        ids: Vec<u64>,
        rows: Vec<Row>,
    },
    /// Site to neighbour: rows of an offer that it lacks, and functions that it wants to start from.
    Want {
        #[serde(with = "ascending")]
        ids: Vec<u64>,
        functions: Vec<u32>,
    },
    /// What was asked for.
    Rows { starts: Vec<StartPoint>, rows: Vec<Row> },
    /// A site that starts again asks its neighbours for their offers.
    Join,
    /// Coordinator to site: let all others verify your solution.
    Elect { serial: u32 },
    /// Elected site to all others: its solution, with the rows of it that the receiver probably lacks.
    Check { serial: u32, digest: u32, points: Vec<Point>, rows: Vec<Row> },
    /// Site to elected site: rows of the solution that it lacks.
    CheckWant {
        serial: u32,
        #[serde(with = "ascending")]
        ids: Vec<u64>,
    },
    /// Elected site to a site: those.
    CheckRows { serial: u32, rows: Vec<Row> },
    /// Site to elected site.
    Violators { serial: u32, digest: u32, count: u64, largest: f64, loss: f64, rows: Vec<Row> },
    /// Elected site to coordinator.
    Checked(Verification),
}

impl Message {
    /// The rows that it carries.
    pub(crate) fn rows(&self) -> &[Row] {
        match self {
            Self::Offer { rows, .. }
            | Self::Rows { rows, .. }
            | Self::Check { rows, .. }
            | Self::CheckRows { rows, .. }
            | Self::Violators { rows, .. } => rows,
            _ => &[],
        }
    }

    /// Whether it belongs to a verification.
    pub(crate) fn verifies(&self) -> bool {
        use Message::{Check, CheckRows, CheckWant, Violators};
        matches!(self, Check { .. } | CheckWant { .. } | CheckRows { .. } | Violators { .. })
    }
}

/// The bytes of a message from a participant of the problem with this fingerprint.
///
/// # Errors
/// [`Error::Message`] for one that is too large.
pub(crate) fn encode(message: &impl Serialize, fingerprint: u64) -> Result<Vec<u8>> {
    let document = postcard::to_allocvec(message)
        .map_err(|error| Error::message("a message that can be written", error))?;
    if document.len() > MAX_DOCUMENT {
        let expected = format!("at most {MAX_DOCUMENT} bytes");
        return Err(Error::message(expected, format!("{} bytes", document.len())));
    }
    let mut bytes = Vec::with_capacity(FRAME + document.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.push(VERSION);
    bytes.extend_from_slice(&fingerprint.to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&document).to_le_bytes());
    bytes.extend_from_slice(&(document.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&document);
    Ok(bytes)
}

/// The message in a frame.
///
/// # Errors
/// [`Error::Message`] for anything but one intact message of this version about this problem.
pub(crate) fn decode<M: DeserializeOwned>(bytes: &[u8], fingerprint: u64) -> Result<M> {
    let cut_short =
        || Error::message(format!("at least {FRAME} bytes"), format!("{}", bytes.len()));
    let (frame, document) = bytes.split_first_chunk::<FRAME>().ok_or_else(cut_short)?;
    if frame[..2] != MAGIC || frame[2] != VERSION {
        let expected = format!("version {VERSION} of the messages");
        return Err(Error::message(expected, format!("bytes {:?}", &frame[..3])));
    }
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| frame[at + i]));
    let sender = u64::from(word(3)) | (u64::from(word(7)) << 32);
    if sender != fingerprint {
        return Err(Error::message(
            "the same machine, parameters, classes and features at every site",
            format!("fingerprint {sender:016x} instead of {fingerprint:016x}"),
        ));
    }
    let length = word(15) as usize;
    if length > MAX_DOCUMENT || length != document.len() {
        let expected = format!("{length} bytes, at most {MAX_DOCUMENT}");
        return Err(Error::message(expected, format!("{} bytes", document.len())));
    }
    let (expected, found) = (word(11), crc32fast::hash(document));
    if expected != found {
        let (expected, found) = (format!("checksum {expected:08x}"), format!("{found:08x}"));
        return Err(Error::message(expected, found));
    }
    match postcard::take_from_bytes(document) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(Error::message("one message", format!("{} bytes more", rest.len()))),
        Err(error) => Err(Error::message("a message", error)),
    }
}

/// A number that differs between different solutions.
///
/// # Errors
/// As [`encode`].
pub(crate) fn digest(points: &[Point]) -> Result<u32> {
    let document = postcard::to_allocvec(points)
        .map_err(|error| Error::message("a solution that can be written", error))?;
    Ok(crc32fast::hash(&document))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Generator;

    fn offer() -> Message {
        let values = RowValues::SparseF64(vec![1, 70_000], vec![0.25, -3.0]);
        let row = |id| Row { id, label: 1.0, weight: 1.0, values: values.clone() };
        Message::Offer {
            duals: vec![f64::NEG_INFINITY],
            ids: vec![3, 1 << 40],
            rows: vec![row(3), row(1 << 40)],
        }
    }

    #[test]
    fn messages_come_back_as_they_were() {
        let bytes = encode(&offer(), 7).unwrap();
        assert_eq!(decode::<Message>(&bytes, 7).unwrap(), offer());
        assert!(decode::<Message>(&bytes, 8).unwrap_err().to_string().contains("fingerprint"));
    }

    #[test]
    fn rows_cost_little_more_than_their_values() {
        let values = RowValues::DenseF64(vec![0.1; 30]);
        let rows: Vec<Row> = (0..1000)
            .map(|id| Row { id, label: 1.0, weight: 1.0, values: values.clone() })
            .collect();
        let bytes = encode(&Message::Rows { starts: Vec::new(), rows }, 0).unwrap().len() as f64;
        assert!(bytes < 1.05 * 1000.0 * (30.0 * 8.0), "{bytes}");
    }

    #[test]
    fn damaged_messages_are_refused() {
        let whole = encode(&offer(), 7).unwrap();
        for length in 0..whole.len() {
            assert!(decode::<Message>(&whole[..length], 7).is_err(), "{length}");
        }
        assert!(decode::<Message>(&[&whole[..], &[0]].concat(), 7).is_err());
        let mut generator = Generator::new(5);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            bytes[generator.below(whole.len())] ^= 1 << generator.below(8);
            assert!(decode::<Message>(&bytes, 7).is_err());
        }
    }

    #[test]
    fn announced_lengths_are_not_believed() {
        // A list of 2⁶⁰ rows in a document of a few bytes, with the right checksum.
        let document = [4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
        let mut bytes = vec![MAGIC[0], MAGIC[1], VERSION];
        bytes.extend_from_slice(&7_u64.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&document).to_le_bytes());
        bytes.extend_from_slice(&(document.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&document);
        assert!(decode::<Message>(&bytes, 7).is_err());
    }
}
