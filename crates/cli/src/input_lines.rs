//! Lines of standard input, read by a thread of their own: who learns from them can look at the clock and
//! at Ctrl-C while nothing comes.

use std::io::{self, BufRead, stdin};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks at whether to stop.
const PERIOD: Duration = Duration::from_millis(50);

/// Whole lines as they arrive.
pub(crate) struct InputLines {
    shared: Arc<Shared>,
    batch: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Lines that nobody has taken yet.
    text: Vec<u8>,
    /// How the input ended.
    end: Option<io::Result<()>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads lines, never more than `batch` bytes and a line ahead.
    fn read(&self, batch: usize) {
        let mut input = stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = input.read_until(b'\n', &mut line);
            let state = self.lock();
            let full = |state: &mut State| state.text.len() >= batch;
            let mut state =
                self.changed.wait_while(state, full).unwrap_or_else(PoisonError::into_inner);
            state.text.append(&mut line);
            state.end = match read {
                Ok(0) => Some(Ok(())),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            };
            if state.end.is_some() || state.text.len() >= batch {
                self.changed.notify_all();
            }
            if state.end.is_some() {
                return;
            }
        }
    }
}

impl InputLines {
    /// Begins to read; `batch` is the size of a portion in bytes.
    pub(crate) fn start(batch: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let reader = Arc::clone(&shared);
        // It may wait for ever; the end of the program ends it.
        thread::spawn(move || reader.read(batch));
        Self { shared, batch }
    }

    /// The next portion: whole lines of at least a batch, fewer where the input ends or `stop` says so.
    ///
    /// # Errors
    /// Input that cannot be read.
    pub(crate) fn next(&self, stop: impl Fn() -> bool) -> io::Result<Vec<u8>> {
        let mut state = self.shared.lock();
        while state.text.len() < self.batch && state.end.is_none() && !stop() {
            let waited = self.shared.changed.wait_timeout(state, PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(Err(error)) = &mut state.end {
            return Err(std::mem::replace(error, io::ErrorKind::UnexpectedEof.into()));
        }
        let text = std::mem::take(&mut state.text);
        self.shared.changed.notify_all();
        Ok(text)
    }
}
