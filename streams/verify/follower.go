package verify

import (
	"errors"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// follower is a check that depends on all earlier records. Its goroutine reads items in the order of the log.
type follower struct {
	in    chan []item
	done  chan struct{}
	check Check
	one   func(*item) error

	model      bool
	checked    int64
	notCovered string // why the model stopped
}

// follow starts the followers of a log that begins at a base, or at the genesis.
func (v *verification) follow(base *record.Base) (all []*follower) {
	sums := &Sums{Partial: base != nil}
	all = append(all, &follower{check: CheckSums, one: func(i *item) error { return sums.Add(i.Record.Events) }})
	if v.Model != nil {
		all = append(all, &follower{check: CheckModel, model: true, one: func(i *item) error { return v.Model.Check(i.Value) }})
	}
	for _, f := range all {
		f.in, f.done = make(chan []item, 4), make(chan struct{})
		go func() {
			defer close(f.done)
			f.run(v)
		}()
	}
	return all
}

func (f *follower) run(v *verification) {
	stopped := false
	for items := range f.in { // also after the end, so that nobody waits for it
		for i := range items {
			at := items[i].Position
			if stopped || at.Sequence > v.limit.Load() {
				break
			}
			err := f.one(&items[i])
			if stopped = err != nil; !stopped {
				f.checked++
				continue
			}
			if errors.Is(err, ErrNotCovered) {
				f.notCovered = err.Error()
				continue
			}
			v.differs(&Difference{f.check, at.Sequence, at.Offset, err.Error()})
		}
	}
}

// closeAll ends the followers after the last item.
func closeAll(all []*follower) {
	for _, f := range all {
		close(f.in)
	}
	for _, f := range all {
		<-f.done
	}
}
