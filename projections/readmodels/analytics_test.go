package readmodels_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	periodic "github.com/perpetua-exchange/perpetua/projections/statements"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// eventful returns the records of a random venue over three days, with funding, settlement, liquidations and stops.
func eventful(t *testing.T, seed uint64) []record.Entry {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(200)
	for hour := range 60 {
		o.PassHour()
		if hour%10 == 3 {
			o.Jolt(int64(hour%20-8) * 140)
		}
		o.Play(8)
		for n := 0; n < 20 && !holdsPositions(o.State); n++ { // a jolt may have liquidated all
			o.Play(8)
		}
		o.PlaceStops(1)
	}
	return o.Entries
}

// holdsPositions reports whether any customer has a position.
func holdsPositions(s *trading.State) bool {
	return slices.ContainsFunc(s.CustomersOf(""), func(c trading.Customer) bool { return len(s.Positions(c.Code)) > 0 })
}

// asReader returns a pool whose connections have the rights of a reader.
func asReader(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	must(t, projections.GrantReaders(t.Context(), projectiontest.Open(t, url)))
	cfg := projectiontest.Open(t, projectiontest.Admin(t, url)).Config()
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE perpetua_reader; SET default_transaction_read_only = on; SET timezone = 'America/New_York'")
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// line is a row as text by the names of its columns.
type line map[string]string

func (l line) money(t *testing.T, column string) fixed.Money {
	t.Helper()
	d, err := fixed.ParseDecimal(l[column])
	must(t, err)
	m, ok := fixed.MoneyOf(d)
	if !ok {
		t.Errorf("%s is %s", column, l[column])
	}
	return m
}

func (l line) decimal(t *testing.T, column string) fixed.Decimal {
	t.Helper()
	if l[column] == "" {
		return fixed.Decimal{}
	}
	d, err := fixed.ParseDecimal(l[column])
	must(t, err)
	return d.Trim()
}

func (l line) number(t *testing.T, column string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(l[column], 10, 64)
	must(t, err)
	return n
}

// lines returns the rows of a query.
func lines(t *testing.T, pool *pgxpool.Pool, sql string) (found []line) {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	for rows.Next() {
		l := line{}
		for i, f := range rows.FieldDescriptions() {
			l[f.Name] = string(rows.RawValues()[i])
		}
		found = append(found, l)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	return found
}

type (
	pnl struct{ realized, fees, funding, insurance fixed.Money }
	fee struct {
		maker, taker, liquidation, turnover fixed.Money
		trades                              int64
	}
	standing struct {
		amount, mark fixed.Decimal
		cost, profit fixed.Money
	}
	ofSymbol struct{ customer, symbol string }
	traded   struct {
		volume, bought, liquidated fixed.Money // amounts, in the unit of money
		turnover                   fixed.Money
		trades                     int64
	}
	struck struct {
		customer, symbol, kind string
		trades                 int64
		fees                   fixed.Money
	}
)

// analyzed is a venue, the periods that the test has counted, and a pool with a reader's rights.
type analyzed struct {
	entries     []record.Entry
	days, hours []*period
	pool        *pgxpool.Pool
	url         string
}

func analyze(t *testing.T) *analyzed {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	a := &analyzed{entries: eventful(t, seed), url: projectiontest.MigratedURL(t)}
	rows := projectiontest.Open(t, a.url)
	apply(t, rows, "trading", readmodels.Trading(), a.entries)
	r := projectiontest.NewRegistrar(t, seed)
	r.Play(600)
	apply(t, rows, "onboarding", readmodels.Onboarding(), r.Entries)
	a.pool = asReader(t, a.url)
	a.days, a.hours = periods(a.entries, 24*time.Hour), periods(a.entries, time.Hour)
	return a
}

// TestAnalyticsEqualAFold compares the views for analysts with what the events say and with the fold at the end of each day and hour.
func TestAnalyticsEqualAFold(t *testing.T) {
	a := analyze(t)
	t.Run("days", func(t *testing.T) { a.periods(t) })
	t.Run("money", func(t *testing.T) { a.money(t) })
	t.Run("ends of days", func(t *testing.T) { a.ends(t) })
	t.Run("trades", func(t *testing.T) { a.trades(t) })
	t.Run("book", func(t *testing.T) { a.books(t) })
	t.Run("fills", func(t *testing.T) { a.fills(t) })
	t.Run("statements", func(t *testing.T) { a.statements(t) })
	t.Run("ten questions", func(t *testing.T) { a.questions(t) })
	t.Run("history", func(t *testing.T) { a.history(t) })
}

func (a *analyzed) periods(t *testing.T) {
	for view, want := range map[string][]*period{"days": a.days, "hours": a.hours} {
		found := lines(t, a.pool, "SELECT * FROM analytics."+view+" ORDER BY 1")
		check(t, "number of "+view, len(found), len(want))
		for i, l := range found {
			check(t, view+" "+want[i].start.String(), []any{l.number(t, "first_sequence"), l.number(t, "last_sequence"), l["final"], l["history"]},
				[]any{want[i].first, want[i].last, map[bool]string{true: "t", false: "f"}[i < len(want)-1], "t"})
		}
	}
}

func (a *analyzed) money(t *testing.T) {
	for _, day := range a.days {
		where := " WHERE day = '" + day.day() + "'"
		gotPnL := map[string]pnl{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.pnl_daily"+where) {
			p := pnl{l.money(t, "realized_pnl"), l.money(t, "fees"), l.money(t, "funding"), l.money(t, "insurance")}
			gotPnL[l["customer_code"]] = p
			check(t, "their sum", l.money(t, "net_pnl"), p.realized+p.fees+p.funding+p.insurance)
			check(t, "the broker of "+l["customer_code"], l["broker"], projectiontest.BrokerOf(l["customer_code"]))
			if s := l.number(t, "sequence"); s < day.first || s > day.last {
				t.Errorf("sequence %d on %s", s, day.day())
			}
		}
		check(t, "profit and loss on "+day.day(), gotPnL, day.pnl)

		transfers := map[string]fixed.Money{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.transfers_daily"+where) {
			transfers[l["customer_code"]] = l.money(t, "net_transfers")
			check(t, "deposits and withdrawals", l.money(t, "deposits")+l.money(t, "withdrawals"), l.money(t, "net_transfers"))
		}
		check(t, "transfers on "+day.day(), transfers, day.transfers)

		funding := map[ofSymbol]fixed.Money{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.funding_daily"+where) {
			funding[ofSymbol{l["customer_code"], l["symbol"]}] = l.money(t, "funding")
			check(t, "received and paid", l.money(t, "received")+l.money(t, "paid"), l.money(t, "funding"))
		}
		check(t, "funding on "+day.day(), funding, day.funding)

		venue := map[[2]string]fixed.Money{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.venue_daily"+where) {
			venue[[2]string{l["account"], l["type"]}] = l.money(t, "amount")
		}
		check(t, "the venue's accounts on "+day.day(), venue, day.venue)
	}
	// Without a filter, and for one customer.
	all := lines(t, a.pool, "SELECT count(*) AS n, sum(net_pnl) AS sum FROM analytics.pnl_daily")[0]
	var n int64
	var sum, mine fixed.Money
	for _, day := range a.days {
		n += int64(len(day.pnl))
		for code, p := range day.pnl {
			sum += p.realized + p.fees + p.funding + p.insurance
			if code == "C1" {
				mine += p.funding
			}
		}
	}
	check(t, "rows of profit and loss", all.number(t, "n"), n)
	check(t, "sum of profit and loss", all.money(t, "sum"), sum)
	one := lines(t, a.pool, "SELECT sum(funding) AS sum FROM analytics.funding_daily WHERE customer_code = 'C1'")[0]
	check(t, "all funding of C1", one.money(t, "sum"), mine)
}

func (a *analyzed) ends(t *testing.T) {
	liquidated := false
	for _, day := range a.days {
		where := " WHERE day = '" + day.day() + "'"
		balances := map[string]fixed.Money{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.balances_daily"+where) {
			balances[l["customer_code"]] = l.money(t, "balance")
			check(t, "the day's last record", l.number(t, "day_sequence"), day.last)
		}
		check(t, "balances at the end of "+day.day(), balances, day.balances)

		positions := map[ofSymbol]standing{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.positions_daily"+where) {
			positions[ofSymbol{l["customer_code"], l["symbol"]}] = standing{l.decimal(t, "amount"), l.decimal(t, "mark_price"),
				l.money(t, "cost"), l.money(t, "unrealized_pnl")}
		}
		check(t, "positions at the end of "+day.day(), positions, day.positions)
		liquidated = liquidated || len(day.struck) > 0
	}
	kinds := lines(t, a.pool, "SELECT kind, count(*) FROM analytics.liquidations GROUP BY kind")
	t.Log("liquidations by kind: ", kinds)
	if !liquidated {
		t.Error("nobody was liquidated")
	}
}

func (a *analyzed) trades(t *testing.T) {
	for _, day := range a.days {
		where := " WHERE day = '" + day.day() + "'"
		fees := map[ofSymbol]fee{}
		for _, l := range lines(t, a.pool, "SELECT * FROM analytics.fees_daily"+where) {
			fees[ofSymbol{l["customer_code"], l["symbol"]}] = fee{l.money(t, "maker_fees"), l.money(t, "taker_fees"), l.money(t, "liquidation_fees"),
				l.money(t, "maker_turnover") + l.money(t, "taker_turnover"), l.number(t, "trades")}
		}
		check(t, "fees on "+day.day(), fees, day.fees)

		found := map[[3]string]struck{}
		for _, l := range lines(t, a.pool, "SELECT customer_code, symbol, kind, count(*) AS trades, sum(fee) AS fees FROM analytics.liquidations"+
			where+" GROUP BY 1, 2, 3") {
			found[[3]string{l["customer_code"], l["symbol"], l["kind"]}] = struck{l["customer_code"], l["symbol"], l["kind"], l.number(t, "trades"), l.money(t, "fees")}
		}
		check(t, "liquidations on "+day.day(), found, day.struck)
	}
	// What the liquidations have realized is part of the profit and loss.
	differ := lines(t, a.pool, `SELECT (SELECT sum(realized_pnl) FROM analytics.liquidations) IS DISTINCT FROM
		(SELECT sum(amount) FROM transactions WHERE type IN ('liquidation', 'auto_deleveraging')) AS differ`)
	check(t, "whether liquidations differ", differ[0]["differ"], "f")
	hourly := map[string]map[string]traded{}
	for _, l := range lines(t, a.pool, "SELECT *, hour AT TIME ZONE 'UTC' AS utc FROM analytics.trades_hourly") {
		if hourly[l["utc"]] == nil {
			hourly[l["utc"]] = map[string]traded{}
		}
		hourly[l["utc"]][l["symbol"]] = traded{l.money(t, "volume"), l.money(t, "bought"), l.money(t, "liquidated"), l.money(t, "turnover"), l.number(t, "trades")}
		check(t, "bought and sold", l.money(t, "bought")+l.money(t, "sold"), l.money(t, "volume"))
	}
	for _, hour := range a.hours {
		got := hourly[hour.start.Format(time.DateTime)]
		if got == nil {
			got = map[string]traded{}
		}
		check(t, "trades from "+hour.start.String(), got, hour.market)
	}
}

// levels returns the rows of a book as depth does.
func levels(t *testing.T, found []line) (all []string) {
	t.Helper()
	for _, l := range found {
		all = append(all, fmt.Sprint(l["side"], " ", l.decimal(t, "price"), " ", l.decimal(t, "amount")))
	}
	return all
}

const bookOrder = " ORDER BY side, CASE side WHEN 'ask' THEN price ELSE -price END"

func (a *analyzed) books(t *testing.T) {
	deep := 0
	for i, hour := range a.hours {
		if i%7 != 0 && i != len(a.hours)-1 {
			continue
		}
		for symbol, want := range hour.books {
			found := lines(t, a.pool, fmt.Sprintf("SELECT * FROM analytics.book_depth_hourly WHERE hour = '%s' AND symbol = '%s'"+bookOrder,
				hour.start.Format(time.RFC3339), symbol))
			check(t, fmt.Sprint("the book of ", symbol, " after ", hour.start), levels(t, found), want)
			deep = max(deep, len(want))
			for _, l := range found {
				check(t, "its record", l.number(t, "sequence"), hour.last)
			}
		}
	}
	if deep < 3 {
		t.Errorf("no book has more than %d prices", deep)
	}
	s := trading.NewState()
	for _, e := range a.entries {
		s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		at := e.Record.Sequence
		if at%37 != 5 || len(s.Instruments()) < 2 {
			continue
		}
		a.book(t, s, projectiontest.Symbols()[at%2], at)
	}
}

// book compares a book as of a record with that of the fold to the record.
func (a *analyzed) book(t *testing.T, s *trading.State, symbol string, at int64) {
	t.Helper()
	want := depth(s, symbol)
	check(t, fmt.Sprint("the book of ", symbol, " as of ", at), levels(t, lines(t, a.pool, fmt.Sprintf("SELECT * FROM analytics.book_at('%s', %d)", symbol, at))), want)
	check(t, fmt.Sprint("its orders as of ", at), levels(t, lines(t, a.pool, fmt.Sprintf(`SELECT side, price, sum(amount) AS amount FROM analytics.book_orders
		WHERE symbol = '%s' AND since <= %d AND (until > %[2]d OR until IS NULL) GROUP BY side, price`+bookOrder, symbol, at))), want)
}

func (a *analyzed) fills(t *testing.T) {
	type fill struct {
		day, status, first, last string
		firstSequence            int64
		from                     scalar.Time
	}
	want, first := map[string]fill{}, map[scalar.ID]bool{}
	text := func(at scalar.Time) string {
		return strings.TrimRight(strings.TrimRight(at.Std().Format("2006-01-02 15:04:05.000000"), "0"), ".")
	}
	for _, e := range a.entries {
		var triggered trading.Triggered
		for _, event := range e.Record.Events {
			o := triggered.Order(event, e.Record.Time)
			if o == nil {
				continue
			}
			f := want[o.Code.String()]
			f.day, f.status, f.from = o.Created.Std().Format(time.DateOnly), string(o.Status), max(f.from, o.Created, o.Triggered)
			if !o.FilledAmount.IsZero() && !first[o.Code] {
				first[o.Code], f.first, f.firstSequence = true, text(e.Record.Time), e.Record.Sequence
			}
			if o.Status == order.Filled {
				f.last = text(e.Record.Time)
			}
			want[o.Code.String()] = f
		}
	}
	if len(first) < 20 {
		t.Errorf("only %d orders have fills", len(first))
	}
	found := lines(t, a.pool, `SELECT *, first_fill AT TIME ZONE 'UTC' AS first, filled AT TIME ZONE 'UTC' AS last, working_from AT TIME ZONE 'UTC' AS from_time,
		time_to_first_fill = first_fill - working_from AS same FROM analytics.order_fills`)
	check(t, "number of orders", len(found), len(want))
	for _, l := range found {
		got := fill{l["day"], l["status"], l["first"], l["last"], 0, want[l["code"]].from}
		if l["first_fill_sequence"] != "" {
			got.firstSequence = l.number(t, "first_fill_sequence")
		}
		check(t, "order "+l["code"], got, want[l["code"]])
		check(t, "from when it could trade", l["from_time"], text(got.from))
		check(t, "time to the first fill", l["same"] == "f", false)
	}
}

// statements reads the statement of each customer for each day, and for the whole time.
func (a *analyzed) statements(t *testing.T) {
	type line struct {
		kind            domainledger.Type
		amount, balance fixed.Money
	}
	begin, end := scalar.TimeOf(a.days[0].start), scalar.TimeOf(a.days[len(a.days)-1].start)
	read := func(customer string, from, to scalar.Time) (h periodic.Head, got []line) {
		t.Helper()
		must(t, periodic.Read(t.Context(), a.pool, periodic.Period{CustomerCode: customer, From: from, To: to},
			func(is *periodic.Head) error { h = *is; return nil },
			func(l *periodic.Line) error { got = append(got, line{l.Type, l.Amount, l.Balance}); return nil }))
		return h, got
	}
	for customer := range a.days[len(a.days)-1].balances {
		var all []line
		var before fixed.Money
		for i, day := range a.days[:len(a.days)-1] {
			h, got := read(customer, scalar.TimeOf(day.start), scalar.TimeOf(a.days[i+1].start))
			all = append(all, got...)
			check(t, "positions of a statement", []int64{h.Before, h.Last}, []int64{day.first - 1, day.last})
			if len(h.Balances) == 1 {
				check(t, "balances of "+customer+" on "+day.day(), h.Balances[0], periodic.Balance{Currency: "USDC", Opening: before, Closing: day.balances[customer]})
			}
			before = day.balances[customer]
		}
		_, whole := read(customer, begin, end)
		check(t, "the statement of "+customer, whole, all)
		var want []line
		for _, e := range a.entries[:a.days[len(a.days)-1].first] {
			for _, event := range e.Record.Events {
				if posted, ok := event.(domainledger.Posted); ok {
					for _, p := range posted.Postings() {
						if p.CustomerCode == customer {
							want = append(want, line{p.Type, p.Amount, p.Balance})
						}
					}
				}
			}
		}
		check(t, "the lines of "+customer, whole, want)
	}
	last := a.entries[len(a.entries)-1].Record.Time
	for p, want := range map[periodic.Period]error{
		{CustomerCode: "nobody", From: begin, To: end}:  periodic.ErrNoCustomer,
		{CustomerCode: "C1", From: begin, To: last + 1}: &periodic.NotOverError{To: last + 1, Reached: last},
	} {
		check(t, "the error", periodic.Read(t.Context(), a.pool, p, nil, nil), want)
	}
}

// history asks as of a record before the history begins, and reads days before it.
func (a *analyzed) history(t *testing.T) {
	_, err := projectiontest.Open(t, a.url).Exec(t.Context(), "UPDATE history_bounds SET built = $1", a.days[1].last)
	must(t, err)
	for _, at := range []int64{a.days[1].last - 1, a.days[len(a.days)-1].last + 1, -1} {
		if _, err := a.pool.Exec(t.Context(), "SELECT * FROM analytics.book_at('BTCUSDC_PERP', $1)", at); err == nil {
			t.Errorf("there is a book as of %d", at)
		}
	}
	for _, view := range []string{"balances_daily", "positions_daily"} {
		first := lines(t, a.pool, "SELECT min(day) AS day FROM analytics."+view)
		check(t, "the first day of "+view, first[0]["day"], a.days[1].day())
	}
	check(t, "books before the history", len(lines(t, a.pool, "SELECT FROM analytics.book_depth_hourly WHERE hour < '2026-04-01 12:00Z'")), 0)
}

// TestOnboardingFunnel compares the views of the onboarding with its events.
func TestOnboardingFunnel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := projectiontest.NewRegistrar(t, seed)
	r.Play(1500)
	for range 20 {
		if rejections(r.Entries) > 0 {
			break
		}
		r.Play(500)
	}
	url := projectiontest.MigratedURL(t)
	apply(t, projectiontest.Open(t, url), "onboarding", readmodels.Onboarding(), r.Entries)
	pool := asReader(t, url)

	daily, started, results, created, rejected := map[string]int64{}, map[scalar.ID]bool{}, map[string]int64{}, int64(0), rejections(r.Entries)
	for _, e := range r.Entries {
		day := e.Record.Time.Std().Format(time.DateOnly)
		for _, event := range e.Record.Events {
			switch e := event.(type) {
			case *domain.OwnerRegistered:
				daily[day+" "+e.Tenant+" registration "]++
			case *domain.TriggerCreated:
				created++
				daily[day+" trigger "+string(e.Status)]++
			case *domain.TriggerMoved:
				daily[day+" trigger "+string(e.Status)]++
				if e.Status == "ongoing" {
					started[e.ID] = true
				}
				if !e.Status.IsOpen() {
					results[string(e.Result)]++
				}
			case *domain.ResponseAdded:
				daily[day+" response "]++
			}
		}
	}
	got := map[string]int64{}
	for _, l := range lines(t, pool, "SELECT * FROM analytics.onboarding_daily") {
		what := l["event"] + " " + l["state"]
		if l["event"] == "registration" {
			what = l["tenant"] + " " + what
		}
		got[l["day"]+" "+what] += l.number(t, "events")
	}
	check(t, "events by day", got, daily)
	sum := lines(t, pool, `SELECT sum(created) AS created, sum(started) AS started, sum(succeeded) AS succeeded, sum(open) AS open, sum(rejected) AS rejected,
		sum(failed + canceled + terminated) AS ended_otherwise, max(sequence) AS last FROM analytics.onboarding_funnel`)[0]
	check(t, "triggers", []int64{sum.number(t, "created"), sum.number(t, "started"), sum.number(t, "succeeded"), sum.number(t, "open")},
		[]int64{created, int64(len(started)), results["success"], created - results["success"] - results["fail"]})
	if rejected == 0 {
		t.Error("no trigger was rejected")
	}
	check(t, "triggers without success", []int64{sum.number(t, "rejected"), sum.number(t, "ended_otherwise")}, []int64{rejected, results["fail"] - rejected})
	wrong := lines(t, pool, `SELECT id FROM analytics.onboarding_cases c JOIN triggers t USING (id) WHERE ended_at IS DISTINCT FROM
		CASE WHEN t.result IS NOT NULL THEN t.updated_at END OR (c.started_at IS NULL) <> (t.started_sequence IS NULL) LIMIT 3`)
	check(t, "cases with other times than their triggers", len(wrong), 0)
}

// rejections returns the number of triggers that finished without success.
func rejections(entries []record.Entry) (n int64) {
	for _, e := range entries {
		for _, event := range e.Record.Events {
			if e, ok := event.(*domain.TriggerMoved); ok && e.Status == "finished" && e.Result == "fail" {
				n++
			}
		}
	}
	return n
}
