//! Exponential, hyperbolic tangent and whole powers of vectors, to a few units in the last place.
//!
//! 2ˣ = 2ⁿ 2ᶠ with n = round(x), and 2ᶠ = 1 + f p(f) for |f| ≤ 1/2 by a minimax polynomial p (Remez
//! exchange in 60 digits, relative errors 2.0e-9 and 3.4e-18); eˣ − 1 likewise, with eʳ − 1 =
//! r + r² q(r) for |r| ≤ ln 2 / 2 (1.4e-8 and 1.8e-17). Powers below the smallest number of full
//! precision are 0.

use super::Lanes;

/// Constants of the elementary functions in one precision.
pub(crate) trait Constants: Copy + Default + 'static {
    /// 1
    const UNIT: Self;
    /// 1.5 · 2^(bits of the fraction): adding it rounds to a whole number, left in the low bits.
    const SHIFT: Self;
    /// log₂ e
    const LOG2_E: Self;
    /// ln 2 rounded so that its product with any exponent is exact.
    const LN2_HIGH: Self;
    /// ln 2 − `LN2_HIGH`
    const LN2_LOW: Self;
    /// q(r), lowest power first.
    const EXP: &'static [Self];
    /// p(f), lowest power first.
    const EXP2: &'static [Self];
    /// Largest whole n for which 2⁻ⁿ / √2 has full precision.
    const EXP2_LOWEST: Self;
    /// Where tanh is 1 to the last place.
    const TANH_ONE: Self;
}

impl Constants for f32 {
    const UNIT: Self = 1.0;
    const SHIFT: Self = 12_582_912.0;
    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const LN2_HIGH: Self = 0.693_359_4;
    const LN2_LOW: Self = -2.121_944_4e-4;
    const EXP: &'static [Self] = &[0.5, 0.166_665_43, 0.041_666_28, 0.008_366_584, 0.001_394_646];
    const EXP2: &'static [Self] = &[
        std::f32::consts::LN_2,
        0.240_226_48,
        0.055_503_324,
        0.009_618_438,
        0.001_339_888_7,
        0.000_153_533_39,
    ];
    const EXP2_LOWEST: Self = 125.0;
    const TANH_ONE: Self = 10.0;
}

impl Constants for f64 {
    const UNIT: Self = 1.0;
    const SHIFT: Self = 6_755_399_441_055_744.0;
    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const LN2_HIGH: Self = 0.693_147_180_369_123_8;
    const LN2_LOW: Self = 1.908_214_929_270_587_7e-10;
    const EXP: &'static [Self] = &[
        0.500_000_000_000_000_6,
        0.166_666_666_666_666_86,
        0.041_666_666_666_573_614,
        0.008_333_333_333_314_607,
        0.001_388_888_893_238_117,
        0.000_198_412_699_029_947_23,
        0.000_024_801_504_443_605_013,
        2.755_722_798_701_698e-6,
        2.762_632_734_061_007e-7,
        2.511_446_221_047_780_8e-8,
    ];
    const EXP2: &'static [Self] = &[
        std::f64::consts::LN_2,
        0.240_226_506_959_101_3,
        0.055_504_108_664_820_084,
        0.009_618_129_107_594_093,
        0.001_333_355_814_677_490_7,
        0.000_154_035_304_571_503_07,
        0.000_015_252_733_492_923_755,
        1.321_543_526_166_239e-6,
        1.017_819_962_588_638_3e-7,
        7.073_787_041_000_711e-9,
        4.434_767_780_615_261_4e-10,
    ];
    const EXP2_LOWEST: Self = 1021.0;
    const TANH_ONE: Self = 20.0;
}

/// Σ coefficients\[i\] xⁱ
#[inline(always)]
fn polynomial<V: Lanes>(x: V, coefficients: &[V::Element]) -> V {
    let (last, rest) = coefficients.split_last().expect("a polynomial has coefficients");
    let mut value = x.fill(*last);
    for &coefficient in rest.iter().rev() {
        value = value.mul_add(x, x.fill(coefficient));
    }
    value
}

/// Splits x into n ln 2 + r; returns n + `SHIFT` and eʳ − 1.
#[inline(always)]
fn reduce<V: Lanes>(x: V) -> (V, V) {
    let shift = x.fill(V::Element::SHIFT);
    let shifted = x.mul_add(x.fill(V::Element::LOG2_E), shift);
    let whole = shifted.sub(shift);
    let rest = whole.neg_mul_add(x.fill(V::Element::LN2_HIGH), x);
    let rest = whole.neg_mul_add(x.fill(V::Element::LN2_LOW), rest);
    let q = polynomial(rest, V::Element::EXP);
    (shifted, rest.mul(rest).mul_add(q, rest))
}

/// 2^(x · factor) for x · factor ≤ 0, the product not being rounded where the processor can fuse.
#[inline(always)]
pub(crate) fn exp2_of_product<V: Lanes>(x: V, factor: V) -> V {
    let shift = x.fill(V::Element::SHIFT);
    let shifted = x.mul_add(factor, shift);
    let minus_whole = shift.sub(shifted);
    let fraction = x.mul_add(factor, minus_whole);
    let p = polynomial(fraction, V::Element::EXP2);
    let value = fraction.mul_add(p, x.fill(V::Element::UNIT)).scale_by_power(shifted);
    x.fill(V::Element::EXP2_LOWEST).select_ge(minus_whole, value, x.fill(V::Element::default()))
}

/// tanh x = e / (e + 2) with e = exp(2x) − 1, which loses no digits near 0.
#[inline(always)]
pub(crate) fn tanh<V: Lanes>(x: V) -> V {
    let one = x.fill(V::Element::UNIT);
    let size = x.abs().min(x.fill(V::Element::TANH_ONE));
    let (shifted, less_one) = reduce(size.add(size));
    let power = one.scale_by_power(shifted);
    let e = less_one.mul_add(power, power.sub(one));
    e.div(e.add(one.add(one))).copy_sign(x)
}

/// xⁿ by repeated squaring
#[inline(always)]
pub(crate) fn power<V: Lanes>(x: V, mut exponent: u32) -> V {
    let mut result = x.fill(V::Element::UNIT);
    let mut square = x;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.mul(square);
        }
        exponent >>= 1;
        if exponent > 0 {
            square = square.mul(square);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::{Lanes, Real, Task, Vector, VectorFamily, available, dispatch};
    use super::{exp2_of_product, power, tanh};

    #[derive(Clone, Copy)]
    enum Function {
        Exp2(f64),
        Tanh,
        Power(u32),
    }

    struct Map<'a, T> {
        function: Function,
        values: &'a mut [T],
    }

    impl<T: Real> Task for Map<'_, T> {
        type Output = ();

        #[inline(always)]
        unsafe fn run<F: VectorFamily>(self) {
            let width = Vector::<T, F>::WIDTH;
            for chunk in self.values.chunks_mut(width) {
                // SAFETY: the loads and stores stay within the chunk.
                unsafe {
                    let x = Vector::<T, F>::load_partial(chunk.as_ptr(), chunk.len());
                    let y = match self.function {
                        Function::Exp2(factor) => exp2_of_product(x, x.fill(T::from_f64(factor))),
                        Function::Tanh => tanh(x),
                        Function::Power(degree) => power(x, degree),
                    };
                    y.store_partial(chunk.as_mut_ptr(), chunk.len());
                }
            }
        }
    }

    /// Largest distance to the exact function in units in the last place.
    fn worst<T: Real>(
        function: Function,
        inputs: &[T],
        exact: impl Fn(f64) -> f64,
        epsilon: f64,
    ) -> f64 {
        let mut worst = 0.0_f64;
        for set in available() {
            let mut values = inputs.to_vec();
            dispatch(set, Map { function, values: &mut values });
            for (input, value) in inputs.iter().zip(&values) {
                let expected = exact(input.to_f64());
                if expected.abs() < T::MIN_POSITIVE.to_f64() * 2.0 {
                    assert!(value.to_f64().abs() <= T::MIN_POSITIVE.to_f64() * 2.0);
                    continue;
                }
                let unit = 2.0_f64.powi(expected.abs().log2().floor() as i32) * epsilon;
                let error = (value.to_f64() - expected).abs() / unit;
                assert!(error.is_finite(), "{set}: f({input}) = {value}, not {expected}");
                worst = worst.max(error);
            }
        }
        worst
    }

    fn sweep<T: Real>(low: f64, high: f64, count: usize) -> Vec<T> {
        let step = (high - low) / count as f64;
        (0..=count).map(|i| T::from_f64(low + step * i as f64)).collect()
    }

    const SINGLE: f64 = f32::EPSILON as f64;
    const DOUBLE: f64 = f64::EPSILON;

    #[test]
    fn exp2_of_a_product_is_exact_at_zero_and_close_elsewhere() {
        let exact = |x: f64| (-x).exp2();
        let single = sweep::<f32>(0.0, 130.0, 400_001);
        let error = worst(Function::Exp2(-1.0), &single, exact, SINGLE);
        assert!(error <= 1.5, "{error}");
        let double = sweep::<f64>(0.0, 1030.0, 400_001);
        let error = worst(Function::Exp2(-1.0), &double, exact, DOUBLE);
        assert!(error <= 2.0, "{error}");
        for set in available() {
            let mut values = [0.0_f32];
            dispatch(set, Map { function: Function::Exp2(-0.3), values: &mut values });
            assert_eq!(values, [1.0]);
        }
    }

    #[test]
    fn huge_arguments_underflow_to_zero_and_never_give_nan() {
        for set in available() {
            let mut values = [1e4_f32, 1e20, f32::MAX, f32::INFINITY];
            dispatch(set, Map { function: Function::Exp2(-2.0), values: &mut values });
            assert_eq!(values, [0.0; 4]);
            let mut values = [1e4_f64, 1e20, f64::MAX, f64::INFINITY];
            dispatch(set, Map { function: Function::Exp2(-2.0), values: &mut values });
            assert_eq!(values, [0.0; 4]);
        }
    }

    #[test]
    fn tanh_is_within_three_units_everywhere() {
        for (low, high) in [(-12.0, 12.0), (-0.7, 0.7), (-1e-3, 1e-3), (-1e30, 1e30)] {
            let error = worst(Function::Tanh, &sweep::<f32>(low, high, 200_001), f64::tanh, SINGLE);
            assert!(error <= 3.0, "{error} in [{low}, {high}]");
        }
        for (low, high) in [(-22.0, 22.0), (-0.7, 0.7), (-1e-3, 1e-3)] {
            let error = worst(Function::Tanh, &sweep::<f64>(low, high, 200_001), f64::tanh, DOUBLE);
            assert!(error <= 4.0, "{error} in [{low}, {high}]");
        }
    }

    #[test]
    fn powers_match_repeated_multiplication() {
        for degree in [0, 1, 2, 3, 4, 7, 16] {
            let inputs = sweep::<f64>(-1.5, 1.5, 1001);
            let error = worst(Function::Power(degree), &inputs, |x| x.powi(degree as i32), DOUBLE);
            assert!(error <= 8.0, "{error} for degree {degree}");
        }
    }
}
