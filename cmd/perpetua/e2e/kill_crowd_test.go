package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// crowd is very many accounts in groups of a size. Each is long 0.01 BTC from 65,000 with leverage 13, and half of them are
// with each broker. The accounts of a group have as much money that they, and none of the next group, are liquidated at the
// group's price. Four makers hold the other side.
type crowd struct{ groups, size int }

// What the crowd was opened with: an index price after it has traded, so that all of it has gained something that a
// settlement pays out.
const (
	bought = 65_000
	makers = 4
	// traders place orders of their own while the venue is killed.
	traders = 4
)

var (
	alpha = decide.Actor{Sub: "broker-a", Broker: "alpha"}
	beta  = decide.Actor{Sub: "broker-b", Broker: "beta"}
)

// member names an account of a group, and its broker: those of broker-a begin with A-.
func member(group, n int) (code string, broker decide.Actor) {
	if n%2 == 0 {
		return fmt.Sprintf("A-%d-%04d", group, n), alpha
	}
	return fmt.Sprintf("B-%d-%04d", group, n), beta
}

func maker(n int) (code string, broker decide.Actor) {
	if n%2 == 0 {
		return fmt.Sprintf("A-MAKER-%d", n), alpha
	}
	return fmt.Sprintf("B-MAKER-%d", n), beta
}

// deposit is what the accounts of a group have: 51 USDC, of which one of the first group needs 50 and pays 0.325 to buy, and
// 21 USDC more for each group after it.
func (crowd) deposit(group int) fixed.Money { return fixed.Money(51+21*group) * fixed.Unit }

// price is the index at which a group is liquidated: an account of it then has 13 to 14 USDC left and needs 23 to 24; one of
// the next group has 21 more. A mark that is still 800 above the index makes 8 more, and no difference.
func (crowd) price(group int) int { return bought - 3_700 - 2_100*group }

// opening is what makes the crowd, in parts that depend on each other.
func (c crowd) opening() (parts [][]decide.Command) {
	system := decide.Actor{System: "test"}
	btc := func(coef int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: coef, Scale: scale} }
	command := func(actor decide.Actor, p decide.Payload) decide.Command {
		return decide.Command{ID: record.NewCommandID(time.Now()), Type: p.CommandType(), Actor: actor, Payload: p}
	}
	index := func(price fixed.Decimal) decide.Command {
		return command(system, &trading.SetIndexPrice{Symbol: bitcoin, Price: price})
	}
	limit := func(code string, actor decide.Actor, side order.Action, amount, price fixed.Decimal, leverage int) decide.Command {
		return command(actor, &trading.PlaceOrder{CustomerCode: code, Symbol: bitcoin, Action: side, Type: order.Limit, Amount: amount,
			LimitPrice: price, Leverage: leverage})
	}
	var registered, paid, quoted, offered, withdrawn, taken []decide.Command
	account := func(code string, actor decide.Actor, amount fixed.Money) {
		registered = append(registered, command(actor, &trading.RegisterCustomer{CustomerCode: code}))
		paid = append(paid, command(actor, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: amount}))
	}
	for n := range makers {
		code, actor := maker(n)
		account(code, actor, 10_000_000*fixed.Unit)
		// What they quote makes a sample of the premium with the first index price, and so a rate of funding.
		quoted = append(quoted, limit(code, actor, order.Buy, btc(1, 0), btc(bought-10, 0), 0), limit(code, actor, order.Sell, btc(1, 0), btc(bought+10, 0), 0))
		withdrawn = append(withdrawn, command(actor, &trading.CancelAll{CustomerCode: code}))
		offered = append(offered, limit(code, actor, order.Sell, btc(int64(c.groups*c.size*10/makers), 3), btc(bought, 0), 0))
	}
	for n := range traders {
		account(newClient(0, n).customer, alpha, 1_000_000*fixed.Unit)
	}
	for group := range c.groups {
		for n := range c.size {
			code, actor := member(group, n)
			account(code, actor, c.deposit(group))
			taken = append(taken, limit(code, actor, order.Buy, btc(1, 2), btc(bought, 0), 13))
		}
	}
	first, last := []decide.Command{index(btc(bought, 0))}, []decide.Command{index(btc(650505, 1))}
	return [][]decide.Command{registered, paid, quoted, first, withdrawn, offered, taken, last}
}

// fill has commands decided in the log of the venue, which is stopped, by an owner in this process: over HTTP that would take
// longer than all the rest.
func (v *venue) fill(t testing.TB, parts [][]decide.Command) {
	t.Helper()
	client, done := v.openLog(t)
	defer done()
	owner, err := journal.NewOwner(journal.OwnerConfig{Client: client, Rules: trading.Rules(), Node: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the owner that fills the log: %v", err)
		}
	}()
	waitFor(t, "the owner that fills the log", func() bool { _, serves := owner.Serving(); return serves })
	for _, part := range parts {
		for some := range slices.Chunk(part, 256) {
			submitAll(t, owner, some)
		}
	}
}

// submitAll has commands decided; what a busy machine refuses for the time being is sent again.
func submitAll(t testing.TB, owner *journal.Owner, commands []decide.Command) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(commands) > 0; {
		var again []decide.Command
		for i, out := range owner.SubmitAll(context.Background(), commands) {
			var busy *submit.NotAcceptedError
			switch {
			case errors.As(out.Err, &busy) && time.Now().Before(deadline):
				again = append(again, commands[i])
			case out.Err != nil:
				t.Fatalf("%s: %v", commands[i].Type, out.Err)
			}
		}
		commands = again
	}
}

// quote has a maker quote on both sides while an index price comes in, which makes a sample of the premium and so a rate of
// funding.
func (d *desk) quote() {
	d.t.Helper()
	code, _ := maker(0)
	for side, price := range map[string]int{"buy": bought - 500, "sell": bought + 500} {
		d.must(201, "broker-a", http.MethodPost, "/v1/customers/"+code+"/orders",
			fmt.Sprintf(`{"symbol":%q,"action":%q,"type":"limit","amount":"1","limit_price":"%d"}`, bitcoin, side, price))
	}
	d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+bitcoin, fmt.Sprintf(`{"price":"%d.5"}`, bought+50))
	d.must(200, "broker-a", http.MethodDelete, "/v1/customers/"+code+"/orders", nil)
}

// crash brings the price to where a group is liquidated, while the venue is killed. Before that the insurance fund gets enough
// for about a third of the group, and bids are placed for about a quarter: the others are deleveraged.
func (c crowd) crash(d *desk, group int, killed func()) {
	d.t.Helper()
	code, _ := maker(0)
	d.must(201, "operator", http.MethodPost, "/admin/v1/insurance/deposits", fmt.Sprintf(`{"amount":"%d","reference_id":"crash-%d"}`, 6*c.size, group))
	d.must(201, "broker-a", http.MethodPost, "/v1/customers/"+code+"/orders", fmt.Sprintf(`{"symbol":%q,"action":"buy","type":"limit","amount":"%d.%03d","limit_price":"%d"}`,
		bitcoin, c.size*3/2/1000, c.size*3/2%1000, c.price(group)-200))
	answered := d.setOff("operator", "/admin/v1/index-prices/"+bitcoin, fmt.Sprintf(`{"price":"%d"}`, c.price(group)))
	killed()
	if err := <-answered; err != nil {
		d.t.Fatal(err)
	}
}

// setOff sends a command that work of the engine's comes of, in the background. Whoever answers may be killed before that: the
// command can be in one batch with what comes of it.
func (v *venue) setOff(user, path, body string) (answered <-chan error) {
	v.token(user) // before it is shared
	done := make(chan error, 1)
	go func() {
		for {
			a, err := v.try(user, http.MethodPost, path, body)
			switch {
			case a.busy():
				<-time.After(retryAfter)
				continue
			case err == nil && a.Status/100 != 2 && a.get("code") != "OUTCOME_UNKNOWN":
				done <- fmt.Errorf("%s is answered %d: %s", path, a.Status, a.Body)
			}
			close(done)
			return
		}
	}()
	return done
}

// accounts is how many there are.
func (c crowd) accounts() int { return c.groups * c.size }
