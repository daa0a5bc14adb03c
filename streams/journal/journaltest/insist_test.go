package journaltest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestInsist sends a command again only if it was not accepted, and not without end.
func TestInsist(t *testing.T) {
	busy, other := new(submit.NotAcceptedError), errors.New("refused")
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"accepted":        {[]error{nil}, nil},
		"busy for a time": {[]error{busy, busy, nil}, nil},
		"another error":   {[]error{busy, other}, other},
		"busy for ever":   {[]error{busy}, busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				_, err := journaltest.Insist(func() (submit.Result, error) {
					sent++
					return submit.Result{}, c.answers[min(sent, len(c.answers))-1]
				})
				if !errors.Is(err, c.want) || sent < len(c.answers) || c.want != error(busy) && sent > len(c.answers) {
					t.Errorf("after %d of %d answers: %v", sent, len(c.answers), err)
				}
			})
		})
	}
}
