package readmodels_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/candles"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// grown makes a database as that of a venue which is months old, by shape: one customer has nine tenths of everything,
// a thousand others the rest; one instrument has almost all trades; of five thousand orders one is live and a
// record comes every second.
const grown = `
INSERT INTO customers SELECT CASE WHEN i = 0 THEN 'WHALE' ELSE 'C' || i END, CASE WHEN i % 100 = 7 THEN 'beta' ELSE 'alpha' END, '', now(), i, 0
FROM generate_series(0, 1000) i;
CREATE TEMPORARY TABLE happened AS
SELECT i AS sequence, md5('order' || i)::uuid AS code, to_timestamp(1700000000 + i) AS time, c.customer_code, c.broker,
	CASE WHEN i % 5000 = 77 THEN 'ETHUSDC_PERP' ELSE 'BTCUSDC_PERP' END AS symbol, i % 5000 = 3 AS live
FROM generate_series(0, size) i JOIN customers c ON c.sequence = CASE WHEN i % 10 = 9 THEN (i / 10) % 1000 + 1 ELSE 0 END;
INSERT INTO records SELECT 'trading', sequence, sequence, sha256(code::text::bytea), time, 'accepted', md5('command' || sequence)::uuid,
	CASE WHEN sequence % 100000 = 1 THEN 'journal.taken' ELSE 'order.place' END, 'sub', broker, NULL, NULL FROM happened;
INSERT INTO orders SELECT code, customer_code, broker, symbol, 'buy', 'limit', CASE WHEN live THEN 'open' ELSE 'canceled' END, live,
	1, 0, NULL, 0, 65000.1, NULL, NULL, NULL, NULL, NULL, 'good_till_canceled', NULL, false, false,
	CASE WHEN sequence % 10 = 4 THEN 'mine-' || sequence ELSE code::text END, NULL, time, time, sequence, 0, sequence FROM happened;
INSERT INTO trades SELECT sequence, n, md5('trade' || sequence)::uuid, code, customer_code, broker, symbol, 'buy', 65000.1, 1, 65000.1, 0.1, 'USDC',
	CASE n WHEN 0 THEN 'taker' ELSE 'maker' END, 'trade', code::text, time FROM happened, generate_series(0, 1) n;
INSERT INTO transactions SELECT sequence, n, md5('trade' || sequence)::uuid, customer_code, broker, 'trade_fee', 'USDC', -0.1, 'completed', 1,
	symbol, code, NULL, time, time, sequence FROM happened, generate_series(0, 1) n;
INSERT INTO transactions SELECT sequence, 2, md5('deposit' || sequence)::uuid, customer_code, broker, 'deposit', 'USDC', 100, 'completed', 1,
	NULL, NULL, md5('deposit' || sequence)::uuid::text, time, time, sequence FROM happened WHERE sequence % 10000 = 11;
INSERT INTO candles SELECT symbol, p, s, to_timestamp(extract(epoch FROM min(time))::bigint / s * s), 65000.1, 65000.1, 65000.1, 65000.1,
	count(*), count(*) * 65000.1, count(*) FROM happened, (VALUES ('trade'), ('mark'), ('index')) k (p), (VALUES (60), (300), (900), (3600), (14400), (86400)) v (s)
	GROUP BY p, s, symbol, extract(epoch FROM time)::bigint / s ORDER BY min(time);
INSERT INTO instruments SELECT s, 'BTC', 'USDC', 'USDC', 'open', 0.1, 0.001, 0.001, 1000, 1, 5, 2.5, 13, 3600, 5, 20, 2, 5, 0, '[]', 0, 0, now()
	FROM (VALUES ('BTCUSDC_PERP'), ('ETHUSDC_PERP')) v (s);
INSERT INTO checkpoints VALUES ('trading', 0, size, size, sha256(''), to_timestamp(1700000000 + size));
ANALYZE`

// size is how many records the database of the test has. With a million a planner has more to lose by a wrong guess:
// change a query, and try it with that too (half a minute, and 700 pages at most).
const size = 100_000

// most is how many pages a query may look at: many more than a page of a list is spread over, and few enough to show
// that it reads a table instead. Finding the place of a time takes 70 of them, and there may be three times.
const most = 300

// planned is a database that explains what it is asked.
type planned struct {
	*pgxpool.Pool
	t    *testing.T
	what string
}

// explain returns how the database runs a query: by a plan for these arguments, or by the one for all that the batch asks for.
func (p *planned) explain(ctx context.Context, q *pgx.QueuedQuery, onePlan bool) (text string, err error) {
	const explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
	if !onePlan {
		return text, p.QueryRow(ctx, explain+q.SQL, q.Arguments...).Scan(&text)
	}
	conn, err := p.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SET plan_cache_mode = force_generic_plan; PREPARE explained AS "+q.SQL, pgx.QueryExecModeSimpleProtocol); err != nil {
		return "", err
	}
	places := make([]string, len(q.Arguments))
	for i := range places {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	run := "EXECUTE explained"
	if len(places) > 0 {
		run += " (" + strings.Join(places, ", ") + ")"
	}
	err = conn.QueryRow(ctx, explain+run, append([]any{pgx.QueryExecModeSimpleProtocol}, q.Arguments...)...).Scan(&text)
	if _, failed := conn.Exec(ctx, "DEALLOCATE explained; RESET plan_cache_mode", pgx.QueryExecModeSimpleProtocol); err == nil {
		err = failed
	}
	return text, err
}

// SendBatch implements projections.DB.
func (p *planned) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	onePlan := slices.ContainsFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool { return strings.Contains(q.SQL, "force_generic_plan") })
	for _, q := range b.QueuedQueries {
		if !strings.HasPrefix(q.SQL, "SELECT") && !strings.HasPrefix(q.SQL, "WITH") && !strings.HasPrefix(q.SQL, "--") {
			continue
		}
		text, err := p.explain(ctx, q, onePlan)
		if err != nil {
			p.t.Fatalf("%s: %v\n%s", p.what, err, q.SQL)
		}
		var plans []struct {
			Plan struct {
				Hit  int `json:"Shared Hit Blocks"`
				Read int `json:"Shared Read Blocks"`
			}
		}
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			p.t.Fatal(err)
		}
		limit := most
		if strings.Contains(q.SQL, "FROM analytics.") { // they find the first and the last record of each day
			limit = 4 * most
		}
		if pages := plans[0].Plan.Hit + plans[0].Plan.Read; pages > limit {
			p.t.Errorf("%s looks at %d pages\n%s\n%s", p.what, pages, q.SQL, text)
		} else {
			p.t.Logf("%s: %d pages", p.what, pages)
		}
	}
	return p.Pool.SendBatch(ctx, b)
}

// No list that REST shows reads a whole table, or a whole customer, whoever asks.
func TestListsStayNarrow(t *testing.T) {
	ctx, pool := t.Context(), projectiontest.Database(t)
	if _, err := pool.Exec(ctx, strings.ReplaceAll(grown, "size", strconv.Itoa(size))); err != nil {
		t.Fatal(err)
	}
	db := &planned{Pool: pool, t: t}
	at := func(sequence int64) scalar.Time { return scalar.Time(1_700_000_000+sequence) * scalar.Second }
	var code, command scalar.ID
	var named string
	row := pool.QueryRow(ctx, "SELECT md5('order54321')::uuid::text, md5('command54321')::uuid::text, md5('order54320')::uuid::text")
	var a, b string
	must(t, row.Scan(&a, &b, &named))
	code, err := scalar.ParseID(a)
	must(t, err)
	command, err = scalar.ParseID(b)
	must(t, err)

	ask := func(what string, question func(p projections.Page) error) {
		t.Helper()
		middle := &projections.Key{Sequence: size / 2}
		for suffix, p := range map[string]projections.Page{", first": {Size: 50}, ", last": {Size: 50, Descending: true},
			", after": {Size: 50, After: middle}, ", before": {Size: 50, Before: middle}, ", before a time": {Size: 50, BeforeTime: at(size / 2)},
			", descending after": {Size: 50, After: middle, Descending: true}} {
			db.what = what + suffix
			must(t, question(p))
		}
	}
	once := func(what string, question func() error) {
		t.Helper()
		db.what = what
		must(t, question())
	}
	span := projections.Span{From: at(size / 3), To: at(size / 3 * 2)}
	for _, customer := range []string{"WHALE", "C500"} {
		ask("order history of "+customer, func(p projections.Page) error {
			_, err := orders.History(ctx, db, orders.Filter{Scope: orders.Scope{CustomerCode: customer}}, p)
			return err
		})
		ask("history of live orders of "+customer, func(p projections.Page) error {
			_, err := orders.History(ctx, db, orders.Filter{Scope: orders.Scope{CustomerCode: customer}, Statuses: []order.Status{order.Open}}, p)
			return err
		})
		once("live orders of "+customer, func() error {
			_, _, err := orders.Open(ctx, db, orders.Filter{Scope: orders.Scope{CustomerCode: customer}})
			return err
		})
		for _, reference := range []string{"mine-54324", a, named, "nobody's"} {
			once("order by reference of "+customer, func() error {
				_, _, _, err := orders.ByReference(ctx, db, orders.Scope{CustomerCode: customer}, reference)
				return err
			})
		}
		once("order by code of "+customer, func() error {
			_, _, _, err := orders.ByCode(ctx, db, orders.Scope{CustomerCode: customer}, code)
			return err
		})
		ask("trades of "+customer, func(p projections.Page) error {
			_, err := trades.Page(ctx, db, trades.Filter{Scope: projections.Scope{CustomerCode: customer}}, p)
			return err
		})
		ask("trades in a span of "+customer, func(p projections.Page) error {
			_, err := trades.Page(ctx, db, trades.Filter{Scope: projections.Scope{CustomerCode: customer}, Span: span}, p)
			return err
		})
		ask("trades of an order of "+customer, func(p projections.Page) error {
			_, err := trades.Page(ctx, db, trades.Filter{Scope: projections.Scope{CustomerCode: customer}, OrderCode: code}, p)
			return err
		})
		ask("transactions of "+customer, func(p projections.Page) error {
			_, err := ledger.Transactions(ctx, db, ledger.Filter{Scope: projections.Scope{CustomerCode: customer}}, p)
			return err
		})
		ask("transactions in a span of "+customer, func(p projections.Page) error {
			_, err := ledger.Transactions(ctx, db, ledger.Filter{Scope: projections.Scope{CustomerCode: customer}, Span: span}, p)
			return err
		})
		ask("transfers of "+customer, func(p projections.Page) error {
			_, err := ledger.Transactions(ctx, db, ledger.Filter{Scope: projections.Scope{CustomerCode: customer}, Types: []domainledger.Type{domainledger.Deposit, domainledger.Withdrawal}}, p)
			return err
		})
	}
	for _, broker := range []string{"", "alpha", "beta"} {
		once("live orders of the broker "+broker, func() error {
			_, _, err := orders.Open(ctx, db, orders.Filter{Scope: orders.Scope{Broker: broker}})
			return err
		})
		ask("customers of the broker "+broker, func(p projections.Page) error {
			_, err := customers.Page(ctx, db, broker, p)
			return err
		})
	}
	for _, broker := range []string{"", "alpha", "beta", "nobody's"} {
		ask("order history of the broker "+broker, func(p projections.Page) error {
			_, err := orders.History(ctx, db, orders.Filter{Scope: orders.Scope{Broker: broker}}, p)
			return err
		})
		ask("trades of the broker "+broker, func(p projections.Page) error {
			_, err := trades.Page(ctx, db, trades.Filter{Scope: projections.Scope{Broker: broker}}, p)
			return err
		})
		ask("trades in a span of the broker "+broker, func(p projections.Page) error {
			_, err := trades.Page(ctx, db, trades.Filter{Scope: projections.Scope{Broker: broker}, Span: span}, p)
			return err
		})
		ask("transactions of the broker "+broker, func(p projections.Page) error {
			_, err := ledger.Transactions(ctx, db, ledger.Filter{Scope: projections.Scope{Broker: broker}}, p)
			return err
		})
	}
	for _, symbol := range []string{"", "BTCUSDC_PERP", "ETHUSDC_PERP", "NOTHING"} {
		once("last trades of "+symbol, func() error {
			_, _, err := trades.MostRecent(ctx, db, trades.MarketFilter{Symbol: symbol}, 50)
			return err
		})
		ask("market trades in a span of "+symbol, func(p projections.Page) error {
			_, err := trades.MarketPage(ctx, db, trades.MarketFilter{Symbol: symbol, Span: span}, p)
			return err
		})
	}
	once("command", func() error {
		_, _, _, err := records.ByCommand(ctx, db, "trading", "alpha", command)
		return err
	})
	once("tickers", func() error {
		_, _, err := tickers.Since(ctx, db, tickers.DayBefore(at(size)))
		return err
	})
	for what, span := range map[string]projections.Span{"latest": {}, "of a span": span, "from the first on": {From: 1}, "up to the middle": {To: at(size / 2)}} {
		for _, symbol := range []string{"BTCUSDC_PERP", "NOTHING"} {
			once("candles, "+what+", "+symbol, func() error {
				_, err := candles.Each(ctx, db, candles.Filter{Symbol: symbol, Price: candles.Trade, Interval: market.OneMinute, Span: span, Limit: 500},
					func(*candles.Candle) {})
				return err
			})
		}
	}
	for _, view := range []string{"pnl_daily", "transfers_daily", "funding_daily", "fees_daily", "order_fills", "liquidations"} {
		for what, condition := range map[string]string{"a customer": "customer_code = 'C500'", "a day of a customer": "day = '2023-11-15' AND customer_code = 'C500'"} {
			once("the view "+view+" of "+what, func() error {
				var b pgx.Batch
				b.Queue("SELECT * FROM analytics." + view + " WHERE " + condition)
				return db.SendBatch(ctx, &b).Close()
			})
		}
	}
	for _, condition := range []string{"symbol = 'ETHUSDC_PERP' AND hour >= '2023-11-15 12:00Z' AND hour < '2023-11-15 14:00Z'", "hour = '2023-11-15 12:00Z'"} {
		once("trades by hour, "+condition, func() error {
			var b pgx.Batch
			b.Queue("SELECT * FROM analytics.trades_hourly WHERE " + condition)
			return db.SendBatch(ctx, &b).Close()
		})
	}
}
