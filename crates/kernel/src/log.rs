//! Logs of a run's packets: pcapng as they pass the sender's device, and qlog from the same packets and the sockets' samples.
//!
//! A thread of its own writes while the run goes on. The samples of the sockets are known at its end: until then, what qlog needs
//! of each packet, its headers, waits in a file.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use fullpipe_cc::{CaState, Phase};
use fullpipe_emu::{FIRST_PORT, Seen, Watched};
use fullpipe_export::pcapng::Pcapng;
use fullpipe_export::qlog::Qlog;
use fullpipe_export::{Event, Files, Header, Log, Reader, State, full_note, tcp};
use fullpipe_record::{FlowRecord, FlowSeries};
use fullpipe_units::Time;

/// The longest headers: an IPv4 and a TCP header with all options.
const HEADERS: usize = 120;
/// Before each packet in the file: time, flags, whole length, length of what is kept.
const HEAD_BYTES: usize = 14;

/// Where a run is logged.
#[derive(Debug)]
pub struct Logs {
    /// What the reader must know of the run.
    pub header: Header,
    /// Files for both forms of qlog, and one for what is needed until the end of the run.
    pub qlog: Option<[File; 3]>,
    /// A file for pcapng.
    pub pcap: Option<File>,
    /// How much of a packet that file keeps.
    pub snaplen: u32,
    /// The most packets in a file.
    pub most: u64,
}

/// What became of the logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// When the most packets were written, if the files end there.
    pub full_at: Option<Time>,
    /// Packets that are not in the files, because the disk was too slow.
    pub missed: u64,
}

/// What the thread that writes has left.
#[derive(Debug)]
pub(crate) struct Collected {
    logged: Logged,
    header: Header,
    /// Both forms of qlog, and the headers.
    qlog: Option<[File; 3]>,
}

impl Logs {
    /// Writes packets until the path is over.
    pub(crate) fn collect(self, watched: Watched) -> io::Result<Collected> {
        let Logs { header, qlog, pcap, snaplen, most } = self;
        let mut written = 0;
        let mut full_at = None;
        let mut files = Collecting::new(pcap, qlog.as_ref().map(|[_, _, spool]| spool), snaplen);
        // After an error, too, what is told is taken: the ferry does not wait for it.
        let missed = watched.each(|seen| {
            if written == most {
                full_at.get_or_insert(seen.at);
            } else if let Ok(open) = &mut files {
                written += 1;
                if let Err(error) = open.packet(seen) {
                    files = Err(error);
                }
            }
        });
        let note = full_at.map(full_note);
        files?.finish(note.as_deref())?;
        Ok(Collected { logged: Logged { full_at, missed }, header, qlog })
    }
}

/// The files that are written while the run goes on.
struct Collecting {
    pcap: Option<Pcapng<BufWriter<File>>>,
    spool: Option<BufWriter<File>>,
    frame: Vec<u8>,
}

impl Collecting {
    fn new(pcap: Option<File>, spool: Option<&File>, snaplen: u32) -> io::Result<Collecting> {
        let application = concat!("Fullpipe ", env!("CARGO_PKG_VERSION"));
        let pcap = pcap.map(|file| Pcapng::new(writer(file), snaplen, application, "sender")).transpose()?;
        let spool = spool.map(|file| file.try_clone().map(writer)).transpose()?;
        Ok(Collecting { pcap, spool, frame: Vec::new() })
    }

    fn packet(&mut self, seen: Seen<'_>) -> io::Result<()> {
        let Seen { at, inbound, ip } = seen;
        if let Some(pcap) = &mut self.pcap {
            self.frame.clear();
            self.frame.extend(tcp::ethernet(inbound));
            self.frame.extend(&*ip);
            let length = self.frame.len() as u32;
            pcap.packet(at, tcp::Frame { bytes: &self.frame, length, inbound, comment: None })?;
        }
        if let Some(spool) = &mut self.spool {
            let kept = &ip[..ip.len().min(HEADERS)];
            spool.write_all(&at.as_nanos().to_le_bytes())?;
            spool.write_all(&[inbound as u8])?;
            spool.write_all(&(ip.len() as u32).to_le_bytes())?;
            spool.write_all(&[kept.len() as u8])?;
            spool.write_all(kept)?;
        }
        Ok(())
    }

    fn finish(self, note: Option<&str>) -> io::Result<()> {
        if let Some(pcap) = self.pcap {
            pcap.finish(note)?;
        }
        if let Some(mut spool) = self.spool {
            spool.flush()?;
        }
        Ok(())
    }
}

fn writer(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 18, file)
}

impl Collected {
    /// Writes the qlog from the packets and the samples of the flows.
    pub(crate) fn finish(self, flows: &[FlowRecord]) -> io::Result<Logged> {
        let Collected { logged, header, qlog } = self;
        let Some([sequence, contained, mut spool]) = qlog else { return Ok(logged) };
        spool.seek(SeekFrom::Start(0))?;
        let mut spool = BufReader::new(spool);
        let qlog = Qlog::new(writer(sequence), writer(contained), &header)?;
        // The packets are counted already.
        let mut log: Files<BufWriter<File>> = Files::new(Some(qlog), None, &header, u64::MAX);
        let mut reader = Reader::new(FIRST_PORT, flows.len());
        let mut states = States::of(flows, &header);
        let mut head = [0; HEAD_BYTES];
        let mut kept = [0; HEADERS];
        while read_whole(&mut spool, &mut head)? {
            let [a, b, c, d, e, f, g, h, inbound, i, j, k, l, bytes] = head;
            let at = Time::from_nanos(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
            let length = u32::from_le_bytes([i, j, k, l]);
            let kept = &mut kept[..bytes as usize];
            spool.read_exact(kept)?;
            states.report_until(at, &mut log);
            reader.packet(at, inbound != 0, kept, length, &mut log);
        }
        let end = logged.full_at.unwrap_or(Time::NEVER);
        states.report_until(end, &mut log);
        if let Some(at) = logged.full_at {
            log.end_at(at);
        }
        log.finish()?;
        Ok(logged)
    }
}

/// Fills `bytes`; false at the end of the file.
fn read_whole(file: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The samples of all flows, in the order of their times.
struct States<'a> {
    flows: &'a [FlowRecord],
    mss: Vec<u32>,
    /// Flow and place of each sample, the next one last.
    left: Vec<(usize, usize)>,
}

impl<'a> States<'a> {
    fn of(flows: &'a [FlowRecord], header: &Header) -> States<'a> {
        let places = |(flow, record): (usize, &FlowRecord)| {
            (0..record.series.time_ns.len()).map(move |place| (flow, place)).collect::<Vec<_>>()
        };
        let mut left: Vec<(usize, usize)> = flows.iter().enumerate().flat_map(places).collect();
        left.sort_by_key(|(flow, place)| flows[*flow].series.time_ns[*place]);
        left.reverse();
        States { flows, mss: header.flows.iter().map(|flow| flow.mss).collect(), left }
    }

    /// Tells all samples until then.
    fn report_until(&mut self, until: Time, log: &mut dyn Log) {
        while let Some(&(flow, place)) = self.left.last() {
            let series = &self.flows[flow].series;
            let at = Time::from_nanos(series.time_ns[place]);
            if at > until {
                break;
            }
            self.left.pop();
            log.take(at, flow as u32, &Event::State(&state(series, place, self.mss[flow])));
        }
    }
}

/// What a sample says.
fn state(series: &FlowSeries, place: usize, mss: u32) -> State {
    let bytes = |segments: u32| segments as u64 * mss as u64;
    let known = |value: u64| (value != u64::MAX).then_some(value);
    let phase = Phase::ALL.get(series.phase[place] as usize);
    let recovery = CaState::ALL.get(series.ca_state[place] as usize);
    State {
        cwnd: Some(bytes(series.cwnd[place])),
        ssthresh: (series.ssthresh[place] != u32::MAX).then(|| bytes(series.ssthresh[place])),
        pacing_bps: known(series.pacing_bps[place]),
        in_flight: Some(bytes(series.inflight[place])),
        segments_in_flight: Some(series.inflight[place] as u64),
        srtt_ns: known(series.srtt_ns[place]),
        min_rtt_ns: known(series.min_rtt_ns[place]),
        phase: phase.map(|phase| phase.name()),
        recovery: recovery.map(|state| state.name()),
    }
}
