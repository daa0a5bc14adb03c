package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// fields are the members of a JSON object as text: strings without quotes, null as "null", everything else as it was
// written. So two sources agree only if they agree to the digit.
type fields map[string]string

func (f *fields) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	*f = make(fields, len(members))
	for name, m := range members {
		var s string
		if m[0] != '"' || json.Unmarshal(m, &s) != nil {
			s = string(m)
		}
		(*f)[name] = s
	}
	return nil
}

// has fails the test unless the members have these values, given in pairs. Two values of nothing agree.
func (f fields) has(t testing.TB, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if f[pairs[i]] != pairs[i+1] {
			t.Errorf("%s is %q, want %q, in %v", pairs[i], f[pairs[i]], pairs[i+1], f)
		}
	}
}

// logged is a record of the log, read without any code of the engine.
type logged struct {
	Sequence int64
	Prev     string
	Time     string
	Command  struct{ ID, Type string }
	Outcome  string
	Events   []struct {
		Type string
		Data eventData
	}
}

// eventData is what an event says: its members as text, and once more those that are objects.
type eventData struct {
	fields
	taker, maker fields
	postings     []fields
}

func (d *eventData) UnmarshalJSON(raw []byte) error {
	var deep struct {
		Taker, Maker fields
		Postings     []fields
	}
	if err := json.Unmarshal(raw, &deep); err != nil {
		return err
	}
	d.taker, d.maker, d.postings = deep.Taker, deep.Maker, deep.Postings
	return json.Unmarshal(raw, &d.fields)
}

// readLog reads the trading journal with `perpetua log`.
func readLog(t testing.TB, d *desk) []logged {
	t.Helper()
	return parseLog(t, d.records("trading"))
}

func parseLog(t testing.TB, lines []string) (out []logged) {
	t.Helper()
	for _, line := range lines {
		var r logged
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("record %s: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

// fromLog is what the log says that everybody must have been told, in the order of the log and in the form of the
// REST interface.
type fromLog struct {
	orders       []fields // every state of every order
	trades       []fields // every side of every trade
	marketTrades []fields
	transactions []fields // every state of every row
	liquidations []fields
}

func tell(records []logged) (out fromLog) {
	for _, r := range records {
		trades := 0
		for _, e := range r.Events {
			switch d := e.Data; {
			case strings.HasPrefix(e.Type, "order."):
				out.orders = append(out.orders, toldOrder(r, d.fields))
			case e.Type == "trade.executed":
				out.marketTrades = append(out.marketTrades, fields{"code": d.fields["code"], "symbol": d.fields["symbol"], "price": d.fields["price"],
					"amount": d.fields["amount"], "action": d.fields["action"], "type": d.fields["type"], "timestamp": r.Time, "sequence": fmt.Sprint(r.Sequence), "ordinal": fmt.Sprint(trades)})
				out.trades = append(out.trades, toldTrade(r, trades, d.fields, d.taker, "taker"), toldTrade(r, trades, d.fields, d.maker, "maker"))
				trades++
				if kind := liquidationKind(d); kind != "" {
					out.liquidations = append(out.liquidations, fields{"symbol": d.fields["symbol"], "side": d.fields["action"], "amount": d.fields["amount"],
						"price": d.fields["price"], "kind": kind, "timestamp": r.Time, "sequence": fmt.Sprint(r.Sequence)})
				}
				out.transactions = append(out.transactions, toldPostings(r, d)...)
			case e.Type == "funding.posted":
				for _, row := range toldPostings(r, d) {
					row["funding_rate"], row["position_amount"], row["mark_price"] = d.fields["funding_rate"], d.fields["position_amount"], d.fields["mark_price"]
					out.transactions = append(out.transactions, row)
				}
			case e.Type == "settlement.posted", e.Type == "insurance.paid":
				out.transactions = append(out.transactions, toldPostings(r, d)...)
			case strings.HasPrefix(e.Type, "deposit."), strings.HasPrefix(e.Type, "withdrawal."):
				out.transactions = append(out.transactions, toldTransfer(r, d.fields))
			}
		}
	}
	return out
}

func toldOrder(r logged, data fields) fields {
	o := fields{"sequence": fmt.Sprint(r.Sequence)}
	for name, v := range data {
		o[name] = v
	}
	delete(o, "broker")
	delete(o, "leverage") // for who verifies a refusal
	for _, name := range []string{"limit_price", "trigger_price", "stop_loss_price", "take_profit_price", "triggered", "average_fill_price", "expire_time", "reason"} {
		if o[name] == "" {
			o[name] = "null"
		}
	}
	return o
}

func toldTrade(r logged, ordinal int, trade, side fields, role string) fields {
	action := trade["action"]
	if role == "maker" {
		action = map[string]string{"buy": "sell", "sell": "buy"}[action]
	}
	kind := trade["type"]
	if role == "maker" && kind == "liquidation" { // to whom it was a trade like any other
		kind = "trade"
	}
	return fields{"code": trade["code"], "order_code": orNull(side["order_code"]), "customer_code": side["customer_code"], "symbol": trade["symbol"],
		"action": action, "price": trade["price"], "amount": trade["amount"], "notional": trade["notional"], "fee": side["fee"],
		"fee_currency": "USDC", "role": role, "type": kind, "reference_id": orNull(side["reference_id"]), "timestamp": r.Time,
		"sequence": fmt.Sprint(r.Sequence), "ordinal": fmt.Sprint(ordinal)}
}

// liquidationKind says how a trade closed a position for its account; "" if it did not.
func liquidationKind(d eventData) string {
	switch kind := d.fields["type"]; {
	case kind == "liquidation" && d.taker["order_code"] == "":
		return "takeover"
	case kind == "liquidation", kind == "auto_deleveraging":
		return kind
	}
	return ""
}

// toldPostings are the rows that an event's postings make on customers' accounts.
func toldPostings(r logged, d eventData) (rows []fields) {
	for _, p := range d.postings {
		if p["customer_code"] != "" {
			rows = append(rows, toldPosting(r, p))
		}
	}
	return rows
}

// orNull is a member that is null where the log leaves it out.
func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

func toldPosting(r logged, p fields) fields {
	return fields{"id": rowID(p), "code": p["code"], "customer_code": p["customer_code"], "type": p["type"], "currency": p["currency"], "amount": p["amount"],
		"status": "completed", "balance": p["balance"], "balance_as_of": r.Time, "symbol": orNull(p["symbol"]), "order_code": orNull(p["order_code"]),
		"timestamp": r.Time, "sequence": fmt.Sprint(r.Sequence)}
}

func toldTransfer(r logged, d fields) fields {
	t := fields{"id": rowID(d), "reference_id": d["reference_id"], "code": d["code"], "customer_code": d["customer_code"], "type": d["type"], "currency": d["currency"], "amount": d["amount"],
		"status": d["status"], "symbol": "null", "order_code": "null", "timestamp": r.Time, "sequence": fmt.Sprint(r.Sequence)}
	if d["status"] == "completed" {
		t["balance"], t["balance_as_of"] = d["balance"], r.Time
	}
	return t
}

// rowID returns the id of a row of a customer's ledger: a UUID of version 8 made of the SHA-256 of its key.
func rowID(row fields) string {
	code := uuid.MustParse(row["code"])
	sum := sha256.Sum256([]byte(string(code[:]) + row["type"] + "\x00" + row["customer_code"]))
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id.String()
}

// without leaves members out.
func without(all []fields, names ...string) (out []fields) {
	for _, f := range all {
		f = maps.Clone(f)
		for _, name := range names {
			delete(f, name)
		}
		out = append(out, f)
	}
	return out
}

// last keeps the last of those with the same key, in the order in which the keys first came.
func last(all []fields, key ...string) []fields {
	at := make(map[string]int)
	var out []fields
	for _, f := range all {
		k := keyOf(f, key)
		if i, ok := at[k]; ok {
			out[i] = f
			continue
		}
		at[k] = len(out)
		out = append(out, f)
	}
	return out
}

func keyOf(f fields, key []string) string {
	var parts []string
	for _, k := range key {
		parts = append(parts, f[k])
	}
	return strings.Join(parts, " ")
}

// of keeps those of a customer.
func of(customer string, all []fields) (out []fields) {
	for _, f := range all {
		if f["customer_code"] == customer {
			out = append(out, f)
		}
	}
	return out
}

// same fails the test unless both lists say the same, in the same order.
func same(t testing.TB, what string, got, want []fields) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d of them, want %d\n got %v\nwant %v", what, len(got), len(want), got, want)
		return
	}
	for i := range want {
		for name := range union(got[i], want[i]) {
			g, w := got[i][name], want[i][name]
			if _, there := got[i][name]; g != w || !there {
				t.Errorf("%s: number %d: %s is %q, want %q\n got %v\nwant %v", what, i, name, g, w, got[i], want[i])
				return
			}
		}
	}
}

func union(a, b fields) map[string]bool {
	out := make(map[string]bool)
	for name := range a {
		out[name] = true
	}
	for name := range b {
		out[name] = true
	}
	return out
}

// pages reads a list with cursors page by page, two records at a time, in both directions: behind the last record
// and ahead of the first.
func (d *desk) pages(user, path string) []fields {
	d.t.Helper()
	type list struct {
		Records  []fields
		Metadata struct {
			HasNext     bool   `json:"has_next"`
			HasPrevious bool   `json:"has_previous"`
			Start       string `json:"start_cursor"`
			End         string `json:"end_cursor"`
		} `json:"response_metadata"`
	}
	get := func(parameter, cursor string) (l list) {
		query := "&page_size=2&sort=asc"
		if cursor != "" {
			query += "&" + parameter + "=" + url.QueryEscape(cursor)
		}
		d.must(200, user, http.MethodGet, path+query, nil).decode(d.t, &l)
		return l
	}
	var forward, backward []fields
	l := get("", "")
	for forward = l.Records; l.Metadata.HasNext; forward = append(forward, l.Records...) {
		l = get("after", l.Metadata.End)
	}
	for backward = l.Records; l.Metadata.HasPrevious; backward = slices.Concat(l.Records, backward) {
		l = get("before", l.Metadata.Start)
	}
	same(d.t, path+" from its end", backward, forward)
	return forward
}

// list reads a bare array.
func (d *desk) list(user, path string) (out []fields) {
	d.t.Helper()
	d.must(200, user, http.MethodGet, path, nil).decode(d.t, &out)
	return out
}

// rows reads rows that a query made into JSON objects.
func (d *desk) rows(query string, args ...any) (out []fields) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db := d.database()
	defer db.Close(ctx)
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			d.t.Fatal(err)
		}
		var f fields
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			d.t.Fatalf("%s: %v", text, err)
		}
		out = append(out, f)
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return out
}

// messages returns what a socket got on a channel, without what every message of it has.
func messages(c *livetest.Client, channel string) (out []fields) {
	for _, m := range c.On(channel) {
		f := fields(m.Fields())
		delete(f, "channel")
		if strings.HasPrefix(channel, "market-trades") {
			out = append(out, f)
			continue
		}
		delete(f, "type")
		rename := map[string]string{"order_type": "type", "trade_type": "type", "transaction_type": "type"}
		for from, to := range rename {
			if value, there := f[from]; there {
				f[to] = value
				delete(f, from)
			}
		}
		out = append(out, f)
	}
	return out
}

// verifyBytes reads a journal's topic with nothing but a Kafka client, and holds every record against the page that
// defines it: the chain, and the key, headers and timestamp, which are functions of the value. It returns the values.
func (d *desk) verifyBytes(journal string) (values []string) {
	d.t.Helper()
	topic := d.prefix + journal
	client, err := kgo.NewClient(kgo.SeedBrokers(d.Kafka...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		d.t.Fatal(err)
	}
	defer client.Close()
	end := int64(len(d.records(journal)))
	prev, id := strings.Repeat("0", 64), ""
	for sequence := int64(0); sequence < end; {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		fetches := client.PollFetches(ctx)
		cancel()
		if err := fetches.Err(); err != nil {
			d.t.Fatal(err)
		}
		for _, k := range fetches.Records() {
			var r logged
			if json.Unmarshal(k.Value, &r) != nil || r.Prev != prev {
				continue // not valid: every reader skips it
			}
			if r.Sequence != sequence {
				d.t.Fatalf("%s: sequence %d where %d belongs", topic, r.Sequence, sequence)
			}
			if sequence == 0 {
				id = r.Events[0].Data.fields["journal_id"]
			}
			d.checkEnvelope(journal, id, r, k)
			sum := sha256.Sum256(k.Value)
			prev = hex.EncodeToString(sum[:])
			values = append(values, string(k.Value))
			sequence++
		}
	}
	return values
}

func (d *desk) checkEnvelope(journal, id string, r logged, k *kgo.Record) {
	d.t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", r.Time)
	if err != nil {
		d.t.Fatal(err)
	}
	got := fmt.Sprintf("%s %d", k.Key, k.Timestamp.UnixMilli())
	want := fmt.Sprintf("%s/0 %d", journal, at.UnixMilli())
	for _, h := range []struct{ name, value string }{{"ce_specversion", "1.0"}, {"ce_id", fmt.Sprintf("%s/%d", id, r.Sequence)},
		{"ce_source", "/journals/" + journal + "/0"}, {"ce_type", r.Command.Type}, {"ce_time", r.Time}, {"content-type", "application/json"}} {
		want += " " + h.name + "=" + h.value
	}
	for _, h := range k.Headers {
		got += " " + h.Key + "=" + string(h.Value)
	}
	if got != want {
		d.t.Errorf("the record %d of %s has\n%s, want\n%s", r.Sequence, journal, got, want)
	}
}

// kcat returns a topic's values as kcat reads them, or false where there is no kcat.
func (d *desk) kcat(journal string) ([]string, bool) {
	d.t.Helper()
	path, ok := program.Find(d.t, "kcat")
	if !ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "-q", "-C", "-b", strings.Join(d.Kafka, ","), "-t", d.prefix+journal, "-p", "0",
		"-o", "beginning", "-e", "-f", "%s\n").Output()
	if err != nil {
		d.t.Fatalf("kcat: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), true
}

// desk is a client that reads what it wrote: its reads wait for the last of its writes.
type desk struct {
	*venue
	position string // of the last write to the trading journal
	// onboarded is that of the last write to the onboarding journal.
	onboarded string
}

// do is the venue's, with the position that reads have to wait for. A read that names none of its own is sent again while what
// it is made from has not come there: a busy machine may take longer than a read waits.
func (d *desk) do(user, method, path string, body any, headers ...string) answer {
	d.t.Helper()
	own := slices.Contains(headers, "X-Min-Log-Position")
	reads := method == http.MethodGet && (strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/orders"))
	if reads && d.position != "" {
		headers = append([]string{"X-Min-Log-Position", d.position}, headers...)
	}
	if method == http.MethodGet && strings.HasPrefix(path, "/api/v1/") && d.onboarded != "" {
		headers = append([]string{"X-Min-Log-Position", d.onboarded}, headers...)
	}
	var a answer
	send := func() bool {
		a = d.venue.do(user, method, path, body, headers...)
		return own || a.code() != "LOG_POSITION_NOT_REACHED"
	}
	waitFor(d.t, "what was written to be read", send)
	switch at := a.Header.Get("X-Log-Position"); {
	case method == http.MethodGet:
	case strings.HasPrefix(at, "trading/"):
		d.position = at
	case strings.HasPrefix(at, "onboarding/"):
		d.onboarded = at
	}
	return a
}

// folded waits until the node's fold, from which sockets are served, has all that was written to the trading journal.
func (d *desk) folded() {
	d.t.Helper()
	d.must(200, "", http.MethodGet, "/v1/tickers", nil)
}

// must is the venue's, with that position.
func (d *desk) must(status int, user, method, path string, body any, headers ...string) answer {
	d.t.Helper()
	a := d.insist(status, func() answer { return d.do(user, method, path, body, headers...) })
	if a.Status != status {
		d.t.Fatalf("%s %s as %s: %d, want %d: %s", method, path, user, a.Status, status, a.Body)
	}
	return a
}

// within runs a subtest whose failures are those of the requests in it.
func (d *desk) within(t *testing.T, name string, f func(t *testing.T)) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		outer := d.t
		d.t = t
		defer func() { d.t = outer }()
		f(t)
	})
}

// decode reads the body into out.
func (a answer) decode(t testing.TB, out any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, out); err != nil {
		t.Fatalf("answer %d %s: %v", a.Status, a.Body, err)
	}
}
