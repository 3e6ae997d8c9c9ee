// Package bubble brings a stack that has goroutines and reads the clock into virtual time: it runs in a bubble of testing/synctest,
// whose clock moves only while all of its goroutines wait.
//
// That package is for tests, so the adapter is one: a file that ends in _test.go, with a test that calls [Serve], and
// `go test -c -o adapter` to compile it.
//
// A bubble does not tell when its next timer is due. So the stack is asked each [Tick]: its timers expire, and are seen by it, at their
// own times, but what it sends then leaves at the next tick, or with the next arrival at that end. What it sends in reply to a datagram
// leaves with no delay.
//
// Randomness of crypto/rand follows from the seed. That of select, of the order of a map, and of math/rand's global functions does not.
//
// The load of the machine must not matter either. The garbage collector runs only between turns. But Go interrupts a goroutine that
// has not waited for 10 ms of real time, which is soon over on a busy machine, and lets others run first. So an application that the
// stack wakes calls [Settle] before it asks the stack for anything.
package bubble

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"fullpipe/stack"
)

// Tick is the time between two instants at which the stack's timers are looked at: finer than timers of a Go program on a real
// machine, which may be a millisecond late.
const Tick = 50 * time.Microsecond

const (
	// Datagrams that may wait to be read. A stack reads each at once.
	mostUnread = 1 << 12
	// Datagrams between two collections of garbage, and the most memory without one, bytes.
	collectEvery = 20_000
	mostMemory   = 1 << 30
)

// Endpoints is both ends of a connection, and both applications. It starts goroutines as it likes; its methods must not wait for
// datagrams or for time.
type Endpoints interface {
	// Application is called when the application begins, and when it wants something else.
	Application(app stack.App)
	// State fills in what the sending end reports. All goroutines wait meanwhile.
	State(state *stack.State)
}

// Create makes both ends, which send and receive by client and server. What they send in it leaves when the application begins.
type Create func(setup stack.Setup, client, server *Conn) (Endpoints, error)

// Settle waits until all other goroutines wait, so that what comes first does not depend on the machine. It takes a nanosecond of the
// stack's time.
func Settle() { time.Sleep(time.Nanosecond) }

// Serve speaks the protocol on standard input and output, and exits the process when the input ends.
func Serve(t *testing.T, about stack.About, create Create) {
	// What runs next must not depend on how many cores are free, or on when memory is collected.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(mostMemory)
	synctest.Test(t, func(*testing.T) {
		err := stack.Serve(about, func(setup stack.Setup) (stack.Stack, error) {
			cryptotest.SetGlobalRandom(t, setup.Seed)
			return open(setup, create)
		})
		// The test would wait for the goroutines of the stack, and print what it is.
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	})
}

// bubble is a [stack.Stack]. It is called by the goroutine at the root of the bubble.
type bubble struct {
	conns     [2]*Conn
	endpoints Endpoints
	app       stack.App
	// When the bubble's clock began, and the latest time of the run that it has reached.
	origin time.Time
	now    uint64
	// When what an end has sent was taken.
	taken [2]uint64
	// Datagrams since the latest collection.
	handled int
}

func open(setup stack.Setup, create Create) (*bubble, error) {
	b := &bubble{origin: time.Now()}
	for end := range b.conns {
		b.conns[end] = &Conn{end: end, unread: make(chan []byte, mostUnread), closed: make(chan struct{})}
	}
	var err error
	b.endpoints, err = create(setup, b.conns[0], b.conns[1])
	return b, err
}

// advance lets the bubble's time come to now, with all that is due until then.
func (b *bubble) advance(now uint64) {
	if now > b.now {
		b.now = now
		time.Sleep(time.Duration(now) - time.Since(b.origin))
		synctest.Wait()
	}
}

// settle lets all goroutines come to their end at this instant, with those that called [Settle].
func settle() {
	synctest.Wait()
	Settle()
	synctest.Wait()
}

func (b *bubble) Receive(end int, now uint64, _ byte, datagram []byte) {
	b.advance(now)
	b.handled++
	select {
	case b.conns[end].unread <- append([]byte(nil), datagram...):
	default:
		// As a socket does whose buffer is full.
	}
	// One at a time, so that no goroutine finds two reasons to go on.
	settle()
}

// Timeout is the next tick, of each end by itself: it is due at both, although the first of them lets the time come to it.
func (b *bubble) Timeout(end int) uint64 {
	if b.app.Total == 0 {
		return stack.Never
	}
	return b.taken[end] - b.taken[end]%uint64(Tick) + uint64(Tick)
}

func (b *bubble) OnTimeout(_ int, now uint64) { b.advance(now) }

func (b *bubble) Application(end int, now uint64, app stack.App) {
	b.advance(now)
	if end == 0 && app != b.app {
		b.app = app
		b.endpoints.Application(app)
		settle()
	}
}

func (b *bubble) Transmit(end int, now uint64, send func(at uint64, ecn byte, datagram []byte)) {
	conn := b.conns[end]
	b.taken[end] = now
	for _, datagram := range conn.sent {
		send(now, 0, datagram)
	}
	b.handled += len(conn.sent)
	conn.sent = conn.sent[:0]
	if b.handled >= collectEvery {
		b.handled = 0
		runtime.GC()
	}
}

func (b *bubble) State(state *stack.State) { b.endpoints.State(state) }

// Conn is one end of the path, as a net.PacketConn. It carries no ECN codepoints, and knows no deadlines.
type Conn struct {
	end    int
	unread chan []byte
	closed chan struct{}
	// What was written and has not left.
	sent [][]byte
}

var _ net.PacketConn = (*Conn)(nil)

// ReadFrom waits for a datagram from the other end.
func (c *Conn) ReadFrom(into []byte) (int, net.Addr, error) {
	select {
	case datagram := <-c.unread:
		return copy(into, datagram), c.Peer(), nil
	case <-c.closed:
		return 0, nil, net.ErrClosed
	}
}

// WriteTo sends a datagram to the other end, whatever the address.
func (c *Conn) WriteTo(datagram []byte, _ net.Addr) (int, error) {
	c.sent = append(c.sent, append([]byte(nil), datagram...))
	return len(datagram), nil
}

// Close makes all reads fail with net.ErrClosed. It may be called once.
func (c *Conn) Close() error {
	close(c.closed)
	return nil
}

// LocalAddr is the address of this end.
func (c *Conn) LocalAddr() net.Addr { return address(c.end) }

// Peer is the address of the other end.
func (c *Conn) Peer() net.Addr { return address(1 - c.end) }

func address(end int) net.Addr {
	return &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(end+1)), Port: 4433}
}

// SetDeadline does nothing.
func (*Conn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (*Conn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (*Conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadBuffer does nothing.
func (*Conn) SetReadBuffer(int) error { return nil }

// SetWriteBuffer does nothing.
func (*Conn) SetWriteBuffer(int) error { return nil }
