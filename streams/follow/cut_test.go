package follow_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// asked tells when a broker has told where a log ends.
type asked chan struct{}

const keyListOffsets = 2

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a asked) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key == keyListOffsets && e2e.Err() == nil {
		select {
		case a <- struct{}{}:
		default:
		}
	}
}

// TestAFoldDoesNotWaitForAnEndThatTheLogHasLost cuts the log between the look at its tip and the fold.
func TestAFoldDoesNotWaitForAnEndThatTheLogHasLost(t *testing.T) {
	said := make(asked)
	c := journaltest.Connect(t, journal.Config{Options: []kgo.Opt{kgo.WithHooks(said)}}, "trading")
	say, stop := serve(t, c)
	first := say("one")
	say("two")
	say("three")
	stop()

	f := follow.New(c, journaltest.Words{Name: "trading"}, 0)
	waited := make(chan error, 1)
	go func() { waited <- f.WaitTip(within(t)) }()
	select { // the fold does not run yet, so it waits for what the log has now
	case <-said:
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	}
	journaltest.Cut(t, c, "trading", first.Position.Offset+1)
	run(t, f)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if list, _ := words(f); list != "one" {
		t.Errorf("it has %q", list)
	}
}
