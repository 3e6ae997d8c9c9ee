package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

const millisecond = 1_000_000

// echo answers a datagram two milliseconds later.
type echo struct {
	due   [2]uint64
	got   uint64
	app   App
	calls []string
}

func (e *echo) Receive(end int, now uint64, _ byte, datagram []byte) {
	e.got += uint64(len(datagram))
	e.due[end] = now + 2*millisecond
	e.calls = append(e.calls, "receive")
}

func (e *echo) Timeout(end int) uint64 { return e.due[end] }

func (e *echo) OnTimeout(int, uint64) { e.calls = append(e.calls, "timeout") }

func (e *echo) Application(_ int, _ uint64, app App) { e.app = app }

func (e *echo) Transmit(end int, now uint64, send func(uint64, byte, []byte)) {
	if e.due[end] <= now {
		e.due[end] = Never
		send(0, 6, []byte("past"))
		send(now+millisecond, 1, []byte("later"))
	}
}

func (e *echo) State(state *State) {
	state.Connected, state.Delivered, state.Window = true, e.got, e.app.Total
}

func newEcho(Setup) (Stack, error) { return &echo{due: [2]uint64{Never, Never}}, nil }

func frame(content []byte) []byte {
	return append(le.AppendUint32(nil, uint32(len(content))), content...)
}

func turnOf(now, until uint64, arrivals, events uint32, rest ...[]byte) []byte {
	asked := le.AppendUint64(le.AppendUint64(nil, now), until)
	asked = le.AppendUint32(le.AppendUint32(asked, arrivals), events)
	return append(asked, bytes.Join(rest, nil)...)
}

func arrivalOf(at uint64, end, ecn byte, length uint32, datagram string) []byte {
	head := append(le.AppendUint64(nil, at), end, ecn, 0, 0)
	return append(le.AppendUint32(head, length), datagram...)
}

func eventOf(at uint64, kind byte, total uint64) []byte {
	return le.AppendUint64(append(le.AppendUint64(nil, at), kind, 0, 0, 0, 0, 0, 0, 0), total)
}

var opening = append(frame([]byte(`{"protocol": 1}`)), frame([]byte(`{"seed": 5, "controller": "none", "mtu": 1472, "ecn": true,
	"receive_window": 18446744073709551615, "send_window": 7, "roles": ["client", "server"]}`))...)

// conversation returns the frames of the answers to the opening and to these turns.
func conversation(t *testing.T, create func(Setup) (Stack, error), turns ...[]byte) [][]byte {
	t.Helper()
	input, output := bytes.Clone(opening), bytes.Buffer{}
	for _, one := range turns {
		input = append(input, frame(one)...)
	}
	about := About{Name: "echo", Version: "1", Licence: "MIT", Controllers: []string{"none"}, MostDatagram: 1280}
	if err := Converse(bytes.NewReader(input), &output, about, create); err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	for {
		one, err := readFrame(&output)
		if err == io.EOF {
			return frames
		}
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, one)
	}
}

func numbers(answer []byte) []uint64 {
	found := make([]uint64, words)
	for index := range found {
		found[index] = le.Uint64(answer[8*index:])
	}
	return found
}

func TestAConversationIsAsTheProtocolSays(t *testing.T) {
	var given Setup
	// The application wants 9 bytes; three bytes arrive in the middle of ten milliseconds.
	asked := turnOf(millisecond, 11*millisecond, 1, 1, arrivalOf(5*millisecond, 1, 2, 3, "abc"), eventOf(millisecond, 0, 9))
	frames := conversation(t, func(setup Setup) (Stack, error) {
		given = setup
		return newEcho(setup)
	}, asked)
	if want := (Setup{Seed: 5, Controller: "none", MTU: 1472, ReceiveWindow: Never, SendWindow: 7, ECN: true}); given != want {
		t.Errorf("the setup is %+v, expected %+v", given, want)
	}
	var about struct {
		Protocol int
		Layer    string
		Tells    []string
		Most     int `json:"most_datagram"`
	}
	if err := json.Unmarshal(frames[0], &about); err != nil || about.Protocol != 1 || about.Layer != "udp" || about.Most != 1280 {
		t.Errorf("about is %s (%v)", frames[0], err)
	}
	if about.Tells == nil {
		t.Error("an empty list of what is told must be one")
	}
	if string(frames[1]) != `{"ok":true}` {
		t.Errorf("the setup is answered by %s", frames[1])
	}
	answer := frames[2]
	want := []uint64{
		11 * millisecond, Never, 1, 3, 5 * millisecond, 9,
		Never, Never, Never, Never, Never, Never, Never, Never, Never, Never,
	}
	if found := numbers(answer); !slices.Equal(found, want) {
		t.Errorf("the numbers are %d, expected %d", found, want)
	}
	// A time in the past is the world's to refuse.
	departures := append([]byte{2, 0, 0, 0}, arrivalOf(0, 1, 2, 4, "past")...)
	departures = append(departures, arrivalOf(8*millisecond, 1, 1, 5, "later")...)
	if !bytes.Equal(answer[8*words:], departures) {
		t.Errorf("what leaves is %x, expected %x", answer[8*words:], departures)
	}
}

func TestTurnsAreCutAnywhereWithTheSameResult(t *testing.T) {
	arrives := arrivalOf(5*millisecond, 1, 0, 3, "abc")
	whole := conversation(t, newEcho, turnOf(0, 20*millisecond, 1, 0, arrives))
	cut := conversation(t, newEcho, turnOf(0, 6*millisecond, 1, 0, arrives), turnOf(7*millisecond, 20*millisecond, 0, 0))
	if next := numbers(cut[2])[1]; next != 7*millisecond {
		t.Errorf("the first part wants a turn at %d", next)
	}
	if !bytes.Equal(whole[2], cut[3]) {
		t.Errorf("%x in one turn, %x in two", whole[2], cut[3])
	}
}

func TestATimerOfNowIsHandledOnceAnInstant(t *testing.T) {
	stuck := &echo{due: [2]uint64{Never, Never}}
	stack := alwaysDue{stuck}
	frames := conversation(t, func(Setup) (Stack, error) { return stack, nil }, turnOf(10, 12, 0, 0))
	if len(stuck.calls) != 3 || numbers(frames[2])[1] != 13 {
		t.Errorf("%d timers in three nanoseconds, the next at %d", len(stuck.calls), numbers(frames[2])[1])
	}
}

type alwaysDue struct{ *echo }

func (alwaysDue) Timeout(end int) uint64 { return []uint64{0, Never}[end] }

func TestTheEndOfTimeIsReached(t *testing.T) {
	frames := conversation(t, func(Setup) (Stack, error) { return alwaysDue{&echo{}}, nil }, turnOf(Never-1, Never, 0, 0))
	if numbers(frames[2])[0] != Never {
		t.Errorf("the turn ended at %d", numbers(frames[2])[0])
	}
}

func TestAStopReachesTheApplication(t *testing.T) {
	made := &echo{due: [2]uint64{Never, Never}}
	conversation(t, func(Setup) (Stack, error) { return made, nil },
		turnOf(0, 9, 0, 2, eventOf(1, 0, Never), eventOf(4, 1, 0)))
	if want := (App{Total: Never, Stopped: true}); made.app != want {
		t.Errorf("the application wants %+v, expected %+v", made.app, want)
	}
}

func TestARefusedSetupIsASentence(t *testing.T) {
	frames := conversation(t, func(Setup) (Stack, error) { return nil, errors.New(`there is no "none"`) }, turnOf(0, 1, 0, 0))
	if len(frames) != 2 || string(frames[1]) != `{"message":"there is no \"none\"","ok":false}` {
		t.Errorf("the answers are %s", frames)
	}
}

func TestInputThatIsNotTheProtocolIsAnErrorAndDoesNotReachTheStack(t *testing.T) {
	turn := func(asked []byte) []byte { return append(bytes.Clone(opening), frame(asked)...) }
	for _, one := range []struct {
		reason string
		input  []byte
	}{
		{"unexpected EOF", []byte{1, 0}},
		{"unexpected EOF", []byte{0xff, 0xff, 0xff, 0xff, '{'}},
		{"the setup:", append(frame(nil), frame([]byte("[1, 2"))...)},
		{"the setup:", append(frame(nil), frame([]byte(`{"mtu": -1e99}`))...)},
		{"unexpected EOF", append(bytes.Clone(opening), 24, 0, 0, 0, 1)},
		{"a turn has 0 bytes", turn(nil)},
		{"a turn has 23 bytes", turn(make([]byte, 23))},
		{"ends at 4 ns, before it begins at 5 ns", turn(turnOf(5, 4, 0, 0))},
		{"of 4294967295 arrivals ends after 0", turn(turnOf(0, 9, 1<<32-1, 0))},
		{"of 2 arrivals ends after 1", turn(turnOf(0, 9, 2, 0, arrivalOf(1, 0, 0, 1, "a"), make([]byte, 15)))},
		{"4294967295 bytes, and the turn ends after 2", turn(turnOf(0, 9, 1, 0, arrivalOf(1, 0, 0, 1<<32-1, "ab")))},
		{"at end 2", turn(turnOf(0, 9, 1, 0, arrivalOf(1, 2, 0, 1, "a")))},
		{"ECN codepoint 4", turn(turnOf(0, 9, 1, 0, arrivalOf(1, 1, 4, 1, "a")))},
		{"at 10 ns, outside of 0 to 9 ns", turn(turnOf(0, 9, 1, 0, arrivalOf(10, 0, 0, 1, "a")))},
		{"at 3 ns, outside of 4 to 9 ns", turn(turnOf(0, 9, 2, 0, arrivalOf(4, 0, 0, 1, "a"), arrivalOf(3, 0, 0, 1, "a")))},
		{"4294967295 events have 0 bytes", turn(turnOf(0, 9, 0, 1<<32-1))},
		{"1 events have 25 bytes", turn(turnOf(0, 9, 0, 1, eventOf(1, 0, 1), []byte{0}))},
		{"0 events have 1 bytes", turn(turnOf(0, 9, 1, 0, arrivalOf(1, 0, 0, 1, "ab")))},
		{"of kind 2", turn(turnOf(0, 9, 0, 1, eventOf(1, 2, 1)))},
		{"an event is at 10 ns", turn(turnOf(0, 9, 0, 1, eventOf(10, 0, 1)))},
	} {
		made := &echo{due: [2]uint64{Never, Never}}
		err := Converse(bytes.NewReader(one.input), io.Discard, About{}, func(Setup) (Stack, error) { return made, nil })
		if err == nil || !strings.Contains(err.Error(), one.reason) {
			t.Errorf("%q instead of %q", err, one.reason)
		}
		if len(made.calls) > 0 || made.app.Total > 0 {
			t.Errorf("%s: the stack was called", one.reason)
		}
	}
}

func TestTheInputMayEndBetweenFrames(t *testing.T) {
	for _, input := range [][]byte{nil, frame([]byte(`{"protocol": 1}`)), opening} {
		if err := Converse(bytes.NewReader(input), io.Discard, About{}, newEcho); err != nil {
			t.Errorf("%d bytes: %v", len(input), err)
		}
	}
}

func TestOutputThatNobodyReadsIsAnError(t *testing.T) {
	input := append(bytes.Clone(opening), frame(turnOf(0, 1, 0, 0))...)
	for answers := range 3 {
		if err := Converse(bytes.NewReader(input), &closing{left: answers}, About{}, newEcho); err != io.ErrClosedPipe {
			t.Errorf("after %d answers: %v", answers, err)
		}
	}
}

type closing struct{ left int }

func (c *closing) Write(content []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(content), nil
}

func FuzzNoInputMakesTheHelperPanic(f *testing.F) {
	f.Add(turnOf(0, 9, 1, 1, arrivalOf(1, 1, 0, 1, "a"), eventOf(1, 0, 1)))
	f.Add(turnOf(5, Never, 2, 0, arrivalOf(5, 1, 3, 0, ""), arrivalOf(Never, 0, 1, 1, "a")))
	f.Fuzz(func(t *testing.T, asked []byte) {
		made := &echo{due: [2]uint64{Never, Never}}
		turns := turns{stack: made, deliveredAt: Never}
		if turns.turn(asked) == nil && int(le.Uint32(turns.answer)) != len(turns.answer)-4 {
			t.Error("an answer has another length than it says")
		}
	})
}
