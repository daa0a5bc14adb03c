package operation

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// View waits until a follower has reached the position that the client requires, calls look with its state and sets
// the response's position to the state's. It returns look's error. While the node starts, it returns a 503 instead: the
// state lacks records, so that what exists would be called unknown.
func View[S decide.State](a Request, name string, f record.Follower, look func(s S, sequence int64) error) error {
	if err := Await(a, name, f); err != nil {
		return err
	}
	if err := caughtUp(a, f); err != nil {
		return err
	}
	if err := f.Err(); err != nil {
		return problem.SourceFailed(err)
	}
	asOf, err := inspect(f, look)
	a.SetReadPosition(name, asOf)
	return err
}

// caughtUp waits until a follower has applied the records that the log had when the node started. After two seconds it returns
// a 503.
func caughtUp(a Request, f record.Follower) error {
	select {
	case <-f.CaughtUp(): // the usual case
		return nil
	default:
	}
	wait, cancel := context.WithTimeout(a.Context(), waitLimit)
	defer cancel()
	select {
	case <-f.CaughtUp():
		return nil
	case <-wait.Done():
		return problem.Unavailable("NOT_READY", "The node is starting and has not read the whole log yet.", time.Second)
	}
}

// ViewDecided is like View, but for use after the request's command was decided. It waits for the command's record and
// ignores X-Min-Log-Position. The response keeps its position. A client that gets the 503 of a node that starts repeats the
// request with its key.
func ViewDecided[S decide.State](a Request, name string, f record.Follower, look func(s S, sequence int64) error) error {
	if err := awaitOf(a, name, f); err != nil {
		return err
	}
	if err := caughtUp(a, f); err != nil {
		return err
	}
	if err := f.Err(); err != nil {
		return problem.SourceFailed(err)
	}
	_, err := inspect(f, look)
	return err
}

// inspect calls look with the state of a follower. It returns the sequence of the state, and look's error.
func inspect[S decide.State](f record.Follower, look func(s S, sequence int64) error) (asOf int64, err error) {
	f.View(func(s decide.State, at record.Position) {
		asOf = at.Sequence
		err = look(s.(S), asOf)
	})
	// A record that failed while being applied leaves an inconsistent state. It may have come between the caller's check
	// of Err and the view.
	if ended := f.Err(); ended != nil {
		return asOf, problem.SourceFailed(ended)
	}
	return asOf, err
}

// Names returns the names of journals in the order in which responses visit them.
func Names(folds map[string]record.Follower) []string { return slices.Sorted(maps.Keys(folds)) }

// ViewAll is View for a response that combines several journals, each at its current position. X-Log-Position lists
// all positions. A position that the client requires applies to its journal.
func ViewAll(a Request, folds map[string]record.Follower, look func(name string, s decide.State)) error {
	names := Names(folds)
	wanted := names[0]
	for _, least := range a.transport.Least() {
		if name, _, _ := strings.Cut(least, "/"); folds[name] != nil {
			wanted = name
		}
	}
	if err := Await(a, wanted, folds[wanted]); err != nil {
		return err
	}
	var asOf []record.LogPosition
	for _, name := range names {
		f := folds[name]
		if name != wanted {
			if err := awaitOf(a, name, f); err != nil {
				return err
			}
		}
		if err := caughtUp(a, f); err != nil {
			return err
		}
		var sequence int64
		f.View(func(s decide.State, at record.Position) {
			sequence = at.Sequence
			look(name, s)
		})
		a.SetReadPosition(name, sequence)
		asOf = append(asOf, record.LogPosition{Journal: name, Sequence: sequence})
		if ended := f.Err(); ended != nil {
			return problem.SourceFailed(ended)
		}
	}
	a.transport.AnswerAtAll(asOf)
	return nil
}
