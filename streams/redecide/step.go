package redecide

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// step decides due work again, as the owner of a journal does: if a step fails, a step with one entry is tried, and if that
// fails, the entry is set aside.
func (a *again) step() Result {
	if result := a.ofEngine(); result.Verdict != Same {
		return result
	}
	var in decide.StepInput
	if err := a.evidence.ReadInput(&in); err != nil {
		result := a.different("the input is invalid")
		result.Err = err
		return result
	}
	if aside, ok := decide.EventOf[*decide.DueSetAside](a.evidence); ok {
		return a.setAside(aside.Error)
	}
	if !in.Single {
		result := a.compareStep(func() decide.Decision { return a.run(false) })
		if result.Verdict == Same || a.inputs {
			return result
		}
		single := a.single() // the record does not say whether a larger step had failed
		if single.Verdict != Different {
			return single
		}
		return result
	}
	return a.single()
}

// single decides a step with one entry again. It is right only if the larger step fails.
func (a *again) single() Result {
	result := a.compareStep(func() decide.Decision { return a.run(true) })
	if result.Verdict == Same && a.fails(false) == nil {
		result.Verdict, result.Reason = NotReproduced, "the step with more entries does not fail"
	}
	return result
}

// setAside decides again to set an entry aside for a cause. It is right only if both steps fail, and the smaller one for this
// cause.
func (a *again) setAside(cause string) Result {
	result := a.compareStep(func() decide.Decision { return a.state.SetAside(a.evidence.At, cause) })
	if result.Verdict != Same {
		return result
	}
	larger, smaller := a.fails(false), a.fails(true)
	switch {
	case larger == nil:
		result.Verdict, result.Reason = Different, "the step does not fail"
	case smaller == nil:
		result.Verdict, result.Reason = Different, "the step with one entry does not fail"
	case decide.CauseOf(smaller) != cause:
		result.Verdict, result.Reason = Different, "the step fails for another cause: "+smaller.Error()
	}
	if result.Verdict == Different && decide.IsPanicCause(cause) {
		result.Verdict = NotReproduced
	}
	return result
}

func (a *again) run(single bool) decide.Decision { return a.state.Step(a.evidence.At, single) }

// fails returns the error for which the owner's step fails, or nil.
func (a *again) fails(single bool) error {
	d, err := decide.GuardStep(func() decide.Decision { return a.run(single) })
	if err == nil {
		_, err = a.encode(d)
	}
	return err
}

func (a *again) compareStep(run func() decide.Decision) Result {
	c := a.evidence.Command
	return a.compare(decide.Command{ID: c.ID, Type: c.Type, Actor: c.Actor}, func() (decide.Decision, error) { return run(), nil })
}
