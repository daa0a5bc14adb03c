package whatif

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Report is the result of a run.
type Report struct {
	Journal    string `json:"journal"`
	Cumulative bool   `json:"cumulative"`
	// From and To are the sequences of the first and the last record of the other world, and Records is the number of records that
	// were read from the log, also those before From.
	From    int64           `json:"from"`
	To      int64           `json:"to"`
	Records int64           `json:"records"`
	Tip     record.Position `json:"tip"` // of the last record that was read

	Same      int64 `json:"same"`
	Undecided int64 `json:"undecided"` // a genesis, the records that open terms, and, in a cumulative run, statements of liabilities
	// NotRedecidable are records that do not hold their input, by command type. They count as they are recorded.
	NotRedecidable map[string]int64 `json:"not_redecidable"`
	// Different counts the differences by kind.
	Different map[Kind]int64 `json:"different"`

	Accounts    []Account    `json:"accounts"`    // with a difference: customers, then the venue's
	Differences []Difference `json:"differences"` // the first ones, as many as Config asks for
}

// Equal reports whether the worlds do not differ.
func (r *Report) Equal() bool { return len(r.Different) == 0 }

// Difference is one difference between the worlds.
type Difference struct {
	Position record.Position `json:"position"` // of the record; for Steps and the liquidations in them, of the last one before
	Time     scalar.Time     `json:"time"`
	Type     string          `json:"type"` // of the command
	Kind     Kind            `json:"kind"`
	Account  string          `json:"account,omitzero"` // of the order or of the liquidation, if it is about one
	Recorded []string        `json:"recorded"`
	WhatIf   []string        `json:"what_if"`
}

// Account has the differences of one account.
type Account struct {
	Party
	// Sums are the sums of postings that differ, by type.
	Sums []Sum `json:"sums"`
	// Refused are commands that only the log accepts, and Accepted those that only the other world accepts.
	Refused  *Count `json:"refused,omitempty"`
	Accepted *Count `json:"accepted,omitempty"`
	// Avoided counts the liquidations that begin in the log while the account is not in liquidation in the other world, and Added those
	// that begin in the other world while it is not in liquidation in the log.
	Avoided *Count `json:"liquidations_avoided,omitempty"`
	Added   *Count `json:"liquidations_added,omitempty"`
}

// Sum is the sum of the postings of one type in both worlds. First is the first record with a difference.
type Sum struct {
	Type     ledger.Type     `json:"type"`
	Recorded fixed.Money     `json:"recorded"`
	WhatIf   fixed.Money     `json:"what_if"`
	First    record.Position `json:"first"`
}

// Count counts differences. First is the record of the first one.
type Count struct {
	Number int64           `json:"number"`
	First  record.Position `json:"first"`
}

// tally collects a Report.
type tally struct {
	report   Report
	limit    int // of Report.Differences
	accounts map[Party]*Account
	sums     map[movement]*sum
}

type sum struct {
	recorded, decided fixed.Wide
	differs           bool
	first             record.Position
}

func newTally(cfg *Config) *tally {
	return &tally{
		limit:    cfg.Differences,
		accounts: make(map[Party]*Account),
		sums:     make(map[movement]*sum),
		report: Report{
			Journal:        journalName,
			Cumulative:     cfg.Cumulative,
			From:           cfg.From,
			NotRedecidable: make(map[string]int64),
			Different:      make(map[Kind]int64),
			Accounts:       []Account{},
			Differences:    []Difference{},
		},
	}
}

// add adds the money that a record moves in the log and in the other world.
func (t *tally) add(recorded, decided map[movement]fixed.Money, at record.Position) {
	for m, amount := range recorded {
		s := t.sum(m)
		s.recorded = s.recorded.Add(amount.Wide())
		s.compare(amount, decided[m], at)
	}
	for m, amount := range decided {
		s := t.sum(m)
		s.decided = s.decided.Add(amount.Wide())
		s.compare(recorded[m], amount, at)
	}
}

// compare sets the position of the first record with another amount.
func (s *sum) compare(recorded, decided fixed.Money, at record.Position) {
	if recorded != decided && !s.differs {
		s.differs, s.first = true, at
	}
}

func (t *tally) sum(m movement) *sum {
	s := t.sums[m]
	if s == nil {
		s = new(sum)
		t.sums[m] = s
	}
	return s
}

// differs counts a difference, and adds it to the report if it is among the first.
func (t *tally) differs(d Difference) {
	t.report.Different[d.Kind]++
	if len(t.report.Differences) < t.limit {
		t.report.Differences = append(t.report.Differences, d)
	}
}

// count increments a counter of a customer's account.
func (t *tally) count(customer string, at record.Position, counter func(*Account) **Count) {
	if customer == "" {
		return
	}
	c := counter(t.account(Party{CustomerCode: customer}))
	if *c == nil {
		*c = &Count{First: at}
	}
	(*c).Number++
}

func (t *tally) account(p Party) *Account {
	a := t.accounts[p]
	if a == nil {
		a = &Account{Party: p, Sums: []Sum{}}
		t.accounts[p] = a
	}
	return a
}

// finish completes the report.
func (t *tally) finish(tip record.Position) (Report, error) {
	t.report.Tip, t.report.Records, t.report.To = tip, tip.Sequence+1, tip.Sequence
	for m, s := range t.sums {
		if !s.differs {
			continue
		}
		recorded, fits := s.recorded.Money()
		decided, both := s.decided.Money()
		if !fits || !both {
			return t.report, fmt.Errorf("the %s of %s sums to more than can be counted", m.kind, m.Party)
		}
		a := t.account(m.Party)
		a.Sums = append(a.Sums, Sum{m.kind, recorded, decided, s.first})
	}
	for _, a := range t.accounts {
		slices.SortFunc(a.Sums, func(a, b Sum) int { return cmp.Compare(a.Type, b.Type) })
		t.report.Accounts = append(t.report.Accounts, *a)
	}
	slices.SortFunc(t.report.Accounts, func(a, b Account) int { return compareParties(a.Party, b.Party) })
	return t.report, nil
}
