package reference_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// TestTheAuditorKnowsRules6 has records that rules 6 refuse, made from ones that they permit. Under rules 5 the auditor accepts them.
func TestTheAuditorKnowsRules6(t *testing.T) {
	for rules := 5; rules <= 6; rules++ {
		v := openVenue(t, 3, scalar.TimeOf(time.Date(2027, 3, 1, 7, 50, 0, 0, time.UTC)))
		v.keeps = true
		c := openCrowd(v, 3, 5, rules)
		give := func(p decide.Payload) {
			c.give(operator, decide.Metadata{Fingerprint: "d"}, p)
			c.drain()
		}
		p := c.products[0]
		give(&trading.SetIndexPrice{Symbol: p.Symbol, Price: p.price(0)})
		give(&trading.RegisterCustomer{CustomerCode: "o1", Broker: "alpha"})
		give(&trading.MakeDeposit{CustomerCode: "o1", Currency: "USDC", Amount: 9_000_000 * fixed.Unit, ReferenceID: "free-1"})
		give(&trading.RequestWithdrawal{CustomerCode: "o1", Currency: "USDC", Amount: fixed.Unit, ReferenceID: "free-2"})
		give(&trading.DepositInsurance{Amount: fixed.Unit, ReferenceID: "free-3"})
		other := p.Instrument
		other.Symbol, other.MaxLeverage = "LTCUSDC_PERP", 1
		give(&trading.ListInstrument{Instrument: other})
		listed, _ := v.state.Instrument(p.Symbol)
		had := strconv.Itoa(listed.MaxLeverage)
		half := decimal("50")
		give(&trading.ChangeInstrument{Symbol: p.Symbol, InitMarginReq: &half})
		give(&trading.ChangeInstrument{Symbol: p.Symbol, PriceBand: &half})
		for range 2 {
			c.give(decide.Actor{Sub: "trader", Broker: "alpha"}, decide.Metadata{Fingerprint: "o"}, &trading.PlaceOrder{CustomerCode: "o1", Symbol: p.Symbol,
				Action: order.Buy, Type: order.Limit, Amount: p.MinAmount, LimitPrice: p.price(-0.05)})
			c.drain()
		}
		orders := v.state.OpenOrders("o1")
		if len(orders) != 2 {
			t.Fatalf("%v", c.answers)
		}
		first, second := orders[0].Code.String(), orders[1].Code.String()
		if orders[0].Created > orders[1].Created {
			first, second = second, first
		}
		for name, test := range map[string]struct {
			change func([]byte) []byte
			want   string // a pattern
		}{
			"a deposit":              {replace(`"free-1"`, `"opening:99:2"`), "has the reserved reference opening:99:2"},
			"a withdrawal":           {replace(`"free-2"`, `"opening:99:2"`), "has the reserved reference opening:99:2"},
			"a deposit to the fund":  {replace(`"free-3"`, `"opening:99:2"`), "has the reserved reference opening:99:2"},
			"another one's code":     {replace(`"free-1"`, `"`+first+`"`), "has the reserved reference " + first},
			"a listing":              {replace(`("type":"instrument.listed".*"LTCUSDC_PERP".*"max_leverage":)1,("funding)`, `${1}90,$2`), "is listed with a leverage of 90"},
			"a change of the margin": {replace(`("type":"instrument.changed".*"max_leverage":)2,("funding)`, `${1}3,$2`), "has a leverage of 3 after a change"},
			"only the margin":        {replace(`("type":"instrument.changed".*"max_leverage":)2,("funding)`, `${1}`+had+`,$2`), "has a leverage of " + had + " after a change"},
			"another change":         {replace(`("type":"instrument.changed".*"max_leverage":)2,("funding.*"price_band":"50)`, `${1}3,$2`), "has a leverage of 3 after a change"},
			"an order":               {replace(`("code":"`+second+`".*"reference_id":")`+second, `${1}`+first), "is named like the live order " + first},
		} {
			err := replay(v.tail, test.change)
			if rules == 5 && err != nil || rules == 6 && (err == nil || !regexp.MustCompile(test.want).MatchString(err.Error())) {
				t.Errorf("%s: under rules %d the auditor says %v, not: %s", name, rules, err, test.want)
			}
		}
		if err := replay(v.tail, func(value []byte) []byte { return value }); err != nil {
			t.Errorf("nothing is changed, and the auditor says %v", err)
		}
		if rules == 5 { // what earlier rules left is right
			give(&decide.ActivateRules{Rules: 6})
			give(&trading.ChangeInstrument{Symbol: p.Symbol, LimitBand: &half})
			if i, _ := v.state.Instrument(p.Symbol); i.MaxLeverage != p.MaxLeverage {
				t.Errorf("the leverage is %d after a change of something else", i.MaxLeverage)
			}
		}
	}
}
