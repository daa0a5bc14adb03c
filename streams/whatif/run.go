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
	// Progress is called with the number of records that were read so far. It may be nil.
	Progress func(records int64)
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
	r := &run{
		Config:   cfg,
		tally:    newTally(&cfg),
		journal:  redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()},
		recorded: trading.NewState(),
		at:       record.Before,
		inForce:  cfg.Overrides,
		codes:    make(map[scalar.ID]scalar.ID),
	}
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

	liquidations liquidations // from From on
}

// read reads the log, to To unless the run is cumulative. A log that was edited, or lacks a record, is a *record.DivergedError.
func (r *run) read(ctx context.Context, batches verify.Batches) error {
	chain := record.NewChain(trading.Rules(), 0, record.Before)
	tear := record.NewTear(chain)
	for {
		batch, err := batches.Next(ctx)
		if errors.Is(err, io.EOF) {
			return tear.Torn()
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
				batch[i].Skip(tear, chain.Journal())
				continue
			}
			tear.Admit(e.Position)
			if err := guard(e.Position.Sequence, func() error { return r.entry(e) }); err != nil {
				return err
			}
			if r.To == e.Position.Sequence && !r.Cumulative {
				return nil
			}
		}
		if r.Progress != nil {
			r.Progress(r.at.Sequence + 1)
		}
	}
}

// guard returns the error of f, or a *decide.PanicError if f panics. The error names a record.
func guard(sequence int64, f func() error) error {
	if _, err := decide.Guard(func() (decide.Decision, error) { return decide.Decision{}, f() }); err != nil {
		return fmt.Errorf("record %d: %w", sequence, err)
	}
	return nil
}

// entry applies a record to both worlds.
func (r *run) entry(e record.Entry) error {
	if err := r.override(e.Position); err != nil {
		return err
	}
	var err error
	switch {
	case r.other != nil && r.Cumulative:
		err = r.cumulate(e)
	case r.other != nil:
		err = r.decideOnRecorded(e)
	}
	if err != nil {
		return err
	}
	r.recorded.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	r.at, r.stamp = e.Position, e.Stamp()
	if r.other != nil {
		r.liquidations.affect(r.recorded)
		r.compareLiquidations(r.at, r.stamp.Time)
	}
	return nil
}

// override begins the other world if From is the record at a position, and ends the overrides if To is the one before.
func (r *run) override(at record.Position) error {
	var err error
	switch {
	case at.Sequence == r.From:
		err = r.begin()
	case r.other != nil && r.To >= 0 && at.Sequence == r.To+1:
		r.inForce = nil
		err = r.command(r.Overrides.end(r.other, r.recorded), r.Overrides.restoreLeverage)
	default:
		return nil
	}
	if err == nil {
		r.compareLiquidations(at, r.stamp.Time)
	}
	return err
}

// begin makes the other world: a copy of the recorded state, with the overrides.
func (r *run) begin() error {
	codec := trading.Codec()
	copied, err := codec.Read(codec.Append(nil, r.recorded))
	if err != nil {
		return fmt.Errorf("the state before it can't be copied: %w", err)
	}
	r.other, r.liquidations = copied.(*trading.State), newLiquidations(r.recorded)
	commands, err := r.Overrides.begin(r.other)
	if err != nil {
		return err
	}
	return r.command(commands, func(*trading.State, decide.Event) {})
}

// command decides commands of an operator in the other world, at the time of the last record. It applies their events after restore,
// which may use the recorded state.
func (r *run) command(all []*trading.ChangeInstrument, restore func(recorded *trading.State, e decide.Event)) error {
	for _, p := range all {
		c := decide.Command{Type: p.CommandType(), Actor: decide.Actor{System: "whatif"}, Payload: p}
		d, err := r.other.Decide(r.stamp, c)
		if refusal := new(decide.Refusal); errors.As(err, &refusal) {
			return invalidf("%s.%s", p.Symbol, refusal.Message)
		}
		if err != nil {
			return err
		}
		for _, e := range d.Events {
			restore(r.recorded, e)
		}
		r.evolve(r.stamp, c.Recorded(), d.Outcome, d.Events)
	}
	return nil
}

// evolve applies events to the other world, and keeps the accounts that they affect for compareLiquidations.
func (r *run) evolve(at decide.Stamp, c decide.Recorded, o decide.Outcome, events []decide.Event) {
	r.other.Evolve(at, c, o, events)
	r.liquidations.affect(r.other)
}

// compareDecision compares the decision of the other world with a record, and adds both to the report. otherwise describes a difference
// between their bytes, which counts if their effects are equal. It is "" if the bytes need not be equal.
func (r *run) compareDecision(e record.Entry, decided *effects, otherwise string) {
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
	r.addRecorded(e)
}

// notRedecidable counts a record that can't be decided. Its recorded money counts in both worlds.
func (r *run) notRedecidable(e record.Entry) {
	r.report.NotRedecidable[e.Record.Command.Type]++
	r.addRecorded(e)
}

// addRecorded adds the money that a record moves to the sums of both worlds.
func (r *run) addRecorded(e record.Entry) {
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
	if last := max(r.From, r.To); last > r.at.Sequence {
		return Report{}, invalidf("record %d is after the last record, %d", last, r.at.Sequence)
	}
	for _, symbol := range slices.Sorted(maps.Keys(r.Overrides)) {
		if _, listed := r.recorded.Instrument(symbol); !listed {
			return Report{}, invalidf("%s is not an instrument: none was listed with this symbol up to record %d", symbol, r.at.Sequence)
		}
	}
	if r.Cumulative {
		if err := guard(r.at.Sequence, func() error { return r.catchUp(r.stamp.Time) }); err != nil {
			return Report{}, err
		}
	}
	return r.tally.finish(r.at)
}
