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
// state: work that is due only here stays due, and must not take the place of recorded steps or keep commands from being decided.
type onRecorded struct {
	*trading.State
	recorded *trading.State
}

// Due implements decide.State.
func (s onRecorded) Due(now scalar.Time) decide.Urgency { return s.recorded.Due(now) }

// Step implements decide.State.
func (s onRecorded) Step(at decide.Stamp, single bool) decide.Decision {
	return s.StepOf(s.recorded, at, single)
}

// SetAside implements decide.State.
func (s onRecorded) SetAside(at decide.Stamp, cause string) decide.Decision {
	return s.recorded.SetAside(at, cause)
}

// again decides a record on the recorded state under the overrides, and then applies the recorded events. A step that is not reproduced
// is nevertheless decided as the same bytes. That an event of a changed
// instrument shows the overridden parameters is not a difference.
func (r *run) again(e record.Entry) error {
	events, err := r.inForce.events(e.Record.Events)
	if err != nil {
		return err
	}
	result := r.journal.Redecide(onRecorded{r.other, r.recorded}, r.stamp.Time, e)
	switch result.Verdict {
	case redecide.Same, redecide.NotReproduced:
		r.same(e)
	case redecide.Undecided:
		r.report.Undecided++
	case redecide.NotRedecidable:
		r.report.NotRedecidable[e.Record.Command.Type]++
		money := moneyIn(e.Record.Events)
		r.add(money, money, e.Position)
	default:
		otherwise := result.Reason
		if slices.ContainsFunc(e.Record.Events, func(e decide.Event) bool { return parametersIn(e) != nil }) {
			otherwise = ""
		}
		r.judge(e, effectsOfResult(&result), otherwise)
	}
	r.evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, events)
	return nil
}

// effectsOfResult returns the effects of deciding a record again.
func effectsOfResult(result *redecide.Result) *effects {
	d := &result.Decision
	switch {
	case result.Err != nil:
		return refusedFor(result.Err)
	case d.Repeated:
		return refused(fmt.Sprintf("repeats record %d", d.Repeat))
	case len(d.Events) == 0:
		return refused(notDue)
	}
	return effectsOf(d.Outcome, d.Events)
}

// notDue is the outcome of a step that the other world has no work for.
const notDue = "not due"
