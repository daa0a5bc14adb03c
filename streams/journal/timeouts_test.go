package journal_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// TestASilentBrokerIsGivenUpInTime: a broker takes a produce, or the question where the log ends, and never answers, as one
// that was stopped. The same command is answered all the same: its owner asks again, over a new connection, within the ten
// seconds that a command has. Whatever the broker still does with what it was sent, the record is in the log once.
func TestASilentBrokerIsGivenUpInTime(t *testing.T) {
	for name, key := range map[string]int16{"produce": kmsg.Produce.Int16(), "list offsets": kmsg.ListOffsets.Int16()} {
		t.Run(name, func(t *testing.T) {
			r := newFake(t)
			o := r.owner("a").ready()
			var first atomic.Bool
			held, release := make(chan struct{}), make(chan struct{})
			r.fake.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
				if !first.CompareAndSwap(false, true) {
					return nil, nil, false
				}
				close(held)
				r.fake.SleepControl(func() { <-release })
				return nil, nil, false
			})
			done := make(chan error, 1)
			go func() {
				// A refusal waits for the end of the log, an addition for its record.
				if key == kmsg.Produce.Int16() {
					_, err := o.Submit(t.Context(), command(&add{Name: "a", N: 1}))
					done <- err
					return
				}
				_, err := o.Submit(t.Context(), command(&read{Name: "a"}))
				done <- refusedOnly(err)
			}()
			<-held
			if err := <-done; err != nil {
				t.Error(err)
			}
			close(release)
			if key == kmsg.Produce.Int16() {
				if n := len(r.all()); n != 3 { // genesis, taken, the addition
					t.Errorf("%d records", n)
				}
			}
		})
	}
}

// refusedOnly returns nil for a refusal.
func refusedOnly(err error) error {
	var refused *journal.RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
