package whatif

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// InvalidError says that a run was asked for something that the log or the venue does not permit.
type InvalidError struct{ Reason string }

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Reason }

func invalidf(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// Overrides are the values that parameters of instruments have in the other world, by symbol.
type Overrides map[string]*override

// override holds the values for one instrument.
type override struct {
	names  []string // of the parameters
	change trading.ChangeInstrument
}

// scheduling are the parameters that determine when the engine acts, and not what a record decides.
var scheduling = []string{"funding_interval_seconds", "index_stale_seconds"}

// Parameters returns the names of the parameters that can be overridden. The status of an instrument is not one of them.
func Parameters() []string {
	return slices.DeleteFunc(trading.InstrumentMembers(), func(name string) bool { return name == "status" })
}

// Set adds an override in the form SYMBOL.parameter=value. The error is an *InvalidError.
func (o Overrides) Set(text string) error {
	parameter, value, ok := strings.Cut(text, "=")
	symbol, name, dotted := strings.Cut(parameter, ".")
	if !ok || !dotted || symbol == "" {
		return invalidf("%q does not have the form SYMBOL.parameter=value", text)
	}
	if !slices.Contains(Parameters(), name) {
		return invalidf("%s is not a parameter that can be overridden: they are %s", parameter, strings.Join(Parameters(), ", "))
	}
	of := o[symbol]
	if of == nil {
		of = &override{change: trading.ChangeInstrument{Symbol: symbol}}
		o[symbol] = of
	}
	if err := of.conflict(symbol, name); err != nil {
		return err
	}
	if err := of.change.SetMember(name, value); err != nil {
		return invalidf("%s: %q is not a value: %v", parameter, value, err)
	}
	of.names = append(of.names, name)
	return nil
}

const maxLeverage = "max_leverage"

// tiers is the parameter that holds the margins of all tiers, and so excludes margins, which set those of a single one.
const tiers = "margin_tiers"

var margins = []string{"init_margin_req", "maint_margin_req"}

// conflict returns an error if a parameter was given already, or if the tiers and a margin are given.
func (o *override) conflict(symbol, name string) error {
	for _, given := range o.names {
		switch {
		case given == name:
			return invalidf("%s.%s is given twice", symbol, name)
		case given == tiers && slices.Contains(margins, name), name == tiers && slices.Contains(margins, given):
			return invalidf("%s.%s and %s.%s contradict each other: the tiers have margins", symbol, given, symbol, name)
		}
	}
	return nil
}

// scheduled returns an override that has no effect on the recorded state, as SYMBOL.parameter, or "".
func (o Overrides) scheduled() string {
	for _, symbol := range slices.Sorted(maps.Keys(o)) {
		for _, name := range o[symbol].names {
			if slices.Contains(scheduling, name) {
				return symbol + "." + name
			}
		}
	}
	return ""
}

// of returns a recorded instrument with the overrides, under the rules in force in s. The error names the overrides that the
// instrument does not permit.
func (o Overrides) of(s *trading.State, i market.Instrument) (market.Instrument, error) {
	by := o[i.Symbol]
	if by == nil {
		return i, nil
	}
	after := s.Changed(i, &by.change)
	if errs := after.Check(); len(errs) > 0 {
		path := errs[0].Path.String()
		if !slices.Contains(by.names, tiers) {
			path = strings.TrimPrefix(path, tiers+"[0].")
		}
		return i, invalidf("under the override of %s, %s.%s %s", strings.Join(by.names, ", "), i.Symbol, path, errs[0].Message)
	}
	return after, nil
}

// events returns the events as they are in the other world, which has the state s: events that set parameters set the overridden ones
// to their values.
func (o Overrides) events(s *trading.State, recorded []decide.Event) ([]decide.Event, error) {
	out := recorded
	for n, e := range recorded {
		i := parametersIn(e)
		if i == nil || o[i.Symbol] == nil {
			continue
		}
		after, err := o.of(s, *i)
		if err != nil {
			return nil, err
		}
		if &out[0] == &recorded[0] {
			out = slices.Clone(recorded)
		}
		out[n] = withParameters(e, after)
	}
	return out, nil
}

// parametersIn returns the instrument after an event that sets its parameters, or nil.
func parametersIn(e decide.Event) *market.Instrument {
	switch e := e.(type) {
	case *trading.InstrumentListed:
		return &e.Instrument
	case *trading.InstrumentChanged:
		return &e.Instrument
	case *trading.InstrumentDelisted:
		return &e.Instrument
	}
	return nil
}

// withParameters returns an event of the type of e with another instrument.
func withParameters(e decide.Event, i market.Instrument) decide.Event {
	switch e.(type) {
	case *trading.InstrumentListed:
		return &trading.InstrumentListed{Instrument: i}
	case *trading.InstrumentChanged:
		return &trading.InstrumentChanged{Instrument: i}
	}
	return &trading.InstrumentDelisted{Instrument: i}
}

// begin returns the commands that override the parameters of the instruments that a state has. They change something.
func (o Overrides) begin(s *trading.State) (commands []*trading.ChangeInstrument, err error) {
	for _, symbol := range slices.Sorted(maps.Keys(o)) {
		i, listed := s.Instrument(symbol)
		if listed && i.Status == market.Withdrawn {
			return nil, invalidf("%s was withdrawn before", symbol)
		}
		if listed && !reflect.DeepEqual(s.Changed(i, &o[symbol].change), i) {
			commands = append(commands, &o[symbol].change)
		}
	}
	return commands, nil
}

// end returns the commands that restore the recorded values of the overridden parameters in a state, except for max_leverage: see
// restoreLeverage. A margin has replaced the tiers, so the tiers are restored.
func (o Overrides) end(s, recorded *trading.State) (commands []*trading.ChangeInstrument) {
	for _, symbol := range slices.Sorted(maps.Keys(o)) {
		i, listed := s.Instrument(symbol)
		as, known := recorded.Instrument(symbol)
		if !listed || !known || i.Status == market.Withdrawn {
			continue
		}
		c := &trading.ChangeInstrument{Symbol: symbol}
		for _, name := range o[symbol].names {
			switch {
			case name == maxLeverage:
				continue
			case slices.Contains(margins, name):
				name = tiers
			}
			c.TakeMember(name, as)
		}
		commands = append(commands, c)
	}
	return commands
}

// restoreLeverage gives the instrument in an event its recorded max_leverage, if an override sets or lowers it. The rules refuse a
// command that sets a value which the margins do not permit, but earlier rules may have left an instrument with one.
func (o Overrides) restoreLeverage(recorded *trading.State, e decide.Event) {
	i := parametersIn(e)
	if i == nil || o[i.Symbol] == nil || !o[i.Symbol].change.ConcernsLeverage() {
		return
	}
	if as, known := recorded.Instrument(i.Symbol); known {
		i.MaxLeverage = as.MaxLeverage
	}
}
