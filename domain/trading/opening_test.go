package trading

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// importFile gives one of a few files with random lines, which is often refused.
func (r *randomVenue) importFile() {
	file := rapid.IntRange(0, 15).Draw(r.T, "file")
	p := &ImportOpening{opening.File{Source: "books", SHA256: fmt.Sprintf("%064x", file)}}
	number := 2
	add := func(l opening.Line) {
		l.Number = number
		p.Lines = append(p.Lines, l)
		number += rapid.IntRange(1, 2).Draw(r.T, "gap")
	}
	holders := append(slices.Clone(randomCustomers), FundCode)
	for range rapid.IntRange(0, 2).Draw(r.T, "balances") {
		add(opening.Line{CustomerCode: rapid.SampledFrom(holders).Draw(r.T, "customer"), Currency: currency, Amount: fixed.Money(rapid.Int64Range(1, 50e8).Draw(r.T, "amount")).Decimal()})
	}
	for range rapid.IntRange(0, 2).Draw(r.T, "pairs") {
		symbol, amount := r.symbol(), r.amount()
		for _, l := range [2]opening.Line{{Amount: amount}, {Amount: amount.Neg()}} {
			l.CustomerCode, l.Symbol, l.Lot = rapid.SampledFrom(holders).Draw(r.T, "holder"), symbol, rapid.IntRange(1, 4).Draw(r.T, "lot")
			l.EntryPrice = fixed.Decimal{Coef: rapid.Int64Range(9_000_000_001, 11_000_000_000).Draw(r.T, "entry price"), Scale: 8}
			add(l)
		}
	}
	if len(p.Lines) == 0 {
		add(opening.Line{CustomerCode: randomCustomers[0], Currency: currency, Amount: fixed.Decimal{Coef: 1}})
	}
	known, before := r.state.bySHA[p.SHA256], r.state.venue[ledger.External]
	r.give(decide.Command{Payload: p})
	after := r.state.bySHA[p.SHA256]
	if known != nil && (after != known || r.state.venue[ledger.External] != before) {
		r.t.Fatalf("a file that was imported changes something")
	}
}

// openingVenue is a journal with prices and customers for imports.
func openingVenue(t fataler, customers ...string) *testJournal {
	j := newTestJournal(t)
	eth := btc()
	eth.Symbol = "ETHUSDC_PERP"
	for _, p := range []decide.Payload{&ListInstrument{Instrument: btc()}, &ListInstrument{Instrument: eth},
		&SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: 100}}, &SetIndexPrice{Symbol: "ETHUSDC_PERP", Price: fixed.Decimal{Coef: 100}}} {
		mustDo(j, p)
	}
	for _, code := range customers {
		mustDo(j, &RegisterCustomer{CustomerCode: code, Broker: "alpha"})
	}
	return j
}

func mustDo(j *testJournal, p decide.Payload) decide.Decision {
	j.t.Helper()
	d, err := j.do(decide.Command{Actor: operator, Payload: p})
	if err != nil {
		j.t.Fatalf("%T: %v", p, err)
	}
	return d
}

// TestImportsConserveMoney: what is paid in is the sum of the balances, less the sum of the costs, for random files that net to
// zero; and the checks of the journal hold (see journal_test.go).
func TestImportsConserveMoney(t *testing.T) {
	imported := 0
	rapid.Check(t, func(r *rapid.T) {
		customers := []string{"ann", "bob", "cem", "dan"}
		j := openingVenue(r, customers...)
		p := &ImportOpening{opening.File{Source: "books", SHA256: strings.Repeat("a", 64)}}
		total := new(big.Rat)
		for _, code := range customers {
			amount := fixed.Money(rapid.Int64Range(300e8, 100_000e8).Draw(r, "balance"))
			total.Add(total, fraction(amount.Decimal()))
			p.Lines = append(p.Lines, opening.Line{Number: len(p.Lines) + 2, CustomerCode: code, Currency: currency, Amount: amount.Decimal()})
		}
		costs := fixed.Money(0)
		for _, symbol := range []string{"BTCUSDC_PERP", "ETHUSDC_PERP"} {
			left := fixed.Decimal{Scale: 3}
			for n, code := range customers {
				amount := fixed.Decimal{Coef: rapid.Int64Range(-5000, 5000).Draw(r, "amount"), Scale: 3}
				if n == len(customers)-1 {
					amount = left.Neg()
				}
				if left.Coef += amount.Coef; amount.Coef == 0 {
					continue
				}
				price := fixed.Decimal{Coef: rapid.Int64Range(90e8, 110e8).Draw(r, "entry price"), Scale: 8}
				cost, ok := j.state.instruments[symbol].contract.Cost(price, amount.Coef)
				if exact := times(fraction(amount), fraction(price)); !ok || new(big.Rat).Sub(fraction(cost.Decimal()), exact).Cmp(ratio(1, 2e8)) > 0 {
					r.Fatalf("%s at %s cost %s", amount, price, cost)
				}
				costs += cost
				p.Lines = append(p.Lines, opening.Line{Number: len(p.Lines) + 2, CustomerCode: code, Symbol: symbol, Amount: amount, EntryPrice: price, Lot: 1})
			}
		}
		d, err := j.do(decide.Command{Actor: operator, Payload: p})
		if _, errs := j.state.CheckOpening(j.stamp(), operator, p); (err != nil) != (len(errs) > 0) && err != nil {
			r.Fatalf("refused with %v, and checked with %v", err, errs)
		}
		if err != nil {
			return // below the maintenance margin
		}
		imported++
		if got := -j.state.venue[ledger.External]; fraction(got.Decimal()).Cmp(total.Sub(total, fraction(costs.Decimal()))) != 0 {
			r.Fatalf("%s is paid in, %s less costs of %s", got, total, costs)
		}
		if header := d.Events[0].(*OpeningImported); header.Balances+header.Positions != len(p.Lines) || len(d.Events) != len(p.Lines)+1 {
			r.Fatalf("%d lines have %d events: %+v", len(p.Lines), len(d.Events), header)
		}
		checkObligations(r, j.state)
		for _, a := range j.state.registered {
			if s, _ := j.state.Summary(a.code); s.RiskState == "liquidation" {
				r.Fatalf("%s is in liquidation", a.code)
			}
		}
		if again, err := j.do(decide.Command{Actor: operator, Payload: p}); err != nil || !again.Repeated || again.Repeat != int64(len(j.records)) {
			r.Fatalf("the same file again: %+v, %v", again, err)
		}
		j.checkReplay()
	})
	if imported < 10 {
		t.Errorf("only %d files were imported", imported)
	}
}

// TestTheLargestImportFitsARecord: as many lines as there may be, each as long as can be.
func TestTheLargestImportFitsARecord(t *testing.T) {
	for _, positions := range []bool{false, true} {
		s, at := NewState(), decide.Stamp{Journal: scalar.ID{1}, Time: start}
		do := func(p decide.Payload) []decide.Event { // without the checks of a testJournal, which take long here
			at.Sequence++
			c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: operator, Payload: p}
			d, err := s.Decide(at, c)
			if err != nil {
				t.Fatalf("%T: %v", p, err)
			}
			s.Evolve(at, c.Recorded(), d.Outcome, d.Events)
			return d.Events
		}
		for rules := 2; rules <= rulesSupported; rules++ {
			do(&decide.ActivateRules{Rules: rules})
		}
		p := &ImportOpening{opening.File{Source: strings.Repeat("\u20ac", opening.MaxSource), SHA256: strings.Repeat("f", 64)}}
		for n := range opening.MaxLines {
			i := btc()
			i.Symbol = fmt.Sprintf("%s%03d_PERPETUA", strings.Repeat("X", 21), n/2)
			if n%2 == 0 {
				do(&ListInstrument{Instrument: i})
				do(&SetIndexPrice{Symbol: i.Symbol, Price: fixed.Decimal{Coef: 1234567}})
			}
			code := fmt.Sprintf("%s%03d", strings.Repeat("c", 29), n)
			do(&RegisterCustomer{CustomerCode: code, Broker: strings.Repeat("b", 32)})
			l := opening.Line{Number: 1000 + n, CustomerCode: code, Currency: currency, Amount: fixed.Money(10_000_000_12345678).Decimal()}
			if positions {
				do(&MakeDeposit{CustomerCode: code, Currency: currency, Amount: 10_000_000_12345678})
				l = opening.Line{Number: 1000 + n, CustomerCode: code, Symbol: i.Symbol, Amount: fixed.Decimal{Coef: int64(1-2*(n%2)) * 99_999, Scale: 3},
					EntryPrice: fixed.Decimal{Coef: 1234567_12345678 + int64(n), Scale: 8}, Lot: opening.MaxLot}
			}
			p.Lines = append(p.Lines, l)
		}
		size := headBytes
		for _, e := range do(p) {
			data, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			size += len(data) + 60
		}
		if size > maxRecord-nextBytes {
			t.Errorf("a record of %d bytes (positions: %t)", size, positions)
		}
	}
}

// TestAllErrorsOfAFile: the errors of all lines are found, at most a hundred, and sums and margins only if the lines are sound.
func TestAllErrorsOfAFile(t *testing.T) {
	j := openingVenue(t, "ann", "bob")
	line := func(n int, code, symbol, amount, price string) opening.Line {
		l := opening.Line{Number: n, CustomerCode: code, Symbol: symbol, Amount: decimal(t, amount), Lot: 1}
		if l.EntryPrice = decimal(t, price); symbol == "" {
			l.Currency, l.EntryPrice, l.Lot = currency, fixed.Decimal{}, 0
		}
		return l
	}
	for name, c := range map[string]struct {
		lines []opening.Line
		want  string
	}{
		"lines": {[]opening.Line{line(2, "cem", "", "1", "0"), line(3, "ann", "XRPUSDC_PERP", "1", "1"), line(5, "bob", "", "1", "0"), line(6, "bob", "", "1", "0")},
			"line[2].customer_code UNKNOWN_CUSTOMER, line[3].symbol UNKNOWN_SYMBOL, line[6] LINE_REPEATED"},
		"sums": {[]opening.Line{line(2, "ann", "BTCUSDC_PERP", "1", "1"), line(3, "bob", "ETHUSDC_PERP", "-1", "1")},
			"line[2].symbol POSITIONS_UNBALANCED, line[3].symbol POSITIONS_UNBALANCED"},
		"margins": {[]opening.Line{line(2, "ann", "BTCUSDC_PERP", "1", "100"), line(3, "bob", "BTCUSDC_PERP", "-1", "100")},
			"line[2].customer_code BELOW_MAINTENANCE_MARGIN, line[3].customer_code BELOW_MAINTENANCE_MARGIN"},
	} {
		p := &ImportOpening{opening.File{Source: "books", SHA256: strings.Repeat("a", 64), Lines: c.lines}}
		_, errs := j.state.CheckOpening(j.stamp(), operator, p)
		if got := describe(errs); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := j.do(decide.Command{Actor: operator, Payload: p}); err == nil || !strings.HasPrefix(c.want, err.(*decide.Refusal).Field+" "+err.(*decide.Refusal).Code) {
			t.Errorf("%s is refused with %v", name, err)
		}
	}
	p := &ImportOpening{opening.File{Source: "books", SHA256: strings.Repeat("a", 64)}}
	for n := range opening.MaxLines {
		p.Lines = append(p.Lines, line(n+2, "cem", "", "1", "0"))
	}
	if _, errs := j.state.CheckOpening(j.stamp(), operator, p); len(errs) != validation.MaxErrors {
		t.Errorf("%d errors", len(errs))
	}
}

func describe(errs []validation.FieldError) string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Path.String()+" "+e.Code)
	}
	return strings.Join(out, ", ")
}

func decimal(t fataler, text string) fixed.Decimal {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// TestImportsNeedTheRules: under older rules an import is refused, because an older build stops at the events.
func TestImportsNeedTheRules(t *testing.T) {
	j := testJournalOf(t, rulesOfFourEyes)
	_, err := j.do(decide.Command{Actor: operator, Payload: &ImportOpening{}})
	if refusal, ok := err.(*decide.Refusal); !ok || refusal.Code != "OPENINGS_NOT_IN_FORCE" {
		t.Errorf("refused with %v", err)
	}
}

// TestImportWhileChargesAreOwed: a file waits until an account has posted what it owes.
func TestImportWhileChargesAreOwed(t *testing.T) {
	j := openingVenue(t, "ann", "bob")
	file := func(digit string, lines ...opening.Line) *ImportOpening {
		return &ImportOpening{opening.File{Source: "books", SHA256: strings.Repeat(digit, 64), Lines: lines}}
	}
	position := func(number int, code string, steps int64, lot int) opening.Line {
		return opening.Line{Number: number, CustomerCode: code, Symbol: "BTCUSDC_PERP", Amount: fixed.Decimal{Coef: steps}, EntryPrice: fixed.Decimal{Coef: 100}, Lot: lot}
	}
	balance := func(number int, code string) opening.Line {
		return opening.Line{Number: number, CustomerCode: code, Currency: currency, Amount: fixed.Decimal{Coef: 1000}}
	}
	mustDo(j, file("a", balance(2, "ann"), balance(3, "bob"), position(4, "ann", 1, 1), position(5, "bob", -1, 1)))
	mustDo(j, &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: 101}})
	j.now = j.state.settlement.Time
	j.unblock() // fixes the settlement, and leaves the postings
	second := file("b", position(2, "ann", 1, 2), position(3, "bob", -1, 2))
	if !j.state.accounts["ann"].owes() {
		t.Fatal("nothing is owed")
	}
	_, err := j.do(decide.Command{Actor: operator, Payload: second})
	if refusal, ok := err.(*decide.Refusal); !ok || refusal.Code != "CHARGES_OUTSTANDING" {
		t.Fatalf("refused with %v", err)
	}
	j.drain()
	mustDo(j, second)
	if p, _ := j.state.Position("ann", "BTCUSDC_PERP"); p.Amount.Cmp(fixed.Decimal{Coef: 2}) != 0 {
		t.Errorf("ann holds %s", p.Amount)
	}
	j.checkReplay()
}

// TestManyImportsAreSaved reads a state with many imports, the fields of which are short, as it was saved.
func TestManyImportsAreSaved(t *testing.T) {
	var codes []string
	for n := range 40 {
		codes = append(codes, fmt.Sprint("A", n))
	}
	j := openingVenue(t, codes...)
	for n, code := range codes {
		j.state = reread(t, j.state)
		mustDo(j, &ImportOpening{opening.File{Source: "b", SHA256: fmt.Sprintf("%064x", n),
			Lines: []opening.Line{{Number: 2, CustomerCode: code, Currency: currency, Amount: fixed.Decimal{Coef: 1}}}}})
	}
	if saved := reread(t, j.state); len(saved.imports) != len(codes) {
		t.Errorf("%d imports", len(saved.imports))
	}
}
