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
	module = "github.com/quic-go/quic-go"
	// With a larger InitialPacketSize, quic-go 0.65.0 is in a loop for as long as time stands still: its pacer says that a packet
	// of this size may leave at once (congestion/pacer.go, TimeUntilSend), and its controller waits for the budget of a larger one
	// (congestion/cubic_sender.go, HasPacingBudget).
	packetBytes = 1280
	// No timeout of an idle connection is reached.
	patience = 1000 * time.Hour
)

// What is built with versions, because the program of a test does not know them.
//
//go:embed go.mod
var requirements string

// What the application sends. A write of it seldom ends, so that the stack has data whenever it asks. It needs memory for a page only.
var filler [1 << 28]byte

func TestAdapter(t *testing.T) {
	_, version, _ := strings.Cut(requirements, module+" v")
	version, _, _ = strings.Cut(version, "\n")
	bubble.Serve(t, stack.About{
		Name:         "quic-go",
		Version:      version,
		Licence:      "MIT",
		Controllers:  []string{"reno"},
		Tells:        []string{"window", "in_flight", "srtt", "min_rtt", "lost", "timeouts", "phase"},
		Policy:       fmt.Sprintf("its pacer is kept to, its timers to %v; 1280-byte datagrams, no path MTU discovery, no ECN", bubble.Tick),
		MostDatagram: packetBytes,
	}, create)
}

type endpoints struct {
	config     *quic.Config
	server     *quic.Listener
	client     *bubble.Conn
	connection *quic.Conn
	stream     *quic.SendStream
	events     events
	app        stack.App
	delivered  uint64
	failed     bool
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
				return &e.events
			}
			return nil
		},
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		return nil, err
	}
	e.server, err = quic.Listen(server, &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}},
		NextProtos:   []string{"transfer"},
	}, e.config)
	return e, err
}

// Application is called once when it begins, and perhaps once more when it stops.
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
	if err := end(context.Background()); err != nil && !e.app.Stopped {
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
	buffer := make([]byte, 1<<16)
	for err == nil {
		var n int
		n, err = stream.Read(buffer)
		e.delivered += uint64(n)
	}
	if err == io.EOF {
		<-connection.Context().Done()
		err = context.Cause(connection.Context())
	}
	return err
}

func (e *endpoints) send(ctx context.Context) error {
	client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"transfer"}, ServerName: "localhost"}
	connection, err := quic.Dial(ctx, e.client, e.client.Peer(), client, e.config)
	if err != nil {
		return err
	}
	e.connection = connection
	if e.stream, err = connection.OpenUniStream(); err != nil {
		return err
	}
	for written := uint64(0); written < e.app.Total && !e.app.Stopped; {
		n, err := e.stream.Write(filler[:min(uint64(len(filler)), e.app.Total-written)])
		if err != nil {
			return err
		}
		written += uint64(n)
	}
	return e.stream.Close()
}

func (e *endpoints) State(state *stack.State) {
	state.Delivered, state.Failed = e.delivered, e.failed
	if e.connection == nil {
		return
	}
	state.Connected = true
	told := e.connection.ConnectionStats()
	state.Window, state.SRTT, state.MinRTT = told.CongestionWindow, uint64(told.SmoothedRTT), uint64(told.MinRTT)
	state.InFlight, state.Lost, state.Timeouts, state.Phase = e.events.inFlight, e.events.lost, e.events.timeouts, e.events.phase
}

// events is what quic-go's log says of the sender, beyond its statistics. Those take back a loss that proves to be none.
type events struct{ inFlight, lost, timeouts, phase uint64 }

func (e *events) AddProducer() qlogwriter.Recorder { return e }

func (e *events) Close() error { return nil }

func (e *events) RecordEvent(event qlogwriter.Event) {
	switch event := event.(type) {
	case qlog.MetricsUpdated:
		e.inFlight = uint64(event.BytesInFlight)
	case qlog.PacketLost:
		e.lost++
	case qlog.PTOCountUpdated:
		if event.PTOCount > 0 {
			e.timeouts++
		}
	case qlog.CongestionStateUpdated:
		switch event.State {
		case qlog.CongestionStateSlowStart:
			e.phase = 0
		case qlog.CongestionStateCongestionAvoidance:
			e.phase = 1
		case qlog.CongestionStateRecovery:
			e.phase = 2
		}
	}
}
