package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
)

// expectPrices holds prices, and what was fixed and posted, against what the scenario says of it.
func (s *scenario) expectPrices(what string) {
	switch what {
	case "mark":
		s.same("mark price", s.state.MarkPrice(s.word()).String(), s.word())
	case "estimate": // estimate SYMBOL RATE hh:mm:ss
		rate, next, ok := s.state.Funding(s.word())
		if !ok {
			s.same("estimate", "none", s.word())
			return
		}
		s.same("estimate", rate.String(), s.word())
		s.same("next funding", next.String()[11:19], s.word())
	case "fixed": // fixed SYMBOL [hh:mm RATE|missed]…: what was fixed since the scenario last asked
		symbol, got := s.word(), []string{}
		for _, e := range s.rates {
			if e.Symbol == symbol {
				said := e.FundingRate.String()
				if e.Missed {
					said = "missed"
				}
				got = append(got, e.Time.String()[11:16], said)
			}
		}
		s.rates = nil
		s.same("what was fixed", strings.Join(got, " "), strings.Join(s.words, " "))
		s.words = nil
	case "worked": // worked WORK…: the steps since the scenario last asked
		s.same("the steps", strings.Join(s.worked, " "), strings.Join(s.words, " "))
		s.words, s.worked = nil, nil
	case "alarms": // alarms KIND…: those raised since the scenario last asked
		s.same("the alarms", strings.Join(s.alarms, " "), strings.Join(s.words, " "))
		s.words, s.alarms = nil, nil
	case "rows": // rows CUSTOMER TYPE [AMOUNT [RATE SIZE MARK]]…: all rows of a type
		customer, kind, got := s.word(), ledger.Type(s.word()), []string{}
		for i := range s.records {
			r := &s.records[i]
			for _, e := range r.decode(s.t) {
				ledger.Rows(r.stamp, e, func(row *ledger.Row) {
					if row.CustomerCode == customer && row.Type == kind {
						got = append(got, row.Amount.String())
						if kind == ledger.FundingPayment {
							got = append(got, row.FundingRate.String(), row.PositionAmount.String(), row.MarkPrice.String())
						}
					}
				})
			}
		}
		s.same("the rows", strings.Join(got, " "), strings.Join(s.words, " "))
		s.words = nil
	}
}
