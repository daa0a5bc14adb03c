package node

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestACommandOfANodeFindsTheNextOwner: a command of a node itself goes on to the next owner after a node that does not own the
// journal, or is gone, and to no more than a few.
func TestACommandOfANodeFindsTheNextOwner(t *testing.T) {
	serve := func(answer func() (submit.Result, error)) string {
		e := echo.New()
		e.POST(peerPath, newPeers(submitFunc(func(context.Context, string, decide.Command) (submit.Result, error) { return answer() }),
			journals.All(), boxOf(t, 1)).serve)
		s := httptest.NewServer(e)
		t.Cleanup(s.Close)
		return s.URL
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	decided := 0
	owner := serve(func() (submit.Result, error) {
		decided++
		return submit.Result{Position: record.LogPosition{Journal: "onboarding", Sequence: 7}}, nil
	})
	full := serve(func() (submit.Result, error) { return submit.Result{}, &submit.NotAcceptedError{Reason: "full"} })
	knows := serve(func() (submit.Result, error) { return submit.Result{}, &submit.ElsewhereError{URL: owner} })
	none := serve(func() (submit.Result, error) { return submit.Result{}, &submit.NotAcceptedError{Unowned: true} })
	attempt := &onboarding.RecordAttempt{ID: scalar.ID{1}, Number: 1}
	for name, c := range map[string]struct {
		urls  []string
		taken bool
	}{
		"the owner":             {[]string{owner}, true},
		"one that knows it":     {[]string{knows, owner}, true},
		"one that knows nobody": {[]string{none, owner}, true},
		"one that is gone":      {[]string{gone.URL, owner}, true},
		"one that is full":      {[]string{full, owner}, false},
		"nobody but those":      {[]string{none, gone.URL}, false},
		"too many of them":      {[]string{none, none, none, owner}, false},
	} {
		decided = 0
		left := c.urls
		var next func(context.Context) *submit.ElsewhereError
		next = func(context.Context) *submit.ElsewhereError {
			if len(left) == 0 {
				return nil
			}
			e := &submit.ElsewhereError{URL: left[0], Next: next}
			left = left[1:]
			return e
		}
		here := newPeers(submitFunc(func(context.Context, string, decide.Command) (submit.Result, error) {
			return submit.Result{}, next(t.Context())
		}), journals.All(), boxOf(t, 1))
		_, err := here.Submit(t.Context(), "onboarding", decide.Command{ID: scalar.ID{2}, Type: attempt.CommandType(),
			Actor: decide.Actor{System: "sender"}, Payload: attempt})
		var refused *submit.NotAcceptedError
		if c.taken && (err != nil || decided != 1) || !c.taken && (!errors.As(err, &refused) || decided != 0) {
			t.Errorf("%s: %v, decided %d times", name, err, decided)
		}
	}
}
