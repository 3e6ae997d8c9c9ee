//! Quantities as people write them: `100 Mbit/s`, `40 ms`, `1.5 bdp`, `0.1 %`.
//!
//! The number is read exactly (see [`crate::decimal`]) and scaled in integers to the base unit. Upper and lower case do
//! not matter, with one customary exception: `Mb/s` are bits, `MB/s` are bytes. A space between number
//! and unit is optional. Prefixes are decimal (`KB` is 1000 bytes); `KiB` is 1024.
//!
//! [`Said`] is a quantity in a document: text that is not parsed yet, so that the error can name the field.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use fullpipe_path::config::Probability;
use fullpipe_units::{Bytes, Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::bounds;
use crate::decimal::{Decimal, Problem};
use crate::error::ScenarioError;

/// Something that people write as a number with a unit.
pub trait Quantity: Sized {
    /// Its name in the JSON Schema.
    const NAME: &'static str;
    /// What it is, for errors: `a rate`.
    const NOUN: &'static str;
    /// The accepted form, for errors and the schema.
    const EXPECTED: &'static str;
    /// Examples. Errors suggest the first.
    const EXAMPLES: &'static [&'static str];
    /// Whether a number without a unit can mean anything.
    const BARE_NUMBER: bool;

    /// Reads `text`. The error completes a sentence that begins with the text: `is negative`.
    ///
    /// # Errors
    /// When it is not a quantity of this kind.
    fn parse(text: &str) -> Result<Self, String>;

    /// Writes it so that [`Quantity::parse`] gives the same value again.
    fn text(&self) -> String;
}

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const NOUN: &'static str = "a rate";
    const EXPECTED: &'static str =
        "a number with a unit such as \"100 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, B/s, MB/s)";
    const EXAMPLES: &'static [&'static str] = &["100 Mbit/s", "1.5 Gbit/s", "250 kbit/s", "10 MB/s"];
    const BARE_NUMBER: bool = false;

    fn parse(text: &str) -> Result<Rate, Problem> {
        let (number, unit) = Decimal::split(text)?;
        let bits = rate_unit(&compact(unit)).ok_or_else(|| unit_problem(Self::NOUN, unit))?;
        scaled(number, bits, "one bit per second").map(Rate::from_bits_per_sec)
    }

    fn text(&self) -> String {
        const UNITS: &[(u64, &str)] =
            &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        printed(self.as_bits_per_sec(), UNITS)
    }
}

impl Quantity for Duration {
    const NAME: &'static str = "Duration";
    const NOUN: &'static str = "a duration";
    const EXPECTED: &'static str = "a number with a unit such as \"40 ms\" (ns, us, ms, s, min, h)";
    const EXAMPLES: &'static [&'static str] = &["40 ms", "1.5 s", "200 us", "2 min"];
    const BARE_NUMBER: bool = true;

    fn parse(text: &str) -> Result<Duration, Problem> {
        let (number, unit) = Decimal::split(text)?;
        // Zero is the same in every unit.
        let nanos = match compact(unit).to_lowercase().as_str() {
            "" if number.is_zero() => 1,
            "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1,
            // U+00B5 micro sign and U+03BC Greek mu both occur.
            "us" | "µs" | "μs" | "usec" | "microsecond" | "microseconds" => 1_000,
            "ms" | "msec" | "millisecond" | "milliseconds" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
            "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
            "h" | "hour" | "hours" => 3_600_000_000_000,
            "d" | "day" | "days" => 86_400_000_000_000,
            _ => return Err(unit_problem(Self::NOUN, unit)),
        };
        scaled(number, nanos, "one nanosecond").map(Duration::from_nanos)
    }

    fn text(&self) -> String {
        const UNITS: &[(u64, &str)] = &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        printed(self.as_nanos(), UNITS)
    }
}

/// An amount of data, absolute or relative to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// This many bytes.
    Bytes(Bytes),
    /// This many full-sized packets.
    Packets(u32),
    /// This many bandwidth-delay products: rate times round-trip time.
    Bdp(Decimal),
}

impl Size {
    /// In bytes, given the size of a full packet and of one bandwidth-delay product; `None` if that overflows.
    pub fn bytes(self, packet: Bytes, bdp: Bytes) -> Option<Bytes> {
        match self {
            Size::Bytes(bytes) => Some(bytes),
            Size::Packets(packets) => packet.as_u64().checked_mul(u64::from(packets)).map(Bytes::new),
            Size::Bdp(factor) => factor.times(bdp.as_u64()).map(Bytes::new),
        }
    }

    /// Whether it is one bandwidth-delay product or more, and yet below one packet: not the size is small, but the path is
    /// slow. A queue then holds what is assumed where no buffer is given.
    pub fn is_of_slow_path(self, packet: Bytes, bdp: Bytes) -> bool {
        let whole = matches!(self, Size::Bdp(factor) if factor.times(1_000_000).is_none_or(|millionths| millionths >= 1_000_000));
        whole && bdp > Bytes::ZERO && self.bytes(packet, bdp).is_some_and(|bytes| bytes < packet)
    }
}

impl Quantity for Size {
    const NAME: &'static str = "Size";
    const NOUN: &'static str = "an amount of data";
    const EXPECTED: &'static str = "a number of bytes, packets or bandwidth-delay products such as \
         \"100 KB\", \"50 packets\" or \"1.5 bdp\"";
    const EXAMPLES: &'static [&'static str] = &["1 bdp", "100 KB", "50 packets", "1 MiB", "1500"];
    const BARE_NUMBER: bool = true;

    fn parse(text: &str) -> Result<Size, Problem> {
        let (number, unit) = Decimal::split(text)?;
        let compacted = compact(unit).to_lowercase();
        match compacted.as_str() {
            "bdp" | "bdps" => Ok(Size::Bdp(number)),
            "packet" | "packets" | "pkt" | "pkts" | "segment" | "segments" => {
                let count = whole(number, 1, "packets")?;
                u32::try_from(count).map(Size::Packets).map_err(|_| "is too large".into())
            }
            _ => {
                let factor = size_unit(&compacted).ok_or_else(|| unit_problem(Self::NOUN, unit))?;
                whole(number, factor, "bytes").map(|bytes| Size::Bytes(Bytes::new(bytes)))
            }
        }
    }

    fn text(&self) -> String {
        const UNITS: &[(u64, &str)] = &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB"), (1, "B")];
        match self {
            Size::Bytes(bytes) => printed(bytes.as_u64(), UNITS),
            Size::Packets(packets) => format!("{packets} packets"),
            Size::Bdp(factor) => format!("{factor} bdp"),
        }
    }
}

impl Quantity for Probability {
    const NAME: &'static str = "Probability";
    const NOUN: &'static str = "a probability";
    const EXPECTED: &'static str = "a percentage such as \"0.1 %\" or a fraction below one such as 0.001";
    const EXAMPLES: &'static [&'static str] = &["0.1 %", "1%", "0.01"];
    const BARE_NUMBER: bool = true;

    fn parse(text: &str) -> Result<Probability, Problem> {
        let (number, unit) = Decimal::split(text)?;
        let shift = match compact(unit).to_lowercase().as_str() {
            "%" | "percent" => 2,
            "" => 0,
            _ => return Err(unit_problem(Self::NOUN, unit)),
        };
        let fraction = number.to_f64_shifted(shift);
        if shift == 0 && fraction == 1.0 {
            // `loss = 1` may well be meant as one per cent.
            return Err("could be 1 % or 100 %".into());
        }
        if fraction > 1.0 {
            return Err("is above 100 %".into());
        }
        Ok(Probability::from_f64(fraction))
    }

    fn text(&self) -> String {
        // Parts of 2^32 are exact in a float, and so is a hundred times them; Display prints every digit needed.
        format!("{} %", self.as_f64() * 100.0)
    }
}

/// A whole number without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl Quantity for Count {
    const NAME: &'static str = "Count";
    const NOUN: &'static str = "a whole number";
    const EXPECTED: &'static str = "a whole number such as 5";
    const EXAMPLES: &'static [&'static str] = &["5"];
    const BARE_NUMBER: bool = true;

    fn parse(text: &str) -> Result<Count, Problem> {
        let (number, unit) = Decimal::split(text)?;
        if !unit.is_empty() {
            return Err(unit_problem(Self::NOUN, unit));
        }
        number.times_exactly(1).map(Count).ok_or_else(|| match number.times(1) {
            Some(_) => "is not whole".into(),
            None => "is too large".into(),
        })
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// A quantity in a document: text that is not parsed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityText<T> {
    text: String,
    meaning: PhantomData<T>,
}

impl<T> QuantityText<T> {
    /// This text.
    pub fn new(text: impl Into<String>) -> QuantityText<T> {
        QuantityText { text: text.into(), meaning: PhantomData }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<T: Quantity> QuantityText<T> {
    /// Parses the text; an error names `field`.
    ///
    /// # Errors
    /// When the text is not a quantity of this kind.
    pub fn read(&self, field: &str) -> Result<T, ScenarioError> {
        T::parse(&self.text).map_err(|problem| {
            let problem = if is_range(&self.text) { "is a range, not one value".to_owned() } else { problem };
            self.error(field, problem)
        })
    }

    /// An error about this text, with the form of a `T` and what to write: the same number with a unit if it has none.
    pub(crate) fn error(&self, field: &str, problem: impl fmt::Display) -> ScenarioError {
        let error = ScenarioError::new(field, &self.text, problem).expected(T::EXPECTED);
        error.write(format!("\"{}\"", self.with_unit(field).unwrap_or_else(|| T::EXAMPLES[0].to_string())))
    }

    /// A number without a unit, with the unit that was probably meant.
    fn with_unit(&self, field: &str) -> Option<String> {
        let (number, unit) = Decimal::split(&self.text).ok()?;
        let long =
            ["duration", "start", "stop", "at", "every", "time"].iter().any(|name| field.ends_with(name));
        if !unit.is_empty() || number.is_zero() {
            return None;
        }
        let probably = match T::NAME {
            "Duration" if long => "s",
            "Duration" => "ms",
            // Nobody means a number of six digits in Mbit/s: it is one of bit/s.
            "Rate" => match number.times(1) {
                Some(bits) if bits >= 100_000 => return Some(Rate::from_bits_per_sec(bits).text()),
                _ => "Mbit/s",
            },
            _ => return None,
        };
        Some(format!("{} {probably}", self.text.trim()))
    }
}

impl QuantityText<Size> {
    /// Parses the size of a buffer, given that of a full packet and of one bandwidth-delay product, if the path has one.
    ///
    /// # Errors
    /// When it is no size, or no packet fits; the error names `field`.
    pub fn read_buffer(
        &self,
        field: &str,
        packet: Bytes,
        bdp: Option<Bytes>,
    ) -> Result<Bytes, ScenarioError> {
        let bdp = match (self.read(field)?, bdp) {
            (Size::Bdp(_), None) => {
                let error =
                    self.error(field, "has no meaning on a path whose bottleneck has no rate of its own");
                return Err(error.expected("bytes or packets").write("\"100 packets\""));
            }
            (_, bdp) => bdp.unwrap_or(Bytes::ZERO),
        };
        let size = self.read(field)?;
        if size.is_of_slow_path(packet, bdp) {
            return Ok(Bytes::new(bounds::LEAST_ASSUMED_PACKETS * packet.as_u64()));
        }
        let size = size.bytes(packet, bdp).filter(|&size| size >= packet);
        size.ok_or_else(|| {
            let error = self.error(field, "is below one packet, or too large");
            error.expected(format!("at least one packet of {packet}")).write("\"20 packets\"")
        })
    }
}

impl<T: Quantity + PartialOrd> QuantityText<T> {
    /// Parses the text and checks the value against the limits; an error names `field`.
    pub(crate) fn read_within(&self, field: &str, limits: RangeInclusive<T>) -> Result<T, ScenarioError> {
        let value = self.read(field)?;
        if limits.contains(&value) {
            return Ok(value);
        }
        let (low, high) = (limits.start().text(), limits.end().text());
        let problem = match value < *limits.start() {
            true if Decimal::split(&self.text).is_ok_and(|(number, _)| number.is_zero()) => {
                "is zero".to_string()
            }
            true => format!("is below {low}"),
            false => format!("is above {high}"),
        };
        Err(self.error(field, problem).expected(format!("{} from {low} to {high}", T::NOUN)))
    }
}

/// Whether a text that is no quantity is two of them: `20..80 ms`, `40-120ms`.
fn is_range(text: &str) -> bool {
    let begins = |part: &str| part.trim_start().starts_with(|first: char| first.is_ascii_digit());
    ["..", "\u{2026}", "-", "\u{2013}", "\u{2014}", "\u{2212}", " to "].iter().any(|between| {
        // A sign in an exponent is none between two values.
        let parts = text.split_once(between).filter(|(low, _)| !low.ends_with(['e', 'E']));
        parts.is_some_and(|(low, high)| begins(low) && begins(high))
    })
}

/// From a text or a number: `"40 ms"`, `0.01`, `1500`.
impl<'de, T: Quantity> Deserialize<'de> for QuantityText<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QuantityText<T>, D::Error> {
        struct Words<T>(PhantomData<T>);

        impl<T: Quantity> Visitor<'_> for Words<T> {
            type Value = QuantityText<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<QuantityText<T>, E> {
                Ok(QuantityText::new(text))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<QuantityText<T>, E> {
                Ok(QuantityText::new(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<QuantityText<T>, E> {
                Ok(QuantityText::new(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<QuantityText<T>, E> {
                // The shortest decimal that is this float: what was written, without an exponent.
                Ok(QuantityText::new(number.to_string()))
            }
        }

        deserializer.deserialize_any(Words(PhantomData))
    }
}

impl<T: Quantity> JsonSchema for QuantityText<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let types: &[&str] = if T::BARE_NUMBER { &["string", "number"] } else { &["string"] };
        let description = format!("{}.", capitalised(T::EXPECTED));
        json_schema!({ "type": types, "description": description, "examples": T::EXAMPLES })
    }
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

/// A unit without the spaces in it.
fn compact(unit: &str) -> String {
    unit.chars().filter(|c| !c.is_whitespace()).collect()
}

fn unit_problem(noun: &str, unit: &str) -> Problem {
    if unit.is_empty() {
        return format!("is not {noun}: the unit is missing");
    }
    let shown: String = unit.chars().take(20).collect();
    format!("is not {noun}: unknown unit {shown:?}")
}

/// `number` times `factor`, rounded; a positive number must not become zero.
fn scaled(number: Decimal, factor: u64, unit: &str) -> Result<u64, Problem> {
    match number.times(factor) {
        None => Err("is too large".into()),
        Some(0) if !number.is_zero() => Err(format!("is below {unit}")),
        Some(value) => Ok(value),
    }
}

/// `number` times `factor`, which must be whole.
fn whole(number: Decimal, factor: u64, units: &str) -> Result<u64, Problem> {
    number.times_exactly(factor).ok_or_else(|| match number.times(factor) {
        Some(_) => format!("is not a whole number of {units}"),
        None => "is too large".into(),
    })
}

/// Bits per second in one `unit`, which has no spaces.
fn rate_unit(unit: &str) -> Option<u64> {
    let lower = unit.to_ascii_lowercase();
    let suffix = ["/second", "/sec", "/s", "ps"].into_iter().find(|suffix| lower.ends_with(suffix));
    let amount_len = unit.len() - suffix.map_or(0, str::len);
    let (amount, lower) = (&unit[..amount_len], &lower[..amount_len]);
    if let Some(prefix) = lower.strip_suffix("bits").or(lower.strip_suffix("bit")) {
        return prefix_factor(prefix);
    }
    // Without a time, the units are amounts of data and not rates.
    let suffix = suffix?;
    if let Some(prefix) = lower.strip_suffix("bytes").or(lower.strip_suffix("byte")) {
        return prefix_factor(prefix)?.checked_mul(8);
    }
    let factor = prefix_factor(lower.strip_suffix('b')?)?;
    let all_capitals = unit.ends_with("PS") || suffix.is_empty();
    match amount.ends_with('B') {
        false => Some(factor),
        // `MBPS` is used for both.
        true if all_capitals => None,
        true => factor.checked_mul(8),
    }
}

/// Bytes in one `unit`, which is in lower case and has no spaces.
fn size_unit(unit: &str) -> Option<u64> {
    if unit.is_empty() {
        return Some(1);
    }
    let prefix = unit.strip_suffix("bytes").or(unit.strip_suffix("byte")).or(unit.strip_suffix('b'))?;
    prefix_factor(prefix)
}

fn prefix_factor(prefix: &str) -> Option<u64> {
    Some(match prefix {
        "" => 1,
        "k" | "kilo" => 1_000,
        "m" | "mega" => 1_000_000,
        "g" | "giga" => 1_000_000_000,
        "t" | "tera" => 1_000_000_000_000,
        "ki" | "kibi" => 1 << 10,
        "mi" | "mebi" => 1 << 20,
        "gi" | "gibi" => 1 << 30,
        "ti" | "tebi" => 1 << 40,
        _ => return None,
    })
}

/// `value` in the largest unit that it fills, with all of its digits.
fn printed(value: u64, units: &[(u64, &str)]) -> String {
    let (scale, name) =
        units.iter().copied().find(|(scale, _)| value >= *scale).unwrap_or(units[units.len() - 1]);
    let digits = scale.ilog10() as usize;
    let number = format!("{}.{:0digits$}", value / scale, value % scale);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    // At scale one the line above ends in ".0", so that only the zeros of the fraction are trimmed.
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bps(text: &str) -> u64 {
        Rate::parse(text).unwrap_or_else(|problem| panic!("{text} {problem}")).as_bits_per_sec()
    }

    fn nanos(text: &str) -> u64 {
        Duration::parse(text).unwrap_or_else(|problem| panic!("{text} {problem}")).as_nanos()
    }

    fn problem<T: Quantity>(text: &str) -> String {
        T::parse(text).err().unwrap_or_else(|| panic!("{text} was accepted"))
    }

    #[test]
    fn range_value_is_refused_as_range() {
        for text in [
            "20..80 ms",
            "20ms..80ms",
            "40-120ms",
            "40 ms - 120 ms",
            "40\u{2013}120 ms",
            "40 ms\u{2026}120 ms",
            "1 to 2 s",
        ] {
            let error = QuantityText::<Duration>::new(text).read("rtt").unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("rtt: {text:?} is a range, not one value; expected")),
                "{error}"
            );
        }
        for text in ["-40 ms", "5e-30 s", "40 parsecs", "..40 ms", "a-b"] {
            let error = QuantityText::<Duration>::new(text).read("rtt").unwrap_err().to_string();
            assert!(!error.contains("range"), "{error}");
        }
    }

    #[test]
    fn rates_as_people_write_them() {
        for text in
            ["100 Mbit/s", "100mbit", "100 Mbps", "100MBIT/S", "100 Mb/s", "100e6 bit/s", "0.1 Gbit / s"]
        {
            assert_eq!(bps(text), 100_000_000, "{text}");
        }
        assert_eq!(bps("1.5Gbit/s"), 1_500_000_000);
        assert_eq!(bps("250 kbit"), 250_000);
        assert_eq!(bps("10 MB/s"), 80_000_000);
        assert_eq!(bps("10 MBps"), 80_000_000);
        assert_eq!(bps("1 KiB/s"), 8_192);
        assert_eq!(bps("0.1 bytes/s"), 1);
    }

    #[test]
    fn durations_as_people_write_them() {
        assert_eq!(nanos("40 ms"), 40_000_000);
        assert_eq!(nanos("40MS"), 40_000_000);
        assert_eq!(nanos("1.5s"), 1_500_000_000);
        assert_eq!(nanos("200 us"), 200_000);
        assert_eq!(nanos("200 µs"), 200_000);
        assert_eq!(nanos("2 min"), 120_000_000_000);
        assert_eq!(nanos("0.1 us"), 100);
        assert_eq!(nanos("0"), 0);
    }

    #[test]
    fn sizes_as_people_write_them() {
        let bytes = |bytes| Ok(Size::Bytes(Bytes::new(bytes)));
        assert_eq!(Size::parse("100 KB"), bytes(100_000));
        assert_eq!(Size::parse("100kb"), bytes(100_000));
        assert_eq!(Size::parse("100KiB"), bytes(102_400));
        assert_eq!(Size::parse("1500 B"), bytes(1500));
        assert_eq!(Size::parse("1500"), bytes(1500));
        assert_eq!(Size::parse("10MB"), bytes(10_000_000));
        assert_eq!(Size::parse("20 packets"), Ok(Size::Packets(20)));
        assert_eq!(Size::parse("20pkts"), Ok(Size::Packets(20)));
        let bdp = Size::parse("1.5 BDP").unwrap();
        assert_eq!(bdp.bytes(Bytes::new(1500), Bytes::new(500_000)), Some(Bytes::new(750_000)));
        let tenth = Size::parse("0.1bdp").unwrap();
        assert_eq!(tenth.bytes(Bytes::new(1500), Bytes::new(10)), Some(Bytes::new(1)));
    }

    #[test]
    fn probabilities_as_people_write_them() {
        let expected = Probability::from_f64(0.001);
        for text in ["0.1 %", "0.1%", "0.001", "0.1 percent", "1e-3", "1e-1 %"] {
            assert_eq!(Probability::parse(text), Ok(expected), "{text}");
        }
        assert_eq!(Probability::parse("100 %"), Ok(Probability::from_f64(1.0)));
        assert_eq!(Probability::parse("0"), Ok(Probability::ZERO));
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        assert_eq!(problem::<Rate>("100 parsecs"), "is not a rate: unknown unit \"parsecs\"");
        assert_eq!(problem::<Rate>("100"), "is not a rate: the unit is missing");
        assert_eq!(problem::<Rate>("10 MB"), "is not a rate: unknown unit \"MB\"");
        assert_eq!(problem::<Rate>("10 MBPS"), "is not a rate: unknown unit \"MBPS\"");
        assert_eq!(problem::<Rate>("-1 Mbit/s"), "is negative");
        assert_eq!(problem::<Rate>("nan"), "is not a finite number");
        assert_eq!(problem::<Rate>("99999999999 Tbit/s"), "is too large");
        assert_eq!(problem::<Rate>("0.1 bit/s"), "is below one bit per second");
        assert_eq!(problem::<Rate>("1,000 bit/s"), "is not a rate: unknown unit \",000 bit/s\"");
        assert_eq!(problem::<Duration>("40"), "is not a duration: the unit is missing");
        assert_eq!(problem::<Duration>("40 m"), "is not a duration: unknown unit \"m\"");
        assert_eq!(problem::<Duration>(""), "is empty");
        assert_eq!(problem::<Size>("0.5 B"), "is not a whole number of bytes");
        assert_eq!(problem::<Size>("1.5 packets"), "is not a whole number of packets");
        assert_eq!(problem::<Size>("5000000000 packets"), "is too large");
        assert_eq!(problem::<Size>("100 kbit"), "is not an amount of data: unknown unit \"kbit\"");
        assert_eq!(problem::<Probability>("1"), "could be 1 % or 100 %");
        assert_eq!(problem::<Probability>("101 %"), "is above 100 %");
        assert_eq!(problem::<Probability>("5"), "is above 100 %");
        assert_eq!(problem::<Count>("1.5"), "is not whole");
        assert_eq!(problem::<Count>("99999999999999999999"), "is too large");
    }

    #[test]
    fn an_error_is_one_clear_sentence() {
        assert_eq!(
            QuantityText::<Rate>::new("100 parsecs").read("path.rate").unwrap_err().to_string(),
            "path.rate: \"100 parsecs\" is not a rate: unknown unit \"parsecs\"; expected a number with a unit such as \
             \"100 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, B/s, MB/s); write rate = \"100 Mbit/s\""
        );
        let limits = Rate::from_bits_per_sec(1000)..=Rate::from_bits_per_sec(1_000_000_000_000);
        assert_eq!(
            QuantityText::<Rate>::new("0 bit/s").read_within("path.rate", limits).unwrap_err().to_string(),
            "path.rate: \"0 bit/s\" is zero; expected a rate from 1 kbit/s to 1000 Gbit/s; write rate = \"100 Mbit/s\""
        );
    }

    #[test]
    fn missing_unit_suggests_likely_unit() {
        let fix =
            |error: ScenarioError| error.to_string().rsplit("; ").next().unwrap_or_default().to_string();
        let duration = |field: &str| fix(QuantityText::<Duration>::new("10").read(field).unwrap_err());
        assert_eq!(duration("duration"), "write duration = \"10 s\"");
        assert_eq!(duration("flows[0].start"), "write start = \"10 s\"");
        assert_eq!(duration("path.rtt"), "write rtt = \"10 ms\"");
        assert_eq!(
            fix(QuantityText::<Rate>::new(" 2.5 ").read("path.rate").unwrap_err()),
            "write rate = \"2.5 Mbit/s\""
        );
        assert_eq!(
            fix(QuantityText::<Rate>::new("ten").read("path.rate").unwrap_err()),
            "write rate = \"100 Mbit/s\""
        );
    }

    #[test]
    fn buffer_below_packet_is_refused() {
        let read = |text: &str, bdp| {
            QuantityText::<Size>::new(text)
                .read_buffer("buffer", Bytes::new(1500), bdp)
                .map_err(|error| error.to_string())
        };
        let bdp = Some(Bytes::new(50_000));
        assert_eq!(read("2 bdp", bdp), Ok(Bytes::new(100_000)));
        assert_eq!(read("3 packets", None), Ok(Bytes::new(4500)));
        assert!(
            read("1 bdp", None).unwrap_err().starts_with("buffer: \"1 bdp\" has no meaning on a path whose")
        );
        assert!(read("1499", bdp).unwrap_err().contains("is below one packet"));
        assert!(read("40 ms", bdp).unwrap_err().starts_with("buffer: \"40 ms\""));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>()) {
            let _ = (Rate::parse(&text), Duration::parse(&text), Size::parse(&text));
            let _ = (Probability::parse(&text), Count::parse(&text));
        }

        #[test]
        fn reading_near_misses_never_panics(text in "[-+−]?[0-9.,eE+-]{0,30} ?[a-zA-Zµμ%/ ]{0,9}") {
            let _ = (Rate::parse(&text), Duration::parse(&text), Size::parse(&text));
            let _ = (Probability::parse(&text), Count::parse(&text));
        }

        #[test]
        fn a_rate_survives_print_and_parse(bps: u64) {
            let rate = Rate::from_bits_per_sec(bps);
            prop_assert_eq!(Rate::parse(&rate.text()), Ok(rate));
        }

        #[test]
        fn a_duration_survives_print_and_parse(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(Duration::parse(&duration.text()), Ok(duration));
        }

        #[test]
        fn a_size_survives_print_and_parse(bytes: u64, packets: u32, factor in "[0-9]{1,6}\\.[0-9]{1,6}") {
            let bdp = Size::parse(&format!("{factor} bdp")).unwrap();
            for size in [Size::Bytes(Bytes::new(bytes)), Size::Packets(packets), bdp] {
                let again = Size::parse(&size.text()).unwrap();
                prop_assert_eq!(again.text(), size.text());
                let (packet, bdp) = (Bytes::new(1500), Bytes::new(1_000_000));
                prop_assert_eq!(again.bytes(packet, bdp), size.bytes(packet, bdp));
            }
        }

        #[test]
        fn a_probability_survives_print_and_parse(parts in 0u64..=1 << 32) {
            let probability = Probability::from_f64(parts as f64 / (1u64 << 32) as f64);
            prop_assert_eq!(Probability::parse(&probability.text()), Ok(probability));
        }
    }
}
