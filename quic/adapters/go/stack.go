// Package stack is what an adapter in Go needs besides its stack: the protocol on standard input and output, and the loop of a turn.
//
// An adapter brings a transport stack into Fullpipe's virtual time (quic/adapters/PROTOCOL.md). Its process has both ends of one
// connection: end 0 is the client, which sends the data; end 1 is the server. Implement [Stack], and call [Serve] from main. A stack
// that has goroutines, or reads the clock by itself, needs package bubble.
//
// Times are nanoseconds since the start of the run.
package stack

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Never is a time that never comes, and a number that is not known.
const Never uint64 = math.MaxUint64

const protocol = 1

// About is what an adapter reports about itself.
type About struct {
	// Name, Version and Licence are the stack's; the licence is an SPDX expression.
	Name, Version, Licence string
	// Controllers are the names of its congestion controllers: lower-case letters, digits, - and _.
	Controllers []string
	// Tells lists which fields of [State] the adapter fills, by their names in the protocol.
	Tells []string
	// Policy is a sentence: what the adapter decides for the stack, above all whether it keeps to the stack's pacing.
	Policy string
	// IP is set if a datagram is a whole IP packet rather than the payload of UDP.
	IP bool
	// MostDatagram is the largest datagram that the adapter sends, bytes; 0 if it sends what the path carries.
	MostDatagram int
}

// Setup is what a connection is made from.
type Setup struct {
	// Seed determines everything random.
	Seed uint64 `json:"seed"`
	// Controller is one of [About.Controllers].
	Controller string `json:"controller"`
	// MTU is the longest datagram, bytes.
	MTU int `json:"mtu"`
	// ReceiveWindow is the flow control's, SendWindow the size of the send buffer, both in bytes.
	ReceiveWindow uint64 `json:"receive_window"`
	SendWindow    uint64 `json:"send_window"`
	// ECN is set if the flow may send packets that are marked as capable of ECN.
	ECN bool `json:"ecn"`
}

// App is what the sending application wants by now.
type App struct {
	// Total is the number of bytes to send since the start, after which the application closes; [Never]: without end, 0: it has not
	// started.
	Total uint64
	// Stopped is set once it has stopped: what is not delivered is abandoned.
	Stopped bool
}

// State is what a connection reports. [Serve] sets the numbers below Delivered to [Never] before it asks.
type State struct {
	// Connected: the client's handshake is complete, and data may be sent; without a handshake, set it from the start. Cases count from
	// it. Failed: the connection has ended, and nobody wanted it to.
	Connected, Failed bool
	// Delivered is the number of bytes that the receiving application has, in order.
	Delivered uint64
	// Window, SSThresh and InFlight are bytes of datagrams.
	Window, SSThresh, InFlight uint64
	// SRTT and MinRTT are nanoseconds.
	SRTT, MinRTT uint64
	// PacingRate and Bandwidth are bits a second of datagrams.
	PacingRate, Bandwidth uint64
	// Lost and Acked are packets.
	Lost, Acked, Timeouts uint64
	// Phase is the protocol's code of a phase.
	Phase uint64
}

// Stack is both ends of a connection.
type Stack interface {
	// Receive takes a datagram that arrives at an end. The stack may change the datagram's bytes, and must not keep them.
	Receive(end int, now uint64, ecn byte, datagram []byte)
	// Timeout returns when OnTimeout is to be called; [Never] if nothing is due.
	Timeout(end int) uint64
	// OnTimeout is called when that time has come.
	OnTimeout(end int, now uint64)
	// Application writes and reads what the application of this end can. It is called after anything has happened to the end.
	Application(end int, now uint64, app App)
	// Transmit calls send for each datagram that the end sends now. A datagram leaves at `at`: now, or later if the stack leaves
	// pacing to its caller. Its bytes are copied before send returns.
	Transmit(end int, now uint64, send func(at uint64, ecn byte, datagram []byte))
	// State fills in what the sending end reports.
	State(state *State)
}

// Serve speaks the protocol on standard input and output until the input ends. An error of create refuses the setup.
func Serve(about About, create func(Setup) (Stack, error)) error {
	output := os.Stdout
	// What the stack prints must not get into the protocol.
	os.Stdout = os.Stderr
	return Converse(os.Stdin, output, about, create)
}

// Converse is [Serve] on other streams. It fails if the input is not as the protocol says, or the output cannot be written.
func Converse(input io.Reader, output io.Writer, about About, create func(Setup) (Stack, error)) error {
	input = bufio.NewReaderSize(input, 1<<16)
	if _, err := readFrame(input); err != nil {
		return unlessEnd(err)
	}
	if err := writeJSON(output, about.fields()); err != nil {
		return err
	}
	asked, err := readFrame(input)
	if err != nil {
		return unlessEnd(err)
	}
	var setup Setup
	if err := json.Unmarshal(asked, &setup); err != nil {
		return fmt.Errorf("the setup: %w", err)
	}
	made, err := create(setup)
	if err != nil {
		return writeJSON(output, map[string]any{"ok": false, "message": err.Error()})
	}
	if err := writeJSON(output, map[string]any{"ok": true}); err != nil {
		return err
	}
	turns := turns{stack: made, touched: [2]bool{true, true}, deliveredAt: Never}
	for {
		asked, err := readFrame(input)
		if err != nil {
			return unlessEnd(err)
		}
		if err := turns.turn(asked); err != nil {
			return err
		}
		if _, err := output.Write(turns.answer); err != nil {
			return err
		}
	}
}

func (about About) fields() map[string]any {
	layer := "udp"
	if about.IP {
		layer = "ip"
	}
	fields := map[string]any{
		"protocol": protocol, "name": about.Name, "version": about.Version, "licence": about.Licence,
		"controllers": append([]string{}, about.Controllers...), "layer": layer,
		"tells": append([]string{}, about.Tells...), "policy": about.Policy,
	}
	if about.MostDatagram > 0 {
		fields["most_datagram"] = about.MostDatagram
	}
	return fields
}

// readFrame returns io.EOF only between frames.
func readFrame(input io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(input, head[:]); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(head[:]))
	// The room grows with what comes: a length is only a claim.
	content, err := io.ReadAll(io.LimitReader(input, length))
	if err == nil && int64(len(content)) < length {
		err = io.ErrUnexpectedEOF
	}
	return content, err
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func writeJSON(output io.Writer, fields map[string]any) error {
	content, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = output.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(content))), content...))
	return err
}
