//! A number exactly as it was written, so that 0.1 is one tenth and not the nearest float.

use std::fmt;

/// An exact decimal, zero or more: `digits` divided by ten to the power of `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    scale: u32,
}

/// Why a text is not a usable number; completes a sentence that begins with the text.
pub(crate) type Problem = String;

impl Decimal {
    /// The most digits that count. With them, every product with a unit's factor fits in 128 bits.
    const MOST_DIGITS: u32 = 20;

    /// The number at the start of `text`, and the rest. Digits, an optional point, an optional exponent.
    pub(crate) fn split(text: &str) -> Result<(Decimal, &str), Problem> {
        let text = text.trim();
        if text.is_empty() {
            return Err("is empty".into());
        }
        let unsigned = text.trim_start_matches(['-', '+', '−']);
        let word: String =
            unsigned.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
        if matches!(word.as_str(), "nan" | "inf" | "infinity") {
            return Err("is not a finite number".into());
        }
        if text.starts_with(['-', '−']) {
            return Err("is negative".into());
        }
        let whole = leading_digits(text);
        let after_whole = &text[whole.len()..];
        let fraction = after_whole.strip_prefix('.').map_or("", leading_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err("does not begin with a number".into());
        }
        let rest = after_whole.strip_prefix('.').map_or(after_whole, |rest| &rest[fraction.len()..]);
        let (exponent, rest) = exponent(rest)?;
        Ok((Decimal::new(whole, fraction, exponent)?, rest.trim()))
    }

    fn new(whole: &str, fraction: &str, exponent: i64) -> Result<Decimal, Problem> {
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits * 10 + u128::from(digit - b'0');
            if digits >= 10u128.pow(Self::MOST_DIGITS) {
                return Err(format!("has more than {} digits", Self::MOST_DIGITS));
            }
        }
        let mut scale = fraction.len() as i64 - exponent;
        while scale < 0 && digits != 0 {
            digits *= 10;
            scale += 1;
            if digits >= 10u128.pow(Self::MOST_DIGITS) {
                return Err("is too large".into());
            }
        }
        // `scale` is at most the length of a text plus a bounded exponent.
        Ok(Decimal { digits, scale: scale.max(0) as u32 })
    }

    /// Whether it is zero.
    pub const fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// This many times `factor`, rounded half up; `None` if that does not fit.
    pub fn times(self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        let Some(divisor) = 10u128.checked_pow(self.scale) else {
            // Digits and factor together are below half of 10^39.
            return Some(0);
        };
        let half = divisor / 2;
        u64::try_from(product / divisor + u128::from(product % divisor >= half && divisor > 1)).ok()
    }

    /// This many times `factor` if that is a whole number that fits.
    pub fn times_exactly(self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        match 10u128.checked_pow(self.scale) {
            Some(divisor) if product % divisor == 0 => u64::try_from(product / divisor).ok(),
            None if product == 0 => Some(0),
            _ => None,
        }
    }

    /// The nearest float, divided by ten to the power of `shift`.
    pub(crate) fn to_f64_shifted(self, shift: u32) -> f64 {
        // The standard library parses decimal text with correct rounding; dividing two floats would not round correctly.
        format!("{}e-{}", self.digits, u64::from(self.scale) + u64::from(shift)).parse().unwrap_or(0.0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Decimal {
        Decimal { digits: u128::from(value), scale: 0 }
    }
}

/// Prints every digit, so that reading it again gives the same number.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = self.scale as usize;
        let digits = format!("{:0>width$}", self.digits, width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{whole}{point}{fraction}")
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

/// The exponent at the start of `text` (`e-5`), and the rest.
fn exponent(text: &str) -> Result<(i64, &str), Problem> {
    let none = Ok((0, text));
    let Some(after_e) = text.strip_prefix(['e', 'E']) else { return none };
    let (negative, unsigned) = match after_e.as_bytes().first() {
        Some(b'-') => (true, &after_e[1..]),
        Some(b'+') => (false, &after_e[1..]),
        _ => (false, after_e),
    };
    let digits = leading_digits(unsigned);
    if digits.is_empty() {
        return none;
    }
    // Four digits are far beyond every quantity.
    let value: i64 = if digits.len() > 4 { 10_000 } else { digits.parse().unwrap_or(10_000) };
    if value >= 1000 {
        return Err(if negative { "is too small".into() } else { "is too large".into() });
    }
    Ok((if negative { -value } else { value }, &unsigned[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Decimal {
        Decimal::split(text).unwrap().0
    }

    #[test]
    fn a_tenth_is_a_tenth() {
        assert_eq!(number("0.1").times_exactly(10), Some(1));
        assert_eq!(number("0.1").times_exactly(1), None);
        assert_eq!(number("0.30000000000000004").times(1_000_000_000), Some(300_000_000));
    }

    #[test]
    fn rounds_half_up() {
        assert_eq!(number("2.5").times(1), Some(3));
        assert_eq!(number("2.4999").times(1), Some(2));
        assert_eq!(number("3").times(1), Some(3));
        assert_eq!(number("0").times(7), Some(0));
    }

    #[test]
    fn exponents_shift_the_point() {
        assert_eq!(number("1e-05").to_string(), "0.00001");
        assert_eq!(number("1.5e3").to_string(), "1500");
        assert_eq!(number("1.5e+16").to_string(), "15000000000000000");
        assert_eq!(number("1e-300").times(u64::MAX), Some(0));
        assert_eq!(Decimal::split("1 e").unwrap().1, "e");
    }

    #[test]
    fn what_is_no_number_says_why() {
        for (text, problem) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("NaN", "is not a finite number"),
            ("-inf", "is not a finite number"),
            ("infinity ms", "is not a finite number"),
            ("-1 ms", "is negative"),
            ("−1 ms", "is negative"),
            (".", "does not begin with a number"),
            ("fast", "does not begin with a number"),
            ("1e99999", "is too large"),
            ("1e300", "is too large"),
            ("1e-99999", "is too small"),
            ("123456789012345678901", "has more than 20 digits"),
        ] {
            assert_eq!(Decimal::split(text).unwrap_err(), problem, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>(), factor in any::<u64>()) {
            if let Ok((number, _)) = Decimal::split(&text) {
                let _ = (number.times(factor), number.times_exactly(factor), number.to_string());
            }
        }

        #[test]
        fn decimals_print_and_read_back(text in "[0-9]{0,9}\\.?[0-9]{1,9}(e-?[0-9]{1,2})?", factor in 0u64..1_000_000) {
            if let Ok((number, _)) = Decimal::split(&text) {
                let printed = number.to_string();
                let again = Decimal::split(&printed);
                // A very small number prints more leading zeros than digits, never more digits.
                let again = again.unwrap().0;
                prop_assert_eq!(again.times(factor), number.times(factor));
                prop_assert_eq!(again.to_string(), printed);
            }
        }
    }
}
