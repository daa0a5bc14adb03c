package trading_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// asOf returns the sequence that an answer names.
func asOf(t *testing.T, r *tradingtest.Reply) int64 {
	t.Helper()
	at, err := record.ParseLogPosition(r.Header.Get(operation.HeaderLogPosition))
	if err != nil {
		t.Fatal(err)
	}
	return at.Sequence
}

// atOnce are the headers of a read that waits for nothing.
func atOnce() []string { return []string{operation.HeaderMinLogPosition, ""} }

// TestRowsNameTheirOwnPosition reads rows that are newer than the fold which judges who may see them: the answer names
// the position of the rows, not a lower one. The readers were answered nothing before, so they do not wait for the fold.
func TestRowsNameTheirOwnPosition(t *testing.T) {
	v := funded(t)
	release := v.Trading.HoldFold()
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000")).Want(201)
	tip := v.Trading.Tip().Sequence
	v.Send("", "GET", "/v1/market-trades", "").Want(200) // waits for the rows alone
	for user, path := range map[string]string{"reader-a": a1 + "/orders", "client-a": a1 + "/orders/history", "auditor": "/v1/orders?customer_code=A-1"} {
		r := v.Send(user, "GET", path, "", atOnce()...).Want(200)
		if !strings.Contains(r.Body, "64000.0") || asOf(t, r) != tip {
			t.Errorf("%s as of %d, the rows stand at %d: %s", path, asOf(t, r), tip, r.Body)
		}
	}
	release()
}

// TestTickersAreAsOfOneRecord has the rows stay behind: the figures of the day hold the trades that the fold holds.
func TestTickersAreAsOfOneRecord(t *testing.T) {
	v := funded(t)
	trade := func(price, amount string) {
		t.Helper()
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", amount, price)).Want(201)
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", amount, price)).Want(201)
	}
	trade("65000", "0.1")
	v.Send("", "GET", "/v1/market-trades", "").Want(200)
	release := v.HoldRows()
	trade("65650", "0.2")
	trade("64350", "0.125")
	held := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200)
	for _, part := range []string{`"last_price":"64350.0"`, `"open_24h":"65000.0"`, `"high_24h":"65650.0"`, `"low_24h":"64350.0"`,
		`"volume_24h":"0.425"`, `"turnover_24h":"27673.75"`, `"open_interest":"0.425"`} {
		if !strings.Contains(held.Body, part) {
			t.Errorf("%s is not in %s", part, held.Body)
		}
	}
	if tip := v.Trading.Tip().Sequence; asOf(t, held) != tip {
		t.Errorf("as of %d, want %d", asOf(t, held), tip)
	}
	release()
	v.Send("", "GET", "/v1/market-trades", "").Want(200)
	if whole := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200); whole.Body != held.Body {
		t.Errorf("from rows that hold the trades: %s, before: %s", whole.Body, held.Body)
	}
}

// counted counts what is asked of a database.
type counted struct {
	projections.DB
	asked atomic.Int64
}

// SendBatch implements projections.DB.
func (c *counted) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	c.asked.Add(1)
	return c.DB.SendBatch(ctx, b)
}

// deluded believes that the rows stand wherever they are wanted.
type deluded struct{}

// Wait implements operation.Waiter.
func (deluded) Wait(context.Context, int64) error { return nil }

// TestTickersDoNotPressTheRows has the rows stand further back than who waits for them believes, as after a crash of
// Postgres, and a node that does not know the trades in between: it reads the rows again now and then, not in a spin.
func TestTickersDoNotPressTheRows(t *testing.T) {
	pool := projectiontest.Database(t)
	v := tradingtest.On(t, pool, pool)
	v.Send("", "GET", "/v1/market-trades", "").Want(200)
	v.HoldRows()
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	rowsOf := &counted{DB: pool}
	node := trading.New(trading.Config{Auth: new(rest.Auth), Venue: v.Trading, Now: time.Now,
		Rows: rows.Source{Journal: "trading", DB: rowsOf, Waiter: deluded{}}})
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	node.Register(e)
	read := int64(0)
	for patience := 500 * time.Millisecond; read < 2 && patience < time.Minute; patience *= 2 { // a busy machine may read but once in the time
		before := rowsOf.asked.Load()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/tickers", nil))
		cancel()
		if answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", answer.Code, answer.Body)
		}
		read = rowsOf.asked.Load() - before
		if most := int64(patience/(25*time.Millisecond)) + 1; read > most {
			t.Errorf("the rows were read %d times in %v, at most %d are wanted", read, patience, most)
		}
	}
	if read < 2 {
		t.Error("the rows were not read again")
	}
}

// TestACrashOfPostgresTakesRowsAlong kills Postgres before it has written its last transactions, and starts it again
// while the runner that wrote them cannot know. What it believes proves nothing: no read that names a position is
// answered with rows that do not hold it.
func TestACrashOfPostgresTakesRowsAlong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "postgres")
	server := startPostgres(t, dir)
	var url, runnerURL atomic.Pointer[string]
	address, nowhere := server.URL(), "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable"
	url.Store(&address)
	runnerURL.Store(&address)
	read, write := openAt(t, &url), openAt(t, &runnerURL)
	if _, err := projections.Migrate(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	v := tradingtest.On(t, read, write)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/customers/A-1/deposits", `{"currency":"USDC","amount":"100000","reference_id":"d"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	v.Send("broker-a", "GET", a1+"/orders", "").Want(200)

	// What was written so far reaches the disk, and nothing from here on.
	admin, err := pgx.Connect(t.Context(), server.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.WithoutCancel(t.Context()))
	if _, err := admin.Exec(t.Context(), "CHECKPOINT"); err != nil {
		t.Fatal(err)
	}
	var postmaster, walwriter int
	if err := admin.QueryRow(t.Context(), `SELECT (SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'),
		split_part(pg_read_file('postmaster.pid'), E'\n', 1)::integer`).Scan(&walwriter, &postmaster); err != nil {
		t.Fatal(err)
	}
	signal(t, walwriter, syscall.SIGSTOP)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000")).Want(201)
	paths := []string{a1 + "/orders", a1 + "/orders/" + placed.Text("code"), a1 + "/transactions", "/v1/market-trades"}
	for _, path := range paths {
		if r := v.Send("broker-a", "GET", path, "").Want(200); asOf(t, r) < asOf(t, placed) {
			t.Fatalf("%s is as of %d", path, asOf(t, r))
		}
	}
	runnerURL.Store(&nowhere)
	signal(t, postmaster, syscall.SIGKILL)
	signal(t, walwriter, syscall.SIGKILL)
	<-server.Done()
	_ = server.Close()
	address = startPostgres(t, dir).URL()
	url.Store(&address)

	lost := until(t, func() (r *tradingtest.Reply, done bool) { // the pool's old connections are gone first
		r = v.Send("broker-a", "GET", "/v1/market-trades", "", atOnce()...)
		return r, r.Status == http.StatusOK
	})
	if asOf(t, lost) >= asOf(t, placed) {
		t.Fatalf("nothing was lost: the rows stand at %d", asOf(t, lost))
	}
	for _, path := range paths {
		v.Send("broker-a", "GET", path, "").Code(412, "LOG_POSITION_NOT_REACHED")
	}
	v.Send("broker-a", "GET", "/v1/commands/"+placed.Text("code"), "").Code(412, "LOG_POSITION_NOT_REACHED")

	runnerURL.Store(&address) // the runner comes back, and the rows with it
	for _, path := range paths {
		until(t, func() (r *tradingtest.Reply, done bool) {
			r = v.Send("broker-a", "GET", path, "")
			if r.Status == http.StatusOK && asOf(t, r) < asOf(t, placed) {
				t.Fatalf("%s is as of %d, %d was asked for", path, asOf(t, r), asOf(t, placed))
			}
			return r, r.Status == http.StatusOK
		})
	}
}

func until(t *testing.T, try func() (*tradingtest.Reply, bool)) *tradingtest.Reply {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); ; {
		r, done := try()
		if done {
			return r
		}
		if time.Now().After(limit) {
			t.Fatalf("still %d %s", r.Status, r.Body)
		}
	}
}

func startPostgres(t *testing.T, dir string) *postgres.Server {
	t.Helper()
	s, err := postgres.Start(t.Context(), postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openAt(t *testing.T, url *atomic.Pointer[string]) *pgxpool.Pool {
	t.Helper()
	pool, err := projections.OpenMoving(context.WithoutCancel(t.Context()), func() string { return *url.Load() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(fmt.Errorf("signal %v to %d: %w", s, pid, err))
	}
}
