package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// Config says what to compare.
type Config struct {
	// Source is the log of the journal trading. It MUST begin with the genesis.
	Source verify.Source
	// Overrides may be empty. Then the run shows what this build decides differently.
	Overrides Overrides
	// From is the sequence of the first record that is decided under the overrides, and To that of the last one; -1 is the end of the
	// log.
	From, To int64
	// Cumulative selects the kind of the other world. A cumulative run continues to the end of the log, after To under the
	// recorded parameters.
	Cumulative bool
	// Differences is the number of single differences in the Report.
	Differences int
	// Told is called with the number of records that were read so far. It may be nil.
	Told func(records int64)
}

var journalName = trading.Rules().Journal()

// Run reads a log and returns the differences. An *InvalidError says that the log does not permit what Config asks for. Any other
// error is that of the source or of a record which can't be read, applied, or decided.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if name := cfg.Overrides.scheduled(); name != "" && !cfg.Cumulative {
		return Report{}, invalidf("%s determines when the engine acts, and not what a record decides: only a cumulative run can override it", name)
	}
	if cfg.To >= 0 && cfg.To < cfg.From {
		return Report{}, invalidf("record %d comes before record %d", cfg.To, cfg.From)
	}
	base, err := cfg.Source.Base(ctx)
	if err != nil {
		return Report{}, err
	}
	if base != nil {
		return Report{}, fmt.Errorf("the log begins with record %d, and not with its genesis: read the archive", base.Sequence)
	}
	batches, err := cfg.Source.Open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer batches.Close()
	r := &run{Config: cfg, inForce: cfg.Overrides, tally: newTally(&cfg), recorded: trading.NewState(), at: record.Before, added: make(map[string]bool), avoided: make(map[string]bool),
		codes: make(map[scalar.ID]scalar.ID), journal: redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()}}
	if err := r.read(ctx, batches); err != nil {
		return Report{}, err
	}
	return r.finish()
}

// run is one call of Run.
type run struct {
	Config
	*tally
	journal  redecide.Journal
	recorded *trading.State  // after the last record
	at       record.Position // of that record
	stamp    decide.Stamp    // of that record
	other    *trading.State  // the other world; nil before From
	inForce  Overrides       // those of Config up to To

	// Of a cumulative run.
	diverged bool                    // the other world has decided something else
	codes    map[scalar.ID]scalar.ID // of orders and withdrawals that have another code in the other world, by the recorded code
	steps    int                     // that only the other world has

	affected       []string        // accounts that may have begun or ended their liquidation since the last record
	added, avoided map[string]bool // accounts with a liquidation that is in the Report
}

// read reads the log, to To unless the run is cumulative.
func (r *run) read(ctx context.Context, batches verify.Batches) error {
	chain := record.NewChain(trading.Rules(), 0, record.Before)
	for {
		batch, err := batches.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch {
			e, ok, err := chain.Admit(batch[i].Offset, batch[i].Value)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := r.entry(e); err != nil {
				return err
			}
			if r.To == e.Position.Sequence && !r.Cumulative {
				return nil
			}
		}
		if r.Told != nil {
			r.Told(r.at.Sequence + 1)
		}
	}
}

// entry applies a record to both worlds. A panic of the rules says that only another build can apply it.
func (r *run) entry(e record.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("record %d can't be applied: %v", e.Position.Sequence, p)
		}
	}()
	n := e.Position.Sequence
	if n == r.From {
		if err := r.begin(); err != nil {
			return err
		}
	}
	if r.other != nil && n == r.To+1 && r.To >= 0 {
		if err := r.command(r.Overrides.end(r.other, r.recorded)); err != nil {
			return err
		}
		r.inForce = nil
	}
	switch {
	case r.other != nil && r.Cumulative:
		err = r.cumulate(e)
	case r.other != nil:
		err = r.again(e)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", n, err)
	}
	r.recorded.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	r.at, r.stamp = e.Position, e.Stamp()
	if r.other != nil {
		r.liquidations()
	}
	return nil
}

// begin makes the other world: a copy of the recorded state, with the overrides.
func (r *run) begin() error {
	codec := trading.Codec()
	copied, err := codec.Read(codec.Append(nil, r.recorded))
	if err != nil {
		return fmt.Errorf("the state before record %d can't be copied: %w", r.From, err)
	}
	r.other = copied.(*trading.State)
	commands, err := r.Overrides.begin(r.other)
	if err != nil {
		return err
	}
	return r.command(commands)
}

// command decides commands of an operator in the other world, at the time of the last record.
func (r *run) command(all []*trading.ChangeInstrument) error {
	for _, p := range all {
		c := decide.Command{Type: p.CommandType(), Actor: decide.Actor{System: "whatif"}, Payload: p}
		d, err := r.other.Decide(r.stamp, c)
		if refusal := new(decide.Refusal); errors.As(err, &refusal) {
			return invalidf("%s.%s", p.Symbol, refusal.Message)
		}
		if err != nil {
			return err
		}
		r.evolve(r.stamp, c.Recorded(), d.Outcome, d.Events)
	}
	return nil
}

// follow applies the recorded events to the other world.
func (r *run) follow(e record.Entry) {
	money := moneyIn(e.Record.Events)
	r.add(money, money, e.Position)
	r.evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
}

// evolve applies events to the other world, and notes the accounts that they affect.
func (r *run) evolve(at decide.Stamp, c decide.Recorded, o decide.Outcome, events []decide.Event) {
	r.other.Evolve(at, c, o, events)
	r.affected = append(r.affected, r.other.LastAffected()...)
}

// liquidations compares which accounts are in liquidation after the last record.
func (r *run) liquidations() {
	r.affected = append(r.affected, r.recorded.LastAffected()...)
	slices.Sort(r.affected)
	for _, code := range slices.Compact(r.affected) {
		was, is := r.recorded.InLiquidation(code), r.other.InLiquidation(code)
		if begins(r.added, code, is, was) {
			r.count(code, r.at, func(a *Account) **Count { return &a.Added })
			r.differs(r.liquidation(code, liquidatesNot, liquidates))
		}
		if begins(r.avoided, code, was, is) {
			r.count(code, r.at, func(a *Account) **Count { return &a.Avoided })
			r.differs(r.liquidation(code, liquidates, liquidatesNot))
		}
	}
	r.affected = r.affected[:0]
}

// begins reports whether an account is in liquidation here and not there, once until the liquidation here ends.
func begins(noted map[string]bool, code string, here, there bool) bool {
	if !here {
		delete(noted, code)
	}
	if !here || there || noted[code] {
		return false
	}
	noted[code] = true
	return true
}

const liquidates, liquidatesNot = "in liquidation", "not in liquidation"

func (r *run) liquidation(customer, recorded, decided string) Difference {
	return Difference{Position: r.at, Time: r.stamp.Time, Type: string(trading.WorkLiquidation), Kind: Liquidations, Account: customer,
		Recorded: []string{recorded}, WhatIf: []string{decided}}
}

// judge compares the decision of the other world with a record, and adds both to the report. otherwise describes a difference between
// their bytes, which counts if their effects are equal. It is "" if the bytes need not be equal.
func (r *run) judge(e record.Entry, decided *effects, otherwise string) {
	recorded := effectsOf(e.Record.Outcome, e.Record.Events)
	r.add(recorded.money, decided.money, e.Position)
	kind, was, is := compare(recorded, decided)
	if kind == "" && otherwise != "" {
		kind, was, is = Other, []string{}, []string{otherwise}
	}
	if kind == "" {
		r.report.Same++
		return
	}
	about := customerOf(e.Record)
	r.differs(Difference{Position: e.Position, Time: e.Record.Time, Type: e.Record.Command.Type, Kind: kind, Account: about, Recorded: was, WhatIf: is})
	switch {
	case kind != Acceptance || e.Record.Command.Actor == decide.Engine:
	case recorded.accepted:
		r.count(about, e.Position, func(a *Account) **Count { return &a.Refused })
	default:
		r.count(about, e.Position, func(a *Account) **Count { return &a.Accepted })
	}
}

// same counts a record that is decided the same in both worlds.
func (r *run) same(e record.Entry) {
	r.report.Same++
	money := moneyIn(e.Record.Events)
	r.add(money, money, e.Position)
}

// customerOf returns the customer of the order, transaction, or leverage in a record, or "".
func customerOf(r *record.Record) string {
	for _, e := range r.Events {
		switch e := e.(type) {
		case trading.OrderEvent:
			return e.After().CustomerCode
		case ledger.TransactionEvent:
			return e.TransactionAfter().CustomerCode
		case *trading.LeverageChanged:
			return e.CustomerCode
		}
	}
	return ""
}

// finish checks that the log had everything that Config names, and completes the report.
func (r *run) finish() (Report, error) {
	if r.other == nil {
		return Report{}, invalidf("record %d is after the last record, %d", r.From, r.at.Sequence)
	}
	for _, symbol := range slices.Sorted(maps.Keys(r.Overrides)) {
		if _, listed := r.recorded.Instrument(symbol); !listed {
			return Report{}, invalidf("%s is not an instrument: none was listed with this symbol up to record %d", symbol, r.at.Sequence)
		}
	}
	if r.Cumulative {
		if err := r.catchUp(r.stamp.Time); err != nil {
			return Report{}, err
		}
	}
	return r.tally.finish(r.at)
}
