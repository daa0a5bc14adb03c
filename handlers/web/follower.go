package web

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// View waits until a follower has reached the position that the client requires, calls look with its state and sets
// the response's position to the state's. It returns look's error.
func View[S decide.State](c echo.Context, name string, f record.Follower, look func(s S, sequence int64) error) error {
	if err := Await(c, name, f); err != nil {
		return err
	}
	if err := f.Err(); err != nil {
		return SourceFailed(err)
	}
	var (
		err  error
		asOf int64
	)
	f.View(func(s decide.State, at record.Position) {
		asOf = at.Sequence
		err = look(s.(S), asOf)
	})
	SetReadPosition(c, name, asOf)
	// A record that failed while being applied leaves an inconsistent state. It may have come between the check of
	// Err above and the view.
	if ended := f.Err(); ended != nil {
		return SourceFailed(ended)
	}
	return err
}

// Names returns the names of journals in the order in which responses visit them.
func Names(folds map[string]record.Follower) []string { return slices.Sorted(maps.Keys(folds)) }

// ViewAll is View for a response that combines several journals, each at its current position. X-Log-Position lists
// all positions. A position that the client requires applies to its journal.
func ViewAll(c echo.Context, folds map[string]record.Follower, look func(name string, s decide.State)) error {
	names := Names(folds)
	wanted := names[0]
	if name, _, _ := strings.Cut(header(c.Request(), HeaderMinLogPosition), "/"); folds[name] != nil {
		wanted = name
	}
	if err := Await(c, wanted, folds[wanted]); err != nil {
		return err
	}
	var asOf []string
	for _, name := range names {
		f := folds[name]
		if name != wanted {
			if err := awaitOf(c, name, f); err != nil {
				return err
			}
		}
		var sequence int64
		f.View(func(s decide.State, at record.Position) {
			sequence = at.Sequence
			look(name, s)
		})
		SetReadPosition(c, name, sequence)
		asOf = append(asOf, record.LogPosition{Journal: name, Sequence: sequence}.String())
		if ended := f.Err(); ended != nil {
			return SourceFailed(ended)
		}
	}
	c.Response().Header()[HeaderLogPosition] = asOf
	return nil
}

// SourceFailed returns the problem for a failed read. Problems and errors of the log are returned unchanged.
func SourceFailed(err error) error {
	if p := ProblemOf(err); p.Code != "INTERNAL" {
		return err
	}
	return Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}
