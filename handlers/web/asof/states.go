package asof

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/past"
)

const (
	// turnWait is how long a question about a whole state waits for another one of the same broker.
	turnWait = time.Second
	// maxQuestions limits the questions about whole states that are answered at the same time.
	maxQuestions = 16
)

// States finds whole states for the questions of all interfaces of a node.
//
// The questions of one broker, of one operator, and those without a token are answered one after the other, so that others find a
// place among the few states that are made at the same time.
type States struct {
	of    past.States
	turns *slots.Slots
}

// NewStates returns the states of a node.
func NewStates(of past.States) *States { return &States{of, slots.New(maxQuestions, 1)} }

// askerOf names those who share a turn. p is nil for a request without a token.
func askerOf(p *access.Principal) string {
	switch {
	case p == nil:
		return ""
	case p.SeesAll():
		return "user " + p.Username // no broker's code has a space
	}
	return p.Broker
}

// turn waits for the turn of the principal, which may be nil. Unless it returns an error, the caller MUST call leave.
func (s *States) turn(ctx context.Context, p *access.Principal) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	leave, free := s.turns.Take(waiting, askerOf(p))
	if !free {
		return nil, &past.BusyError{RetryAfter: turnWait}
	}
	return leave, nil
}

// AnswerState is Answer for a response that is made of the whole state after the record. It returns look's error. look MUST
// only read the state.
func (q *Question) AnswerState(c echo.Context, s Source, look func(state decide.State, sequence int64) error) error {
	if s.States == nil {
		return problem.Unavailable("PAST_STATES_UNAVAILABLE", "This node makes no past states.", time.Minute)
	}
	return q.inTurn(c, s, func(ctx context.Context, sequence int64) error {
		state, _, err := s.States.of.StateAt(ctx, s.Rows.Journal, 0, sequence)
		if err != nil {
			return problemOf(s.Failed(err))
		}
		return look(state, sequence)
	})
}

// AnswerList is Answer for a long list with its total, which costs as much as its rows of that time. It takes a turn, as AnswerState does.
func (q *Question) AnswerList(c echo.Context, s Source, read func(ctx context.Context, db projections.DB, sequence int64) error) error {
	return q.inTurn(c, s, func(ctx context.Context, sequence int64) error { return s.Read(ctx, sequence, read) })
}

// inTurn finds the record that the question means, and answers when it is the principal's turn. A question about a record that does
// not exist takes no turn.
func (q *Question) inTurn(c echo.Context, s Source, answer func(ctx context.Context, sequence int64) error) (err error) {
	defer func() { keepNoPosition(c, err) }()
	sequence, err := q.find(c, s)
	if err != nil {
		return err
	}
	ctx := rest.RequestOf(c).Context()
	if s.Log.Position().Sequence < sequence { // this node may be behind the log
		if err := s.reach(ctx, sequence); err != nil {
			return err
		}
	}
	if s.States != nil {
		leave, err := s.States.turn(ctx, rest.PrincipalOf(c))
		if err != nil {
			return s.Failed(err)
		}
		defer leave()
	}
	return answer(ctx, sequence)
}
