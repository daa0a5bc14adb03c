package journaltest

import (
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Insist sends a command until the owner accepts it. On a busy machine the owner may exceed its own time limits, and then returns a
// NotAcceptedError. After a minute, Insist returns that error. It returns every other error immediately.
func Insist(send func() (submit.Result, error)) (submit.Result, error) {
	for limit := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		r, err := send()
		var refused *submit.NotAcceptedError
		if !errors.As(err, &refused) || time.Now().After(limit) {
			return r, err
		}
	}
}
