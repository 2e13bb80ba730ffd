//! Student's distribution: how often a difference this large comes about by chance, given how much single values vary.
//!
//! The tail is the regularised incomplete beta function, by its continued fraction (NIST Digital Library of Mathematical
//! Functions, 8.17.5 and 8.17.22); the logarithm of the gamma function by Lanczos's series (SIAM J. Numer. Anal. 1, 1964).

/// Terms of the continued fraction: it converges in some tens for the few degrees of freedom that there are here.
const TERMS: u32 = 300;

/// Where the fraction has come to rest.
const AT_REST: f64 = 1e-14;

/// Stands for a denominator of zero.
const TINY: f64 = 1e-300;

/// How likely |t| is at least this large by chance.
pub(super) fn two_sided(t: f64, freedom: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    beta(freedom / (freedom + t * t), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// The t that is exceeded, to either side, with probability `p`.
pub(crate) fn quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, freedom) > p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) > p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The regularised incomplete beta function.
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // Its fraction converges fast below the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() / (a * fraction(x, a, b))
}

/// The continued fraction, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let not_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for term in 1..=TERMS {
        let m = f64::from(term / 2);
        let step = if term % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / not_zero(1.0 + step * d);
        c = not_zero(1.0 + step / c);
        value *= c * d;
        if (c * d - 1.0).abs() < AT_REST {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function, of a positive number.
fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let mut sum = 1.000_000_000_190_015;
    for (term, factor) in (1_i32..).zip(SERIES) {
        sum += factor / (x + f64::from(term));
    }
    let base = x + 5.5;
    (x + 0.5) * base.ln() - base + (2.506_628_274_631_000_5 * sum / x).ln()
}

#[cfg(test)]
mod tests {
    use super::{quantile, two_sided};

    #[test]
    fn tables_have_the_same() {
        // Critical values of Student's t as every table has them.
        for (freedom, p, t) in [
            (1.0, 0.05, 12.706_2),
            (2.0, 0.05, 4.302_65),
            (3.0, 0.05, 3.182_45),
            (6.0, 0.05, 2.446_91),
            (6.0, 0.01, 3.707_43),
            (6.0, 0.001, 5.958_82),
            (30.0, 0.05, 2.042_27),
            (1e6, 0.05, 1.959_97),
        ] {
            assert!((two_sided(t, freedom) - p).abs() < 1e-5, "{freedom} {p}");
            assert!((quantile(p, freedom) - t).abs() < 1e-3, "{freedom} {p}");
        }
        assert_eq!(two_sided(f64::INFINITY, 4.0), 0.0);
        assert!((two_sided(0.0, 4.0) - 1.0).abs() < 1e-9);
    }
}
