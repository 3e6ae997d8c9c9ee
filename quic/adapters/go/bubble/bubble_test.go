package bubble

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fullpipe/stack"
)

const variable = "FULLPIPE_BUBBLE_TEST"

// program is a client that sends eight random bytes every 130 microseconds, and a server that returns what it gets.
type program struct {
	client, server *Conn
	app            stack.App
	got            uint64
	woken          []time.Duration
	begun          time.Time
}

func create(setup stack.Setup, client, server *Conn) (Endpoints, error) {
	if setup.Controller == "other" {
		return nil, errors.New("there is no other")
	}
	p := &program{client: client, server: server, begun: time.Now()}
	go p.serve()
	return p, nil
}

func (p *program) serve() {
	datagram := make([]byte, 1500)
	for {
		n, from, err := p.server.ReadFrom(datagram)
		if err != nil {
			return
		}
		p.got += uint64(n)
		Settle()
		p.server.WriteTo(datagram[:n], from)
	}
}

func (p *program) Application(app stack.App) {
	p.app = app
	if app.Stopped {
		return
	}
	go func() {
		datagram := make([]byte, 8)
		for !p.app.Stopped {
			time.Sleep(130 * time.Microsecond)
			p.woken = append(p.woken, time.Since(p.begun))
			rand.Read(datagram)
			p.client.WriteTo(datagram, p.client.Peer())
		}
	}()
}

func (p *program) State(state *stack.State) { state.Delivered = p.got }

func TestWhatATimerSendsLeavesAtTheNextTickAndAReplyAtOnce(t *testing.T) {
	output, complaint, err := run(t, framed(`{"protocol": 1}`, setup("none", 1), turn(123_456)))
	if err != nil {
		t.Fatal(err, complaint)
	}
	type departure struct {
		at  uint64
		end byte
	}
	// The client's timers are due each 130 microseconds.
	want := []departure{{123_456, 1}, {150_000, 0}, {300_000, 0}, {400_000, 0}, {550_000, 0}, {650_000, 0}, {800_000, 0}, {950_000, 0}}
	var left []departure
	for rest := answers(output)[2][132:]; len(rest) > 0; rest = rest[24:] {
		left = append(left, departure{binary.LittleEndian.Uint64(rest), rest[8]})
	}
	if !slices.Equal(left, want) {
		t.Errorf("left %v, expected %v", left, want)
	}
}

func TestTheStackSeesItsTimersAtTheirOwnTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := open(stack.Setup{}, create)
		b.Application(0, 0, stack.App{Total: stack.Never})
		b.OnTimeout(0, 300_000)
		if want := []time.Duration{130_000, 260_000}; !slices.Equal(b.endpoints.(*program).woken, want) {
			t.Errorf("woken at %v, expected %v", b.endpoints.(*program).woken, want)
		}
		b.Application(0, 300_000, stack.App{Total: stack.Never, Stopped: true})
		b.conns[1].Close()
		time.Sleep(time.Millisecond) // The goroutines end.
	})
}

func TestTimeDoesNotMoveBetweenInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := open(stack.Setup{}, create)
		b.advance(1_234_567)
		synctest.Wait()
		if passed := time.Since(b.origin); passed != 1_234_567 {
			t.Errorf("%d ns have passed", passed)
		}
		b.conns[1].Close()
	})
}

func TestWhoSettlesComesAfterAllWhoDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		go func() {
			Settle()
			order = append(order, "who settles")
		}()
		go func() {
			for range 1000 {
				runtime.Gosched()
			}
			order = append(order, "who is slow")
		}()
		settle()
		if !slices.Equal(order, []string{"who is slow", "who settles"}) {
			t.Errorf("the order is %q", order)
		}
	})
}

func TestNoTickIsDueBeforeTheApplicationBegins(t *testing.T) {
	b := &bubble{taken: [2]uint64{123_456, 150_000}}
	if at := b.Timeout(0); at != stack.Never {
		t.Errorf("a tick is due at %d", at)
	}
	b.app.Total = 1
	if at := [2]uint64{b.Timeout(0), b.Timeout(1)}; at != [2]uint64{150_000, 200_000} {
		t.Errorf("ticks are due at %d", at)
	}
}

func TestAFullBufferDropsAndReadsEndWhenAnEndIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := open(stack.Setup{}, create)
		for range mostUnread + 1 {
			b.Receive(0, 0, 0, []byte("nobody reads"))
		}
		if len(b.conns[0].unread) != mostUnread {
			t.Errorf("%d datagrams wait", len(b.conns[0].unread))
		}
		b.conns[1].Close()
		if _, _, err := b.conns[1].ReadFrom(nil); err != net.ErrClosed {
			t.Errorf("a read of a closed end: %v", err)
		}
	})
}

// TestAdapter is a program: the tests below run it in a process of its own.
func TestAdapter(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("runs in a process of its own")
	}
	Serve(t, stack.About{Name: "program", Controllers: []string{"none"}}, func(setup stack.Setup, client, server *Conn) (Endpoints, error) {
		fmt.Println("what a stack prints does not get into the protocol")
		return create(setup, client, server)
	})
}

func framed(contents ...string) (all []byte) {
	for _, one := range contents {
		all = append(binary.LittleEndian.AppendUint32(all, uint32(len(one))), one...)
	}
	return all
}

func setup(controller string, seed int) string {
	return fmt.Sprintf(`{"seed": %d, "controller": %q, "mtu": 1472}`, seed, controller)
}

// turn is one of a millisecond in which the application begins, and eight bytes arrive at the server at these times.
func turn(arrivals ...uint64) string {
	le := binary.LittleEndian
	asked := le.AppendUint64(make([]byte, 8), 1_000_000)
	asked = le.AppendUint32(le.AppendUint32(asked, uint32(len(arrivals))), 1)
	for _, at := range arrivals {
		asked = append(le.AppendUint64(asked, at), 1, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	return string(le.AppendUint64(append(asked, make([]byte, 16)...), stack.Never))
}

// answers returns the contents of the frames, and nothing if there is anything else.
func answers(output []byte) (all [][]byte) {
	for len(output) >= 4 {
		length := binary.LittleEndian.Uint32(output)
		if uint64(len(output)) < 4+uint64(length) {
			return nil
		}
		all, output = append(all, output[4:4+length]), output[4+length:]
	}
	return all
}

func run(t *testing.T, input []byte) (output []byte, complaint string, err error) {
	command := exec.Command(os.Args[0], "-test.run=^TestAdapter$")
	command.Env = append(os.Environ(), variable+"=1")
	command.Stdin = bytes.NewReader(input)
	var errors bytes.Buffer
	command.Stderr = &errors
	output, err = command.Output()
	return output, errors.String(), err
}

func TestAProgramRepeatsWithItsSeed(t *testing.T) {
	var outputs [3][]byte
	for index, seed := range []int{1, 1, 2} {
		output, complaint, err := run(t, framed(`{"protocol": 1}`, setup("none", seed), turn()))
		if err != nil {
			t.Fatal(err, complaint)
		}
		outputs[index] = output
	}
	if !bytes.Equal(outputs[0], outputs[1]) {
		t.Error("two runs with one seed differ")
	}
	if bytes.Equal(outputs[0], outputs[2]) {
		t.Error("runs with two seeds are equal")
	}
}

func TestAProgramRefusesASetup(t *testing.T) {
	output, complaint, err := run(t, framed(`{"protocol": 1}`, setup("other", 1)))
	if err != nil || !strings.Contains(string(output), `"message":"there is no other"`) {
		t.Error(string(output), complaint, err)
	}
}

func TestAProgramEndsWithASentenceAtInputThatIsNotTheProtocol(t *testing.T) {
	_, complaint, err := run(t, framed(`{"protocol": 1}`, setup("none", 1), "no turn"))
	if err == nil || !strings.HasSuffix(complaint, "\na turn has 7 bytes; it has at least 24\n") {
		t.Errorf("%q, %v", complaint, err)
	}
}
