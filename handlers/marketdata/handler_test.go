package marketdata_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	handler "github.com/perpetua-exchange/perpetua/handlers/marketdata"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// source is a log that ends a maker's run at its end.
type source struct {
	entries []record.Entry
	stop    context.CancelFunc
}

func (s *source) Poll(ctx context.Context) ([]record.Entry, error) {
	all := s.entries
	if s.entries = nil; len(all) == 0 {
		s.stop()
		return nil, ctx.Err()
	}
	return all, nil
}

func (s *source) Close() {}

// counted is a bucket that counts what it is asked.
type counted struct {
	*blob.Store
	lists, opens atomic.Int64
	hold         chan struct{} // each opening waits until it is closed; nil for none
	instead      func() error  // called instead of opening a file, unless it is nil
}

func (c *counted) List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error) {
	c.lists.Add(1)
	return c.Store.List(ctx, prefix)
}

func (c *counted) NewReaderAt(ctx context.Context, key string, offset int64) (*blob.Reader, error) {
	c.opens.Add(1)
	if c.hold != nil {
		<-c.hold
	}
	if c.instead != nil {
		return nil, c.instead()
	}
	return c.Store.NewReaderAt(ctx, key, offset)
}

// venue serves the files of two days, 2026-11-24 and 2026-11-26, and is in the day 2026-11-28.
type venue struct {
	url    string
	server http.Handler // at the url
	store  *marketdata.Store
	err    error
	files  *counted

	days string // prefix of the keys of the manifests
	open func() // replaces the store by one that knows no manifest yet

	behind  bool  // the rows lack the records of the last day
	rowsErr error // of a question for a record's time
}

func newVenue(t *testing.T) *venue { return newVenueThat(t, true) }

// newVenueThat returns a venue that makes files, or makes no more.
func newVenueThat(t *testing.T, made bool) *venue {
	t.Helper()
	o := projectiontest.NewOwner(t, 1)
	o.Play(60)
	begins, err := marketdata.ParseDate("2026-11-24")
	must(t, err)
	var entries []record.Entry
	for i, e := range o.Entries {
		r := *e.Record
		r.Time = begins + 2*scalar.Day*scalar.Time(i*3/len(o.Entries))
		e.Record = &r
		entries = append(entries, e)
	}
	bucket, err := blob.Open(t.Context(), "mem://")
	must(t, err)
	t.Cleanup(func() { bucket.Close() })
	v := &venue{files: &counted{Store: blob.NewStore(bucket)}}
	v.open = func() { v.store = marketdata.NewStore(v.files, "data/", entries[0].Journal) }
	v.open()
	v.days = "data/" + entries[0].Journal.String() + "/days/"
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	m := marketdata.NewMaker(marketdata.MakerConfig{Store: func(context.Context) (*marketdata.Store, error) { return v.store, nil },
		From: func(at record.Position) marketdata.Source { return &source{entries[at.Sequence+1:], stop} }})
	if err := m.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, loopback, err := net.ParseCIDR("127.0.0.0/8")
	must(t, err)
	e, err := rest.New(rest.Options{TrustedProxies: []*net.IPNet{loopback}})
	must(t, err)
	handler.Register(e.Echo, handler.Config{Made: made, Store: func(context.Context) (*marketdata.Store, error) { return v.store, v.err },
		LogTime: func() scalar.Time { return begins + 4*scalar.Day },
		TimeOf: func(_ context.Context, sequence int64) (scalar.Time, bool, error) {
			return entries[sequence].Record.Time, !v.behind, v.rowsErr
		}})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	v.url, v.server = server.URL, e
	return v
}

type answer struct {
	*http.Response
	body string
}

func (v *venue) ask(t *testing.T, method, path string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, v.url+path, nil)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	must(t, err)
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	must(t, err)
	return answer{a, string(body)}
}

type entry struct {
	Table, Date, Path string
	Final             bool
	Bytes, Rows       *int64
	SHA256            *string
	First             *int64 `json:"first_sequence"`
	Last              *int64 `json:"last_sequence"`
}

func (v *venue) list(t *testing.T, query string) []entry {
	t.Helper()
	a := v.ask(t, http.MethodGet, "/data/"+query)
	var list struct{ Files []entry }
	if err := json.Unmarshal([]byte(a.body), &list, json.MatchCaseInsensitiveNames(true)); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s: %v", a.StatusCode, a.body, err)
	}
	return list.Files
}

// TestFiles downloads every file of the list, whole and in parts.
func TestFiles(t *testing.T) {
	v := newVenue(t)
	all := v.list(t, "")
	if n := len(dataset.PublicTables()); len(all) != 3*n {
		t.Fatalf("%d files: %+v", len(all), all)
	}
	for _, e := range all {
		a := v.ask(t, http.MethodGet, e.Path)
		if !e.Final {
			if a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "DATA_DAY_NOT_OVER") || !strings.Contains(a.body, "It ends at 2026-11-29T00:00:00.000000Z") || e.Date != "2026-11-28" || e.Bytes != nil {
				t.Errorf("%+v answers %d %s", e, a.StatusCode, a.body)
			}
			continue
		}
		sum := sha256.Sum256([]byte(a.body))
		tag := `"` + hex.EncodeToString(sum[:]) + `"`
		if a.StatusCode != http.StatusOK || hex.EncodeToString(sum[:]) != *e.SHA256 || int64(len(a.body)) != *e.Bytes || a.Header.Get("ETag") != tag ||
			a.Header.Get("Cache-Control") != "public, max-age=10" || a.Header.Get("Content-Type") != "application/vnd.apache.parquet" ||
			a.Header.Get("Accept-Ranges") != "bytes" || *e.Last < *e.First {
			t.Errorf("%+v answers %d with %d bytes and %v", e, a.StatusCode, len(a.body), a.Header)
		}
		if h := v.ask(t, http.MethodHead, e.Path); h.StatusCode != http.StatusOK || h.ContentLength != *e.Bytes || h.body != "" {
			t.Errorf("HEAD of %s: %d, %d bytes", e.Path, h.StatusCode, h.ContentLength)
		}
		if h := v.ask(t, http.MethodGet, e.Path, "If-None-Match", tag); h.StatusCode != http.StatusNotModified || h.body != "" || h.Header.Get("ETag") != tag {
			t.Errorf("%s to one who has it: %d", e.Path, h.StatusCode)
		}
		for given, want := range map[string]string{"bytes=0-3": a.body[:4], "bytes=-8": a.body[len(a.body)-8:], "bytes=10-": a.body[10:], "bytes=4-4": a.body[4:5]} {
			if p := v.ask(t, http.MethodGet, e.Path, "Range", given); p.StatusCode != http.StatusPartialContent || p.body != want {
				t.Errorf("%s of %s: %d with %d bytes", given, e.Path, p.StatusCode, len(p.body))
			}
		}
		if p := v.ask(t, http.MethodGet, e.Path, "Range", "bytes=0-3", "If-Range", `"another"`); p.StatusCode != http.StatusOK || p.body != a.body {
			t.Errorf("a part of another file: %d", p.StatusCode)
		}
		p := v.ask(t, http.MethodGet, e.Path, "Range", "bytes=999999999-")
		if p.StatusCode != http.StatusRequestedRangeNotSatisfiable || !strings.Contains(p.body, `"RANGE_NOT_SATISFIABLE"`) || p.Header.Get("Content-Type") != "application/problem+json" ||
			p.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("bytes after the end: %d %s %v", p.StatusCode, p.body, p.Header)
		}
	}
}

// TestTheBucketIsSpared counts the questions to the bucket: one list for many requests, and one reader for each response with content.
func TestTheBucketIsSpared(t *testing.T) {
	v := newVenue(t)
	all := v.list(t, "?table=trades&to=2026-11-24")
	path, tag := all[0].Path, `"`+*all[0].SHA256+`"`
	lists, begin := v.files.lists.Load(), time.Now()
	for _, c := range []struct {
		headers []string
		status  int
		opens   int64
	}{
		{nil, 200, 1},
		{[]string{"Range", "bytes=8-15"}, 206, 1},
		{[]string{"Range", "bytes=" + strings.Repeat("4-5,", 2000) + "4-5"}, 200, 1},
		{[]string{"Range", "items=8-15"}, 200, 1}, // RFC 9110, 14.2: a unit that is not understood is ignored
		{[]string{"Range", "bytes=-0"}, 200, 1},
		{[]string{"Range", "bytes=-00 "}, 200, 1},
		{[]string{"Range", "bytes=-10"}, 206, 1},
		{[]string{"Range", "bytes=0-0"}, 206, 1},
		{[]string{"If-None-Match", tag}, 304, 0},
		{[]string{"If-Match", tag}, 200, 1},
		{[]string{"If-Match", `"other"`}, 412, 0},
		{[]string{"Range", "bytes=999999999-"}, 416, 0},
		{[]string{"Range", "bytes=8-15", "If-Range", tag}, 206, 1},
	} {
		before := v.files.opens.Load()
		a := v.ask(t, http.MethodGet, path, c.headers...)
		if opens := v.files.opens.Load() - before; a.StatusCode != c.status || opens != c.opens {
			t.Errorf("%.60q: %d, with %d readers", c.headers, a.StatusCode, opens)
		}
		if c.status == 412 && (!strings.Contains(a.body, `"FILE_DIFFERS"`) || a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("ETag") != "") {
			t.Errorf("%.60q: %s %v", c.headers, a.body, a.Header)
		}
		if c.status == 200 && int64(len(a.body)) != *all[0].Bytes {
			t.Errorf("%.60q: %d bytes", c.headers, len(a.body))
		}
	}
	if n, most := v.files.lists.Load()-lists, 1+int64(time.Since(begin)/(2*time.Second)); n > most { // the days are recent for two seconds
		t.Errorf("the bucket listed the days %d times, want at most %d", n, most)
	}
}

// TestDownloadsOfANetwork: a network has a bounded number of downloads, which leaves some to others.
func TestDownloadsOfANetwork(t *testing.T) {
	v := newVenue(t)
	path := v.list(t, "?table=trades&to=2026-11-24")[0].Path
	v.files.hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(v.files.hold) })
	defer release()
	get := func(address string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("X-Forwarded-For", address)
		v.server.ServeHTTP(w, r)
		return w
	}
	var downloads sync.WaitGroup
	download := func(address string) {
		downloads.Go(func() {
			if w := get(address); w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", address, w.Code, w.Body)
			}
		})
	}
	opened := func(want int64) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); v.files.opens.Load() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d files are open, want %d", v.files.opens.Load(), want)
			}
		}
	}
	const most = 64
	for range most {
		download("2001:db8::1")
	}
	opened(most)
	refused := make(chan *httptest.ResponseRecorder, 1)
	go func() { refused <- get("2001:db8::2") }()
	select {
	case w := <-refused:
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"DOWNLOADS_BUSY"`) || w.Header().Get("ETag") != "" || w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("one more than the network may have: %d %s", w.Code, w.Body)
		}
	case <-time.After(time.Minute):
		t.Fatalf("one more than the network may have is not refused, and %d files are open", v.files.opens.Load())
	}
	download("2001:db8:0:1::1")
	opened(most + 1)
	release()
	downloads.Wait()
	download("2001:db8::2")
	downloads.Wait()
}

// unwritable is a response whose client has gone.
type unwritable struct{ *httptest.ResponseRecorder }

func (unwritable) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestDownloadsEnd: however a request ends, its download does not count any more. Each case has more requests than a network may have
// at the same time.
func TestDownloadsEnd(t *testing.T) {
	v := newVenue(t)
	first := v.list(t, "?table=trades&to=2026-11-24")[0]
	for name, c := range map[string]struct {
		method, header, value string
		gone                  bool
		instead               func() error
		status                int
	}{
		"whole":           {status: 200},
		"head":            {method: http.MethodHead, status: 200},
		"range":           {header: "Range", value: "bytes=8-15", status: 206},
		"known":           {header: "If-None-Match", value: `"` + *first.SHA256 + `"`, status: 304},
		"another":         {header: "If-Match", value: `"other"`, status: 412},
		"after the end":   {header: "Range", value: "bytes=999999999-", status: 416},
		"client has gone": {gone: true, status: 200},
		"lost":            {instead: func() error { return io.ErrUnexpectedEOF }, status: 503},
		"panic":           {instead: func() error { panic("the bucket") }, status: 500},
	} {
		v.files.instead = c.instead
		for range 65 {
			r, w := httptest.NewRequestWithContext(t.Context(), cmp.Or(c.method, http.MethodGet), first.Path, nil), httptest.NewRecorder()
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			if c.gone {
				v.server.ServeHTTP(unwritable{w}, r)
			} else {
				v.server.ServeHTTP(w, r)
			}
			if w.Code != c.status || strings.Contains(w.Body.String(), "DOWNLOADS_BUSY") {
				t.Fatalf("%s: %d %s", name, w.Code, w.Body)
			}
		}
	}
}

// TestListIsFiltered filters by table and date.
func TestListIsFiltered(t *testing.T) {
	v := newVenue(t)
	for query, want := range map[string]int{"?table=trades": 3, "?table=trades|books": 6, "?from=2026-11-26": 8, "?to=2026-11-26": 8, "?from=2026-11-25&to=2026-11-25": 0,
		"?table=prices&from=2026-11-24&to=2026-11-24": 1} {
		if all := v.list(t, query); len(all) != want {
			t.Errorf("%s has %d files, not %d", query, len(all), want)
		}
	}
	tag := v.ask(t, http.MethodGet, "/data/").Header.Get("ETag")
	if a := v.ask(t, http.MethodGet, "/data/", "If-None-Match", tag); a.StatusCode != http.StatusNotModified {
		t.Errorf("the same list: %d", a.StatusCode)
	}
}

// TestADayIsNotMadeYet: only a node that knows the day of the next record can tell a day without records from one whose files are
// being made.
func TestADayIsNotMadeYet(t *testing.T) {
	v := newVenue(t)
	const quiet = "/data/trades/2026-11-27.parquet"
	if a := v.ask(t, http.MethodGet, quiet); a.StatusCode != 404 || !strings.Contains(a.body, "DATA_NOT_FOUND") || a.Header.Get("Retry-After") != "" {
		t.Errorf("a day without records: %d %s", a.StatusCode, a.body)
	}
	v.behind = true
	if a := v.ask(t, http.MethodGet, quiet); a.StatusCode != 404 || !strings.Contains(a.body, "DATA_NOT_MADE") || a.Header.Get("Retry-After") == "" {
		t.Errorf("a day that may have records: %d %s", a.StatusCode, a.body)
	}
	if a := v.ask(t, http.MethodGet, "/data/trades/2026-11-25.parquet"); !strings.Contains(a.body, "DATA_NOT_FOUND") {
		t.Errorf("a day between two published ones: %s", a.body)
	}
	v.behind = false
	found, err := v.files.List(t.Context(), v.days+"2026-11-26")
	must(t, err)
	must(t, v.files.Delete(t.Context(), found[0].Key))
	v.open()
	if a := v.ask(t, http.MethodGet, "/data/trades/2026-11-26.parquet"); a.StatusCode != 404 || !strings.Contains(a.body, "DATA_NOT_MADE") {
		t.Errorf("a day with records and without files: %d %s", a.StatusCode, a.body)
	}
	if a := v.ask(t, http.MethodGet, "/data/trades/2026-11-25.parquet"); a.StatusCode != 404 || !strings.Contains(a.body, "DATA_NOT_FOUND") {
		t.Errorf("a day without records before it: %d %s", a.StatusCode, a.body)
	}
	v.rowsErr = errors.New("Postgres is away")
	if a := v.ask(t, http.MethodGet, quiet); a.StatusCode != 503 || !strings.Contains(a.body, "DATA_UNAVAILABLE") {
		t.Errorf("without Postgres: %d %s", a.StatusCode, a.body)
	}
}

// TestProblems asks for what is not there.
func TestProblems(t *testing.T) {
	v := newVenue(t)
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/data/orders/2026-11-24.parquet", 404, "the tables are trades, funding_rates, prices, books"},
		{"/data/trades/2026-11-24", 400, "a date and .parquet"},
		{"/data/trades/2026-02-29.parquet", 400, "a date and .parquet"},
		{"/data/trades/2026-11-24.csv", 400, `"field":"file"`},
		{"/data/trades/..%2f..%2fkeys.parquet", 400, "INVALID_VALUE"},
		{"/data/trades/2026-11-24.parquet?as_of=trading/0@1", 400, "as_of"},
		{"/data/trades/2026-11-23.parquet", 404, "The first day with files is 2026-11-24"},
		{"/data/trades/2026-11-25.parquet", 404, "no records of 2026-11-25"},
		{"/data/trades/2026-11-27.parquet", 404, "DATA_NOT_FOUND"},
		{"/data/trades/2026-11-27.parquet", 404, "no records of 2026-11-27"},
		{"/data/trades/2099-01-01.parquet", 404, "DATA_DAY_NOT_OVER"},
		{"/data/?table=orders", 400, `"field":"table"`},
		{"/data/?from=yesterday&to=2026-13-01", 400, `"field":"to"`},
		{"/data/?page=1", 400, `"field":"page"`},
		{"/data/trades/", 404, "NOT_FOUND"},
	} {
		a := v.ask(t, http.MethodGet, c.path)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s answers %d %s", c.path, a.StatusCode, a.body)
		}
	}
	days, err := v.store.Days(t.Context())
	must(t, err)
	found, err := v.files.List(t.Context(), "data/")
	must(t, err)
	for _, o := range found {
		if strings.Contains(o.Key, "/trades/"+days[0].Date) {
			must(t, v.files.Delete(t.Context(), o.Key))
		}
	}
	lost := v.ask(t, http.MethodGet, "/data/trades/"+days[0].Date+".parquet")
	v.err = errors.New("the log is away")
	away := v.ask(t, http.MethodGet, "/data/")
	for _, a := range []answer{lost, away} {
		if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("ETag") != "" || a.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, "DATA_UNAVAILABLE") || a.Header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	v.store, v.err = nil, nil
	if all := v.list(t, "?to=2026-11-27"); len(all) != 0 {
		t.Errorf("without a log, the files are %+v", all)
	}
}

// TestNoMoreFiles has a venue whose files are no longer made. It serves the earlier ones, and promises none.
func TestNoMoreFiles(t *testing.T) {
	v := newVenueThat(t, false)
	all := v.list(t, "")
	if len(all) != 2*len(dataset.PublicTables()) {
		t.Errorf("the files are %+v", all)
	}
	for _, e := range all {
		if a := v.ask(t, http.MethodGet, e.Path); !e.Final || a.StatusCode != http.StatusOK {
			t.Errorf("%+v answers %d", e, a.StatusCode)
		}
	}
	for _, date := range []string{"2026-11-23", "2026-11-27", "2026-11-28", "2026-11-29"} {
		a := v.ask(t, http.MethodGet, "/data/trades/"+date+".parquet")
		if a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "makes no daily files now") || a.Header.Get("Retry-After") != "" {
			t.Errorf("%s answers %d %s", date, a.StatusCode, a.body)
		}
	}
}

// TestPagesMayRead has a page of another origin read a file.
func TestPagesMayRead(t *testing.T) {
	v := newVenue(t)
	a := v.ask(t, http.MethodGet, "/data/trades/2026-11-24.parquet", "Origin", "https://charts.example", "Range", "bytes=0-3")
	if a.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Content-Range") {
		t.Errorf("%v", a.Header)
	}
	p := v.ask(t, http.MethodOptions, "/data/trades/2026-11-24.parquet", "Origin", "https://charts.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "range")
	if p.StatusCode != http.StatusNoContent || !strings.Contains(p.Header.Get("Access-Control-Allow-Headers"), "Range") {
		t.Errorf("%d %v", p.StatusCode, p.Header)
	}
}
