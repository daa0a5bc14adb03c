// Package termtest has small rules of a journal for tests of the ownership protocol: a ledger of a few accounts. Their
// sum is always zero. Commands move money, immediately or at a later time. Others are refused, or panic, or are too
// large.
package termtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Limit is the greatest size of a record in bytes.
const Limit = 2 << 10

// Bank is the account that may be overdrawn.
const Bank = "bank"

// The commands.
type (
	// Move moves money between two accounts. It is refused if the first has too little.
	Move struct {
		From, To string
		Amount   int64
	}
	// Plan moves money in a step, which alternates with commands, when a time has come.
	Plan struct {
		Move Move
		At   scalar.Time
		// Fault makes the step fail: "panic" or "large", or "panic!" even with a single entry.
		Fault string
	}
	// Sweep moves one from the bank to an account in each of several blocking steps. The last one is its answer.
	Sweep struct {
		To    string
		Steps int
	}
	// Read is refused, with the balance as the message.
	Read struct{ Account string }
	// Bad makes Decide fail in a way: "panic", "nothing", "future" or "large". With "poison" the record can't be applied.
	Bad struct{ How string }
)

type moved struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Amount int64  `json:"amount"`
	Pad    string `json:"pad,omitempty"`
}

type planned struct {
	From   string      `json:"from"`
	To     string      `json:"to"`
	Amount int64       `json:"amount"`
	At     scalar.Time `json:"at"`
	Fault  string      `json:"fault,omitempty"`
}

type swept struct {
	To      string    `json:"to"`
	Left    int       `json:"left"`
	Command scalar.ID `json:"command"`
}

type stepped struct{}

type poisoned struct{}

func (*moved) EventType() string    { return "ledger.moved" }
func (*planned) EventType() string  { return "ledger.planned" }
func (*swept) EventType() string    { return "ledger.swept" }
func (*stepped) EventType() string  { return "engine.step" }
func (*poisoned) EventType() string { return "ledger.poisoned" }

func (*moved) Canonical() bool   { return true }
func (*planned) Canonical() bool { return true }
func (*swept) Canonical() bool   { return true }
func (*stepped) Canonical() bool { return true }

// Rules are the rules of a trading journal that holds the ledger.
type Rules struct{}

// Journal returns trading.
func (Rules) Journal() string { return "trading" }

// NewState returns a *Ledger without money.
func (Rules) NewState() decide.State { return &Ledger{balances: make(map[string]int64)} }

// Limit returns Limit.
func (Rules) Limit() int { return Limit }

// Newest returns 1.
func (Rules) Newest() int { return 1 }

// Registry returns the events.
func (Rules) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(moved) })
	r.Add(func() decide.Event { return new(planned) })
	r.Add(func() decide.Event { return new(swept) })
	r.Add(func() decide.Event { return new(stepped) })
	r.Add(func() decide.Event { return new(poisoned) })
	return r
}

// Ledger is the state.
type Ledger struct {
	balances map[string]int64
	keys     map[string]int64 // the record of each idempotency key
	due      []planned        // in the order of their plans
	sweeps   []swept
	applied  int64
}

// Clone returns a copy.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{balances: maps.Clone(l.balances), keys: maps.Clone(l.keys), due: slices.Clone(l.due), sweeps: slices.Clone(l.sweeps),
		applied: l.applied}
}

// Sum returns the sum of all accounts, which is always zero.
func (l *Ledger) Sum() (sum int64) {
	for _, balance := range l.balances {
		sum += balance
	}
	return sum
}

// Digest returns a hash of the state.
func (l *Ledger) Digest() [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%v %v %v %v %v", l.balances, l.keys, l.due, l.sweeps, l.applied)) // fmt sorts maps
}

// Decide implements decide.State.
func (l *Ledger) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if sequence, known := l.keys[c.Metadata.Key]; known && c.Metadata.Key != "" {
		return decide.Decision{Repeated: true, Repeat: sequence}, nil
	}
	switch p := c.Payload.(type) {
	case *Move:
		if p.From != Bank && l.balances[p.From] < p.Amount {
			return decide.Decision{}, decide.Refuse(decide.Conflict, "FUNDS", "the account has too little")
		}
		return accept(&moved{From: p.From, To: p.To, Amount: p.Amount})
	case *Plan:
		return accept(&planned{p.Move.From, p.Move.To, p.Move.Amount, p.At, p.Fault})
	case *Sweep:
		d, err := accept(&swept{p.To, p.Steps, c.ID})
		d.Pending = true
		return d, err
	case *Read:
		return decide.Decision{}, decide.Refuse(decide.NotFound, "BALANCE", strconv.FormatInt(l.balances[p.Account], 10))
	case *Bad:
		return misbehave(at, p.How)
	}
	return decide.Decision{}, errors.New("no such command")
}

func accept(events ...decide.Event) (decide.Decision, error) {
	return decide.Decision{Outcome: decide.Accepted, Events: events}, nil
}

func misbehave(at decide.Stamp, how string) (decide.Decision, error) {
	switch how {
	case "panic":
		panic("a fault of the rules")
	case "future":
		return decide.Decision{Repeated: true, Repeat: at.Sequence + 7}, nil
	case "large":
		return accept(&moved{From: Bank, To: Bank, Pad: strings.Repeat("x", Limit)})
	case "poison":
		return accept(&poisoned{})
	}
	return decide.Decision{}, nil
}

// Evolve implements decide.State.
func (l *Ledger) Evolve(at decide.Stamp, c decide.Recorded, _ decide.Outcome, events []decide.Event) {
	l.applied++
	if c.Metadata.Key != "" {
		if l.keys == nil {
			l.keys = make(map[string]int64)
		}
		l.keys[c.Metadata.Key] = at.Sequence
	}
	for _, e := range events {
		switch e := e.(type) {
		case *moved:
			l.balances[e.From] -= e.Amount
			l.balances[e.To] += e.Amount
		case *planned:
			l.due = append(l.due, *e)
		case *swept:
			if l.sweeps = slices.DeleteFunc(l.sweeps, func(s swept) bool { return s.Command == e.Command }); e.Left > 0 {
				l.sweeps = append(l.sweeps, *e)
			}
		case *stepped:
			if len(l.sweeps) == 0 {
				l.due = l.due[1:]
			}
		case *decide.DueSetAside:
			l.due = l.due[min(1, len(l.due)):]
		case *poisoned:
			panic("a fault of evolve")
		}
	}
}

// Due implements decide.State.
func (l *Ledger) Due(now scalar.Time) decide.Urgency {
	switch {
	case len(l.sweeps) > 0:
		return decide.Blocking
	case len(l.due) > 0 && l.due[0].At <= now:
		return decide.Alternate
	}
	return decide.Nothing
}

// NextDue implements decide.State.
func (l *Ledger) NextDue() (scalar.Time, bool) {
	if len(l.due) == 0 {
		return 0, false
	}
	return l.due[0].At, true
}

// Step implements decide.State.
func (l *Ledger) Step(_ decide.Stamp, single bool) decide.Decision {
	if len(l.sweeps) > 0 {
		s := l.sweeps[0]
		d, _ := accept(&stepped{}, &moved{From: Bank, To: s.To, Amount: 1}, &swept{s.To, s.Left - 1, s.Command})
		if s.Left == 1 {
			d.Finishes = s.Command
		}
		return d
	}
	p := l.due[0]
	m := &moved{From: p.From, To: p.To, Amount: p.Amount}
	if p.From != Bank {
		m.Amount = max(0, min(m.Amount, l.balances[p.From]))
	}
	switch {
	case p.Fault == "panic!", p.Fault == "panic" && !single:
		panic("a fault of a step")
	case p.Fault == "large" && !single:
		m.Pad = strings.Repeat("x", Limit)
	}
	d, _ := accept(&stepped{}, m)
	return d
}

// SetAside implements decide.State.
func (l *Ledger) SetAside(_ decide.Stamp, cause string) decide.Decision {
	d, _ := accept(&decide.DueSetAside{Entry: "ledger/planned", Error: cause})
	return d
}
