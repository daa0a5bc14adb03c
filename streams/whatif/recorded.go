package whatif

import (
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// onRecorded is the other world of a run on the recorded state. It applies the recorded events, so it takes the steps of the recorded
// state: work that is due only here stays due. It must neither replace recorded steps nor keep commands from being decided.
type onRecorded struct {
	*trading.State
	recorded *trading.State
	idle     bool // the last step found nothing due
}

// Due implements decide.State.
func (s *onRecorded) Due(now scalar.Time) decide.Urgency { return s.recorded.Due(now) }

// Step implements decide.State.
func (s *onRecorded) Step(at decide.Stamp, single bool) decide.Decision {
	d := s.StepOf(s.recorded, at, single)
	s.idle = len(d.Events) == 0
	return d
}

// SetAside implements decide.State.
func (s *onRecorded) SetAside(at decide.Stamp, cause string) decide.Decision {
	return s.recorded.SetAside(at, cause)
}

// decideOnRecorded decides a record on the recorded state under the overrides, and then applies the recorded events. A step that
// redecide.NotReproduced describes has the bytes of the record, so it counts as the same. Overridden parameters in an event that sets
// parameters are not a difference.
func (r *run) decideOnRecorded(e record.Entry) error {
	events, err := r.inForce.events(r.other, e.Record.Events)
	if err != nil {
		return err
	}
	world := &onRecorded{State: r.other, recorded: r.recorded}
	result := r.journal.Redecide(world, r.stamp.Time, e)
	switch result.Verdict {
	case redecide.Same, redecide.NotReproduced:
		r.same(e)
	case redecide.Undecided:
		r.report.Undecided++
	case redecide.NotRedecidable:
		r.notRedecidable(e)
	default:
		otherwise := result.Reason
		if slices.ContainsFunc(e.Record.Events, func(e decide.Event) bool { return parametersIn(e) != nil }) {
			otherwise = ""
		}
		r.compareDecision(e, world.effects(&result), otherwise)
	}
	r.evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, events)
	return nil
}

// effects returns the effects of deciding a record in this world.
func (s *onRecorded) effects(result *redecide.Result) *effects {
	d := &result.Decision
	switch {
	case result.Err != nil:
		return refusedFor(result.Err)
	case d.Repeated:
		return refused(fmt.Sprintf("repeats record %d", d.Repeat))
	case len(d.Events) > 0:
		return effectsOf(d.Outcome, d.Events)
	case s.idle:
		return refused(notDue)
	}
	return refused(result.Reason)
}

// notDue is the outcome of a step that the other world has no work for.
const notDue = "not due"
