// For internal/congestion of quic-go: go test -run TestPacerAgreesWithSender ./internal/congestion
package congestion

import (
	"testing"
	"time"

	"github.com/quic-go/quic-go/internal/monotime"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

func TestPacerAgreesWithSender(t *testing.T) {
	for _, size := range []protocol.ByteCount{1280, 1440} {
		clock, rtt := mockClock(monotime.Now()), utils.NewRTTStats()
		rtt.UpdateRTT(50*time.Millisecond, 0)
		sender := NewCubicSender(&clock, rtt, &utils.ConnectionStats{}, size, true, nil)
		for number := protocol.PacketNumber(1); sender.HasPacingBudget(clock.Now()); number++ {
			sender.OnPacketSent(clock.Now(), 0, number, size, true)
		}
		if sender.TimeUntilSend(0).IsZero() {
			t.Errorf("%d bytes: no budget for a packet, and no time to wait", size)
		}
	}
}
