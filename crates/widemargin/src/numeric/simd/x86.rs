//! Vectors of x86-64 processors.

use std::arch::x86_64::*;

use super::{Lanes, Task, VectorFamily};

/// Calls `task` compiled for 128-bit vectors.
#[target_feature(enable = "sse2")]
pub(crate) fn sse2<K: Task>(task: K) -> K::Output {
    // SAFETY: this function runs only where the instructions exist.
    unsafe { task.run::<Sse2>() }
}

/// Calls `task` compiled for 256-bit vectors.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn avx2<K: Task>(task: K) -> K::Output {
    // SAFETY: this function runs only where the instructions exist.
    unsafe { task.run::<Avx2>() }
}

/// Calls `task` compiled for 512-bit vectors.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
pub(crate) fn avx512<K: Task>(task: K) -> K::Output {
    // SAFETY: this function runs only where the instructions exist.
    unsafe { task.run::<Avx512>() }
}

/// 16 registers of 128 bits, no fused multiply-add.
#[derive(Clone, Copy)]
pub(crate) struct Sse2;

/// 16 registers of 256 bits.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// 32 registers of 512 bits.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl VectorFamily for Sse2 {
    type Single = F32x4;
    type Double = F64x2;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn load_widened(from: *const f32) -> F64x2 {
        // SAFETY: two elements are there.
        unsafe { F64x2(_mm_set_pd(f64::from(*from.add(1)), f64::from(*from))) }
    }

    #[inline(always)]
    fn narrow(low: F64x2, high: F64x2) -> F32x4 {
        // SAFETY: vectors exist only where the instructions do, here and below.
        unsafe { F32x4(_mm_movelh_ps(_mm_cvtpd_ps(low.0), _mm_cvtpd_ps(high.0))) }
    }
}

impl VectorFamily for Avx2 {
    type Single = F32x8;
    type Double = F64x4;
    const TILE_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn load_widened(from: *const f32) -> F64x4 {
        // SAFETY: four elements are there.
        unsafe { F64x4(_mm256_cvtps_pd(_mm_loadu_ps(from))) }
    }

    #[inline(always)]
    fn narrow(low: F64x4, high: F64x4) -> F32x8 {
        // SAFETY: as above.
        unsafe { F32x8(_mm256_set_m128(_mm256_cvtpd_ps(high.0), _mm256_cvtpd_ps(low.0))) }
    }
}

impl VectorFamily for Avx512 {
    type Single = F32x16;
    type Double = F64x8;
    const TILE_ROWS: usize = 8;

    #[inline(always)]
    unsafe fn load_widened(from: *const f32) -> F64x8 {
        // SAFETY: eight elements are there.
        unsafe { F64x8(_mm512_cvtps_pd(_mm256_loadu_ps(from))) }
    }

    #[inline(always)]
    fn narrow(low: F64x8, high: F64x8) -> F32x16 {
        // SAFETY: as above.
        unsafe {
            let low = _mm512_castps256_ps512(_mm512_cvtpd_ps(low.0));
            F32x16(_mm512_insertf32x8::<1>(low, _mm512_cvtpd_ps(high.0)))
        }
    }
}

/// A vector: its constructors, the operations that one instruction does, and every other one as an expression of the
/// raw vectors.
macro_rules! vector {
    (
        $(#[$doc:meta])*
        $name:ident($raw:ident) = [$element:ident; $width:literal]
        splat $splat:ident load $load:ident store $store:ident
        sum($terms:ident) = $sum:expr;
        direct $($direct:ident $function:ident),+;
        $($operation:ident($first:ident $(, $other:ident)*) = $result:expr;)*
        $({$($special:item)*})?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($raw);

        impl Lanes for $name {
            type Element = $element;
            const WIDTH: usize = $width;

            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller vouches for the instructions.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the caller vouches for the elements and the instructions.
                Self(unsafe { $load(from) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: the caller vouches for the room, `self` for the instructions.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            fn sum(self) -> f64 {
                let $terms = self.0;
                // SAFETY: `self` exists only where the instructions do.
                unsafe { $sum }
            }

            $(
                #[inline(always)]
                fn $direct(self, other: Self) -> Self {
                    // SAFETY: as in `sum`.
                    Self(unsafe { $function(self.0, other.0) })
                }
            )+

            $(
                #[inline(always)]
                fn $operation(self $(, $other: Self)*) -> Self {
                    let $first = self.0;
                    $(let $other = $other.0;)*
                    // SAFETY: as in `sum`.
                    Self(unsafe { $result })
                }
            )*

            $($(
                #[inline(always)]
                $special
            )*)?
        }
    };
}

vector! {
    /// Four floats.
    F32x4(__m128) = [f32; 4]
    splat _mm_set1_ps load _mm_loadu_ps store _mm_storeu_ps
    sum(a) = F64x2(_mm_add_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(_mm_movehl_ps(a, a)))).sum();
    direct add _mm_add_ps, sub _mm_sub_ps, mul _mm_mul_ps,
        div _mm_div_ps, min _mm_min_ps, max _mm_max_ps;
    mul_add(a, b, c) = _mm_add_ps(_mm_mul_ps(a, b), c);
    neg_mul_add(a, b, c) = _mm_sub_ps(c, _mm_mul_ps(a, b));
    abs(a) = _mm_andnot_ps(_mm_set1_ps(-0.0), a);
    copy_sign(a, sign) = {
        let bit = _mm_set1_ps(-0.0);
        _mm_or_ps(_mm_andnot_ps(bit, a), _mm_and_ps(bit, sign))
    };
    select_ge(a, bound, yes, no) = {
        let mask = _mm_cmpge_ps(a, bound);
        _mm_or_ps(_mm_and_ps(mask, yes), _mm_andnot_ps(mask, no))
    };
    scale_by_power(a, shifted) = {
        let power = _mm_slli_epi32::<23>(_mm_castps_si128(shifted));
        _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(a), power))
    };
}

vector! {
    /// Two doubles.
    F64x2(__m128d) = [f64; 2]
    splat _mm_set1_pd load _mm_loadu_pd store _mm_storeu_pd
    sum(a) = _mm_cvtsd_f64(_mm_add_sd(a, _mm_unpackhi_pd(a, a)));
    direct add _mm_add_pd, sub _mm_sub_pd, mul _mm_mul_pd,
        div _mm_div_pd, min _mm_min_pd, max _mm_max_pd;
    mul_add(a, b, c) = _mm_add_pd(_mm_mul_pd(a, b), c);
    neg_mul_add(a, b, c) = _mm_sub_pd(c, _mm_mul_pd(a, b));
    abs(a) = _mm_andnot_pd(_mm_set1_pd(-0.0), a);
    copy_sign(a, sign) = {
        let bit = _mm_set1_pd(-0.0);
        _mm_or_pd(_mm_andnot_pd(bit, a), _mm_and_pd(bit, sign))
    };
    select_ge(a, bound, yes, no) = {
        let mask = _mm_cmpge_pd(a, bound);
        _mm_or_pd(_mm_and_pd(mask, yes), _mm_andnot_pd(mask, no))
    };
    scale_by_power(a, shifted) = {
        let power = _mm_slli_epi64::<52>(_mm_castpd_si128(shifted));
        _mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(a), power))
    };
}

vector! {
    /// Eight floats.
    F32x8(__m256) = [f32; 8]
    splat _mm256_set1_ps load _mm256_loadu_ps store _mm256_storeu_ps
    sum(a) = {
        let low = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
        F64x4(_mm256_add_pd(low, _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a)))).sum()
    };
    direct add _mm256_add_ps, sub _mm256_sub_ps, mul _mm256_mul_ps,
        div _mm256_div_ps, min _mm256_min_ps, max _mm256_max_ps;
    mul_add(a, b, c) = _mm256_fmadd_ps(a, b, c);
    neg_mul_add(a, b, c) = _mm256_fnmadd_ps(a, b, c);
    abs(a) = _mm256_andnot_ps(_mm256_set1_ps(-0.0), a);
    copy_sign(a, sign) = {
        let bit = _mm256_set1_ps(-0.0);
        _mm256_or_ps(_mm256_andnot_ps(bit, a), _mm256_and_ps(bit, sign))
    };
    select_ge(a, bound, yes, no) =
        _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_GE_OQ>(a, bound));
    scale_by_power(a, shifted) = {
        let power = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
        _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), power))
    };
}

vector! {
    /// Four doubles.
    F64x4(__m256d) = [f64; 4]
    splat _mm256_set1_pd load _mm256_loadu_pd store _mm256_storeu_pd
    sum(a) =
        F64x2(_mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd::<1>(a))).sum();
    direct add _mm256_add_pd, sub _mm256_sub_pd, mul _mm256_mul_pd,
        div _mm256_div_pd, min _mm256_min_pd, max _mm256_max_pd;
    mul_add(a, b, c) = _mm256_fmadd_pd(a, b, c);
    neg_mul_add(a, b, c) = _mm256_fnmadd_pd(a, b, c);
    abs(a) = _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
    copy_sign(a, sign) = {
        let bit = _mm256_set1_pd(-0.0);
        _mm256_or_pd(_mm256_andnot_pd(bit, a), _mm256_and_pd(bit, sign))
    };
    select_ge(a, bound, yes, no) =
        _mm256_blendv_pd(no, yes, _mm256_cmp_pd::<_CMP_GE_OQ>(a, bound));
    scale_by_power(a, shifted) = {
        let power = _mm256_slli_epi64::<52>(_mm256_castpd_si256(shifted));
        _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a), power))
    };
}

vector! {
    /// Sixteen floats.
    F32x16(__m512) = [f32; 16]
    splat _mm512_set1_ps load _mm512_loadu_ps store _mm512_storeu_ps
    sum(a) = {
        let low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(a)));
        F64x8(_mm512_add_pd(low, _mm512_cvtps_pd(high))).sum()
    };
    direct add _mm512_add_ps, sub _mm512_sub_ps, mul _mm512_mul_ps,
        div _mm512_div_ps, min _mm512_min_ps, max _mm512_max_ps;
    mul_add(a, b, c) = _mm512_fmadd_ps(a, b, c);
    neg_mul_add(a, b, c) = _mm512_fnmadd_ps(a, b, c);
    abs(a) = _mm512_abs_ps(a);
    copy_sign(a, sign) = {
        let sign = _mm512_and_si512(_mm512_set1_epi32(i32::MIN), _mm512_castps_si512(sign));
        _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(_mm512_abs_ps(a)), sign))
    };
    select_ge(a, bound, yes, no) =
        _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, bound), no, yes);
    scale_by_power(a, shifted) = {
        let power = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
        _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), power))
    };
    {
        unsafe fn load_partial(from: *const f32, count: usize) -> Self {
            // SAFETY: the mask covers only elements the caller vouches for.
            Self(unsafe { _mm512_maskz_loadu_ps(low_mask(count), from) })
        }

        unsafe fn store_partial(self, to: *mut f32, count: usize) {
            // SAFETY: the mask covers only room the caller vouches for.
            unsafe { _mm512_mask_storeu_ps(to, low_mask(count), self.0) }
        }
    }
}

vector! {
    /// Eight doubles.
    F64x8(__m512d) = [f64; 8]
    splat _mm512_set1_pd load _mm512_loadu_pd store _mm512_storeu_pd
    sum(a) =
        F64x4(_mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd::<1>(a))).sum();
    direct add _mm512_add_pd, sub _mm512_sub_pd, mul _mm512_mul_pd,
        div _mm512_div_pd, min _mm512_min_pd, max _mm512_max_pd;
    mul_add(a, b, c) = _mm512_fmadd_pd(a, b, c);
    neg_mul_add(a, b, c) = _mm512_fnmadd_pd(a, b, c);
    abs(a) = _mm512_abs_pd(a);
    copy_sign(a, sign) = {
        let sign = _mm512_and_si512(_mm512_set1_epi64(i64::MIN), _mm512_castpd_si512(sign));
        _mm512_castsi512_pd(_mm512_or_si512(_mm512_castpd_si512(_mm512_abs_pd(a)), sign))
    };
    select_ge(a, bound, yes, no) =
        _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, bound), no, yes);
    scale_by_power(a, shifted) = {
        let power = _mm512_slli_epi64::<52>(_mm512_castpd_si512(shifted));
        _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a), power))
    };
    {
        unsafe fn load_partial(from: *const f64, count: usize) -> Self {
            // SAFETY: the mask covers only elements the caller vouches for.
            Self(unsafe { _mm512_maskz_loadu_pd(low_mask(count) as u8, from) })
        }

        unsafe fn store_partial(self, to: *mut f64, count: usize) {
            // SAFETY: the mask covers only room the caller vouches for.
            unsafe { _mm512_mask_storeu_pd(to, low_mask(count) as u8, self.0) }
        }
    }
}

/// The mask of the first `count` elements.
#[inline(always)]
fn low_mask(count: usize) -> u16 {
    ((1_u32 << count) - 1) as u16
}
