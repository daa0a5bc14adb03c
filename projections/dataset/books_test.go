package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// booksOf returns the books before the first record of a journal, or nil.
func booksOf(journal string) *Books {
	if HasBooks(journal) {
		return NewBooks()
	}
	return nil
}

// slowly returns the entries with their times so far apart that a second has about ten records.
func slowly(entries []record.Entry) (all []record.Entry) {
	first := entries[0].Record.Time
	for _, e := range entries {
		r := *e.Record
		r.Time = first + (r.Time-first)*100
		e.Record = &r
		all = append(all, e)
	}
	return all
}

// market plays a random market with stops, settlements, and fast prices.
func market(t testing.TB, seed uint64) []record.Entry {
	t.Helper()
	o := projectiontest.NewOwner(t, seed)
	o.Play(300)
	for hour := range 9 {
		o.PassHour()
		o.Jolt(int64(hour%3-1) * 100)
		o.Play(20)
		o.PlaceStops(2)
	}
	return o.Entries
}

// sideOf is the text of one side of a book: its best levels.
func sideOf(levels []trading.Level, orders map[string]int64) (all string) {
	if len(levels) == 0 {
		return "none 0 0;"
	}
	for _, l := range levels {
		all += fmt.Sprint(l.Price.Trim(), " ", l.Amount.Trim(), " ", orders[l.Price.Trim().String()], ";")
	}
	return all
}

// bookIn returns the text of a book in a state. It counts the orders of all customers.
func bookIn(s *trading.State, symbol string) string {
	orders := map[order.Action]map[string]int64{order.Buy: {}, order.Sell: {}}
	holders := []string{"insurance-fund"}
	for _, c := range s.CustomersOf("") {
		holders = append(holders, c.Code)
	}
	for _, holder := range holders {
		for _, o := range s.OpenOrders(holder) {
			if o.Symbol == symbol && !o.LimitPrice.IsZero() && (o.TriggerPriceType == "" || !o.Triggered.IsZero()) {
				orders[o.Action][o.LimitPrice.Trim().String()]++
			}
		}
	}
	bids, asks := s.Depth(symbol, depth)
	return sideOf(bids, orders[order.Buy]) + "/" + sideOf(asks, orders[order.Sell])
}

// bookOf returns the text of a book in rows.
func bookOf(t testing.TB, rows []bookRow) (all string) {
	t.Helper()
	side, n := "bid", int64(0)
	for _, r := range rows {
		if r.Side != side {
			side, n = r.Side, 0
			all += "/"
		}
		if n++; r.Level != n || r.Second != r.Time-r.Time%scalar.Second {
			t.Errorf("a row has the level %d and not %d, and the second %v of the time %v", r.Level, n, r.Second, r.Time)
		}
		price := "none"
		if r.Price != (number{}) {
			price = decimalOf(t, r.Price)
		}
		all += fmt.Sprint(price, " ", decimalOf(t, r.Amount), " ", r.Orders, ";")
	}
	return all
}

func decimalOf(t testing.TB, n number) string {
	t.Helper()
	whole, rest := n.wide().DivMod(1e10)
	coef, ok := whole.Int64()
	if !ok || rest != 0 {
		t.Fatalf("%v has more than 8 decimals", rational(n))
	}
	return fixed.Decimal{Coef: coef, Scale: 8}.Trim().String()
}

// TestBooks compares the books at the end of every second with those of a fold from the first record on. A book without rows has not
// changed. The files come from several runs.
func TestBooks(t *testing.T) {
	for seed := range uint64(3) {
		entries := market(t, seed)
		slow := slowly(entries)
		cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
		for _, n := range []int{short / 2, 3*short + 1, 5 * short, len(slow)} {
			mustWrite(t, cfg, slow[:n])
		}
		written := map[string][]bookRow{}
		for _, r := range rowsOf[bookRow](t, cfg.Dir, booksTable) {
			key := fmt.Sprint(r.Sequence, r.Symbol)
			written[key] = append(written[key], r)
		}
		state, shown, seconds, emptied := trading.NewState(), map[string]string{}, 0, 0
		for i, e := range entries {
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			at := slow[i].Record
			if i+1 < len(slow) && (i+1)%short != 0 && secondOf(slow[i+1].Record.Time) == secondOf(at.Time) {
				continue
			}
			seconds++
			for _, symbol := range projectiontest.Symbols() {
				key := fmt.Sprint(at.Sequence, symbol)
				rows, changed := written[key]
				if changed {
					before := shown[symbol]
					shown[symbol] = bookOf(t, rows)
					if before == shown[symbol] || rows[0].Time != at.Time {
						t.Errorf("the rows at record %d (%v) of %s do not differ from those before, or have the time %v", at.Sequence, at.Time, symbol, rows[0].Time)
					}
					if before != "" && slices.ContainsFunc(rows, func(r bookRow) bool { return r.Price == number{} }) {
						emptied++
					}
					delete(written, key)
				}
				want := bookIn(state, symbol)
				if shown[symbol] == "" && want == "none 0 0;/none 0 0;" {
					continue // nothing has rested yet
				}
				if shown[symbol] != want {
					t.Fatalf("seed %d: after record %d, the book of %s is\n%s in the files, and\n%s in the fold", seed, at.Sequence, symbol, shown[symbol], want)
				}
			}
		}
		if len(written) > 0 || seconds < 60 || emptied == 0 {
			t.Errorf("%d seconds, %d emptied sides; rows within a second: %v", seconds, emptied, slices.Collect(maps.Keys(written)))
		}
	}
}

// TestBooksWhileAnOrderTrades compares the books with those of a fold after every record, while an order trades in several records. Between
// two of them it is in no book, also if its work is set aside. Then an instrument is withdrawn. Between the
// records of the order the books are saved and loaded.
func TestBooksWhileAnOrderTrades(t *testing.T) {
	for _, aside := range []bool{false, true} {
		o := projectiontest.NewOwner(t, 7)
		o.Play(100)
		o.Sweep(false, aside)
		delisted := o.Delist()
		o.Play(20)
		b, state, steps := NewBooks(), trading.NewState(), 0
		for i := range o.Entries {
			e := &o.Entries[i]
			must(t, b.Add(e))
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			if !b.taker.IsZero() {
				steps++
			}
			if !b.taker.IsZero() || len(b.aside) > 0 || i%50 == 0 {
				content, err := b.Save()
				must(t, err)
				b, err = LoadBooks(content)
				must(t, err)
			}
			for _, symbol := range append(projectiontest.Symbols(), delisted) {
				if got, want := levelsOf(t, b.books[symbol]), depthOf(state, symbol); got != want {
					t.Fatalf("set aside %v: after record %d, the book of %s is\n%s, and in the fold\n%s", aside, i, symbol, got, want)
				}
			}
		}
		if steps < 2 {
			t.Errorf("set aside %v: only %d records leave an order that continues", aside, steps)
		}
	}
}

// levelsOf and depthOf return the text of the best levels of a book and of those in a state.
func levelsOf(t testing.TB, b *book) (all string) {
	t.Helper()
	if b == nil {
		return "//"
	}
	for _, side := range [][]level{b.best().bids, b.best().asks} {
		for _, l := range side {
			all += fmt.Sprint(decimalOf(t, l.price.Bytes()), " ", decimalOf(t, l.amount.Bytes()), ";")
		}
		all += "/"
	}
	return all
}

func depthOf(s *trading.State, symbol string) (all string) {
	bids, asks := s.Depth(symbol, depth)
	for _, side := range [][]trading.Level{bids, asks} {
		for _, l := range side {
			all += fmt.Sprint(l.Price.Trim(), " ", l.Amount.Trim(), ";")
		}
		all += "/"
	}
	return all
}

// TestSavedBooks saves the books after every record and loads them. Loaded books make the same rows.
func TestSavedBooks(t *testing.T) {
	entries := market(t, 4)
	b := NewBooks()
	for i := range entries {
		must(t, b.Add(&entries[i]))
		if i%17 > 0 {
			continue
		}
		content, err := b.Save()
		must(t, err)
		loaded, err := LoadBooks(content)
		must(t, err)
		again, err := loaded.Save()
		must(t, err)
		if !bytes.Equal(content, again) || !loaded.Position().Equal(b.Position()) || loaded.Next() != int64(i)+1 {
			t.Fatalf("after record %d, the loaded books are at %v and not at %v, or have other orders", i, loaded.Position(), b.Position())
		}
		for symbol, of := range b.books {
			if got := loaded.books[symbol]; got == nil && len(of.levels()) > 0 || got != nil && !slices.Equal(got.levels(), of.levels()) {
				t.Fatalf("after record %d, the loaded book of %s differs", i, symbol)
			}
		}
		b = loaded
	}
	if len(b.orders) == 0 {
		t.Error("no order rests at the end")
	}
}

// TestABrokenEndOfSavedBooks cuts saved books at every byte. What is left is not loaded.
func TestABrokenEndOfSavedBooks(t *testing.T) {
	b := NewBooks()
	for n := range int64(50) {
		b.put(scalar.ID{byte(n)}, &resting{b.book("X"), n%2 == 0, false, fixed.WideOf(n + 1), fixed.WideOf(7)})
	}
	content, err := b.Save()
	must(t, err)
	for n := range content {
		if _, err := LoadBooks(content[:n]); err == nil {
			t.Errorf("%d of %d bytes are loaded", n, len(content))
		}
	}
}

// FuzzLoadBooks loads anything. What it accepts is saved as books that are loaded as the same.
func FuzzLoadBooks(f *testing.F) {
	b := NewBooks()
	b.put(scalar.ID{1}, &resting{b.book("X"), true, false, fixed.WideOf(5), fixed.WideOf(7)})
	b.next = 3
	content, err := b.Save()
	must(f, err)
	f.Add(content)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		b, err := LoadBooks(content)
		if err != nil {
			return
		}
		saved, err := b.Save()
		must(t, err)
		again, err := LoadBooks(saved)
		if err != nil || len(again.orders) != len(b.orders) || !again.Position().Equal(b.Position()) {
			t.Errorf("saved again: %v", err)
		}
	})
}

// TestRunsContinueTheBooks loses or damages the saved books, and deletes files before them. The next run asks for the records that it
// needs, and writes the same files.
func TestRunsContinueTheBooks(t *testing.T) {
	entries := slowly(market(t, 5))
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short, From: -1}
	mustWrite(t, cfg, entries)
	want := contents(t, cfg.Dir)
	full := int64(len(entries)) / short * short
	saved, err := os.ReadFile(cfg.booksFile())
	must(t, err)
	earlier := NewBooks()
	for i := range 2 * short {
		must(t, earlier.Add(&entries[i]))
	}
	older, err := earlier.Save()
	must(t, err)
	earlier.hash[0]++
	other, err := earlier.Save()
	must(t, err)
	for what, c := range map[string]struct {
		saved []byte // nil for none
		lost  int64  // first record of a range without books; -1 for none
		after int64  // the record after which the run continues
	}{
		"nothing":       {saved, -1, full - 1},
		"lost":          {nil, -1, -1},
		"damaged":       {saved[:len(saved)-1], -1, -1},
		"older":         {older, -1, 2*short - 1},
		"of other logs": {other, -1, -1},
		"a lost range":  {saved, short, -1},
	} {
		must(t, os.Remove(cfg.booksFile()))
		if c.saved != nil {
			must(t, os.WriteFile(cfg.booksFile(), c.saved, 0o600))
		}
		if c.lost >= 0 {
			must(t, os.Remove(cfg.path(booksTable, c.lost)))
		}
		w, err := NewWriter(cfg)
		must(t, err)
		if after, known := w.After(); after.Sequence != c.after || !known {
			t.Errorf("%s: the run continues after record %d (%v), not %d", what, after.Sequence, known, c.after)
		}
		written := int64(len(entries)) - full
		if c.lost >= 0 {
			written = int64(len(entries)) - c.lost
		}
		if s := mustWrite(t, cfg, entries); s.Records != written {
			t.Errorf("%s: %+v, not %d records", what, s, written)
		}
		if got := contents(t, cfg.Dir); !maps.Equal(got, want) {
			t.Errorf("%s: other files", what)
		}
		must(t, os.WriteFile(cfg.booksFile(), saved, 0o600))
	}
	must(t, os.RemoveAll(filepath.Join(cfg.Dir, booksTable))) // as in a folder of a build without the table
	if s := mustWrite(t, cfg, entries); s.Records != int64(len(entries)) || !maps.Equal(contents(t, cfg.Dir), want) {
		t.Errorf("a folder without books: %+v, or other files", s)
	}
	must(t, os.Remove(cfg.booksFile()))
	var diverged *DivergedError
	if _, err := write(cfg, entries[:2*short]); !errors.As(err, &diverged) {
		t.Errorf("from a log that ends before the files: %v", err)
	}
}

// TestReadingForTheBooksContinues interrupts a run that reads the log again because the saved books are lost. The next one continues.
func TestReadingForTheBooksContinues(t *testing.T) {
	const few = 4
	entries := market(t, 8)[:(SaveEvery+3)*few]
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: few}
	mustWrite(t, cfg, entries)
	want := contents(t, cfg.Dir)
	must(t, os.Remove(cfg.booksFile()))
	w, err := NewWriter(cfg)
	must(t, err)
	for i := range SaveEvery*few + 3 {
		must(t, w.Add(&entries[i]))
	}
	w.Abandon()
	w, err = NewWriter(cfg)
	must(t, err)
	if after, known := w.After(); after.Sequence != SaveEvery*few-1 || !known {
		t.Errorf("the next run continues after record %d (%v)", after.Sequence, known)
	}
	if mustWrite(t, cfg, entries); !maps.Equal(contents(t, cfg.Dir), want) {
		t.Error("other files")
	}
}

// TestNoBooksWithoutAState leaves the table out of a folder that begins later than the log.
func TestNoBooksWithoutAState(t *testing.T) {
	entries := market(t, 6)
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short, From: short}
	mustWrite(t, cfg, entries)
	mustWrite(t, cfg, entries)
	if _, err := os.Stat(filepath.Join(cfg.Dir, booksTable)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are books: %v", err)
	}
	if _, err := NewRange("trading", short, short, NewBooks()); err == nil {
		t.Error("a range begins with the books of another one")
	}
}

// TestTriggersOfRules1 has an order that rests after its trigger, and whose later states do not say so.
func TestTriggersOfRules1(t *testing.T) {
	stop := order.Order{Code: scalar.ID{1}, Symbol: "X", Action: order.Sell, Status: order.Open, LimitPrice: fixed.Decimal{Coef: 7},
		Amount: fixed.Decimal{Coef: 3}, TriggerPrice: fixed.Decimal{Coef: 8}, TriggerPriceType: "mark_price"}
	filled := stop
	filled.Status, filled.FilledAmount = order.PartiallyFilled, fixed.Decimal{Coef: 1}
	b := NewBooks()
	for i, step := range []struct {
		events []decide.Event
		want   int64 // amount that rests
	}{
		{[]decide.Event{&trading.OrderOpened{Order: stop}}, 0},
		{[]decide.Event{&trading.TriggerFired{OrderCode: stop.Code}, &trading.OrderOpened{Order: stop}}, 3},
		{[]decide.Event{&trading.OrderOpened{Order: filled}}, 2},
	} {
		must(t, b.Add(&record.Entry{Record: &record.Record{Sequence: int64(i), Time: 5, Events: step.events}}))
		got := int64(0)
		for _, l := range b.books["X"].levels() {
			n, _ := l.amount.DivMod(1e18)
			amount, _ := n.Int64()
			got += amount
		}
		if got != step.want {
			t.Errorf("after record %d, %d rest", i, got)
		}
	}
}

// levels returns the levels of both sides. The book may be nil.
func (b *book) levels() (all []level) {
	if b == nil {
		return nil
	}
	add := func(l level) bool {
		all = append(all, l)
		return true
	}
	b.bids.levels.Ascend(add)
	b.asks.levels.Ascend(add)
	return all
}

// TestTheBestTwentyLevels opens two orders at each of thirty prices of both sides, in random order, and cancels the best bid.
func TestTheBestTwentyLevels(t *testing.T) {
	var events []decide.Event
	for n := range int64(60) {
		price := n*17%60 + 1 // 1 to 30 are bids
		action := order.Buy
		if price > 30 {
			action = order.Sell
		}
		for i := range byte(2) {
			o := order.Order{Code: scalar.ID{byte(price), i}, Symbol: "X", Action: action, Status: order.Open, LimitPrice: fixed.Decimal{Coef: price},
				Amount: fixed.Decimal{Coef: price, Scale: 1}}
			events = append(events, &trading.OrderOpened{Order: o})
		}
	}
	for i := range byte(2) {
		events = append(events, &trading.OrderOpened{Order: order.Order{Code: scalar.ID{30, i}, Symbol: "X", Action: order.Buy, Status: order.Canceled,
			LimitPrice: fixed.Decimal{Coef: 30}, Amount: fixed.Decimal{Coef: 3}}})
	}
	cfg := Config{Dir: t.TempDir(), Journal: "trading", Range: short}
	mustWrite(t, cfg, []record.Entry{{Record: &record.Record{Events: events}}})
	want := ""
	for n := range 20 {
		want += fmt.Sprint(29-n, " ", fixed.Decimal{Coef: int64(2 * (29 - n)), Scale: 1}.Trim(), " 2;")
	}
	want += "/"
	for n := range 20 {
		want += fmt.Sprint(31+n, " ", fixed.Decimal{Coef: int64(2 * (31 + n)), Scale: 1}.Trim(), " 2;")
	}
	if got := bookOf(t, rowsOf[bookRow](t, cfg.Dir, booksTable)); got != want {
		t.Errorf("the book is %s, not %s", got, want)
	}
}
