//! Sizes of queues and buckets: each holds at least one packet, and none is without bounds.

use fullpipe_path::ETHERNET_HEADER_BYTES;
use fullpipe_path::config::QueueConfig;
use fullpipe_units::{Bytes, Duration, Rate};

use crate::bounds;
use crate::error::ScenarioError;
use crate::quantity::{Quantity, QuantityText, Size};
use crate::queue;
use crate::resolve::builder::Builder;
use crate::unit::Unit;

/// What a queue or a bucket counts of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// From IP upwards.
    Packet,
    /// The header of its Ethernet frame, too: a router's interface.
    Frame,
}

impl Counted {
    fn header_bytes(self) -> u32 {
        match self {
            Counted::Packet => 0,
            Counted::Frame => ETHERNET_HEADER_BYTES,
        }
    }
}

/// Reads sizes.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    packet: Bytes,
    rtt: Duration,
    counted: Counted,
}

/// What is too small, and what is too large.
struct Within {
    most: Bytes,
    why: &'static str,
    /// What to write for a router.
    usual: Bytes,
}

const BUFFER: Within = Within { most: bounds::MAX_BUFFER, why: "", usual: Bytes::new(100_000) };
const BURST: Within =
    Within { most: bounds::MAX_BURST, why: ": tc has 32 bits for it", usual: Bytes::new(32_000) };

impl Builder<'_> {
    /// Reads sizes of what counts packets.
    pub(crate) fn sizes(&self) -> Sizes {
        self.counting(Counted::Packet)
    }

    /// Reads sizes of what counts this.
    pub(super) fn counting(&self, counted: Counted) -> Sizes {
        Sizes { packet: self.packet, rtt: self.rtt, counted }
    }
}

impl Sizes {
    /// What it counts besides the packet from IP upwards.
    pub(super) fn header_bytes(self) -> u32 {
        self.counted.header_bytes()
    }

    /// A queue that holds at least one packet, from the keys `buffer` and `queue` of a table. Without a buffer, or with one of
    /// bandwidth-delay products that are below one packet, the one that is assumed. `at` is the place of a key.
    pub(crate) fn queue(
        self,
        at: &dyn Fn(&str) -> String,
        buffer: Option<&QuantityText<Size>>,
        discipline: &Option<String>,
        unit: Option<Unit>,
        rate: Rate,
    ) -> Result<QueueConfig, ScenarioError> {
        let field = at("buffer");
        let within = match self.counted {
            Counted::Packet => BUFFER,
            Counted::Frame => Within { usual: BUFFER.usual, ..BURST },
        };
        let (bytes, packets) = match buffer {
            None => (self.assumed(&field, rate, &within)?, None),
            Some(written) => {
                let size = written.read(&field)?;
                let packets = if let Size::Packets(packets) = size { Some(packets) } else { None };
                if size.is_of_slow_path(self.least(), rate.bytes_in(self.rtt)) {
                    (self.assumed(&field, rate, &within)?, None)
                } else {
                    // Packets are at most this large, so that the limit in bytes never binds before the one in packets.
                    (self.within(&field, written, size, rate, &within)?, packets)
                }
            }
        };
        let discipline = queue::read(&at("queue"), discipline)?;
        Ok(QueueConfig { bytes, packets, discipline, unit: Unit::config(unit) })
    }

    /// One bandwidth-delay product, but at least [`bounds::LEAST_ASSUMED_PACKETS`].
    fn assumed(self, field: &str, rate: Rate, within: &Within) -> Result<Bytes, ScenarioError> {
        let least = Bytes::new(bounds::LEAST_ASSUMED_PACKETS * self.least().as_u64());
        let bytes = rate.bytes_in(self.rtt).max(least);
        if bytes <= within.most {
            return Ok(bytes);
        }
        let most = Size::Bytes(within.most).text();
        Err(QuantityText::<Size>::new("1 bdp")
            .error(field, format!("is the default, which is above {most}"))
            .expected(format!("at most {most}{}", within.why))
            .write("\"100 MB\""))
    }

    /// The depth of a bucket: if it were below one packet, no packet would ever find enough tokens.
    pub(crate) fn burst(
        self,
        field: &str,
        written: &QuantityText<Size>,
        rate: Rate,
    ) -> Result<Bytes, ScenarioError> {
        self.within(field, written, written.read(field)?, rate, &BURST)
    }

    fn within(
        self,
        field: &str,
        written: &QuantityText<Size>,
        size: Size,
        rate: Rate,
        within: &Within,
    ) -> Result<Bytes, ScenarioError> {
        let bdp = rate.bytes_in(self.rtt);
        let bytes = size.bytes(self.packet, bdp).filter(|bytes| *bytes <= within.most);
        let Some(bytes) = bytes else {
            let most = Size::Bytes(within.most).text();
            return Err(written
                .error(field, format!("is above {most}"))
                .expected(format!("at most {most}{}", within.why))
                .write("\"100 MB\""));
        };
        if bytes >= self.least() {
            return Ok(bytes);
        }
        let computed = match size {
            Size::Bytes(_) => String::new(),
            Size::Bdp(_) if self.rtt == Duration::ZERO => {
                " (a path of no delay has a BDP of 0 B)".to_string()
            }
            Size::Packets(_) | Size::Bdp(_) => format!(" ({})", Size::Bytes(bytes).text()),
        };
        let least = self.least().as_u64();
        let (what, expected) = match self.counted {
            Counted::Packet => ("packet", format!("at least one packet of {least} bytes (hosts.mtu)")),
            Counted::Frame => {
                let frame = "at least one Ethernet frame";
                ("Ethernet frame", format!("{frame} of {least} bytes (hosts.mtu and its header)"))
            }
        };
        Err(written
            .error(field, format!("is below one {what}{computed}"))
            .expected(expected)
            .write(format!("\"{}\"", self.enough(written, bdp, within))))
    }

    /// The least that a queue or a bucket may hold.
    fn least(self) -> Bytes {
        Bytes::new(self.packet.as_u64() + u64::from(self.counted.header_bytes()))
    }

    /// What to write instead of a size that is too small.
    fn enough(self, written: &QuantityText<Size>, bdp: Bytes, within: &Within) -> String {
        if self.counted == Counted::Frame {
            let frames = Bytes::new(2 * self.least().as_u64());
            return Size::Bytes(frames.max(within.usual)).text();
        }
        // A number alone is bytes, which was hardly meant: a small one is of bandwidth-delay products.
        let number = written.text().trim().parse::<u64>().unwrap_or_default();
        match number {
            0 => "20 packets".to_string(),
            1..=MOST_BDPS if bdp >= self.least() => format!("{number} bdp"),
            _ => format!("{number} packets"),
        }
    }
}

/// Who writes a larger number does not mean bandwidth-delay products.
const MOST_BDPS: u64 = 20;
