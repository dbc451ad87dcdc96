//! What a vector can do, and which vectors belong together.

use super::math::Constants;

/// A vector of `WIDTH` elements.
///
/// A value of the type exists only where the processor has its instructions: the constructors,
/// [`splat`](Self::splat) and [`load`](Self::load), are unsafe for that reason, and everything that
/// starts from a value is safe.
pub(crate) trait Lanes: Copy {
    /// Type of an element.
    type Element: Constants;
    /// Number of elements.
    const WIDTH: usize;

    /// All elements equal to `value`.
    ///
    /// # Safety
    /// The processor has the instructions of this vector.
    unsafe fn splat(value: Self::Element) -> Self;

    /// Reads `WIDTH` elements at any alignment.
    ///
    /// # Safety
    /// As [`splat`](Self::splat), and `from` points at `WIDTH` elements.
    unsafe fn load(from: *const Self::Element) -> Self;

    /// Writes `WIDTH` elements at any alignment.
    ///
    /// # Safety
    /// `to` has room for `WIDTH` elements.
    unsafe fn store(self, to: *mut Self::Element);

    /// Reads the first `count` elements, the others being 0.
    ///
    /// # Safety
    /// As [`splat`](Self::splat), and `from` points at `count` ≤ `WIDTH` elements.
    #[inline(always)]
    unsafe fn load_partial(from: *const Self::Element, count: usize) -> Self {
        let mut buffer = [Self::Element::default(); MAX_WIDTH];
        // SAFETY: `count` elements exist at `from`, and the buffer holds any vector.
        unsafe {
            std::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), count);
            Self::load(buffer.as_ptr())
        }
    }

    /// Writes the first `count` elements.
    ///
    /// # Safety
    /// `to` has room for `count` ≤ `WIDTH` elements.
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut Self::Element, count: usize) {
        let mut buffer = [Self::Element::default(); MAX_WIDTH];
        // SAFETY: the buffer holds any vector, and there is room for `count` elements at `to`.
        unsafe {
            self.store(buffer.as_mut_ptr());
            std::ptr::copy_nonoverlapping(buffer.as_ptr(), to, count);
        }
    }

    /// A vector of the same kind with all elements equal to `value`.
    #[inline(always)]
    fn fill(self, value: Self::Element) -> Self {
        // SAFETY: `self` exists, so the processor has the instructions.
        unsafe { Self::splat(value) }
    }

    /// self + other
    fn add(self, other: Self) -> Self;
    /// self − other
    fn sub(self, other: Self) -> Self;
    /// self · other
    fn mul(self, other: Self) -> Self;
    /// self / other
    fn div(self, other: Self) -> Self;
    /// self · factor + term, fused where the processor can
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// term − self · factor, fused where the processor can
    fn neg_mul_add(self, factor: Self, term: Self) -> Self;
    /// The smaller of each pair.
    fn min(self, other: Self) -> Self;
    /// The larger of each pair.
    fn max(self, other: Self) -> Self;
    /// |self|
    fn abs(self) -> Self;
    /// |self| with the signs of `sign`
    fn copy_sign(self, sign: Self) -> Self;
    /// `yes` where self ≥ bound, `no` elsewhere
    fn select_ge(self, bound: Self, yes: Self, no: Self) -> Self;
    /// self · 2ⁿ for the whole number n that `shifted` = n + [`Constants::SHIFT`] holds in its low
    /// bits; the result has to be a number of full precision.
    fn scale_by_power(self, shifted: Self) -> Self;
    /// The sum of the elements, in double precision and a fixed order.
    fn sum(self) -> f64;
}

/// Elements of the widest vector.
pub(crate) const MAX_WIDTH: usize = 16;

/// The vectors of one instruction set.
pub(crate) trait VectorFamily: Copy + 'static {
    /// Vector of `f32`.
    type Single: Lanes<Element = f32>;
    /// Vector of `f64`.
    type Double: Lanes<Element = f64>;
    /// Rows of the left operand that a register tile holds: 8 with 32 registers, 4 with 16.
    const TILE_ROWS: usize;

    /// Loads `Double::WIDTH` single-precision elements as doubles.
    ///
    /// # Safety
    /// `from` points at that many elements, and the processor has the instructions.
    unsafe fn load_widened(from: *const f32) -> Self::Double;

    /// Rounds two vectors of doubles to one of single precision.
    fn narrow(low: Self::Double, high: Self::Double) -> Self::Single;
}
