// gVisor's netstack, a TCP in user space, in virtual time. Its datagrams are IP packets.
package main

import (
	"bytes"
	_ "embed"
	"io"
	"log"
	"math/rand"
	"runtime"
	"strings"
	"time"

	"fullpipe/stack"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	netstack "gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// When the run starts: netstack takes 0 for a time that is not set.
	origin = time.Second
	// A whole window may leave at once, and an answer has at most 64 MiB.
	mostWindow = 16 << 20
)

var (
	//go:embed go.mod
	requirements string
	// What the application sends. A write fills the send buffer, so that packets are full.
	filler [mostWindow]byte
	phases = map[tcpip.CongestionControlState]uint64{tcpip.SACKRecovery: 2, tcpip.RTORecovery: 3}
	server = tcpip.FullAddress{NIC: 1, Addr: address(1), Port: 2000}
)

// clock is a [tcpip.Clock]. Its timers are called by [ends.OnTimeout].
type clock struct {
	now    uint64
	timers []*timer
}

type timer struct {
	clock *clock
	at    uint64
	call  func()
}

func (c *clock) Now() time.Time { return time.Unix(0, 0).Add(origin + time.Duration(c.now)) }

func (c *clock) NowMonotonic() tcpip.MonotonicTime {
	return tcpip.MonotonicTime{}.Add(origin + time.Duration(c.now))
}

func (c *clock) AfterFunc(after time.Duration, call func()) tcpip.Timer {
	t := &timer{clock: c, call: call}
	t.Reset(after)
	c.timers = append(c.timers, t)
	return t
}

func (c *clock) next() *timer {
	first := &timer{at: stack.Never}
	for _, t := range c.timers {
		if t.at < first.at {
			first = t
		}
	}
	return first
}

func (t *timer) Reset(after time.Duration) { t.at = t.clock.now + uint64(max(after, 0)) }

func (t *timer) Stop() bool {
	waits := t.at < stack.Never
	t.at = stack.Never
	return waits
}

// end is netstack's side of the path. The server's socket listens until there is a connection.
type end struct {
	*channel.Endpoint
	clock  clock
	stack  *netstack.Stack
	socket tcpip.Endpoint
	sent   [][]byte
	// The longest packet, bytes; packets in flight when a segment was last handled, and those with data that were sent since.
	longest, outstanding, since int
}

func address(index byte) tcpip.Address { return tcpip.AddrFrom4([4]byte{10, 0, 0, index + 1}) }

func must(err tcpip.Error) {
	if err != nil {
		panic(err.String())
	}
}

func newEnd(index byte, setup stack.Setup) *end {
	e := &end{Endpoint: channel.New(0, uint32(setup.MTU), "")}
	handled := func(state *tcp.TCPEndpointState) { e.outstanding, e.since = state.Sender.Outstanding, 0 }
	random := rand.New(rand.NewSource(int64(setup.Seed<<1 | uint64(index))))
	e.stack = netstack.New(netstack.Options{
		NetworkProtocols:   []netstack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []netstack.TransportProtocolFactory{tcp.NewProtocolProbe(handled)},
		Clock:              &e.clock, SecureRNG: random, RandSource: random,
	})
	controller := tcpip.CongestionControlOption(setup.Controller)
	window := func(bytes uint64) int { return int(min(max(bytes, 1<<16), mostWindow)) }
	// netstack offers half of its receive buffer.
	send, receive := window(setup.SendWindow), 2*window(setup.ReceiveWindow)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&controller,
		&tcpip.TCPSendBufferSizeRangeOption{Min: 1, Default: send, Max: send},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 1, Default: receive, Max: receive},
	} {
		must(e.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	must(e.stack.CreateNIC(1, e))
	own := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: address(index).WithPrefix()}
	must(e.stack.AddProtocolAddress(1, own, netstack.AddressProperties{}))
	e.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	var err tcpip.Error
	e.socket, err = e.stack.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &waiter.Queue{})
	must(err)
	return e
}

// WritePackets takes what netstack sends.
func (e *end) WritePackets(packets netstack.PacketBufferList) (int, tcpip.Error) {
	for _, packet := range packets.AsSlice() {
		view := packet.ToView()
		e.sent = append(e.sent, bytes.Clone(view.AsSlice()))
		e.longest = max(e.longest, view.Size())
		e.since += min(packet.Data().Size(), 1)
		view.Release()
	}
	return packets.Len(), nil
}

// ends is a [stack.Stack].
type ends struct {
	ends               [2]*end
	app                stack.App
	written, delivered uint64
}

func create(setup stack.Setup) (stack.Stack, error) {
	e := &ends{ends: [2]*end{newEnd(0, setup), newEnd(1, setup)}}
	must(e.ends[1].socket.Bind(server))
	// With less, netstack answers with a SYN cookie: no window scale, no SACK.
	must(e.ends[1].socket.Listen(2))
	return e, nil
}

func (e *ends) Receive(which int, now uint64, _ byte, datagram []byte) {
	end := e.ends[which]
	end.clock.now = now
	packet := netstack.NewPacketBuffer(netstack.PacketBufferOptions{Payload: buffer.MakeWithData(datagram)})
	end.InjectInbound(ipv4.ProtocolNumber, packet)
	packet.DecRef()
	// netstack's goroutine pauses once it has handled the packet.
	end.stack.Pause()
	end.stack.Resume()
}

func (e *ends) Timeout(which int) uint64 { return e.ends[which].clock.next().at }

func (e *ends) OnTimeout(which int, now uint64) {
	clock := &e.ends[which].clock
	clock.now = now
	for due := clock.next(); due.at <= now; due = clock.next() {
		due.Stop()
		due.call()
	}
}

func (e *ends) Application(which int, now uint64, app stack.App) {
	e.ends[which].clock.now = now
	if which == 1 {
		e.read()
		return
	}
	client, before := e.ends[0].socket, e.app
	e.app = app
	if before.Total == 0 && app.Total > 0 {
		client.Connect(server)
	}
	if app.Stopped && !before.Stopped {
		client.Abort()
	}
	for e.written < app.Total {
		n, err := client.Write(bytes.NewReader(filler[:min(app.Total-e.written, mostWindow)]), tcpip.WriteOptions{})
		if err != nil {
			return
		}
		e.written += uint64(n)
	}
	if app.Total > 0 {
		client.Shutdown(tcpip.ShutdownWrite)
	}
}

func (e *ends) read() {
	if connection, _, err := e.ends[1].socket.Accept(nil); err == nil {
		e.ends[1].socket = connection
	}
	for {
		result, err := e.ends[1].socket.Read(io.Discard, tcpip.ReadOptions{})
		if err != nil {
			return
		}
		e.delivered += uint64(result.Count)
	}
}

func (e *ends) Transmit(which int, now uint64, send func(at uint64, ecn byte, datagram []byte)) {
	for _, packet := range e.ends[which].sent {
		send(now, 0, packet)
	}
	e.ends[which].sent = nil
}

func (e *ends) State(state *stack.State) {
	client := e.ends[0]
	state.Delivered, state.Connected = e.delivered, e.written > 0
	state.Failed = !e.app.Stopped && tcp.EndpointState(client.socket.State()) == tcp.StateError
	if !state.Connected {
		return
	}
	var info tcpip.TCPInfoOption
	must(client.socket.GetSockOpt(&info))
	full := uint64(client.longest)
	state.Window, state.InFlight = full*uint64(info.SndCwnd), full*uint64(client.outstanding+client.since)
	// It has no threshold at first, and tells the lower half of the largest number.
	if info.SndSsthresh < 1<<32-1 {
		state.SSThresh = full * uint64(info.SndSsthresh)
	}
	counts := &client.socket.Stats().(*tcp.Stats).SendErrors
	state.SRTT, state.Lost, state.Timeouts = uint64(info.RTT), counts.Retransmits.Value(), counts.Timeouts.Value()
	state.Phase = phases[info.CcState]
	if state.Phase == 0 && info.SndCwnd >= info.SndSsthresh {
		state.Phase = 1
	}
}

func main() {
	// netstack has a goroutine for each core.
	runtime.GOMAXPROCS(1)
	_, version, _ := strings.Cut(requirements, "gvisor.dev/gvisor v0.0.0-")
	version, _, _ = strings.Cut(version, "\n")
	err := stack.Serve(stack.About{
		Name: "gVisor netstack", Version: version, Licence: "Apache-2.0", Controllers: []string{"reno", "cubic"}, IP: true,
		Tells: []string{"window", "ssthresh", "in_flight", "srtt", "lost", "timeouts", "phase"},
		Policy: "SACK and RACK, as in runsc; each packet is acknowledged, because netstack delays no ACK; no pacing, no ECN; buffers do not grow," +
			" and hold windows of up to 16 MiB; lost are packets sent again",
	}, create)
	if err != nil {
		log.Fatal(err)
	}
}
