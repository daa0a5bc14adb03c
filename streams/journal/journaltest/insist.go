package journaltest

import (
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Insist sends a command until it is accepted. A busy machine may be too slow for the limits of an owner, which then accepts
// nothing. Insist returns that refusal only after a minute, and any other error at once.
func Insist(send func() (submit.Result, error)) (submit.Result, error) {
	for limit := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		r, err := send()
		var refused *submit.NotAcceptedError
		if !errors.As(err, &refused) || time.Now().After(limit) {
			return r, err
		}
	}
}
