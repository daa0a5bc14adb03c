package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// clients count what became of their requests.
type clients struct {
	requests, applied, repeated, refused, notAccepted, unknown, failed int
}

// clientRequest is a request as its client and the world know it.
type clientRequest struct {
	term.Request
	answered bool

	// The state that it was last decided on.
	tip  record.Position
	sole bool // no other term had begun in the log
}

// submit has a client send some requests to a node, at times as a batch.
func (n *node) submit() {
	w := n.w
	var all []*term.Request
	for range 1 + max(0, w.random.IntN(6)-3) {
		r := &clientRequest{}
		r.Command = w.command(n)
		r.Since = n.clock().Mono
		r.Ref = r
		if w.chance(4) { // as a request of another node
			r.Term, r.Until = n.machine.Standing().Term, r.Since+time.Duration(w.random.IntN(2000))*time.Millisecond
		}
		if len(all) > 0 && w.chance(2) {
			r.After = all[len(all)-1]
		}
		all = append(all, &r.Request)
		n.open = append(n.open, r)
		w.clients.requests++
	}
	n.step(term.Submit{Requests: all})
}

var users = []string{"ann", "bob", "cleo"}

// command makes a command. Some have a key that others have as well.
func (w *world) command(n *node) decide.Command {
	c := decide.Command{ID: w.id(0), Type: "ledger", Actor: decide.Actor{Sub: users[w.random.IntN(3)], Broker: "b"}}
	account := func() string { return users[w.random.IntN(3)] }
	move := termtest.Move{From: termtest.Bank, To: account(), Amount: 1 + w.random.Int64N(50)}
	if w.chance(2) {
		move.From = account()
	}
	if w.random.IntN(100) < w.reads || n.isolated() && !w.chance(30) { // any record in flight would keep refusals back
		c.Payload = &termtest.Read{Account: account()}
		return c
	}
	switch k := w.random.IntN(100); {
	case k < 75:
		c.Payload = &move
		if w.chance(4) {
			c.Metadata.Key = fmt.Sprint("k", w.random.IntN(30))
		}
	case k < 86:
		faults := []string{"", "", "", "", "panic", "panic!", "large"}
		at := scalar.TimeOf(n.clock().Wall.Add(time.Duration(w.random.IntN(2000)) * time.Millisecond))
		c.Payload = &termtest.Plan{Move: move, At: at, Fault: faults[w.random.IntN(len(faults))]}
	case k < 93:
		c.Payload = &termtest.Sweep{To: account(), Steps: 1 + w.random.IntN(4)}
	case k < 99:
		c.Payload = &termtest.Bad{How: []string{"panic", "nothing", "future", "large"}[w.random.IntN(4)]}
	default:
		c.Payload = &termtest.Bad{How: "poison"}
	}
	return c
}

// decided notes the state that a request is decided on.
func (n *node) decided(r *clientRequest) {
	s := n.machine.Standing()
	if r.Term != 0 && r.Term != s.Term {
		n.w.fail("%s decides a request of term %d in term %d", n.name, r.Term, s.Term)
	}
	if r.Until != 0 && n.clock().Mono > r.Until {
		n.w.fail("%s decides a request %v too late", n.name, n.clock().Mono-r.Until)
	}
	r.tip, r.sole = n.machine.Tip(), n.w.chain.Term() == s.Term && !n.w.cut
	n.overtaken = n.overtaken || !r.sole
}

// answered checks an answer.
func (n *node) answered(a term.Reply) {
	w, r := n.w, a.Request.Ref.(*clientRequest)
	if r.answered {
		w.fail("%s answers a request twice", n.name)
	}
	r.answered = true
	if w.cut && !n.begun {
		return // the log is not what was promised
	}
	var refused *submit.RefusedError
	var notAccepted *submit.NotAcceptedError
	var unknown *submit.OutcomeUnknownError
	switch err := a.Err; {
	case err == nil:
		n.checkResult(r, a.Result)
	case errors.As(err, &unknown):
		w.clients.unknown++
	case errors.As(err, &refused) && !n.leased():
		w.clients.notAccepted++
		w.isNever(r, "a refusal without a lease")
	case errors.As(err, &refused):
		w.clients.refused++
		n.checkRefusal(r, refused)
		w.isNever(r, "a refusal")
	case errors.As(err, &notAccepted):
		w.clients.notAccepted++
		w.isNever(r, notAccepted.Reason)
	default:
		w.clients.failed++
		w.isNever(r, "an error")
	}
}

// isNever notes that a command is answered as one that has no effect.
func (w *world) isNever(r *clientRequest, answer string) {
	if sequence, there := w.place[r.Command.ID]; there {
		w.fail("the command of record %d is answered with %s", sequence, answer)
	}
	w.never[r.Command.ID] = answer
}

// checkResult checks that the record of an answer is valid and belongs to the request.
func (n *node) checkResult(r *clientRequest, result submit.Result) {
	w, e := n.w, result.Entry
	if e == nil || !w.holds(e.Position) || result.Position.Sequence != e.Position.Sequence {
		w.fail("%s answers with a record that is not valid", n.name)
		return
	}
	if result.Repeated {
		w.clients.repeated++
		if e.Record.Command.Metadata.Key != r.Command.Metadata.Key || r.Command.Metadata.Key == "" {
			w.fail("%s answers with the record of another command", n.name)
		}
		return
	}
	w.clients.applied++
	if _, there := w.place[r.Command.ID]; !there {
		w.fail("%s answers a command that is not in the log", n.name)
	}
	if _, sweep := r.Command.Payload.(*termtest.Sweep); sweep && e.Record.Command.Type != "engine.step" || !sweep && e.Record.Command.ID != r.Command.ID {
		w.fail("%s answers with the record of another command", n.name)
	}
}

// checkRefusal checks that a refusal was decided on a state of the log, and that no other term had begun before.
func (n *node) checkRefusal(r *clientRequest, refused *submit.RefusedError) {
	w := n.w
	if !w.holds(r.tip) || refused.AsOf.Sequence != r.tip.Sequence {
		w.fail("%s refuses as of record %d, on a state that is not of the log", n.name, refused.AsOf.Sequence)
	}
	if !r.sole {
		w.fail("%s refuses after another term has begun", n.name)
	}
}

// checkDeadlines checks that the node has answered each request in time. Its machine has just been told the time.
func (n *node) checkDeadlines() {
	for len(n.open) > 0 && n.open[0].answered {
		n.open = n.open[1:]
	}
	if len(n.open) > 0 && n.clock().Mono-n.open[0].Since >= term.DefaultLimits().Deadline {
		n.w.fail("%s has not answered a request in time", n.name)
	}
}
