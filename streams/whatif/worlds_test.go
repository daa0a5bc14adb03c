package whatif_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// given is a command that is given at a time.
type given struct {
	at      scalar.Time
	actor   decide.Actor
	payload decide.Payload
}

// play gives commands to a new venue with other parameters, and returns those that left a record.
func play(t *testing.T, change trading.ChangeInstrument, all []given) (v *venue, recorded []given) {
	t.Helper()
	v = openWith(t, trading.Rules().Newest(), change)
	v.do(operator, &trading.DepositInsurance{Amount: 2_000 * fixed.Unit, ReferenceID: "first"})
	for _, g := range all {
		v.until(g.at)
		if _, err := v.try(g.actor, g.payload); err == nil {
			recorded = append(recorded, g)
		}
	}
	v.wait(2 * scalar.Hour)
	v.index("50000")
	return v, recorded
}

// script returns random commands that follow from nothing but the seed, a minute apart.
func script(seed uint64, n int) (all []given) {
	random := rand.New(rand.NewPCG(seed, 9))
	now, price, name := scalar.Time(1_800_000_000_000_000)+67*scalar.Second, int64(500_000), 0
	give := func(by decide.Actor, p decide.Payload) {
		now += scalar.Minute
		all = append(all, given{now, by, p})
	}
	customers := []string{"ann", "bea", "cal", "dan", "eve"}
	for _, customer := range customers[2:] {
		give(broker, &trading.RegisterCustomer{CustomerCode: customer})
		give(operator, &trading.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: fixed.Money(500+random.IntN(3000)) * fixed.Unit})
	}
	near := func(spread int64) fixed.Decimal {
		return fixed.Decimal{Coef: price + random.Int64N(2*spread) - spread, Scale: 1}
	}
	for range n {
		customer := customers[random.IntN(len(customers))]
		switch k := random.IntN(20); {
		case k < 4:
			price += random.Int64N(20_001) - 10_000
			price = max(400_000, min(price, 600_000))
			give(operator, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: price, Scale: 1}})
		case k < 6 && name > 0:
			give(broker, &trading.CancelOrder{CustomerCode: customer, ReferenceID: fmt.Sprintf("%s-%d", customer, random.IntN(name))})
		case k < 7 && name > 0:
			to := near(4000)
			give(broker, &trading.AmendOrder{CustomerCode: customer, ReferenceID: fmt.Sprintf("%s-%d", customer, random.IntN(name)), LimitPrice: &to})
		case k == 7:
			give(operator, &trading.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: fixed.Money(random.IntN(300)+1) * fixed.Unit})
		case k == 8:
			give(broker, &trading.SetLeverage{CustomerCode: customer, Symbol: symbol, Leverage: random.IntN(14)})
		default:
			name++
			p := &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: fixed.Decimal{Coef: 1 + random.Int64N(150), Scale: 3},
				LimitPrice: near(6000), ReferenceID: fmt.Sprintf("%s-%d", customer, name)}
			if random.IntN(2) == 0 {
				p.Action = order.Sell
			}
			switch random.IntN(8) {
			case 0:
				p.Type, p.LimitPrice = order.Market, fixed.Decimal{}
			case 1:
				p.ReduceOnly = true
			case 2:
				p.Type, p.TriggerPrice = order.StopLossLimit, near(9000)
			case 3:
				p.TimeInForce, p.ExpireTime = order.GTD, now+90*scalar.Minute
			}
			give(broker, p)
		}
	}
	return all
}

// moved returns the sums of the postings of each account and type.
func moved(v *venue) map[string]fixed.Money {
	sums := make(map[string]fixed.Money)
	for _, r := range v.records {
		for _, e := range r.Events {
			if posted, ok := e.(ledger.Posted); ok {
				for _, p := range posted.Postings() {
					sums[p.CustomerCode+string(p.Account)+" "+string(p.Type)] += p.Amount
				}
			}
		}
	}
	return sums
}

// TestAWorldIsTheLogOfThatVenue gives the same random commands at the same times to a venue and to others with other parameters. A
// cumulative run over the first log has the sums and the liquidations of theirs.
func TestAWorldIsTheLogOfThatVenue(t *testing.T) {
	differ, worlds := 0, 0
	for seed := range uint64(6) {
		first, commands := play(t, trading.ChangeInstrument{}, script(seed, 500))
		was := moved(first)
		for _, set := range [][]string{{"funding_interval_seconds=1800"}, {"funding_interval_seconds=86400"}, {"maker_fee=-1", "taker_fee=7.5"},
			{"init_margin_req=20"}, {"maint_margin_req=9"}, {"maint_margin_req=4"}, {"limit_band=1"}, {"price_band=0.2"}, {"index_stale_seconds=250"},
			{"max_leverage=3"}, {"max_amount=0.1", "funding_interval_seconds=600", "taker_fee=0"},
			{`margin_tiers=[{"notional_from":"0","init_margin_req":"9","maint_margin_req":"5"},{"notional_from":"5000","init_margin_req":"20","maint_margin_req":"10"}]`},
		} {
			var change trading.ChangeInstrument
			named := make([]string, len(set))
			for n, text := range set {
				name, value, _ := strings.Cut(text, "=")
				if err := change.SetMember(name, value); err != nil {
					t.Fatal(err)
				}
				named[n] = symbol + "." + text
			}
			r, err := first.run(whatif.Config{To: -1, Cumulative: true}, named...)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, set, err)
			}
			got := maps.Clone(was)
			for _, a := range r.Accounts {
				for _, s := range a.Sums {
					key := a.CustomerCode + string(a.Account) + " " + string(s.Type)
					if got[key] = s.WhatIf; s.Recorded != was[key] {
						t.Errorf("seed %d, %s: %s is recorded as %s, and the report says %s", seed, set, key, was[key], s.Recorded)
					}
				}
			}
			second, _ := play(t, change, commands)
			want := moved(second)
			for key := range was {
				want[key] += 0
			}
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if got[key] != want[key] {
					t.Errorf("seed %d, %s: %s is %s, and the other venue has %s", seed, set, key, got[key], want[key])
				}
			}
			if err := sameLiquidations(r, first, second); err != nil {
				t.Errorf("seed %d, %s: %v", seed, set, err)
			}
			if worlds++; !maps.Equal(was, want) {
				differ++
			}
		}
	}
	if t.Logf("%d of %d worlds differ", differ, worlds); differ < worlds/2 {
		t.Error("too few worlds differ")
	}
}

// sameLiquidations returns an error if a report does not have the liquidations of two venues. Those of one venue are differences if the
// account is not in liquidation in the other, and so all of them are if the other has none.
func sameLiquidations(r whatif.Report, first, second *venue) error {
	number := func(c *whatif.Count) int64 {
		if c == nil {
			return 0
		}
		return c.Number
	}
	customers := maps.Clone(first.liquidations)
	maps.Copy(customers, second.liquidations)
	for customer := range customers {
		was, is := first.liquidations[customer], second.liquidations[customer]
		a := account(r, customer)
		avoided, added := number(a.Avoided), number(a.Added)
		if avoided > was || added > is || is == 0 && avoided != was || was == 0 && added != is {
			return fmt.Errorf("%s has %d liquidations in one venue and %d in the other, and the report says that %d are avoided and %d added", customer, was, is, avoided, added)
		}
	}
	return nil
}
