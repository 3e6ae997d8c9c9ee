// quic-go in virtual time. `go test -c` makes the program.
package quicgo

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"fullpipe/stack"
	"fullpipe/stack/bubble"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	// With a larger InitialPacketSize, quic-go 0.65.0 is in a loop for as long as time stands still: its pacer, which believes in
	// 1280, lets a packet leave at once (congestion/pacer.go, TimeUntilSend), and its controller waits for the budget of a larger
	// one (congestion/cubic_sender.go, HasPacingBudget).
	packetBytes = 1280
	// No timeout of an idle connection is reached.
	patience = 1000 * time.Hour
)

// The version is from here, because the program of a test does not know what it is built with.
//
//go:embed go.mod
var requirements string

// What the application sends. A write of it seldom ends, so that the stack has data whenever it asks. Its pages are never touched.
var filler [1 << 28]byte

var phases = map[qlog.CongestionState]uint64{
	qlog.CongestionStateSlowStart: 0, qlog.CongestionStateCongestionAvoidance: 1, qlog.CongestionStateRecovery: 2,
}

func TestAdapter(t *testing.T) {
	_, version, _ := strings.Cut(requirements, "github.com/quic-go/quic-go v")
	version, _, _ = strings.Cut(version, "\n")
	bubble.Serve(t, stack.About{
		Name: "quic-go", Version: version, Licence: "MIT",
		Controllers:  []string{"reno"},
		Tells:        []string{"window", "in_flight", "srtt", "min_rtt", "lost", "timeouts", "phase"},
		Policy:       fmt.Sprintf("its pacer is kept to, its timers to %v; 1280-byte datagrams, no path MTU discovery, no ECN", bubble.Tick),
		MostDatagram: packetBytes,
	}, create)
}

// endpoints is both ends, and the recorder of the client's log.
type endpoints struct {
	config     *quic.Config
	server     *quic.Listener
	client     *bubble.Conn
	connection *quic.Conn
	stream     *quic.SendStream
	app        stack.App
	delivered  uint64
	failed     bool

	inFlight, lost, timeouts, phase uint64
}

func create(setup stack.Setup, client, server *bubble.Conn) (bubble.Endpoints, error) {
	if setup.Controller != "reno" {
		return nil, fmt.Errorf("quic-go has no controller %s", setup.Controller)
	}
	e := &endpoints{client: client}
	e.config = &quic.Config{
		HandshakeIdleTimeout: patience, MaxIdleTimeout: patience,
		InitialPacketSize: uint16(min(setup.MTU, packetBytes)), DisablePathMTUDiscovery: true,
		InitialStreamReceiveWindow: setup.ReceiveWindow, MaxStreamReceiveWindow: setup.ReceiveWindow,
		InitialConnectionReceiveWindow: setup.ReceiveWindow, MaxConnectionReceiveWindow: setup.ReceiveWindow,
		Tracer: func(_ context.Context, isClient bool, _ quic.ConnectionID) qlogwriter.Trace {
			if isClient {
				return e
			}
			return nil
		},
	}
	// A key that is no secret, for handshakes within one process.
	key, template := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	chain := tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
	e.server, err = quic.Listen(server, &tls.Config{Certificates: []tls.Certificate{chain}, NextProtos: []string{"transfer"}}, e.config)
	return e, err
}

// Application is called when the application begins, and when it stops.
func (e *endpoints) Application(app stack.App) {
	begins := e.app.Total == 0
	e.app = app
	if begins {
		go e.run(e.receive)
		go e.run(e.send)
	}
	if app.Stopped && e.stream != nil {
		e.stream.CancelWrite(0)
	}
}

func (e *endpoints) run(end func(context.Context) error) {
	if err := end(context.Background()); err != nil && err != io.EOF && !e.app.Stopped {
		e.failed = true
		fmt.Fprintln(os.Stderr, err)
	}
}

func (e *endpoints) receive(ctx context.Context) error {
	connection, err := e.server.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := connection.AcceptUniStream(ctx)
	buffer := make([]byte, e.config.MaxStreamReceiveWindow)
	for n := 0; err == nil; e.delivered += uint64(n) {
		// A read makes the stack send a larger window: not before it has done all else about what has arrived.
		stream.Peek(buffer[:1])
		bubble.Settle()
		n, err = stream.Read(buffer)
	}
	return err
}

func (e *endpoints) send(ctx context.Context) (err error) {
	client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"transfer"}}
	if e.connection, err = quic.Dial(ctx, e.client, e.client.Peer(), client, e.config); err != nil {
		return err
	}
	bubble.Settle()
	if e.stream, err = e.connection.OpenUniStream(); err != nil {
		return err
	}
	for left := e.app.Total; left > 0 && err == nil && !e.app.Stopped; {
		var n int
		n, err = e.stream.Write(filler[:min(uint64(len(filler)), left)])
		left -= uint64(n)
	}
	if err == nil {
		err = e.stream.Close()
	}
	return err
}

func (e *endpoints) State(state *stack.State) {
	state.Delivered, state.Failed, state.Connected = e.delivered, e.failed, e.connection != nil
	if state.Connected {
		told := e.connection.ConnectionStats()
		state.Window, state.SRTT, state.MinRTT = told.CongestionWindow, uint64(told.SmoothedRTT), uint64(told.MinRTT)
		state.InFlight, state.Lost, state.Timeouts, state.Phase = e.inFlight, e.lost, e.timeouts, e.phase
	}
}

func (e *endpoints) AddProducer() qlogwriter.Recorder { return e }

func (e *endpoints) Close() error { return nil }

// RecordEvent takes from quic-go's log what its statistics do not have. Those take back a loss that proves to be none.
func (e *endpoints) RecordEvent(event qlogwriter.Event) {
	switch event := event.(type) {
	case qlog.MetricsUpdated:
		e.inFlight = uint64(event.BytesInFlight)
	case qlog.PacketLost:
		e.lost++
	case qlog.PTOCountUpdated:
		// It becomes 0 once there is an acknowledgement.
		e.timeouts += uint64(min(event.PTOCount, 1))
	case qlog.CongestionStateUpdated:
		if phase, ok := phases[event.State]; ok {
			e.phase = phase
		}
	}
}
