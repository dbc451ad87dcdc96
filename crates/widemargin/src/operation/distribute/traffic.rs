//! What was sent.

use super::message::{Address, Message};

/// Rows and bytes that went from one site to another. The coordinator is beside the first site; what
/// stays there is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
