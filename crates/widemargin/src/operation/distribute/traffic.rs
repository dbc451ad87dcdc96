//! What was sent.

use serde::{Deserialize, Serialize};

use super::message::{Address, Message};

/// Rows and bytes that went from one site to another. The coordinator is beside the first site; what
/// stays there is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Messages between sites.
    pub messages: u64,
    /// Rows sent over links, a row once for each time it was sent.
    pub vectors: u64,
    /// Bytes sent over links, frames and solutions included.
    pub bytes: u64,
    /// Rows sent by verifications.
    pub verification_vectors: u64,
    /// Bytes sent by verifications.
    pub verification_bytes: u64,
    /// Bytes to and from the coordinator.
    pub control_bytes: u64,
}

impl Traffic {
    /// Counts sums between a site and the coordinator; they are all that linear machines send.
    pub(crate) fn count_sums(&mut self, from: Address, to: Address, bytes: usize) {
        if ![from, to].contains(&Address::Site(0)) {
            self.messages += 1;
            self.bytes += bytes as u64;
        }
    }

    /// What two participants sent.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            vectors: self.vectors + other.vectors,
            bytes: self.bytes + other.bytes,
            verification_vectors: self.verification_vectors + other.verification_vectors,
            verification_bytes: self.verification_bytes + other.verification_bytes,
            control_bytes: self.control_bytes + other.control_bytes,
        }
    }

    /// Counts a message.
    pub(crate) fn count(&mut self, from: Address, to: Address, message: &Message, bytes: usize) {
        let (rows, bytes) = (message.rows().len() as u64, bytes as u64);
        match (from, to) {
            (Address::Site(_), Address::Site(_)) => {
                self.messages += 1;
                if message.verifies() {
                    self.verification_vectors += rows;
                    self.verification_bytes += bytes;
                } else {
                    self.vectors += rows;
                    self.bytes += bytes;
                }
            }
            (Address::Site(0), _) | (_, Address::Site(0)) => {}
            _ => self.control_bytes += bytes,
        }
    }
}
