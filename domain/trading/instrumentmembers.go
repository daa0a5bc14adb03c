package trading

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// instrumentMember is a member of ChangeInstrument.
type instrumentMember struct {
	name  string
	given func(p *ChangeInstrument) bool
	apply func(p *ChangeInstrument, to *market.Instrument)   // sets the instrument's member to the payload's, which is given
	take  func(p *ChangeInstrument, from *market.Instrument) // sets the payload's member to the instrument's
	parse func(p *ChangeInstrument, text string) error       // sets the payload's member
}

func changeOf[T any](name string, in func(*ChangeInstrument) **T, of func(*market.Instrument) *T) instrumentMember {
	return instrumentMember{name,
		func(p *ChangeInstrument) bool { return *in(p) != nil },
		func(p *ChangeInstrument, to *market.Instrument) { *of(to) = **in(p) },
		func(p *ChangeInstrument, from *market.Instrument) { *in(p) = of(from) },
		func(p *ChangeInstrument, text string) error {
			v := new(T)
			if err := parseMember(v, text); err != nil {
				return err
			}
			*in(p) = v
			return nil
		}}
}

// parseMember reads a decimal or a word from its text, and any other value from JSON.
func parseMember(to any, text string) error {
	switch to := to.(type) {
	case *fixed.Decimal:
		return to.UnmarshalText([]byte(text))
	case *market.Status:
		*to = market.Status(text)
		return nil
	}
	return json.Unmarshal([]byte(text), to, json.RejectUnknownMembers(true))
}

// instrumentMembers are the members of ChangeInstrument except for the symbol. The tiers are the last.
var instrumentMembers = []instrumentMember{
	changeOf("status", func(p *ChangeInstrument) **market.Status { return &p.Status }, func(i *market.Instrument) *market.Status { return &i.Status }),
	changeOf("min_amount", func(p *ChangeInstrument) **fixed.Decimal { return &p.MinAmount }, func(i *market.Instrument) *fixed.Decimal { return &i.MinAmount }),
	changeOf("max_amount", func(p *ChangeInstrument) **fixed.Decimal { return &p.MaxAmount }, func(i *market.Instrument) *fixed.Decimal { return &i.MaxAmount }),
	changeOf("init_margin_req", func(p *ChangeInstrument) **fixed.Decimal { return &p.InitMarginReq }, func(i *market.Instrument) *fixed.Decimal { return &i.InitMarginReq }),
	changeOf("maint_margin_req", func(p *ChangeInstrument) **fixed.Decimal { return &p.MaintMarginReq }, func(i *market.Instrument) *fixed.Decimal { return &i.MaintMarginReq }),
	changeOf("max_leverage", func(p *ChangeInstrument) **int { return &p.MaxLeverage }, func(i *market.Instrument) *int { return &i.MaxLeverage }),
	changeOf("funding_interval_seconds", func(p *ChangeInstrument) **int { return &p.FundingIntervalSeconds }, func(i *market.Instrument) *int { return &i.FundingIntervalSeconds }),
	changeOf("price_band", func(p *ChangeInstrument) **fixed.Decimal { return &p.PriceBand }, func(i *market.Instrument) *fixed.Decimal { return &i.PriceBand }),
	changeOf("limit_band", func(p *ChangeInstrument) **fixed.Decimal { return &p.LimitBand }, func(i *market.Instrument) *fixed.Decimal { return &i.LimitBand }),
	changeOf("maker_fee", func(p *ChangeInstrument) **fixed.Decimal { return &p.MakerFee }, func(i *market.Instrument) *fixed.Decimal { return &i.MakerFee }),
	changeOf("taker_fee", func(p *ChangeInstrument) **fixed.Decimal { return &p.TakerFee }, func(i *market.Instrument) *fixed.Decimal { return &i.TakerFee }),
	changeOf("index_stale_seconds", func(p *ChangeInstrument) **int { return &p.IndexStaleSeconds }, func(i *market.Instrument) *int { return &i.IndexStaleSeconds }),
	{"margin_tiers", func(p *ChangeInstrument) bool { return len(p.Tiers) > 0 },
		func(p *ChangeInstrument, to *market.Instrument) {
			to.Tiers = p.Tiers
			if p.InitMarginReq == nil {
				to.InitMarginReq = p.Tiers[0].InitMarginReq
			}
			if p.MaintMarginReq == nil {
				to.MaintMarginReq = p.Tiers[0].MaintMarginReq
			}
		},
		func(p *ChangeInstrument, from *market.Instrument) { p.Tiers = from.Tiers },
		func(p *ChangeInstrument, text string) error { return parseMember(&p.Tiers, text) }},
}

// InstrumentMembers returns the names of the members that ChangeInstrument may set, as the REST interface has them.
func InstrumentMembers() []string {
	names := make([]string, len(instrumentMembers))
	for n, m := range instrumentMembers {
		names[n] = m.name
	}
	return names
}

// SetMember sets a member by its name. The text is that of a decimal, an integer, or a status, or the JSON array of the margin
// tiers. The caller must check the instrument that follows.
func (p *ChangeInstrument) SetMember(name, text string) error {
	for _, m := range instrumentMembers {
		if m.name == name {
			return m.parse(p, text)
		}
	}
	return fmt.Errorf("%s is not a parameter of instruments", name)
}

// ConcernsLeverage reports whether the payload sets max_leverage or a margin, from which a bound of max_leverage follows.
func (p *ChangeInstrument) ConcernsLeverage() bool {
	return p.MaxLeverage != nil || p.InitMarginReq != nil || p.MaintMarginReq != nil || len(p.Tiers) > 0
}

// Changed returns the instrument with the payload's changes, as the rules in force decide them: they may lower max_leverage. The caller
// must check it.
func (s *State) Changed(i market.Instrument, p *ChangeInstrument) market.Instrument {
	after := p.ApplyTo(i)
	if s.capsLeverage() && p.ConcernsLeverage() {
		after.MaxLeverage = min(after.MaxLeverage, after.PermittedLeverage())
	}
	return after
}

// ApplyTo returns the instrument with the payload's changes as rules before 6 decide them. The caller must check it.
func (p *ChangeInstrument) ApplyTo(i market.Instrument) market.Instrument {
	if p.InitMarginReq != nil || p.MaintMarginReq != nil { // one tier replaces them, unless tiers are given
		i.Tiers = nil
	}
	for _, m := range instrumentMembers {
		if m.given(p) {
			m.apply(p, &i)
		}
	}
	return i.Normal()
}

// TakeMember sets a member by its name to the value that an instrument has.
func (p *ChangeInstrument) TakeMember(name string, from market.Instrument) {
	for _, m := range instrumentMembers {
		if m.name == name {
			m.take(p, &from)
		}
	}
}
