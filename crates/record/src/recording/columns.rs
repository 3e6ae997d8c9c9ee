//! The columns of a recording: the name and type of each, and how it is stored, filled and read back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_schema::{DataType, Field};
use fullpipe_replay::{Call, Ops, Private, PrivateField};

use super::{Problem, hook};

/// The private state before a call, if it is not what the flow's previous call left.
pub(super) type Before = Option<Private>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    U8,
    U32,
    U64,
    I32,
    I64,
}

/// How a column is stored compactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// For values that grow, or change a little at each call: differences, bit-packed.
    Delta,
    /// For few different values, or long runs of one.
    Dictionary,
}

#[derive(Clone, Copy)]
enum Source {
    /// Position of the call in the recording.
    Position,
    Hook,
    Field {
        get: fn(&Call) -> u64,
        set: fn(&mut Call, u64),
    },
    /// A field of the private state after the call.
    Private(&'static PrivateField),
    /// Whether the private state before it is what the previous call left.
    Continues,
    /// A field of the private state before the call, null if it continues.
    Before(&'static PrivateField),
}

pub(super) struct Column {
    name: String,
    kind: Kind,
    storage: Storage,
    source: Source,
}

/// A field as 64 bits, sign-extended, and back.
trait Bits {
    fn to_bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

macro_rules! bits {
    ($($kind:ty)+) => {
        $(impl Bits for $kind {
            fn to_bits(self) -> u64 {
                self as u64
            }
            fn of_bits(bits: u64) -> $kind {
                bits as $kind
            }
        })+
    };
}
bits!(u8 u32 u64 i32 i64);

impl Bits for bool {
    fn to_bits(self) -> u64 {
        self as u64
    }
    fn of_bits(bits: u64) -> bool {
        bits != 0
    }
}

macro_rules! field {
    ($name:literal, $kind:ident, $storage:ident, $($path:tt)+) => {
        Column {
            name: $name.to_owned(),
            kind: Kind::$kind,
            storage: Storage::$storage,
            source: Source::Field {
                get: |call| call.$($path)+.to_bits(),
                set: |call, bits| call.$($path)+ = Bits::of_bits(bits),
            },
        }
    };
}

/// The columns of a recording of `ops`, in order.
pub(super) fn columns(ops: Ops) -> Vec<Column> {
    let special = |name: &str, kind, storage, source| Column { name: name.to_owned(), kind, storage, source };
    let mut columns = vec![
        special("call", Kind::U64, Storage::Delta, Source::Position),
        field!("flow", U32, Dictionary, flow),
        field!("ktime_ns", U64, Delta, ktime_ns),
        special("hook", Kind::U8, Storage::Dictionary, Source::Hook),
        field!("arg0", I64, Delta, arguments[0]),
        field!("arg1", I64, Dictionary, arguments[1]),
        field!("arg2", I64, Delta, arguments[2]),
        field!("ret", U32, Dictionary, returned),
        field!("rs_prior_mstamp", U64, Delta, rate_sample.prior_mstamp),
        field!("rs_prior_delivered", U32, Delta, rate_sample.prior_delivered),
        field!("rs_delivered", I32, Delta, rate_sample.delivered),
        field!("rs_interval_us", I64, Delta, rate_sample.interval_us),
        field!("rs_snd_interval_us", U32, Delta, rate_sample.snd_interval_us),
        field!("rs_rcv_interval_us", U32, Delta, rate_sample.rcv_interval_us),
        field!("rs_rtt_us", I64, Delta, rate_sample.rtt_us),
        field!("rs_losses", I32, Dictionary, rate_sample.losses),
        field!("rs_acked_sacked", U32, Dictionary, rate_sample.acked_sacked),
        field!("rs_prior_in_flight", U32, Delta, rate_sample.prior_in_flight),
        field!("rs_last_end_seq", U32, Delta, rate_sample.last_end_seq),
        field!("rs_is_app_limited", Bool, Dictionary, rate_sample.is_app_limited),
        field!("rs_is_retrans", Bool, Dictionary, rate_sample.is_retrans),
        field!("rs_is_ack_delayed", Bool, Dictionary, rate_sample.is_ack_delayed),
        field!("ca_state", U8, Dictionary, socket.ca_state),
        field!("jiffies32", U32, Delta, socket.jiffies32),
        field!("tcp_clock_cache", U64, Delta, socket.tcp_clock_cache),
        field!("tcp_mstamp", U64, Delta, socket.tcp_mstamp),
        field!("delivered_mstamp", U64, Delta, socket.delivered_mstamp),
        field!("first_tx_mstamp", U64, Delta, socket.first_tx_mstamp),
        field!("tcp_wstamp_ns", U64, Delta, socket.tcp_wstamp_ns),
        field!("delivered", U32, Delta, socket.delivered),
        field!("lost", U32, Delta, socket.lost),
        field!("app_limited", U32, Delta, socket.app_limited),
        field!("packets_out", U32, Delta, socket.packets_out),
        field!("sacked_out", U32, Dictionary, socket.sacked_out),
        field!("lost_out", U32, Dictionary, socket.lost_out),
        field!("retrans_out", U32, Dictionary, socket.retrans_out),
        field!("srtt_us", U32, Delta, socket.srtt_us),
        field!("min_rtt_us", U32, Dictionary, socket.min_rtt_us),
        field!("mss_cache", U32, Dictionary, socket.mss_cache),
        field!("snd_una", U32, Delta, socket.snd_una),
        field!("snd_nxt", U32, Delta, socket.snd_nxt),
        field!("snd_cwnd", U32, Delta, socket.snd_cwnd),
        field!("snd_ssthresh", U32, Dictionary, socket.snd_ssthresh),
        field!("snd_cwnd_clamp", U32, Dictionary, socket.snd_cwnd_clamp),
        field!("snd_cwnd_cnt", U32, Delta, socket.snd_cwnd_cnt),
        field!("prior_cwnd", U32, Dictionary, socket.prior_cwnd),
        field!("prior_ssthresh", U32, Dictionary, socket.prior_ssthresh),
        field!("max_packets_out", U32, Delta, socket.max_packets_out),
        field!("total_retrans", U32, Delta, socket.total_retrans),
        field!("is_cwnd_limited", Bool, Dictionary, socket.is_cwnd_limited),
        field!("sk_pacing_rate", U64, Dictionary, socket.sk_pacing_rate),
        field!("sk_max_pacing_rate", U64, Dictionary, socket.sk_max_pacing_rate),
        field!("sk_pacing_status", U32, Dictionary, socket.sk_pacing_status),
        field!("sk_gso_max_size", U32, Dictionary, socket.sk_gso_max_size),
        field!("after_sk_pacing_rate", U64, Dictionary, after.sk_pacing_rate),
        field!("after_snd_cwnd", U32, Delta, after.snd_cwnd),
        field!("after_snd_ssthresh", U32, Dictionary, after.snd_ssthresh),
        field!("after_snd_cwnd_cnt", U32, Delta, after.snd_cwnd_cnt),
        field!("after_prior_cwnd", U32, Dictionary, after.prior_cwnd),
    ];
    let private = |prefix: &str, source: fn(&'static PrivateField) -> Source| {
        let prefix = format!("{prefix}{}_", ops.name());
        ops.fields().iter().map(move |field| Column {
            name: format!("{prefix}{}", field.name),
            kind: kind_of(field),
            storage: storage_of(field),
            source: source(field),
        })
    };
    columns.extend(private("", Source::Private));
    columns.push(special("state_continues", Kind::Bool, Storage::Dictionary, Source::Continues));
    columns.extend(private("before_", Source::Before));
    columns
}

fn kind_of(field: &PrivateField) -> Kind {
    match field.bits() {
        1 => Kind::Bool,
        2..=8 => Kind::U8,
        9..=32 => Kind::U32,
        _ => Kind::U64,
    }
}

/// Counters and clocks that change at most calls; the rest changes once a round, or less often.
fn storage_of(field: &PrivateField) -> Storage {
    match field.name {
        "ack_epoch_acked" | "ack_epoch_mstamp" | "ack_cnt" | "last_ack" | "last_time" | "cnt" => {
            Storage::Delta
        }
        _ => Storage::Dictionary,
    }
}

impl Column {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn storage(&self) -> Storage {
        self.storage
    }

    pub(super) fn field(&self) -> Field {
        let kind = match self.kind {
            Kind::Bool => DataType::Boolean,
            Kind::U8 => DataType::UInt8,
            Kind::U32 => DataType::UInt32,
            Kind::U64 => DataType::UInt64,
            Kind::I32 => DataType::Int32,
            Kind::I64 => DataType::Int64,
        };
        Field::new(&self.name, kind, matches!(self.source, Source::Before(_)))
    }

    fn get(&self, row: usize, call: &Call, before: &Before) -> Option<u64> {
        Some(match self.source {
            Source::Position => row as u64,
            Source::Hook => call.hook as u64,
            Source::Field { get, .. } => get(call),
            Source::Private(field) => field.get(&call.private_after),
            Source::Continues => before.is_none() as u64,
            Source::Before(field) => return before.as_ref().map(|before| field.get(before)),
        })
    }

    /// The column for `rows` of `calls`.
    pub(super) fn array(&self, calls: &[Call], rows: &[usize], befores: &[Before]) -> ArrayRef {
        let values = rows.iter().zip(befores).map(|(&row, before)| self.get(row, &calls[row], before));
        match self.kind {
            Kind::Bool => Arc::new(values.map(|bits| bits.map(bool::of_bits)).collect::<BooleanArray>()),
            Kind::U8 => primitive::<UInt8Type>(values),
            Kind::U32 => primitive::<UInt32Type>(values),
            Kind::U64 => primitive::<UInt64Type>(values),
            Kind::I32 => primitive::<Int32Type>(values),
            Kind::I64 => primitive::<Int64Type>(values),
        }
    }

    /// Copies the values of `array` into `rows` and `befores`. Columns must be read in their order.
    pub(super) fn read(
        &self,
        array: &ArrayRef,
        rows: &mut [(u64, Call)],
        befores: &mut [Before],
    ) -> Result<(), Problem> {
        for (index, row) in rows.iter_mut().enumerate() {
            let bits = array.is_valid(index).then(|| match self.kind {
                Kind::Bool => array.as_boolean().value(index).to_bits(),
                Kind::U8 => array.as_primitive::<UInt8Type>().value(index).to_bits(),
                Kind::U32 => array.as_primitive::<UInt32Type>().value(index).to_bits(),
                Kind::U64 => array.as_primitive::<UInt64Type>().value(index).to_bits(),
                Kind::I32 => array.as_primitive::<Int32Type>().value(index).to_bits(),
                Kind::I64 => array.as_primitive::<Int64Type>().value(index).to_bits(),
            });
            self.set(bits, row, &mut befores[index])?;
        }
        Ok(())
    }

    /// Whether it describes the private state.
    #[cfg(test)]
    pub(super) fn is_private(&self) -> bool {
        matches!(self.source, Source::Private(_) | Source::Continues | Source::Before(_))
    }

    /// Puts the value of one row where it belongs.
    pub(super) fn set(
        &self,
        bits: Option<u64>,
        row: &mut (u64, Call),
        before: &mut Before,
    ) -> Result<(), Problem> {
        let (position, call) = row;
        let wrong = |found: String, expected: String| Problem::Value {
            call: *position,
            column: self.name.clone(),
            found,
            expected,
        };
        let null = || wrong("null".to_owned(), "a value".to_owned());
        let fit = |field: &PrivateField, bits: u64| {
            let fits = field.bits() == 64 || bits >> field.bits() == 0;
            let expected = || format!("a number of {} bits", field.bits());
            if fits { Ok(bits) } else { Err(wrong(bits.to_string(), expected())) }
        };
        match self.source {
            Source::Position => *position = bits.ok_or_else(null)?,
            Source::Hook => call.hook = hook(*position, bits.ok_or_else(null)?)?,
            Source::Field { set, .. } => set(call, bits.ok_or_else(null)?),
            Source::Private(field) => field.set(&mut call.private_after, fit(field, bits.ok_or_else(null)?)?),
            Source::Continues => *before = (bits.ok_or_else(null)? == 0).then_some([0; 13]),
            Source::Before(field) => match (bits, before) {
                (Some(bits), Some(before)) => field.set(before, fit(field, bits)?),
                (None, None) => {}
                (None, Some(_)) => return Err(null()),
                (Some(bits), None) => {
                    return Err(wrong(bits.to_string(), "null, for the state continues".to_owned()));
                }
            },
        }
        Ok(())
    }
}

fn primitive<T>(values: impl Iterator<Item = Option<u64>>) -> ArrayRef
where
    T: ArrowPrimitiveType,
    T::Native: Bits,
{
    Arc::new(values.map(|bits| bits.map(T::Native::of_bits)).collect::<PrimitiveArray<T>>())
}
