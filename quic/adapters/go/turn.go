package stack

import (
	"encoding/binary"
	"fmt"
)

const (
	turnBytes, packetBytes, eventBytes = 24, 16, 24
	// Numbers of an answer, and the bytes in front of its departures, with those of the frame's length.
	words, headBytes = 16, 4 + 16*8 + 4
)

var le = binary.LittleEndian

type arrival struct {
	at       uint64
	end      int
	ecn      byte
	datagram []byte
}

type event struct {
	at   uint64
	stop bool
	// Bytes since the start, of an event that is no stop.
	total uint64
}

type asked struct {
	now, until uint64
	arrivals   []arrival
	events     []event
}

// turns is what a turn leaves for the next.
type turns struct {
	stack Stack
	app   App
	// Which ends something has happened to.
	touched                [2]bool
	delivered, deliveredAt uint64
	// The frame of the latest answer.
	answer []byte
}

// parse reads what the world asks. It fails at whatever the protocol does not allow, before the stack sees any of it.
func parse(frame []byte) (asked, error) {
	if len(frame) < turnBytes {
		return asked{}, fmt.Errorf("a turn has %d bytes; it has at least %d", len(frame), turnBytes)
	}
	turn := asked{now: le.Uint64(frame), until: le.Uint64(frame[8:])}
	arrivals, events := le.Uint32(frame[16:]), le.Uint32(frame[20:])
	if turn.until < turn.now {
		return asked{}, fmt.Errorf("a turn ends at %d ns, before it begins at %d ns", turn.until, turn.now)
	}
	latest, rest := turn.now, frame[turnBytes:]
	for range arrivals {
		if len(rest) < packetBytes {
			return asked{}, fmt.Errorf("a turn of %d arrivals ends after %d", arrivals, len(turn.arrivals))
		}
		one := arrival{at: le.Uint64(rest), end: int(rest[8]), ecn: rest[9]}
		length := uint64(le.Uint32(rest[12:]))
		rest = rest[packetBytes:]
		if one.end > 1 || one.ecn > 3 {
			return asked{}, fmt.Errorf("a datagram arrives at end %d with ECN codepoint %d", one.end, one.ecn)
		}
		if one.at < latest || one.at > turn.until {
			return asked{}, fmt.Errorf("a datagram arrives at %d ns, outside of %d to %d ns", one.at, latest, turn.until)
		}
		if uint64(len(rest)) < length {
			return asked{}, fmt.Errorf("a datagram has %d bytes, and the turn ends after %d", length, len(rest))
		}
		one.datagram, rest = rest[:length:length], rest[length:]
		turn.arrivals, latest = append(turn.arrivals, one), one.at
	}
	if uint64(len(rest)) != uint64(events)*eventBytes {
		return asked{}, fmt.Errorf("%d events have %d bytes; each has %d", events, len(rest), eventBytes)
	}
	latest = turn.now
	for ; len(rest) > 0; rest = rest[eventBytes:] {
		one := event{at: le.Uint64(rest), stop: rest[8] == 1, total: le.Uint64(rest[16:])}
		if rest[8] > 1 {
			return asked{}, fmt.Errorf("an event is of kind %d; kinds are 0 and 1", rest[8])
		}
		if one.at < latest || one.at > turn.until {
			return asked{}, fmt.Errorf("an event is at %d ns, outside of %d to %d ns", one.at, latest, turn.until)
		}
		turn.events, latest = append(turn.events, one), one.at
	}
	return turn, nil
}

// turn goes from instant to instant, and leaves the frame of the answer in t.answer.
func (t *turns) turn(frame []byte) error {
	turn, err := parse(frame)
	if err != nil {
		return err
	}
	t.answer = append(t.answer[:0], make([]byte, headBytes)...)
	arrivals, events, now, count := turn.arrivals, turn.events, turn.now, uint32(0)
	for {
		for ; len(arrivals) > 0 && arrivals[0].at <= now; arrivals = arrivals[1:] {
			one := arrivals[0]
			t.stack.Receive(one.end, now, one.ecn, one.datagram)
			t.touched[one.end] = true
		}
		for ; len(events) > 0 && events[0].at <= now; events = events[1:] {
			if events[0].stop {
				t.app.Stopped = true
			} else {
				t.app.Total = events[0].total
			}
			t.touched[0] = true
		}
		for end := 1; end >= 0; end-- {
			count += t.handle(end, now)
		}
		if delivered := t.state().Delivered; delivered != t.delivered {
			t.delivered, t.deliveredAt = delivered, now
		}
		// A timer of now has been handled.
		next := t.timeoutBehind(now)
		if len(arrivals) > 0 {
			next = min(next, arrivals[0].at)
		}
		if len(events) > 0 {
			next = min(next, events[0].at)
		}
		// The end of time has no instant behind it.
		if next > turn.until || next <= now {
			break
		}
		now = next
	}
	t.writeHead(turn.until, count)
	return nil
}

// handle serves one end at an instant, and returns how many datagrams it sends.
func (t *turns) handle(end int, now uint64) uint32 {
	if t.stack.Timeout(end) <= now {
		t.stack.OnTimeout(end, now)
		t.touched[end] = true
	}
	if !t.touched[end] {
		return 0
	}
	t.touched[end] = false
	t.stack.Application(end, now, t.app)
	count := uint32(0)
	t.stack.Transmit(end, now, func(at uint64, ecn byte, datagram []byte) {
		t.answer = le.AppendUint64(t.answer, at)
		t.answer = append(t.answer, byte(end), ecn&3, 0, 0)
		t.answer = le.AppendUint32(t.answer, uint32(len(datagram)))
		t.answer = append(t.answer, datagram...)
		count++
	})
	return count
}

func (t *turns) timeoutBehind(now uint64) uint64 {
	timeout := min(t.stack.Timeout(0), t.stack.Timeout(1))
	if timeout <= now && now < Never {
		return now + 1
	}
	return timeout
}

func (t *turns) state() State {
	state := State{
		Window: Never, SSThresh: Never, InFlight: Never, SRTT: Never, MinRTT: Never, PacingRate: Never,
		Bandwidth: Never, Lost: Never, Acked: Never, Timeouts: Never, Phase: Never,
	}
	t.stack.State(&state)
	return state
}

func (t *turns) writeHead(until uint64, count uint32) {
	state, flags := t.state(), uint64(0)
	if state.Connected {
		flags |= 1
	}
	if state.Failed {
		flags |= 2
	}
	numbers := [words]uint64{
		until, t.timeoutBehind(until), flags, t.delivered, t.deliveredAt, state.Window, state.SSThresh, state.InFlight,
		state.SRTT, state.MinRTT, state.PacingRate, state.Bandwidth, state.Lost, state.Acked, state.Timeouts, state.Phase,
	}
	le.PutUint32(t.answer, uint32(len(t.answer)-4))
	for index, number := range numbers {
		le.PutUint64(t.answer[4+8*index:], number)
	}
	le.PutUint32(t.answer[headBytes-4:], count)
}
