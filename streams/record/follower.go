package record

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Follower is a state that follows the records of one journal partition. *follow.Fold implements it.
//
// A Follower MUST apply every record, in order. It never decides a command. A function that it calls with its state MUST
// NOT keep or change the state and MUST NOT call the Follower, since it runs under the Follower's lock.
type Follower interface {
	// View calls look with the state and its position. No record is applied during the call.
	View(look func(s decide.State, at Position))
	// Listen registers a function that is called after each record, in order. A function that is registered before the
	// Follower runs gets every record.
	Listen(call func(e Entry, s decide.State))
	// ListenFrom calls start with the current state and then call after each later record, until stop is called.
	ListenFrom(start func(s decide.State, at Position), call func(e Entry, s decide.State)) (stop func())
	// Wait returns nil once the record with the sequence has been applied. Otherwise it returns the context's error or the
	// error that stopped the Follower.
	Wait(ctx context.Context, sequence int64) error
	// WaitTip is Wait for the current end of the log.
	WaitTip(ctx context.Context) error
	// CaughtUp returns a channel that is closed once the Follower has applied the records that the log had when the Follower
	// started, or can apply no further ones. Before that, its state lacks records that were acknowledged long ago.
	CaughtUp() <-chan struct{}
	// Position returns the position of the last record applied.
	Position() Position
	// Err returns the error that stopped the Follower, or nil while it runs.
	Err() error
}

// AtOnce returns a closed channel. It is CaughtUp of a Follower that has the whole log from the start.
func AtOnce() <-chan struct{} { return closed }

// closed is made at the start of the program: a channel that is first needed in a test with synctest is of no use outside of it.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
