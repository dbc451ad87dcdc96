//! Vectors as arrays, for processors without a path of their own.

use super::{Lanes, VectorFamily};

/// Arrays of 128 bits, which compilers turn into vectors where there are any.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// An array of elements treated as one value.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Array<T, const WIDTH: usize>([T; WIDTH]);

impl VectorFamily for Portable {
    type Single = Array<f32, 4>;
    type Double = Array<f64, 2>;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn load_widened(from: *const f32) -> Array<f64, 2> {
        // SAFETY: two elements are there.
        unsafe { Array([f64::from(*from), f64::from(*from.add(1))]) }
    }

    #[inline(always)]
    fn narrow(low: Array<f64, 2>, high: Array<f64, 2>) -> Array<f32, 4> {
        Array([low.0[0] as f32, low.0[1] as f32, high.0[0] as f32, high.0[1] as f32])
    }
}

/// Operations on pairs of elements.
macro_rules! zipped {
    ($($operation:ident = $of_pair:expr;)+) => {$(
        #[inline(always)]
        fn $operation(self, other: Self) -> Self {
            self.zip(other, $of_pair)
        }
    )+};
}

macro_rules! array {
    ($element:ident, $width:literal) => {
        impl Array<$element, $width> {
            #[inline(always)]
            fn zip(self, other: Self, f: impl Fn($element, $element) -> $element) -> Self {
                let mut result = self;
                for lane in 0..$width {
                    result.0[lane] = f(self.0[lane], other.0[lane]);
                }
                result
            }
        }

        impl Lanes for Array<$element, $width> {
            type Element = $element;
            const WIDTH: usize = $width;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                Self([value; $width])
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: `WIDTH` elements are there.
                Self(unsafe { from.cast::<[$element; $width]>().read_unaligned() })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: there is room for `WIDTH` elements.
                unsafe { to.cast::<[$element; $width]>().write_unaligned(self.0) }
            }

            zipped! {
                add = |a, b| a + b;
                sub = |a, b| a - b;
                mul = |a, b| a * b;
                div = |a, b| a / b;
                min = |a, b| if a < b { a } else { b };
                max = |a, b| if a > b { a } else { b };
                copy_sign = $element::copysign;
                scale_by_power = |a, shifted| {
                    let power = shifted.to_bits() << ($element::MANTISSA_DIGITS - 1);
                    $element::from_bits(a.to_bits().wrapping_add(power))
                };
            }

            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                self.mul(factor).add(term)
            }

            #[inline(always)]
            fn neg_mul_add(self, factor: Self, term: Self) -> Self {
                term.sub(self.mul(factor))
            }

            #[inline(always)]
            fn abs(self) -> Self {
                self.zip(self, |a, _| a.abs())
            }

            #[inline(always)]
            fn select_ge(self, bound: Self, yes: Self, no: Self) -> Self {
                let mut result = no;
                for lane in 0..$width {
                    if self.0[lane] >= bound.0[lane] {
                        result.0[lane] = yes.0[lane];
                    }
                }
                result
            }

            #[inline(always)]
            fn sum(self) -> f64 {
                self.0.iter().map(|&v| f64::from(v)).sum()
            }
        }
    };
}

array!(f32, 4);
array!(f64, 2);
