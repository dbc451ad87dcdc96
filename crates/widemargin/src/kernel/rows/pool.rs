//! Memory for kernel rows: large maps with huge pages, cut into buffers that are used again.
//!
//! Fresh memory costs a page fault for every 4 KiB, which for a cache of a gigabyte is as much work
//! as computing the kernel values in it. Maps advised to use huge pages fault 512 times less often,
//! and a buffer given back serves the next row of about its length. Where the first few megabytes are
//! enough they come from the allocator of the program: one that keeps what was freed hands small trainings the
//! memory of the last one, without a fault.

#![allow(unsafe_code)] // Buffers are disjoint parts of a memory map with a life of their own.

use std::alloc::Layout;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memmap2::MmapMut;

use crate::data::memory;
use crate::error::{self, Error};
use crate::numeric::simd::Real;

/// Size of the first map in bytes, a huge page; later maps are twice the last.
const FIRST_MAP: usize = 2 << 20;

/// Size of the largest map in bytes that comes from the allocator of the program.
const LARGEST_OF_ALLOCATOR: usize = 8 << 20;

/// Size of the largest map in bytes unless one buffer needs more.
const LARGEST_MAP: usize = 128 << 20;

/// Bytes up to which nobody asks how much memory there is: that takes as long as a small training.
const UNCHECKED: usize = 16 << 20;

/// Bytes that rows leave for everything else where there is plenty: the other needs of a large training are a few
/// hundred megabytes. Where memory is scarce they leave half.
const LARGEST_RESERVE: u64 = 512 << 20;

/// Buffers begin at multiples of this many bytes.
const ALIGNMENT: usize = 64;

/// Where buffers come from and go back to.
#[derive(Clone, Default)]
pub(super) struct Pool {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    maps: Vec<Map>,
    /// First unused byte of the last map.
    used: usize,
    /// Buffers given back, by length in bytes.
    free: HashMap<usize, Vec<NonNull<u8>>>,
    /// Bytes that are left for everything else.
    reserve: Option<u64>,
}

// SAFETY: the free list holds addresses of unused parts of the maps beside it, which move with it.
unsafe impl Send for State {}

/// A run of memory, which is given back with it.
enum Map {
    /// From the allocator of the program, its contents not known.
    Allocated(NonNull<u8>, Layout),
    /// From the system, full of zeros.
    System(MmapMut),
}

/// `length` values of memory, alone in its use of them.
pub(crate) struct Buffer<T> {
    start: NonNull<T>,
    length: usize,
    /// Bytes set aside for it.
    bytes: usize,
    pool: Pool,
}

// SAFETY: a buffer is the only owner of its values, and values are plain numbers.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above; sharing gives read access only.
unsafe impl<T: Sync> Sync for Buffer<T> {}

/// Bytes set aside for `length` values: multiples of 1/16 of the next power of two, so that rows of
/// nearly the same length share buffers.
fn size_class<T>(length: usize) -> Result<usize, OutOfMemory> {
    // Half of the address space is more than any system has, and rounding up cannot overflow then.
    let bytes = length.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= usize::MAX / 4);
    let bytes = bytes.ok_or(OutOfMemory { bytes: usize::MAX })?.max(ALIGNMENT);
    Ok(bytes.next_multiple_of((bytes.next_power_of_two() / 16).max(ALIGNMENT)))
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `count` buffers of `length` values, whose contents are some earlier values or zero.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system has no memory left; nothing is taken then.
    pub(super) fn buffers<T: Real>(
        &self,
        count: usize,
        length: usize,
    ) -> Result<Vec<Buffer<T>>, OutOfMemory> {
        let mut buffers = Vec::with_capacity(count);
        let taken = size_class::<T>(length).and_then(|bytes| {
            let mut state = self.lock();
            for _ in 0..count {
                let (start, bytes) = state.take(bytes)?;
                buffers.push(Buffer { start: start.cast(), length, bytes, pool: self.clone() });
            }
            Ok(())
        });
        // The lock was given back: buffers that are dropped here return to the pool.
        taken.map(|()| buffers)
    }
}

impl State {
    /// Memory of the system, unless it takes what everything else may need, whose failed allocations end the program.
    fn map(&mut self, bytes: usize) -> Result<Map, OutOfMemory> {
        let mapped: usize = self.maps.iter().map(Map::len).sum();
        if mapped.saturating_add(bytes) > UNCHECKED {
            let available = memory::available();
            let reserve = *self.reserve.get_or_insert((available / 2).min(LARGEST_RESERVE));
            if available < (bytes as u64).saturating_add(reserve) {
                return Err(OutOfMemory { bytes });
            }
        }
        Map::new(bytes)
    }

    /// Memory of at least so many bytes, and how many it has.
    fn take(&mut self, bytes: usize) -> Result<(NonNull<u8>, usize), OutOfMemory> {
        if let Some(start) = self.free.get_mut(&bytes).and_then(Vec::pop) {
            return Ok((start, bytes));
        }
        if self.maps.last().is_none_or(|map| map.len() - self.used < bytes) {
            let next = self.maps.last().map_or(FIRST_MAP, |map| (2 * map.len()).min(LARGEST_MAP));
            let least = bytes.next_multiple_of(FIRST_MAP);
            match self.map(next.max(least)).or_else(|_| self.map(least)) {
                Ok(map) => self.maps.push(map),
                Err(error) => return self.take_longer(bytes).ok_or(error),
            }
            self.used = 0;
        }
        let at = self.used;
        self.used += bytes;
        Ok((self.maps.last_mut().expect("a map was just made sure of").part(at, bytes), bytes))
    }

    /// The shortest buffer given back that has at least so many bytes.
    fn take_longer(&mut self, bytes: usize) -> Option<(NonNull<u8>, usize)> {
        let sizes = self.free.iter().filter(|(size, starts)| **size >= bytes && !starts.is_empty());
        let size = *sizes.map(|(size, _)| size).min()?;
        self.free.get_mut(&size)?.pop().map(|start| (start, size))
    }
}

impl Map {
    fn new(bytes: usize) -> Result<Self, OutOfMemory> {
        if bytes > LARGEST_OF_ALLOCATOR {
            return system_map(bytes).map(Self::System);
        }
        let layout =
            Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| OutOfMemory { bytes })?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) });
        Ok(Self::Allocated(start.ok_or(OutOfMemory { bytes })?, layout))
    }

    fn len(&self) -> usize {
        match self {
            Self::Allocated(_, layout) => layout.size(),
            Self::System(map) => map.len(),
        }
    }

    /// A part that was not used yet, full of zeros.
    fn part(&mut self, at: usize, bytes: usize) -> NonNull<u8> {
        assert!(at + bytes <= self.len(), "a part of the map");
        match self {
            Self::Allocated(start, _) => {
                // SAFETY: the part lies in the map, and nobody else has it.
                unsafe {
                    let part = start.add(at);
                    part.write_bytes(0, bytes);
                    part
                }
            }
            Self::System(map) => {
                NonNull::new(map[at..at + bytes].as_mut_ptr()).expect("slices have an address")
            }
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if let Self::Allocated(start, layout) = self {
            // SAFETY: it was allocated with this layout, and the buffers in it are gone with the pool.
            unsafe { std::alloc::dealloc(start.as_ptr(), *layout) };
        }
    }
}

fn system_map(bytes: usize) -> Result<MmapMut, OutOfMemory> {
    let map = MmapMut::map_anon(bytes).map_err(|_| OutOfMemory { bytes })?;
    #[cfg(target_os = "linux")]
    {
        // Without huge pages the map works as well, only slower.
        let _ = map.advise(memmap2::Advice::HugePage);
    }
    Ok(map)
}

/// The system has no memory for kernel rows.
#[derive(Debug)]
pub(super) struct OutOfMemory {
    bytes: usize,
}

impl OutOfMemory {
    /// Leaves solvers, which know no errors, up to [`catch_out_of_memory`].
    pub(super) fn unwind(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

/// Runs a training; kernel rows without memory end it with an error.
///
/// # Errors
/// [`Error::OutOfMemory`], or what `work` fails with.
pub(crate) fn catch_out_of_memory<R>(work: impl FnOnce() -> error::Result<R>) -> error::Result<R> {
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => match payload.downcast::<OutOfMemory>() {
            Ok(error) => Err(Error::OutOfMemory { what: "kernel rows", bytes: error.bytes }),
            Err(payload) => std::panic::resume_unwind(payload),
        },
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        self.pool.lock().free.entry(self.bytes).or_default().push(self.start.cast());
    }
}

impl<T: Real> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` points at `length` values in a map that the pool keeps; its values
        // began as zeros and only values of numbers were written since, any bits of which are a number.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Real> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and no other buffer overlaps this one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_do_not_overlap_and_are_used_again() {
        let pool = Pool::default();
        let mut buffers: Vec<Buffer<f32>> = Vec::new();
        for round in 0..20 {
            buffers.extend(pool.buffers::<f32>(7, 1000 * (round % 5) + 3).unwrap());
            let last = buffers.len();
            for (b, buffer) in buffers.iter_mut().enumerate() {
                buffer.fill((last * 100 + b) as f32);
            }
            for (b, buffer) in buffers.iter().enumerate() {
                assert!(buffer.iter().all(|&v| v == (last * 100 + b) as f32));
            }
            buffers.retain(|buffer| buffer.len() % 2 == 1);
        }
        let used = |pool: &Pool| pool.lock().maps.iter().map(Map::len).sum::<usize>();
        let before = used(&pool);
        drop(buffers);
        drop(pool.buffers::<f32>(7, 4003).unwrap());
        assert_eq!(used(&pool), before);
    }

    #[test]
    fn a_buffer_may_outlive_the_handle_of_its_pool() {
        let pool = Pool::default();
        let mut buffer = pool.buffers::<f64>(1, 5).unwrap().remove(0);
        drop(pool);
        buffer.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(buffer.iter().sum::<f64>(), 15.0);
    }

    #[test]
    fn memory_that_is_not_there_is_an_error_and_no_hang() {
        let pool = Pool::default();
        let held = pool.buffers::<f32>(1, 100).unwrap();
        for length in [usize::MAX, usize::MAX / 8, 1 << 60, 1 << 50] {
            assert!(pool.buffers::<f32>(3, length).is_err(), "{length}");
        }
        // Some of these exist before the last one fails; they go back to the pool.
        assert!(pool.buffers::<f32>(1 << 14, 1 << 32).is_err());
        drop(held);
        assert_eq!(pool.buffers::<f32>(2, 100).unwrap().len(), 2);
        let work = || -> error::Result<()> {
            pool.buffers::<f32>(1, 1 << 60).map_or_else(|error| error.unwind(), |_| Ok(()))
        };
        let error = catch_out_of_memory(work).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    }

    #[test]
    fn buffers_are_aligned_and_wasteless() {
        let pool = Pool::default();
        for buffer in pool.buffers::<f64>(5, 100).unwrap() {
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
        }
        for length in [1, 100, 577, 20_000, 32_561] {
            let bytes = size_class::<f32>(length).unwrap();
            assert!(bytes >= 4 * length && bytes <= 64 + 4 * length + length / 2);
        }
    }
}
