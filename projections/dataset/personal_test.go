package dataset

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// inFiles lists the texts of events that may be in the files: codes, states, kinds, and names of instruments, currencies and tenants.
var inFiles = map[string][]string{
	"trading": {"ledger.Posting.Account", "ledger.Posting.Currency", "ledger.Posting.CustomerCode", "ledger.Posting.Symbol", "ledger.Posting.Type",
		"ledger.Transaction.Broker", "order.Order.Action", "order.Order.Broker", "order.Order.CustomerCode", "order.Order.Reason", "order.Order.Status",
		"order.Order.Symbol", "order.Order.TimeInForce", "order.Order.TriggerPriceType", "order.Order.Type", "trading.DebtPosted.Broker",
		"trading.FundingFixed.Symbol", "trading.IndexUpdated.Symbol", "trading.InsurancePaid.Broker", "trading.PositionHeld.CustomerCode",
		"trading.PositionHeld.Symbol", "trading.PositionOpened.Broker", "trading.TradeExecuted.Action", "trading.TradeExecuted.Symbol", "trading.TradeExecuted.Type",
		"trading.TradeLeg.Broker", "trading.TradeLeg.CustomerCode"},
	"onboarding": {"decide.Actor.Broker", "onboarding.TriggerCreated.By", "onboarding.TriggerCreated.Status", "onboarding.TriggerMoved.Action",
		"onboarding.TriggerMoved.By", "onboarding.TriggerMoved.Outcome", "onboarding.TriggerMoved.Result", "onboarding.TriggerMoved.Status",
		"owner.Ref.Type"},
}

// marker is the text that a filler gives to each text of an event.
var marker = regexp.MustCompile(`marker-[A-Za-z0-9_.]+-`)

// fill gives every text in a value that is reached by exported fields a marker with its struct and name, and every list two elements.
func fill(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.String:
		v.SetString("marker-" + name + "-")
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("marker-" + name + "-"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			fill(v.Field(i), v.Type().String()+"."+f.Name)
		}
	}
}

// TestNoPersonalData writes a record with each event of each journal, whose texts and ciphertexts are all markers. Among the values in
// the files and in their metadata are only those of the list above, and all of these.
func TestNoPersonalData(t *testing.T) {
	for journal, rules := range map[string]decide.Rules{"trading": trading.Rules(), "onboarding": onboarding.Rules()} {
		cfg := Config{Dir: t.TempDir(), Journal: journal, Range: short}
		w, err := NewWriter(cfg)
		must(t, err)
		var entries []*record.Entry
		n := int64(0)
		for _, s := range rules.Registry().Shapes() {
			if s.New == nil {
				continue
			}
			event := s.New()
			fill(reflect.ValueOf(event).Elem(), "")
			r := &record.Record{Sequence: n, Events: []decide.Event{event}}
			fill(reflect.ValueOf(&r.Command).Elem(), "Command")
			entries = append(entries, &record.Entry{Record: r, Position: record.Position{Sequence: n}, Value: []byte("marker-Value-")})
			must(t, w.Add(entries[n]))
			n++
		}
		_, err = w.Finish()
		must(t, err)
		found := map[string]bool{}
		for _, said := range slices.Concat(values(t, cfg.Dir), statistics(t, journal, entries)) {
			for _, m := range marker.FindAllString(said, -1) {
				found[strings.TrimSuffix(strings.TrimPrefix(m, "marker-"), "-")] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if !slices.Contains(inFiles[journal], name) {
				t.Errorf("the files of %s have the member %s", journal, name)
			}
		}
		for _, name := range inFiles[journal] {
			if !found[name] {
				t.Errorf("the files of %s lack the member %s", journal, name)
			}
		}
	}
}

// statistics returns the bytes and the bounds of the files that a Range makes of all entries.
func statistics(t testing.TB, journal string, entries []*record.Entry) (all []string) {
	t.Helper()
	r, err := NewRange(journal, 0, int64(len(entries)), booksOf(journal))
	must(t, err)
	for _, e := range entries {
		must(t, r.Add(e))
	}
	files, err := r.Files()
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no files")
	}
	for _, f := range files {
		all = append(all, f.Name, string(f.Content))
		for _, c := range f.Columns {
			if c.Values > 0 {
				all = append(all, *c.Min, *c.Max)
			}
		}
	}
	return all
}

// values returns every value of every file below a folder, and the bytes outside of compressed pages.
func values(t testing.TB, dir string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("there are no files")
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		all = append(all, string(b))
		if strings.HasSuffix(path, ".books.zst") {
			saved, err := LoadBooks(b)
			must(t, err)
			for code, o := range saved.orders {
				all = append(all, fmt.Sprint(code, o.in.symbol, o.price, o.amount))
			}
			continue
		}
		f, err := os.Open(path)
		must(t, err)
		p, err := parquet.OpenFile(f, int64(len(b)))
		must(t, err)
		for _, group := range p.RowGroups() {
			rows := group.Rows()
			some := make([]parquet.Row, 64)
			for {
				n, failed := rows.ReadRows(some)
				for _, row := range some[:n] {
					for _, v := range row {
						all = append(all, v.String())
					}
				}
				if failed != nil {
					break
				}
			}
			must(t, rows.Close())
		}
		all = append(all, fmt.Sprint(p.Metadata()))
		must(t, f.Close())
	}
	return all
}
