//! The two precisions kernel values come in.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use super::math::Constants;
use super::{Lanes, VectorFamily};

/// The vector of elements `T` in family `F`.
pub(crate) type Vector<T, F> = <T as Lanewise>::Lanes<F>;

/// What the vector loops need of an element; its being private seals [`Real`].
pub(crate) trait Lanewise: Constants {
    /// Its vector in each family.
    type Lanes<F: VectorFamily>: Lanes<Element = Self>;

    /// Loads as many elements as a vector of doubles has, converted to double.
    ///
    /// # Safety
    /// `from` points at that many elements, and the processor has the instructions of `F`.
    unsafe fn load_wide<F: VectorFamily>(from: *const Self) -> F::Double;

    /// Loads as many doubles as a vector of this precision has, less `offset`, rounded to it.
    ///
    /// # Safety
    /// `from` points at that many elements, and the processor has the instructions of `F`.
    unsafe fn load_less<F: VectorFamily>(from: *const f64, offset: F::Double) -> Self::Lanes<F>;
}

/// `f32` or `f64`.
pub(crate) trait Real:
    Lanewise
    + Copy
    + Default
    + Debug
    + Display
    + PartialEq
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + Sum
    + Into<f64>
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Largest finite value.
    const MAX: Self;
    /// Smallest positive value of full precision.
    const MIN_POSITIVE: Self;
    /// Difference between 1 and the next larger number.
    const EPSILON: Self;

    /// The nearest value of this precision.
    fn from_f64(value: f64) -> Self;

    /// The same value in double precision.
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.into()
    }

    /// Whether it is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

impl Lanewise for f32 {
    type Lanes<F: VectorFamily> = F::Single;

    #[inline(always)]
    unsafe fn load_wide<F: VectorFamily>(from: *const Self) -> F::Double {
        // SAFETY: passed on to the caller.
        unsafe { F::load_widened(from) }
    }

    #[inline(always)]
    unsafe fn load_less<F: VectorFamily>(from: *const f64, offset: F::Double) -> F::Single {
        // SAFETY: a vector of this precision has the elements of two of doubles.
        let high = unsafe { F::Double::load(from.add(F::Double::WIDTH)) };
        // SAFETY: passed on to the caller.
        let low = unsafe { F::Double::load(from) };
        F::narrow(low.sub(offset), high.sub(offset))
    }
}

impl Lanewise for f64 {
    type Lanes<F: VectorFamily> = F::Double;

    #[inline(always)]
    unsafe fn load_wide<F: VectorFamily>(from: *const Self) -> F::Double {
        // SAFETY: passed on to the caller.
        unsafe { F::Double::load(from) }
    }

    #[inline(always)]
    unsafe fn load_less<F: VectorFamily>(from: *const f64, offset: F::Double) -> F::Double {
        // SAFETY: passed on to the caller.
        unsafe { F::Double::load(from) }.sub(offset)
    }
}

macro_rules! real {
    ($type:ident) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const MAX: Self = Self::MAX;
            const MIN_POSITIVE: Self = Self::MIN_POSITIVE;
            const EPSILON: Self = Self::EPSILON;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as Self
            }

            fn is_finite(self) -> bool {
                Self::is_finite(self)
            }
        }
    };
}

real!(f32);
real!(f64);
