package readmodels_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	ledgerrows "github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestFollowAJournal runs an owner, a runner and a fold on one journal: commands in, rows out.
func TestFollowAJournal(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	must(t, err)
	defer fake.Close()
	client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	must(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(t, client.EnsureTopics(ctx, "trading"))
	pool := projectiontest.Database(t)

	owner, err := journal.NewOwner(journal.OwnerConfig{Client: client, Rules: trading.Rules(), Node: "n", Known: []journal.Known{known{pool}}})
	must(t, err)
	runner := projections.NewRunner(pool, client, trading.Rules(), readmodels.Trading()...)
	fold := follow.New(client, trading.Rules(), 0)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 3)
	for _, run := range []func(context.Context) error{owner.Run, runner.Run, fold.Run} {
		go func() { done <- run(running) }()
	}
	defer func() {
		stop()
		for range 3 {
			<-done
		}
	}()
	must(t, runner.Wait(ctx, 1))                                   // genesis and taken
	for serving := false; !serving; _, serving = owner.Serving() { // the rows may see the record of the term first
		must(t, ctx.Err())
		runtime.Gosched()
	}

	id := byte(0)
	do := func(actor decide.Actor, kind string, payload any) submit.Result {
		t.Helper()
		id++
		c := decide.Command{ID: scalar.ID{0xc0, id}, Type: kind, Actor: actor, Payload: payload}
		result, err := journaltest.Insist(func() (submit.Result, error) { return owner.Submit(ctx, c) })
		must(t, err)
		return result
	}
	operator, alpha := decide.Actor{Sub: "operator", Broker: "venue"}, decide.Actor{Sub: "broker-a", Broker: "alpha"}
	symbol := projectiontest.Symbols()[0]
	do(operator, trading.CommandListInstrument, &trading.ListInstrument{Instrument: projectiontest.Instrument(symbol)})
	do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 650000, Scale: 1}})
	for _, customer := range []string{"A", "B"} {
		do(alpha, trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: customer})
		do(operator, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: customer, Currency: ledger.USDC, Amount: 10_000 * fixed.Unit})
	}
	place := func(customer string, action order.Action, steps int64) submit.Result {
		return do(alpha, trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: action, Type: order.Limit,
			Amount: fixed.Decimal{Coef: steps, Scale: 3}, LimitPrice: fixed.Decimal{Coef: 650000, Scale: 1}})
	}
	place("A", order.Sell, 500)
	last := place("B", order.Buy, 200).Position.Sequence
	must(t, runner.Wait(ctx, last))
	must(t, fold.Wait(ctx, last))

	open, asOf, err := orders.Open(ctx, pool, orders.Filter{Scope: orders.Scope{Broker: "alpha", CustomerCode: "A"}})
	must(t, err)
	if asOf != last || len(open) != 1 || open[0].FilledAmount.String() != "0.200" || open[0].Status != order.PartiallyFilled {
		t.Errorf("open orders as of %d: %+v", asOf, open)
	}
	positions, _, err := ledgerrows.Positions().All(ctx, pool)
	must(t, err)
	positions = slices.DeleteFunc(positions, func(p ledgerrows.Position) bool { return p.CustomerCode != "B" })
	if len(positions) != 1 || positions[0].Broker != "alpha" || positions[0].Amount.String() != "0.200" || positions[0].Cost.String() != "13000" {
		t.Errorf("positions %+v", positions)
	}
	if r, found, _, err := records.ByCommand(ctx, pool, "trading", "alpha", scalar.ID{0xc0, id}); err != nil || !found || r.Position.Sequence != last {
		t.Errorf("the command's record: %+v, %v, %v", r, found, err)
	}
	fold.View(func(s decide.State, at record.Position) {
		if !at.Equal(runner.Position()) {
			t.Errorf("the fold stands at %v, the rows at %v", at, runner.Position())
		}
		differences, err := readmodels.Compare(ctx, pool, s.(*trading.State), at.Sequence)
		must(t, err)
		check(t, "differences", differences, nil)
	})
}

// known tells an owner what the database knows.
type known struct{ db projections.Querier }

func (k known) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	return projections.Known(ctx, k.db, name, partition)
}
