package dataset

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// rational returns the value of a number.
func rational(n number) *big.Rat {
	whole := new(big.Int).SetBytes(n[:])
	if n[0]&0x80 != 0 {
		whole.Sub(whole, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return new(big.Rat).SetFrac(whole, new(big.Int).Exp(big.NewInt(10), big.NewInt(decimals), nil))
}

func text(t testing.TB, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no number", s)
	}
	return r
}

// sums are sums by keys, without those that are zero.
type sums map[string]*big.Rat

func (s sums) add(n number, key ...any) {
	k := fmt.Sprintln(key...)
	if s[k] == nil {
		s[k] = new(big.Rat)
	}
	s[k].Add(s[k], rational(n))
}

// equal is same for sums of which every venue has some.
func (s sums) equal(t testing.TB, what string, want sums) {
	t.Helper()
	s.same(t, what, want)
	if len(want) == 0 {
		t.Errorf("%s: the venue has none", what)
	}
}

func (s sums) same(t testing.TB, what string, want sums) {
	t.Helper()
	zero := func(_ string, r *big.Rat) bool { return r.Sign() == 0 }
	maps.DeleteFunc(s, zero)
	maps.DeleteFunc(want, zero)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if s[key] == nil || s[key].Cmp(want[key]) != 0 {
			t.Errorf("%s of %s are %v in the files and %v in SQL", what, key, s[key], want[key])
		}
	}
	if len(s) != len(want) {
		t.Errorf("%s: %d keys in the files, %d in SQL", what, len(s), len(want))
	}
}

// query returns the sums of a query: its last column by the others.
func query(t testing.TB, pool *pgxpool.Pool, sql string) sums {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	must(t, err)
	found := make(sums)
	for rows.Next() {
		values, err := rows.Values()
		must(t, err)
		last := len(values) - 1
		found[fmt.Sprintln(values[:last]...)] = text(t, values[last].(string))
	}
	must(t, rows.Err())
	return found
}

// venue is a random venue with its rows in Postgres and in files.
type venue struct {
	state               *trading.State
	trading, onboarding []record.Entry
	url, dir            string
}

// newVenue plays a market over two days with funding, settlement, liquidations, and stops, and an onboarding. Accounts have
// paid funding, and at the end there are positions and orders in a book.
func newVenue(t testing.TB, size int64) *venue {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	o := projectiontest.NewOwner(t, seed)
	o.Play(200)
	for hour := range 30 {
		o.PassHour()
		if hour%10 == 3 {
			o.Jolt(int64(hour%20-8) * 140)
		}
		o.Play(8)
		o.PlaceStops(1)
	}
	for n := 0; !hasPositions(o.State) || !hasBook(o.State) || !slices.ContainsFunc(o.Entries, postsFunding); n++ {
		if n == 20 {
			t.Fatal("the market has no positions, no book, or no funding")
		}
		o.Play(20)
		o.PassHour()
	}
	r := projectiontest.NewRegistrar(t, seed)
	r.Play(600)
	v := &venue{o.State, o.Entries, r.Entries, projectiontest.MigratedURL(t), t.TempDir()}
	pool := projectiontest.Open(t, v.url)
	for journal, entries := range map[string][]record.Entry{"trading": v.trading, "onboarding": v.onboarding} {
		list := readmodels.Trading()
		if journal == "onboarding" {
			list = readmodels.Onboarding()
		}
		last := entries[len(entries)-1].Position.Sequence
		must(t, projections.Config{Pool: pool, Log: projectiontest.NewLog(entries...), Journal: journal}.Runner(list...).Replay(t.Context(), last))
		mustWrite(t, Config{Dir: v.dir, Journal: journal, Range: size}, entries)
	}
	return v
}

func hasPositions(s *trading.State) bool {
	return slices.ContainsFunc(s.CustomersOf(""), func(c trading.Customer) bool { return len(s.Positions(c.Code)) > 0 })
}

func postsFunding(e record.Entry) bool {
	return slices.ContainsFunc(e.Record.Events, func(of decide.Event) bool {
		_, ok := of.(*trading.FundingPosted)
		return ok
	})
}

func hasBook(s *trading.State) bool {
	return slices.ContainsFunc(projectiontest.Symbols(), func(symbol string) bool {
		bids, asks := s.Depth(symbol, 1)
		return len(bids)+len(asks) > 0
	})
}

func day(at scalar.Time) string { return at.Std().Format(time.DateOnly) }

// TestSumsEqualSQL compares sums over the files with the views for analysts, the tables, and the fold.
func TestSumsEqualSQL(t *testing.T) {
	v := newVenue(t, 500)
	pool := projectiontest.Open(t, v.url)
	t.Run("columns", func(t *testing.T) { v.columns(t, pool) })
	t.Run("money", func(t *testing.T) { v.money(t, pool) })
	t.Run("trades", func(t *testing.T) { v.trades(t, pool) })
	t.Run("balances", func(t *testing.T) { v.balances(t, pool) })
	t.Run("states", func(t *testing.T) { v.states(t, pool) })
	t.Run("prices", func(t *testing.T) { v.prices(t, pool) })
	t.Run("books", func(t *testing.T) { v.books(t, pool) })
	t.Run("onboarding", func(t *testing.T) { v.cases(t, pool) })
}

func (v *venue) money(t *testing.T, pool *pgxpool.Pool) {
	realized, fees, funded, insured, moved, own, paid := sums{}, sums{}, sums{}, sums{}, sums{}, sums{}, sums{}
	for _, p := range rowsOf[postingRow](t, v.dir, "postings") {
		switch {
		case p.Account != "":
			own.add(p.Amount, day(p.Time), p.Account, p.Type)
		case p.Type == domainledger.Deposit || p.Type == domainledger.Withdrawal:
			moved.add(p.Amount, day(p.Time), p.CustomerCode)
		case p.Type == domainledger.TradeFee || p.Type == domainledger.LiquidationFee:
			fees.add(p.Amount, day(p.Time), p.CustomerCode)
		case p.Type == domainledger.FundingPayment:
			funded.add(p.Amount, day(p.Time), p.CustomerCode)
		case p.Type == domainledger.InsuranceFund:
			insured.add(p.Amount, day(p.Time), p.CustomerCode)
		default:
			realized.add(p.Amount, day(p.Time), p.CustomerCode)
		}
	}
	for _, f := range rowsOf[fundingRow](t, v.dir, "funding") {
		paid.add(f.Amount, day(f.Time), f.CustomerCode, f.Broker, f.Symbol)
	}
	realized.equal(t, "realized profits", query(t, pool, `SELECT day::text, customer_code, realized_pnl::text FROM analytics.pnl_daily`))
	fees.equal(t, "fees", query(t, pool, `SELECT day::text, customer_code, fees::text FROM analytics.pnl_daily`))
	funded.equal(t, "postings of funding", query(t, pool, `SELECT day::text, customer_code, funding::text FROM analytics.pnl_daily`))
	insured.same(t, "payments of the insurance fund", query(t, pool, `SELECT day::text, customer_code, insurance::text FROM analytics.pnl_daily`))
	moved.equal(t, "transfers", query(t, pool, `SELECT day::text, customer_code, net_transfers::text FROM analytics.transfers_daily`))
	own.equal(t, "postings of the venue", query(t, pool, `SELECT day::text, account, type, amount::text FROM analytics.venue_daily`))
	paid.equal(t, "funding payments", query(t, pool, `SELECT day::text, customer_code, broker, symbol, funding::text FROM analytics.funding_daily`))
}

func (v *venue) trades(t *testing.T, pool *pgxpool.Pool) {
	fees, made, taken, volume, turnover, lost, charged := sums{}, sums{}, sums{}, sums{}, sums{}, sums{}, sums{}
	for _, r := range rowsOf[tradeRow](t, v.dir, "trades") {
		fees.add(r.Fee, day(r.Time), r.CustomerCode, r.Broker, r.Symbol)
		if r.Role == trading.Maker {
			made.add(r.Notional, day(r.Time), r.CustomerCode)
			continue
		}
		taken.add(r.Notional, day(r.Time), r.CustomerCode)
		volume.add(r.Amount, r.Time.Std().Format(time.DateOnly+" 15"), r.Symbol)
		turnover.add(r.Notional, r.Time.Std().Format(time.DateOnly+" 15"), r.Symbol)
	}
	for _, l := range rowsOf[liquidationRow](t, v.dir, "liquidations") {
		lost.add(l.RealizedPnL, l.Sequence, l.Ordinal, l.CustomerCode, l.Action)
		charged.add(l.Fee, l.Sequence, l.Ordinal, l.CustomerCode)
	}
	fees.equal(t, "fees of trades", query(t, pool, `SELECT day::text, customer_code, broker, symbol, fees::text FROM analytics.fees_daily`))
	made.equal(t, "turnover of makers", query(t, pool, `SELECT day::text, customer_code, sum(maker_turnover)::text FROM analytics.fees_daily GROUP BY 1, 2`))
	taken.equal(t, "turnover of takers", query(t, pool, `SELECT day::text, customer_code, sum(taker_turnover)::text FROM analytics.fees_daily GROUP BY 1, 2`))
	hours := `SELECT to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24'), symbol, %s::text FROM analytics.trades_hourly`
	volume.equal(t, "volume", query(t, pool, fmt.Sprintf(hours, "volume")))
	turnover.equal(t, "turnover", query(t, pool, fmt.Sprintf(hours, "turnover")))
	lost.same(t, "losses by liquidation", query(t, pool, `SELECT sequence, ordinal, customer_code, action, realized_pnl::text FROM analytics.liquidations`))
	charged.same(t, "fees of liquidations", query(t, pool, `SELECT sequence, ordinal, customer_code, fee::text FROM analytics.liquidations`))
}

// balances compares the balances after the last posting with the sums of all postings and with the fold.
func (v *venue) balances(t *testing.T, pool *pgxpool.Pool) {
	added, last := sums{}, map[string]number{}
	inRecord := sums{}
	for _, p := range rowsOf[postingRow](t, v.dir, "postings") {
		added.add(p.Amount, p.CustomerCode, p.Account)
		last[fmt.Sprintln(p.CustomerCode, p.Account)] = p.Balance
		inRecord.add(p.Amount, p.Sequence, p.Currency)
	}
	for key, sum := range inRecord {
		if sum.Sign() != 0 {
			t.Errorf("the postings of record %s have the sum %v", key, sum)
		}
	}
	for key, n := range last {
		if rational(n).Cmp(added[key]) != 0 {
			t.Errorf("%s has the balance %v, and its postings have the sum %v", key, rational(n), added[key])
		}
	}
	for _, c := range v.state.CustomersOf("") {
		balance, _ := v.state.Balance(c.Code)
		if got := added[fmt.Sprintln(c.Code, "")]; got != nil && got.Cmp(text(t, balance.Decimal().String())) != 0 || got == nil && balance != 0 {
			t.Errorf("%s has %v in the files and %v in the fold", c.Code, got, balance)
		}
	}
	for _, a := range domainledger.Accounts() {
		if got := added[fmt.Sprintln("", a)]; got != nil && got.Cmp(text(t, v.state.VenueBalance(a).Decimal().String())) != 0 {
			t.Errorf("the account %s has %v in the files and %v in the fold", a, got, v.state.VenueBalance(a))
		}
	}
	added.equal(t, "balances", query(t, pool, `SELECT customer_code, '', balance::text FROM balances UNION ALL SELECT '', account, balance::text FROM venue_balances`))
}

// states compares the last rows of orders and positions with the tables.
func (v *venue) states(t *testing.T, pool *pgxpool.Pool) {
	filled, limits, held, costs := sums{}, sums{}, sums{}, sums{}
	orders, live := map[scalar.ID]orderRow{}, 0
	for _, o := range rowsOf[orderRow](t, v.dir, "orders") {
		if before, ok := orders[o.Code]; ok && !o.Triggered.IsZero() && !before.Triggered.IsZero() && o.Triggered != before.Triggered {
			t.Errorf("%s was triggered twice", o.Code)
		}
		orders[o.Code] = o
	}
	for _, o := range orders {
		key := []any{o.Code, o.CustomerCode, o.Broker, o.Symbol, o.Action, o.Type, o.Status, o.TimeInForce, o.Reason, o.PostOnly, o.ReduceOnly}
		filled.add(o.FilledAmount, key...)
		limits.add(o.LimitPrice, key...)
		if o.Status == order.Open || o.Status == order.PartiallyFilled {
			live++
		}
	}
	columns := `SELECT code::text, customer_code, broker, symbol, action, type, status, time_in_force, COALESCE(reason, ''), post_only, reduce_only, `
	filled.equal(t, "filled amounts", query(t, pool, columns+`filled_amount::text FROM orders`))
	limits.equal(t, "limit prices", query(t, pool, columns+`COALESCE(limit_price, 0)::text FROM orders`))
	if live == 0 {
		t.Error("no order is live")
	}
	positions := map[string]positionRow{}
	for _, p := range rowsOf[positionRow](t, v.dir, "positions") {
		positions[p.CustomerCode+p.Symbol] = p
	}
	for _, p := range positions {
		held.add(p.Amount, p.CustomerCode, p.Broker, p.Symbol, p.Sequence)
		costs.add(p.Cost, p.CustomerCode, p.Symbol)
	}
	held.equal(t, "positions", query(t, pool, `SELECT customer_code, broker, symbol, sequence, amount::text FROM positions`))
	costs.equal(t, "costs", query(t, pool, `SELECT customer_code, symbol, cost::text FROM positions`))
}

func (v *venue) prices(t *testing.T, pool *pgxpool.Pool) {
	closes, rates := sums{}, sums{}
	last := map[string]priceRow{}
	premium := false
	for _, p := range rowsOf[priceRow](t, v.dir, "prices") {
		last[p.Symbol+p.Time.Std().Format(time.DateOnly)] = p
		premium = premium || p.Premium != nil
	}
	if !premium {
		t.Error("no premium was sampled")
	}
	for _, p := range last {
		closes.add(p.IndexPrice, day(p.Time), p.Symbol, "index")
		closes.add(p.MarkPrice, day(p.Time), p.Symbol, "mark")
	}
	for _, f := range rowsOf[fundingRateRow](t, v.dir, "funding_rates") {
		rates.add(f.FundingRate, f.Sequence, f.Ordinal, f.Symbol, int64(f.Instant), f.Missed)
	}
	closes.equal(t, "last prices", query(t, pool, `SELECT (start AT TIME ZONE 'UTC')::date::text, symbol, price, close::text FROM candles WHERE seconds = 86400 AND price <> 'trade'`))
	rates.equal(t, "funding rates", query(t, pool, `SELECT sequence, ordinal, symbol, (extract(epoch FROM time) * 1000000)::bigint, missed, funding_rate::text FROM funding_rates`))
}

// books compares the last books with those that Postgres has as of the last record.
func (v *venue) books(t *testing.T, pool *pgxpool.Pool) {
	last := map[string][]bookRow{}
	for _, r := range rowsOf[bookRow](t, v.dir, booksTable) {
		if of := last[r.Symbol]; len(of) > 0 && of[0].Sequence != r.Sequence {
			last[r.Symbol] = nil
		}
		last[r.Symbol] = append(last[r.Symbol], r)
	}
	prices, amounts := sums{}, sums{}
	for _, rows := range last {
		for _, r := range rows {
			prices.add(r.Price, r.Symbol, r.Side, r.Level, r.Orders)
			amounts.add(r.Amount, r.Symbol, r.Side, r.Level)
		}
	}
	levels := `SELECT symbol, side, level, %s::text FROM (SELECT i.symbol, b.side, b.price, b.amount, b.orders,
		row_number() OVER (PARTITION BY i.symbol, b.side ORDER BY CASE b.side WHEN 'bid' THEN -b.price ELSE b.price END) AS level
		FROM instruments i CROSS JOIN LATERAL analytics.book_at(i.symbol, (SELECT sequence FROM analytics.bounds)) b) l WHERE level <= 20`
	prices.equal(t, "prices of levels", query(t, pool, fmt.Sprintf(levels, "orders, price")))
	amounts.equal(t, "amounts of levels", query(t, pool, fmt.Sprintf(levels, "amount")))
}

// one is a number to count with.
var one = new(maker).money(1e8)

func (v *venue) cases(t *testing.T, pool *pgxpool.Pool) {
	moved, created, answered := sums{}, sums{}, sums{}
	for _, r := range rowsOf[triggerRow](t, v.dir, "triggers") {
		moved.add(one, day(r.Time), r.OwnerType, r.Status)
		if !r.EntitlementID.IsZero() {
			created.add(one, r.TriggerID, r.EntitlementID, r.OwnerID, r.Tenant, r.Sequence)
		}
	}
	for _, r := range rowsOf[responseRow](t, v.dir, "responses") {
		answered.add(one, day(r.Time), r.Tenant, r.OwnerType)
	}
	moved.equal(t, "changes of applications", query(t, pool, `SELECT day::text, owner_type, state, sum(events)::text FROM analytics.onboarding_daily WHERE event = 'trigger' GROUP BY 1, 2, 3`))
	created.equal(t, "applications", query(t, pool, `SELECT id::text, entitlement_id::text, owner_id::text, tenant, created_sequence, '1' FROM analytics.onboarding_cases`))
	answered.equal(t, "responses", query(t, pool, `SELECT day::text, tenant, owner_type, events::text FROM analytics.onboarding_daily WHERE event = 'response'`))
}
