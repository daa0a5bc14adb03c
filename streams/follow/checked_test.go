package follow_test

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestACheckedFoldKeepsWhatItHasVerified refuses a record: the fold ends before it and goes on to show the state there.
func TestACheckedFoldKeepsWhatItHasVerified(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, _ := serve(t, c)
	good := say("one").Position
	bad := say("two").Position
	say("three")
	f := follow.New(c, journaltest.Words{Name: "trading"}, 0, follow.Checked(func(s decide.State, e record.Entry) error {
		if e.Position.Sequence != bad.Sequence {
			return nil
		}
		if n := len(s.(*journaltest.WordList).Words); n != 1 {
			t.Errorf("the state before the record has %d words", n)
		}
		return &record.BrokenRecordError{Journal: "trading", Sequence: e.Position.Sequence, Reason: "nobody said so"}
	}))
	ended := run(t, f)
	err := f.Wait(within(t), bad.Sequence)
	var broken *record.BrokenRecordError
	if !errors.As(err, &broken) || !errors.As(f.Stopped(), &broken) || !errors.As(f.WaitTip(within(t)), &broken) || broken.Sequence != bad.Sequence {
		t.Fatalf("waiting for it: %v; stopped: %v", err, f.Stopped())
	}
	if list, at := words(f); list != "one" || !at.Equal(good) || f.Err() != nil {
		t.Errorf("it shows %q at %v, and has the error %v", list, at, f.Err())
	}
	if err := f.Wait(within(t), good.Sequence); err != nil {
		t.Errorf("waiting for what it has: %v", err)
	}
	select {
	case <-f.CaughtUp(): // nothing more comes
	case <-within(t).Done():
		t.Error("it waits for records that it does not take")
	}
	if err := ended(); !errors.As(err, &broken) {
		t.Errorf("it ended with %v", err)
	}
}
