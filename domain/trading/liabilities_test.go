package trading

import (
	"encoding/hex"
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// checkObligations checks that total − deficits + venue = net paid in, and counts what is owed once more, from every charge.
func checkObligations(t fataler, s *State) {
	t.Helper()
	all, totals := s.Obligations()
	totals.Leaves = 1
	if err := totals.Check(); err != nil {
		t.Fatalf("the obligations do not add up: %v: %+v", err, totals)
	}
	want := make(map[string]fixed.Money)
	for _, a := range s.registered {
		want[a.code] = a.balance
	}
	venue := maps.Clone(s.venue)
	left := make(map[*charge]fixed.Money)
	s.eachCharge(func(d unpaidCharge) {
		if d.position.account.isFund() {
			venue[ledger.Insurance] += d.amount
		} else {
			want[d.position.account.code] += d.amount
		}
		if d.charge.kind == settlementCharge {
			venue[ledger.Clearing] -= d.amount
		} else {
			venue[ledger.Funding] -= d.amount
			left[d.charge] -= d.amount
		}
	})
	for _, i := range s.listing {
		for _, x := range i.charges {
			if x.kind == fundingCharge {
				venue[ledger.Funding] -= x.left + left[x]
				venue[ledger.Rounding] += x.left + left[x]
			}
		}
	}
	var total, deficits fixed.Money
	for _, o := range all {
		if o.Balance != want[o.CustomerCode] {
			t.Fatalf("%s is owed %s, and counted as %s", o.CustomerCode, want[o.CustomerCode], o.Balance)
		}
		total, deficits = total+max(o.Balance, 0), deficits+max(-o.Balance, 0)
	}
	b := func(a ledger.Account) liabilities.Balance { return liabilities.Balance(venue[a]) }
	is := liabilities.Venue{Insurance: b(ledger.Insurance), Fees: b(ledger.Fees), Funding: b(ledger.Funding), Clearing: b(ledger.Clearing), Rounding: b(ledger.Rounding)}
	if len(all) != len(want) || totals.Venue != is || totals.Total != liabilities.AmountOf(uint64(total)) || totals.Deficits != liabilities.AmountOf(uint64(deficits)) ||
		totals.NetPaidIn != -b(ledger.External) {
		t.Fatalf("the totals are %+v, and the venue has %+v", totals, is)
	}
	if totals.Venue.Funding != 0 {
		t.Fatalf("%d of funding are with nobody after all have posted", totals.Venue.Funding)
	}
}

// statement returns the statement about the last instant, if the state is that after it.
func (j *testJournal) statement() (p *RecordLiabilities, ok bool) {
	instant, ok := j.state.FundingInstant()
	if !ok || instant.Sequence != int64(len(j.records)) {
		return nil, false
	}
	for _, i := range j.state.listing {
		if e := i.funding; e != nil && e.Queued() && e.Time <= instant.Time {
			j.t.Fatalf("record %d is the instant of %s, and %s is to follow", instant.Sequence, instant.Time, i.contract.Symbol)
		}
	}
	_, totals := j.state.Obligations()
	at := j.stamp()
	totals.Leaves, totals.Root = 8, liabilities.Hash{byte(len(j.records))}
	return &RecordLiabilities{liabilities.Statement{Timestamp: instant.Time,
		Position: liabilities.Position{Sequence: instant.Sequence, Hash: hex.EncodeToString(at.Prev[:])}, Totals: totals}}, true
}

var stater = decide.Actor{System: "liabilities"}

// TestStatedLiabilities records a statement at every instant of a random market, at once or after other records.
func TestStatedLiabilities(t *testing.T) {
	instants, recorded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := &randomVenue{T: t, testJournal: newTestJournal(t)}
		if rapid.Bool().Draw(t, "small records") { // so that an instant takes several
			r.state.limit.others = 1
			r.single = rapid.Bool().Draw(t, "single steps")
		}
		var statement *RecordLiabilities
		r.follow = func(decide.Recorded, []decide.Event) {
			if p, ok := r.statement(); ok {
				statement, instants = p, instants+1
			}
		}
		r.open()
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			r.command()
			if rapid.IntRange(0, 9).Draw(t, "long pause") == 0 {
				r.now += 3600 * scalar.Second
				for _, symbol := range randomSymbols {
					r.give(decide.Command{Payload: &SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 100}}})
				}
			}
			if statement == nil || rapid.Bool().Draw(t, "later") {
				continue
			}
			wrong := *statement
			wrong.Statement.Venue.Insurance++
			r.refuses(&wrong, "LIABILITIES_CONTRADICTED")
			r.unblock()
			if d, err := r.do(decide.Command{Actor: stater, Payload: statement}); err == nil {
				recorded++
				again, err := r.do(decide.Command{Actor: stater, Payload: statement})
				if err != nil || !again.Repeated || again.Repeat != r.state.stated.sequence {
					t.Fatalf("the same statement again is %+v (%v)", again, err)
				}
				wrong := *statement
				wrong.Statement.Root[9]++
				r.refuses(&wrong, "LIABILITIES_CONTRADICTED")
				if e, ok := d.Events[0].(*LiabilitiesRecorded); !ok || e.Check() != nil {
					t.Fatalf("%+v", d)
				}
			} else if instant, _ := r.state.FundingInstant(); instant.Sequence == statement.Statement.Position.Sequence {
				t.Fatalf("a statement about the last instant is refused: %v", err)
			}
			statement = nil
		}
		r.checkReplay()
	})
	if instants == 0 || recorded == 0 {
		t.Errorf("%d instants, %d statements", instants, recorded)
	}
}

// refuses checks that a statement is refused with a code, or that it is not about the last instant any more.
func (j *testJournal) refuses(p *RecordLiabilities, code string) {
	j.t.Helper()
	j.unblock()
	_, err := j.do(decide.Command{Actor: stater, Payload: p})
	var refusal *decide.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code && refusal.Code != "NOT_THE_LAST_INSTANT" {
		j.t.Fatalf("%+v is answered with %v, not %s", p.Statement, err, code)
	}
}

// TestContradictedStatements changes every member of a statement that the owner knows.
func TestContradictedStatements(t *testing.T) {
	j := newTestJournal(t)
	give := func(p any) {
		t.Helper()
		j.now += 1000
		if _, err := j.do(decide.Command{Actor: operator, Payload: p}); err != nil {
			t.Fatal(err)
		}
	}
	give(&ListInstrument{Instrument: btc()})
	give(&SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")})
	give(&RegisterCustomer{CustomerCode: "ann", Broker: "alpha"})
	give(&MakeDeposit{CustomerCode: "ann", Currency: currency, Amount: 7 * fixed.Unit})
	if _, ok := j.state.FundingInstant(); ok {
		t.Fatal("there is an instant before the first funding")
	}
	j.now += scalar.Hour
	j.unblock()
	p, ok := j.statement()
	if !ok {
		t.Fatal("funding was fixed, and there is no instant")
	}
	for name, change := range map[string]func(*liabilities.Statement){
		"instant":     func(s *liabilities.Statement) { s.Timestamp++ },
		"hash":        func(s *liabilities.Statement) { s.Position.Hash = hex.EncodeToString(make([]byte, 32)) },
		"asset":       func(s *liabilities.Statement) { s.Asset = "USD" },
		"scale":       func(s *liabilities.Statement) { s.Scale = 6 },
		"leaves":      func(s *liabilities.Statement) { s.Leaves = 9 },
		"total":       func(s *liabilities.Statement) { s.Total.Lo++ },
		"deficits":    func(s *liabilities.Statement) { s.Deficits.Lo++ },
		"insurance":   func(s *liabilities.Statement) { s.Venue.Insurance++ },
		"fees":        func(s *liabilities.Statement) { s.Venue.Fees++; s.Venue.Insurance-- },
		"net paid in": func(s *liabilities.Statement) { s.NetPaidIn++; s.Total.Lo++ },
	} {
		wrong := *p
		change(&wrong.Statement)
		_, err := j.do(decide.Command{Actor: stater, Payload: &wrong})
		var refusal *decide.Refusal
		if !errors.As(err, &refusal) || refusal.Code != "LIABILITIES_CONTRADICTED" || refusal.Alarm != AlarmLiabilities {
			t.Errorf("another %s: %v", name, err)
		}
	}
	other := *p
	other.Statement.Position.Sequence--
	for actor, want := range map[decide.Actor]string{stater: "NOT_THE_LAST_INSTANT", operator: "FORBIDDEN"} {
		_, err := j.do(decide.Command{Actor: actor, Payload: &other})
		if refusal := new(decide.Refusal); !errors.As(err, &refusal) || refusal.Code != want {
			t.Errorf("%v: %v, not %s", actor, err, want)
		}
	}
	give(&SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65001")}) // a record between
	if _, err := j.do(decide.Command{Actor: stater, Payload: p}); err != nil {
		t.Error(err)
	}
	old := testJournalOf(t, rulesOfClients)
	if _, err := old.do(decide.Command{Actor: stater, Payload: p}); err == nil {
		t.Error("rules 2 record liabilities")
	}
}
