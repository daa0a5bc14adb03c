package readmodels_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/decide/decidetest"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/market"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/candles"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/funding"
	"github.com/perpetua-exchange/perpetua/projections/instruments"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/liabilities"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/projections/trades"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

var update = flag.Bool("update", false, "write the golden files of statements")

// statements collects the distinct statements that the connections of a pool send.
type statements struct {
	mu     sync.Mutex
	sent   map[string]bool
	copies bytes.Buffer // the messages of the connections, for COPY: no tracer sees it
}

func newStatements() *statements { return &statements{sent: make(map[string]bool)} }

// database returns a new database, whose statements are collected.
func (s *statements) database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	cfg := projectiontest.Database(t).Config()
	cfg.ConnConfig.Tracer = s
	cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.PgConn().Frontend().Trace(locked{s}, pgproto3.TracerOptions{SuppressTimestamps: true})
		return nil
	}
	own, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(own.Close)
	return own
}

// locked writes the messages of all connections to one buffer.
type locked struct{ *statements }

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copies.Write(b)
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[strings.TrimSpace(sql)] = true
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.add(data.SQL)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// wrote returns the statements that have inserted rows into a table.
func (s *statements) wrote(table string) (sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sent := range s.sent {
		if strings.HasPrefix(sent, "INSERT INTO "+table+" ") {
			sql += sent
		}
	}
	for _, sent := range copyIn.FindAllString(s.copies.String(), -1) {
		if strings.HasPrefix(sent, "COPY "+table+" ") {
			sql += sent
		}
	}
	return sql
}

var copyIn = regexp.MustCompile(`COPY \w+ \([^)]*\) FROM STDIN \([^)]*\)`)

// golden compares the statements with a file.
func (s *statements) golden(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sql := range copyIn.FindAllString(s.copies.String(), -1) {
		s.sent[sql] = true
	}
	var all []string
	for sql := range s.sent {
		if strings.HasPrefix(sql, "SET ") || strings.Contains(sql, "pg_try_advisory_lock") {
			continue // a session begins
		}
		all = append(all, sql+";\n")
	}
	slices.Sort(all)
	got, path := strings.Join(all, ""), filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got == string(want) {
		return
	}
	for _, sql := range all {
		if !strings.Contains(string(want), sql) {
			t.Errorf("not in %s, which -update writes:\n%s", path, sql)
		}
	}
	t.Errorf("the statements differ from those of %s", path)
}

// TestStatementsThatWrite: projections send the statements of testdata/writes.sql and no others, whatever the entries.
func TestStatementsThatWrite(t *testing.T) {
	sent := newStatements()
	pool := sent.database(t)
	parts := func(list []projections.Projection, journal string, entries []record.Entry) {
		t.Helper()
		for end := len(entries) % 50; end <= len(entries); end += 50 { // later entries change what earlier ones have made
			if end > 0 {
				apply(t, pool, journal, list, entries[:end])
			}
		}
	}
	o := projectiontest.NewOwner(t, 37)
	o.Play(400)
	parts(readmodels.Trading(), "trading", o.Entries)
	parts(readmodels.Identity(), "identity", people(36))
	registrar := projectiontest.NewRegistrar(t, 35)
	registrar.Play(1200)
	parts(readmodels.Onboarding(), "onboarding", registrar.Entries)
	for _, end := range identified(t, registrar) {
		apply(t, pool, "onboarding", readmodels.Onboarding(), registrar.Entries[:end])
	}
	// What these logs do not hold.
	v, other := projectiontest.NewVenue(1), sent.database(t)
	apply(t, other, "trading", readmodels.Trading(), append(v.Entries(7), v.Entry("seldom", decide.Engine, decide.Accepted,
		append(decidetest.FourEyes(), &trading.MarginProfileSet{CustomerCode: "C0", Broker: "alpha"}, &trading.FundingFixed{Symbol: "BTCUSDC_PERP", Time: scalar.Second},
			&trading.LiabilitiesRecorded{Statement: form.Statement{Timestamp: scalar.Second}})...)))
	v = projectiontest.NewVenue(1)
	apply(t, other, "onboarding", readmodels.Onboarding(), []record.Entry{
		v.Entry(record.TypeGenesis, decide.Engine, decide.Accepted, &record.Genesis{Journal: "onboarding"}),
		v.Entry("seldom", decide.Engine, decide.Accepted, append(decidetest.FourEyes(), &domain.RetentionSet{Time: scalar.Second})...),
	})
	for _, p := range slices.Concat(readmodels.Trading(), readmodels.Identity(), readmodels.Onboarding()) {
		for _, table := range p.Tables() {
			if table != "list_counts" { // triggers write it
				writesAll(t, pool, table, sent.wrote(table))
			}
		}
	}
	sent.golden(t, "writes.sql")
}

// identified makes up a trigger, whose video identification is passed, and returns how many entries there are before its start, before
// its identification, and in all.
func identified(t *testing.T, r *projectiontest.Registrar) (ends []int) {
	t.Helper()
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	accepted := func(by decide.Actor, p decide.Payload) {
		t.Helper()
		if code := r.Do(by, p); code != "" {
			t.Fatal(p.CommandType(), code)
		}
	}
	by := decide.Actor{Sub: "api", Broker: projectiontest.Tenants()[0]}
	accepted(by, &domain.RegisterOwner{Ref: owner.Ref{Type: owner.PersonType, ID: r.ID()}, ExternalID: make([]byte, 32), Fields: r.Sealed()})
	accepted(operator, &domain.CreateEntitlement{Name: "Identified", OwnerType: owner.PersonType, Approval: entitlement.Manual})
	made := len(r.Entries) + 1
	accepted(by, &domain.CreateTrigger{Ref: r.Owners[len(r.Owners)-1], EntitlementID: r.Entitlements[len(r.Entitlements)-1]})
	started := len(r.Entries)
	for _, p := range []domain.ActOnTrigger{{Action: entitlement.RequestVideoIdentification},
		{Action: entitlement.CompleteVideoIdentification, Outcome: domain.Passed, ExternalReference: r.Sealed()}} {
		p.ID, p.Code, p.Reason = r.Triggers[len(r.Triggers)-1], "CODE", r.Sealed()
		accepted(operator, &p)
	}
	return []int{made, started, len(r.Entries)}
}

// writesAll wants the statements that insert into a table to name each of its columns.
func writesAll(t *testing.T, pool *pgxpool.Pool, table, sql string) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT attname::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped", table)
	must(t, err)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	for _, column := range columns {
		if column != "place" && !strings.Contains(sql, `"`+column+`"`) { // a trigger numbers the places
			t.Errorf("no statement writes %s.%s", table, column)
		}
	}
}

// TestStatementsThatRead: the lists of the trading journal send the statements of testdata/reads.sql.
func TestStatementsThatRead(t *testing.T) {
	ctx := t.Context()
	sent := newStatements()
	pool := sent.database(t)
	id, span := scalar.ID{1}, projections.Span{From: scalar.Second, To: scalar.Minute}
	key := &projections.Key{Sequence: 5}
	for _, p := range []projections.Page{{Size: 50}, {Size: 50, After: key, Before: key}, {Size: 50, BeforeTime: scalar.Minute, Descending: true}} {
		for _, scope := range []orders.Scope{{}, {Broker: "alpha"}, {CustomerCode: "C1"}, {Broker: "alpha", CustomerCode: "C1"}} {
			_, err := orders.History(ctx, pool, orders.Filter{Scope: scope}, p)
			must(t, err)
			_, err = trades.Page(ctx, pool, trades.Filter{Scope: scope}, p)
			must(t, err)
			_, err = ledger.Transactions(ctx, pool, ledger.Filter{Scope: scope}, p)
			must(t, err)
		}
		_, err := customers.Page(ctx, pool, "alpha", p)
		must(t, err)
		_, err = funding.Rates(ctx, pool, funding.Filter{Symbol: "BTC", Span: span}, p)
		must(t, err)
		_, err = trades.MarketPage(ctx, pool, trades.MarketFilter{Symbol: "BTC", Span: span}, p)
		must(t, err)
		_, err = liabilities.Statements(ctx, pool, p)
		must(t, err)
	}
	for _, position := range []int64{0, 5} {
		_, err := liabilities.About(ctx, pool, position)
		must(t, err)
	}
	scope, p := orders.Scope{Broker: "alpha", CustomerCode: "C1"}, projections.Page{Size: 50}
	full := orders.Filter{Scope: scope, Symbol: "BTC", Code: id, Statuses: []order.Status{order.Open}, Span: span}
	_, err := orders.History(ctx, pool, full, p)
	must(t, err)
	for _, f := range []orders.Filter{full, {Scope: orders.Scope{CustomerCode: "C1"}}} {
		_, _, err = orders.Open(ctx, pool, f)
		must(t, err)
	}
	_, _, _, err = orders.ByCode(ctx, pool, scope, id)
	must(t, err)
	for _, reference := range []string{"mine", id.String()} {
		_, _, _, err = orders.ByReference(ctx, pool, scope, reference)
		must(t, err)
	}
	_, err = trades.Page(ctx, pool, trades.Filter{Scope: projections.Scope{Broker: "alpha", CustomerCode: "C1"}, Symbol: "BTC", OrderCode: id, Types: []trading.TradeType{trading.Liquidation}, Span: span}, p)
	must(t, err)
	_, _, err = trades.MostRecent(ctx, pool, trades.MarketFilter{Symbol: "BTC"}, 20)
	must(t, err)
	_, err = ledger.Transactions(ctx, pool, ledger.Filter{Scope: projections.Scope{Broker: "alpha", CustomerCode: "C1"}, Symbol: "BTC", OrderCode: id, Currency: "USDC", Types: []domainledger.Type{domainledger.Deposit}, Statuses: []domainledger.Status{domainledger.Completed}, Span: span}, p)
	must(t, err)
	_, err = candles.Each(ctx, pool, candles.Filter{Symbol: "BTC", Price: candles.Trade, Interval: market.OneMinute, Limit: 5}, func(*candles.Candle) {})
	must(t, err)
	_, _, err = tickers.Since(ctx, pool, scalar.Minute)
	must(t, err)
	_, _, _, err = records.ByCommand(ctx, pool, "trading", "alpha", id)
	must(t, err)
	for _, err := range []error{allOf(ctx, pool, instruments.Instruments()), allOf(ctx, pool, instruments.LastPrices()), allOf(ctx, pool, customers.Registry()),
		allOf(ctx, pool, customers.FeeProfiles()), allOf(ctx, pool, customers.Leverages()),
		allOf(ctx, pool, ledger.Balances()), allOf(ctx, pool, ledger.VenueBalances()), allOf(ctx, pool, ledger.Positions())} {
		must(t, err)
	}
	sent.golden(t, "reads.sql")
}

// allOf reads a whole table.
func allOf[T any](ctx context.Context, db projections.DB, table *projections.Table[T]) error {
	_, _, err := table.All(ctx, db)
	return err
}
