package readmodels_test

import (
	"cmp"
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainidentity "github.com/perpetua-exchange/perpetua/domain/identity"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/identity"
	"github.com/perpetua-exchange/perpetua/projections/instruments"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

// apply brings the database to the end of the entries.
func apply(t testing.TB, pool *pgxpool.Pool, name string, list []projections.Projection, entries []record.Entry) {
	t.Helper()
	r := projections.Config{Pool: pool, Log: projectiontest.NewLog(entries...), Journal: name}.Runner(list...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(running) }()
	if err := r.Wait(ctx, entries[len(entries)-1].Position.Sequence); err != nil {
		t.Error(err, r.Failing())
	}
	stop()
	<-done
}

// venue makes up a venue with n entries and projects it.
func venue(t testing.TB, seed uint64, n int) (*projectiontest.Venue, []record.Entry, *pgxpool.Pool) {
	t.Helper()
	v, pool := projectiontest.NewVenue(seed), projectiontest.Database(t)
	entries := v.Entries(n)
	apply(t, pool, "trading", readmodels.Trading(), entries)
	return v, entries, pool
}

func check[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOrders(t *testing.T) {
	ctx := t.Context()
	v, entries, pool := venue(t, 1, 2000)
	last := entries[len(entries)-1].Position.Sequence

	changed, live := map[scalar.ID]int64{}, map[string]int{}
	var made []scalar.ID
	for _, e := range entries {
		for _, event := range e.Record.Events {
			if o, ok := event.(trading.OrderEvent); ok {
				if _, known := changed[o.After().Code]; !known {
					made = append(made, o.After().Code)
				}
				changed[o.After().Code] = e.Record.Sequence
			}
		}
	}
	for _, code := range made {
		want := v.Orders[code]
		got, found, asOf, err := orders.ByCode(ctx, pool, orders.Scope{Broker: want.Broker, CustomerCode: want.CustomerCode}, code)
		must(t, err)
		if !found || asOf != last {
			t.Fatalf("order %v: found %v as of %d", code, found, asOf)
		}
		check(t, "order", got, orders.Order{Order: *want, Sequence: changed[code]})
		if want.Status.Live() {
			live[want.CustomerCode]++
		}
	}
	for _, customer := range v.Customers {
		broker := projectiontest.BrokerOf(customer)
		open, _, err := orders.Open(ctx, pool, orders.Filter{Scope: orders.Scope{Broker: broker, CustomerCode: customer}})
		must(t, err)
		check(t, "open orders of "+customer, len(open), live[customer])
		foreign, _, err := orders.Open(ctx, pool, orders.Filter{Scope: orders.Scope{Broker: "gamma", CustomerCode: customer}})
		must(t, err)
		check(t, "what another broker sees", foreign, []orders.Order{})
	}
	for _, symbol := range projectiontest.Symbols() {
		partly, _, err := orders.Open(ctx, pool, orders.Filter{Symbol: symbol, Statuses: []order.Status{order.PartiallyFilled}})
		must(t, err)
		for _, o := range partly {
			check(t, "filter", []string{o.Symbol, string(o.Status)}, []string{symbol, "partially_filled"})
		}
	}

	// The latest order of a reference that several have.
	latest := map[[2]string]scalar.ID{}
	for _, code := range made {
		latest[[2]string{v.Orders[code].CustomerCode, v.Orders[code].ReferenceID}] = code
	}
	for key, code := range latest {
		o, found, _, err := orders.ByReference(ctx, pool, orders.Scope{CustomerCode: key[0]}, key[1])
		must(t, err)
		if !found || o.Code != code {
			t.Errorf("reference %v: %v %v, want %v", key, found, o.Code, code)
		}
	}
	if _, found, asOf, err := orders.ByCode(ctx, pool, orders.Scope{}, scalar.ID{1}); found || asOf != last || err != nil {
		t.Errorf("an unknown code: %v as of %d, %v", found, asOf, err)
	}

	var all []scalar.ID // every page of the history, in the order in which the orders were made
	page := projections.Page{Size: 37}
	for {
		p, err := orders.History(ctx, pool, orders.Filter{}, page)
		must(t, err)
		for _, o := range p.Values() {
			all = append(all, o.Code)
		}
		if !p.HasNext {
			break
		}
		end, _ := p.End()
		page.After = &end
	}
	check(t, "history", all, made)
}

func TestTrades(t *testing.T) {
	ctx := t.Context()
	_, entries, pool := venue(t, 2, 2000)
	var want []trades.MarketTrade
	sides := map[string][]trades.Trade{}
	for _, e := range entries {
		ordinal := 0
		for _, event := range e.Record.Events {
			if x, ok := event.(*trading.TradeExecuted); ok {
				want = append(want, x.Public(e.Stamp(), ordinal))
				taker, maker := x.Sides(e.Stamp(), ordinal)
				ordinal++
				sides[x.Taker.CustomerCode] = append(sides[x.Taker.CustomerCode], taker)
				sides[x.Maker.CustomerCode] = append(sides[x.Maker.CustomerCode], maker)
			}
		}
	}
	got, err := trades.MarketPage(ctx, pool, trades.MarketFilter{}, projections.Page{Size: 10000})
	must(t, err)
	check(t, "market trades", got.Values(), want)
	recent, asOf, err := trades.MostRecent(ctx, pool, trades.MarketFilter{Symbol: want[len(want)-1].Symbol}, 1)
	must(t, err)
	check(t, "most recent", recent, want[len(want)-1:])
	check(t, "position", asOf, entries[len(entries)-1].Position.Sequence)
	for customer, rows := range sides {
		p, err := trades.Page(ctx, pool, trades.Filter{Scope: projections.Scope{Broker: projectiontest.BrokerOf(customer), CustomerCode: customer}}, projections.Page{Size: 10000})
		must(t, err)
		check(t, "trades of "+customer, p.Values(), rows)
		p, err = trades.Page(ctx, pool, trades.Filter{Scope: projections.Scope{Broker: "gamma", CustomerCode: customer}}, projections.Page{Size: 10000})
		must(t, err)
		check(t, "what another broker sees", p.Values(), []trades.Trade{})
	}

	// Spans: from inclusive, to exclusive; several trades may have one time.
	first, last := want[0].Time, want[len(want)-1].Time
	for _, span := range []projections.Span{{From: first, To: last + 1}, {From: first + 1, To: last}, {From: last}, {To: first},
		{From: last + 1}, {From: (first + last) / 2, To: (first+last)/2 + 20*scalar.Millisecond}, {From: 1, To: 2}} {
		var within []trades.MarketTrade
		for _, x := range want {
			if (span.From == 0 || x.Time >= span.From) && (span.To == 0 || x.Time < span.To) {
				within = append(within, x)
			}
		}
		p, err := trades.MarketPage(ctx, pool, trades.MarketFilter{Span: span}, projections.Page{Size: 10000})
		must(t, err)
		if len(p.Rows) != len(within) || len(within) > 0 && !reflect.DeepEqual(p.Values(), within) {
			t.Errorf("span %v: %d rows, want %d", span, len(p.Rows), len(within))
		}
	}

	liquidation := &trading.TradeExecuted{Type: trading.Liquidation}
	taker, maker := liquidation.Sides(decide.Stamp{}, 0)
	check(t, "a liquidation's sides", []trading.TradeType{taker.Type, maker.Type}, []trading.TradeType{trading.Liquidation, trading.Trade})
}

func TestLedger(t *testing.T) {
	ctx := t.Context()
	v, entries, pool := venue(t, 3, 3000)
	sums := map[string]fixed.Money{}
	count := 0
	rows, err := ledger.Transactions(ctx, pool, ledger.Filter{}, projections.Page{Size: 100000})
	must(t, err)
	for _, r := range rows.Values() {
		count++
		if r.Status == domainledger.Completed {
			sums[r.CustomerCode] += r.Amount
			if r.BalanceAsOf != r.Updated {
				t.Errorf("a completed transaction without the time of its balance: %+v", r)
			}
		}
		check(t, "broker", r.Broker, projectiontest.BrokerOf(r.CustomerCode))
	}
	balances, _, err := ledger.Balances().All(ctx, pool)
	must(t, err)
	for _, b := range balances {
		check(t, "balance of "+b.CustomerCode, []fixed.Money{b.Balance, sums[b.CustomerCode]}, []fixed.Money{v.Balances[b.CustomerCode], v.Balances[b.CustomerCode]})
	}
	var total fixed.Money
	own, _, err := ledger.VenueBalances().All(ctx, pool)
	must(t, err)
	for _, b := range own {
		check(t, "balance of "+string(b.Account), b.Balance, v.Accounts[b.Account])
		total += b.Balance
	}
	for _, b := range balances {
		total += b.Balance
	}
	check(t, "the sum of all balances", total, 0)

	known := make(map[scalar.ID]ledger.Transaction)
	for _, r := range rows.Values() {
		if r.ReferenceID != "" {
			known[r.Code] = r
		}
	}
	for code, w := range v.Withdrawals {
		r, found := known[code]
		if !found {
			t.Fatalf("withdrawal %v is missing", code)
		}
		check(t, "withdrawal", []any{r.Status, r.Amount, r.Created, r.Updated, r.Type, r.Broker}, []any{w.Status, w.Amount, w.Created, w.Updated, w.Type, w.Broker})
	}
	pending, err := ledger.Transactions(ctx, pool, ledger.Filter{Types: []domainledger.Type{domainledger.Withdrawal},
		Statuses: []domainledger.Status{domainledger.Pending, domainledger.Canceled}}, projections.Page{Size: 1000})
	must(t, err)
	for _, r := range pending.Values() {
		if r.Balance != 0 || !r.BalanceAsOf.IsZero() || r.Status == domainledger.Completed {
			t.Errorf("a pending or canceled withdrawal with a balance: %+v", r)
		}
	}

	positions, _, err := ledger.Positions().All(ctx, pool)
	must(t, err)
	for _, p := range positions {
		if p.Amount.IsZero() { // it was closed
			continue
		}
		key := [2]string{p.CustomerCode, p.Symbol}
		check(t, "position", []any{p.Amount, p.Cost, p.Broker}, []any{v.Positions[key], v.Costs[key], projectiontest.BrokerOf(p.CustomerCode)})
		delete(v.Positions, key)
	}
	for key, p := range v.Positions {
		if p.Coef != 0 {
			t.Errorf("position %v is missing", key)
		}
	}
	_ = entries
}

func TestCustomersAndInstruments(t *testing.T) {
	ctx := t.Context()
	v, entries, pool := venue(t, 4, 1500)
	all, _, err := customers.Registry().All(ctx, pool)
	must(t, err)
	var codes []string
	for _, c := range all {
		codes = append(codes, c.CustomerCode)
	}
	check(t, "customers", codes, v.Customers)
	alpha, err := customers.Page(ctx, pool, "alpha", projections.Page{Size: 1000})
	must(t, err)
	for _, c := range alpha.Values() {
		check(t, "broker", projectiontest.BrokerOf(c.CustomerCode), "alpha")
	}
	check(t, "a customer's name", all[0].Name, "Account C0")

	fees, leverages := map[[2]string]*trading.FeeProfileSet{}, map[[2]string]int{}
	margins, status, prices := map[string]*trading.MarginProfileSet{}, map[string]market.Status{}, map[string]fixed.Decimal{}
	for _, e := range entries {
		for _, event := range e.Record.Events {
			switch x := event.(type) {
			case *trading.FeeProfileSet:
				fees[[2]string{x.CustomerCode, x.Symbol}] = x
			case *trading.MarginProfileSet:
				margins[x.CustomerCode] = x
			case *trading.LeverageSet:
				leverages[[2]string{x.CustomerCode, x.Symbol}] = x.Leverage
			case *trading.LeverageChanged:
				leverages[[2]string{x.CustomerCode, x.Symbol}] = x.Leverage
			case *trading.InstrumentListed:
				status[x.Symbol] = x.Status
			case *trading.InstrumentChanged:
				status[x.Symbol] = x.Status
			case *trading.IndexUpdated:
				prices[x.Symbol] = x.IndexPrice
			}
		}
	}
	ownFees, _, err := customers.FeeProfiles().All(ctx, pool)
	must(t, err)
	for _, r := range ownFees {
		want := fees[[2]string{r.CustomerCode, r.Symbol}]
		check(t, "fees", []any{r.MakerFee, r.TakerFee, r.Broker}, []any{want.MakerFee, want.TakerFee, want.Broker})
	}
	overrides, _, err := customers.Leverages().All(ctx, pool)
	must(t, err)
	for _, r := range overrides {
		check(t, "leverage", r.Leverage, leverages[[2]string{r.CustomerCode, r.Symbol}])
	}
	profiles := marginProfiles(t, pool)
	for _, m := range profiles {
		want := margins[m.CustomerCode]
		check(t, "margins", []any{m.Leverage, m.InitialMargin, m.MaintenanceMargin}, []any{want.Leverage, want.InitialMargin.String(), want.MaintenanceMargin.String()})
	}
	check(t, "numbers of rows", []int{len(ownFees), len(overrides), len(profiles)}, []int{len(fees), len(leverages), len(margins)})

	listed, _, err := instruments.Instruments().All(ctx, pool)
	must(t, err)
	slices.SortFunc(listed, func(a, b instruments.Instrument) int { return cmp.Compare(a.Listed, b.Listed) })
	for i, symbol := range projectiontest.Symbols() {
		want := projectiontest.Instrument(symbol)
		want.Status = status[symbol]
		check(t, "instrument", listed[i].Instrument, want)
	}
	last, _, err := instruments.LastPrices().All(ctx, pool)
	must(t, err)
	for _, p := range last {
		check(t, "price", p.Index, prices[p.Symbol])
	}
}

func TestRecords(t *testing.T) {
	ctx := t.Context()
	_, entries, pool := venue(t, 5, 300)
	for _, e := range entries {
		r, found, asOf, err := records.ByCommand(ctx, pool, "trading", e.Record.Command.Actor.Broker, e.Record.Command.ID)
		must(t, err)
		want := records.Record{Journal: "trading", Position: e.Position, Time: e.Record.Time, Outcome: e.Record.Outcome,
			Command: e.Record.Command.ID, Type: e.Record.Command.Type, Actor: e.Record.Command.Actor}
		if !found || asOf != 299 || !reflect.DeepEqual(r, want) {
			t.Fatalf("record %d: found %v as of %d: %+v, want %+v", e.Record.Sequence, found, asOf, r, want)
		}
	}
	if _, found, asOf, err := records.ByCommand(ctx, pool, "trading", "", scalar.ID{9}); found || asOf != 299 || err != nil {
		t.Errorf("an unknown command: %v as of %d, %v", found, asOf, err)
	}
}

func TestIdentity(t *testing.T) {
	ctx := t.Context()
	v, pool := projectiontest.NewVenue(6), projectiontest.Database(t)
	operator, when := decide.Actor{Sub: "operator", Broker: "venue"}, scalar.Time(1_800_000_000_000_000)
	if rows, total, asOf, err := identity.Users(ctx, pool, 10, 0); len(rows) != 0 || total != 0 || asOf != -1 || err != nil {
		t.Errorf("before genesis: %v %d %d %v", rows, total, asOf, err)
	}
	user := func(name, broker string) domainidentity.User {
		return domainidentity.User{Username: name, Broker: broker, Scopes: []string{"trade", "read"}, IsActive: true,
			PasswordHash: []byte("secret"), Created: when, Updated: when}
	}
	ann, bob := user("ann", "alpha"), user("bob", "beta")
	bob.CustomerCode, bob.RateLimit = "C1", &domainidentity.RateLimit{PerSecond: 5, Burst: 10}
	changed := ann
	changed.IsActive, changed.Updated, changed.Scopes = false, when+1, []string{"read"}
	entries := []record.Entry{
		v.Entry(record.TypeGenesis, decide.Engine, decide.Accepted, &record.Genesis{Journal: "identity"}),
		v.Entry("broker.register", operator, decide.Accepted, &domainidentity.BrokerRegistered{Broker: domainidentity.Broker{Broker: "alpha", Name: "Alpha", Created: when}}),
		v.Entry("broker.register", operator, decide.Accepted, &domainidentity.BrokerRegistered{Broker: domainidentity.Broker{Broker: "beta", Name: "Beta", Created: when}}),
		v.Entry("user.register", operator, decide.Accepted, &domainidentity.UserRegistered{User: ann}),
		v.Entry("user.register", operator, decide.Accepted, &domainidentity.UserRegistered{User: bob}),
		v.Entry("user.change", operator, decide.Accepted, &domainidentity.UserChanged{User: changed}),
	}
	apply(t, pool, "identity", readmodels.Identity(), entries)
	changed.PasswordHash, bob.PasswordHash = nil, nil
	rows, total, asOf, err := identity.Users(ctx, pool, 10, 0)
	must(t, err)
	check(t, "users, newest first", rowsOf(rows), []domainidentity.User{bob, changed})
	check(t, "total and position", []int64{int64(total), asOf}, []int64{2, 5})
	brokers, total, _, err := identity.Brokers(ctx, pool, 1, 1)
	must(t, err)
	check(t, "the second page of brokers", brokers, []identity.Broker{{Broker: domainidentity.Broker{Broker: "alpha", Name: "Alpha", Created: when}, Sequence: 1}})
	check(t, "total", total, 2)
	var dump string
	must(t, pool.QueryRow(ctx, "SELECT string_agg(u::text, '') FROM users u").Scan(&dump))
	if strings.Contains(dump, "secret") || strings.Contains(dump, "c2VjcmV0") || strings.Contains(dump, "736563726574") {
		t.Error("a password's hash is in the table")
	}
}

func rowsOf(found []identity.User) (out []domainidentity.User) {
	for _, u := range found {
		out = append(out, u.User)
	}
	return out
}

// marginProfile is a row of margin_profiles.
type marginProfile struct {
	CustomerCode                     string
	Leverage                         int
	InitialMargin, MaintenanceMargin string
}

// marginProfiles reads all rows of margin_profiles.
func marginProfiles(t *testing.T, pool *pgxpool.Pool) []marginProfile {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT customer_code, leverage, initial_margin::text, maintenance_margin::text FROM margin_profiles`)
	must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[marginProfile])
	must(t, err)
	return all
}
