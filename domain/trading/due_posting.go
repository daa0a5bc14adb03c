package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// postingWork is the postings of instants: see instant. They alternate with clients, so that a venue with very many
// positions goes on. In what order accounts post makes no difference to any of them; an account posts all that it owes at
// once, the same whether a step comes to it or something else does first.
type postingWork struct{}

func (postingWork) work(*dueEntry) Work { return WorkPosting }

func (postingWork) subject(e *dueEntry) string {
	x := e.instant
	return x.instrument.contract.Symbol + "/" + x.kind.String() + "/" + x.time.String()
}

func (postingWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	x, t := entries[0].instant, s.newTill()
	d := stepped(WorkPosting)
	size, most := headBytes, s.most(single)
	for h := x.instrument.holders.first; h != nil && h.posted < x.number && most > 0; h = h.behind {
		if size += s.debtSize(h.account); len(d.Events) > 1 && size > s.limit.size {
			break
		}
		d.Events, _ = t.postDebts(s, at, d.Events, h.account)
		most--
	}
	balanced(d.Events)
	return d
}

// debtSize estimates how many bytes the events take that post what an account owes.
func (s *State) debtSize(a *account) int {
	if s.outstanding == 0 {
		return 0
	}
	size := 0
	for _, h := range a.positions {
		for _, x := range h.instrument.instants {
			if h.size != 0 && x.number > h.posted {
				size += debtBytes + 3*len(a.code) + len(a.broker) + 5*len(h.instrument.contract.Symbol)
			}
		}
	}
	return size
}

// String names the kind.
func (k instantKind) String() string {
	if k == instantFunding {
		return string(WorkFunding)
	}
	return string(WorkSettlement)
}

// save writes which instant it is, for an entry that was set aside.
func (postingWork) save(v *saver, e *dueEntry) {
	v.Len(e.instant.instrument.index)
	v.Int(e.instant.number)
}

func (postingWork) load(v *loader) *dueEntry {
	i, number := v.whichInstrument(), v.Int()
	if i != nil {
		for _, x := range i.instants {
			if x.number == number {
				return x.posting
			}
		}
	}
	return nil
}
