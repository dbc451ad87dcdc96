//! The double nearest to `w · 10^q` for any 64-bit `w` and `−27 ≤ q ≤ 55`, without division.
//!
//! With `w` shifted until its top bit is set and `T[q]` the top 128 bits of `5^q` (rounded up for
//! negative q), the top bits of the product `w · T[q]` are those of the exact value; the rest decides
//! the rounding, ties being possible only where `5^|q|` fits the digits of `w`.
//! Source: D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience
//! 51 (2021), sections 5 to 8; within this range of q the approximation never fails (section 8).

const LEAST: i64 = -27;
const LARGEST: i64 = 55;
const COUNT: usize = (LARGEST - LEAST + 1) as usize;

/// `5^q` as 128 bits of which the top one is set.
static POWERS_OF_FIVE: [u128; COUNT] = powers_of_five();

const fn powers_of_five() -> [u128; COUNT] {
    let mut table = [0; COUNT];
    let mut power: u128 = 1;
    let mut q = 0;
    while q <= LARGEST {
        table[(q - LEAST) as usize] = power << power.leading_zeros();
        if q > 0 && q <= -LEAST {
            table[(-q - LEAST) as usize] = reciprocal(power);
        }
        power = power.wrapping_mul(5);
        q += 1;
    }
    table
}

/// `⌊2^(bits + 127) / power⌋ + 1` where `bits` is the length of `power`, by long division.
const fn reciprocal(power: u128) -> u128 {
    let mut rest = 1_u128 << (127 - power.leading_zeros());
    let mut quotient = 0_u128;
    let mut step = 0;
    while step < 128 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= power {
            rest -= power;
            quotient |= 1;
        }
        step += 1;
    }
    quotient + 1
}

/// The double nearest to `w · 10^q`, ties to even; `None` outside the table.
#[inline]
pub(super) fn nearest_double(w: u64, q: i64) -> Option<f64> {
    if !(LEAST..=LARGEST).contains(&q) {
        return None;
    }
    if w == 0 {
        return Some(0.0);
    }
    let zeros = w.leading_zeros();
    let w = w << zeros;
    let power = POWERS_OF_FIVE[(q - LEAST) as usize];
    let mut product = u128::from(w) * (power >> 64);
    // Fifty-five bits are needed; only if all below them are set can the low half of the power carry.
    if (product >> 64) as u64 & 0x1ff == 0x1ff {
        product = product.wrapping_add((u128::from(w) * u128::from(power as u64)) >> 64);
    }
    let (low, high) = (product as u64, (product >> 64) as u64);
    let top = (high >> 63) as u32;
    let shift = top + 9;
    let mut mantissa = high >> shift;
    // ⌊log₂ 5^q⌋ + q = ⌊q·log₂ 10⌋, and 1023 the bias of the exponent.
    let mut exponent = ((217_706 * q) >> 16) + 63 + i64::from(top) - i64::from(zeros) + 1023;
    let exactly_between =
        low <= 1 && (-4..=23).contains(&q) && mantissa & 3 == 1 && mantissa << shift == high;
    if exactly_between {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if mantissa == 1 << 53 {
        mantissa = 1 << 52;
        exponent += 1;
    }
    // |q| is too small here for an exponent outside 1..=2046.
    Some(f64::from_bits((exponent as u64) << 52 | mantissa & ((1 << 52) - 1)))
}
