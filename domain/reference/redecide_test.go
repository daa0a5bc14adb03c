package reference_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestMarketIsDecidedAgain runs a market by the rules that record inputs, and at its end by the newest, in which commands of every type occur. Each of its records is
// decided again, from nothing but the records, as the same bytes: see venue.redecide. Due work that is set aside is in package
// redecide. The steps that are not reproduced are those that the venue divides at random.
func TestMarketIsDecidedAgain(t *testing.T) {
	span, seed := 60*scalar.Second, setting(t, "PERPETUA_TEST_SIM_SEED", 1)|1
	if os.Getenv(recordtest.Long) != "" {
		span = 20 * scalar.Minute
	}
	const rules = 3
	c := holdMarket(t, seed, span, rules)
	if seed == 1 && span == 60*scalar.Second && runtime.GOARCH == "amd64" {
		c.log.Check(t, fmt.Sprintf("market of %d s by rules %d", span/scalar.Second, rules))
	}
	c.rareCommands()
	for what, n := range c.again {
		if !strings.HasPrefix(what, "same ") && !strings.HasPrefix(what, "undecided journal.") && what != "not reproduced engine.step" {
			t.Errorf("%d times %s", n, what)
		}
	}
	for _, name := range append(trading.Payloads().Types(), "engine.step") {
		if name != decide.CommandPutBackDue && c.again["same "+name] == 0 {
			t.Errorf("no %s was decided again", name)
		}
	}
	for _, name := range []string{"engine.step", trading.CommandPlaceOrder, trading.CommandAmendOrder, trading.CommandSetFeeProfile, trading.CommandChangeInstrument} {
		if c.inputs[name] == 0 {
			t.Errorf("no %s has an input", name)
		}
	}
}

// rareCommands gives what the crowd never does, and commands of which each member is of another kind than the crowd's.
func (c *crowd) rareCommands() {
	p := c.products[0]
	by, code, other := c.actor("t7"), "t7", "t1" // of one broker
	expect := func(actor decide.Actor, kept decide.Metadata, payload decide.Payload) {
		c.t.Helper()
		before := c.again["same "+payload.CommandType()]
		c.give(actor, kept, payload)
		c.drain()
		if c.again["same "+payload.CommandType()] == before {
			c.t.Errorf("%s %+v left no record: %v", payload.CommandType(), payload, c.answers)
		}
	}
	place := func(side order.Action, price fixed.Decimal, more func(*trading.PlaceOrder)) {
		c.t.Helper()
		o := &trading.PlaceOrder{CustomerCode: code, Symbol: p.Symbol, Action: side, Type: order.Limit, Amount: decimal("0.50"), LimitPrice: price}
		more(o)
		expect(by, decide.Metadata{Fingerprint: "r"}, o)
	}
	expect(operator, decide.Metadata{}, &decide.RotateCommitment{Generation: 1, Secret: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"})
	expect(operator, decide.Metadata{}, &decide.DiscloseCommitment{From: 3, To: 9, Recipient: "Auditors & Co."})
	expect(by, decide.Metadata{}, &trading.RegisterCustomer{Name: "without a code"})
	for _, code := range []string{code, other} {
		expect(operator, decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: code, Broker: by.Broker})
		expect(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 1_000_000 * fixed.Unit})
	}
	pending := func() scalar.ID {
		expect(operator, decide.Metadata{Fingerprint: "w"}, &trading.RequestWithdrawal{CustomerCode: code, Currency: "USDC", Amount: fixed.Unit})
		codes := c.auditor.Withdrawals()
		id, _ := scalar.ParseID(codes[len(codes)-1])
		return id
	}
	expect(operator, decide.Metadata{}, &trading.CancelWithdrawal{Code: pending()})
	expect(operator, decide.Metadata{}, &trading.CompleteWithdrawal{Code: pending()})
	expect(by, decide.Metadata{}, &trading.SetCancelAllAfter{CustomerCode: code, TimeoutSeconds: 3600})
	session := scalar.ID{0xc, 1}
	expect(nodes, decide.Metadata{}, &trading.OpenSession{Session: session, Gateway: scalar.ID{0xd, 1}, Username: "u", Broker: by.Broker})
	c.give(by, decide.Metadata{Session: session}, &trading.PlaceOrder{CustomerCode: code, Symbol: p.Symbol, Action: order.Buy, Type: order.Limit,
		Amount: decimal("0.001"), LimitPrice: p.price(-0.1)})
	expect(nodes, decide.Metadata{}, &trading.EndSession{Session: session})

	low, lower := p.price(-0.1), p.price(-0.11)
	place(order.Buy, low, func(o *trading.PlaceOrder) { o.ReferenceID, o.Leverage = "r1", 7 })
	place(order.Buy, low, func(o *trading.PlaceOrder) { o.ReferenceID, o.Leverage = "r2", 7 }) // in force already
	expect(by, decide.Metadata{}, &trading.AmendOrder{CustomerCode: code, ReferenceID: "r1", LimitPrice: &lower})
	amount, until := decimal("0.4"), c.now+scalar.Hour
	expect(by, decide.Metadata{}, &trading.AmendOrder{CustomerCode: code, ReferenceID: "r1", Amount: &amount, LimitPrice: &low})
	expect(by, decide.Metadata{}, &trading.CancelOrder{CustomerCode: code, ReferenceID: "r1"})
	place(order.Buy, low, func(o *trading.PlaceOrder) {
		o.ReferenceID, o.TimeInForce, o.ExpireTime = "r3", order.GTD, until
	})
	until += scalar.Hour
	expect(by, decide.Metadata{}, &trading.AmendOrder{CustomerCode: code, ReferenceID: "r3", ExpireTime: &until})

	// A position, and orders that are reduced to it.
	place(order.Sell, p.price(0.001), func(o *trading.PlaceOrder) { o.CustomerCode = other })
	place(order.Buy, p.price(0.15), func(o *trading.PlaceOrder) { o.Amount, o.TimeInForce = decimal("0.003"), order.IOC })
	if held, _ := c.state.Position(code, p.Symbol); held.Amount.IsZero() {
		c.t.Error("nothing was bought")
	}
	place(order.Sell, p.price(0.1), func(o *trading.PlaceOrder) { o.ReferenceID, o.ReduceOnly = "r4", true })
	high, price := decimal("0.7"), p.price(0.12)
	expect(by, decide.Metadata{}, &trading.AmendOrder{CustomerCode: code, ReferenceID: "r4", Amount: &high, LimitPrice: &price})

	c.fourEyes(code)
	c.opening(code, other, p)
	log := checkpointkeytest.Origin("trading", c.id)
	expect(operator, decide.Metadata{}, &decide.RotateCheckpointKey{Generation: 2, Previous: checkpointkeytest.Key(log, 1), Key: checkpointkeytest.Key(log, 2)})
	fee, maintenance, status := decimal("4.500"), p.MaintMarginReq, market.Open
	expect(operator, decide.Metadata{}, &trading.ChangeInstrument{Symbol: p.Symbol, TakerFee: &fee, MaintMarginReq: &maintenance, Status: &status})
	expect(operator, decide.Metadata{}, &trading.SetFeeProfile{CustomerCode: code, Symbol: p.Symbol, MakerFee: decimal("-0.5"), TakerFee: decimal("3"), Operator: true})
}
