package tools

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/statements"
)

// statement is the JSON output of Statement. Amounts are decimal strings.
type statement struct {
	CustomerCode string             `json:"customer_code"`
	From         scalar.Time        `json:"from"`
	To           scalar.Time        `json:"to"`
	Sequence     int64              `json:"sequence"` // of the last record before To
	Balances     []statementBalance `json:"balances"`
	Lines        []statementLine    `json:"lines"`
}

type statementBalance struct {
	Currency string `json:"currency"`
	Opening  string `json:"opening"`
	Closing  string `json:"closing"`
}

// statementLine has the fields of a line of CSV.
type statementLine struct {
	Time        scalar.Time `json:"time"`
	Sequence    int64       `json:"sequence"`
	Type        string      `json:"type"`
	Symbol      string      `json:"symbol,omitempty"`
	Amount      string      `json:"amount"`
	Balance     string      `json:"balance"`
	Currency    string      `json:"currency"`
	ReferenceID string      `json:"reference_id,omitempty"`
	Code        string      `json:"code"`
	OrderCode   string      `json:"order_code,omitempty"`
}

// statementColumns is the first line of the CSV.
var statementColumns = []string{"time", "sequence", "type", "symbol", "amount", "balance", "currency", "reference_id", "code", "order_code"}

// Statement prints the movements on a customer's account in a period, with the balances before and after it: as CSV, or as
// JSON with --json. The period must be over.
func Statement(ctx context.Context, args []string, std settings.IO) error {
	var customer, from, to string
	var asJSON bool
	s, err := settings.Parse("statement", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&customer, "customer", "", "code of the customer")
		fs.StringVar(&from, "from", "", "begin of the period, inclusive: a day such as 2026-04-01, which begins at midnight UTC, or a time of RFC 3339")
		fs.StringVar(&to, "to", "", "end of the period, exclusive, in the same form")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	p := statements.Period{CustomerCode: customer}
	if customer == "" {
		return settings.Usagef("--customer is needed")
	}
	if p.From, err = momentOf("from", from); err != nil {
		return err
	}
	if p.To, err = momentOf("to", to); err != nil {
		return err
	}
	if p.To <= p.From {
		return settings.Usagef("--to must be after --from")
	}
	address, stop, err := findDatabase(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	pool, err := projections.Open(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := needTablesOf(ctx, pool); err != nil {
		return err
	}
	if asJSON {
		return statementJSON(ctx, pool, p, std)
	}
	return statementCSV(ctx, pool, p, std.Out)
}

// momentOf parses the value of a flag: a day or a time.
func momentOf(name, value string) (scalar.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if at, err := time.Parse(layout, value); err == nil && scalar.TimeOf(at).Canonical() {
			return scalar.TimeOf(at), nil
		}
	}
	return 0, settings.Usagef("--%s must be a day such as 2026-04-01 or a time such as 2026-04-01T12:00:00Z", name)
}

// statementCSV writes a statement with a line for the opening balance, the movements, and a line for the closing balance. It writes
// while it reads, so a statement of any length needs little memory.
func statementCSV(ctx context.Context, db statements.DB, p statements.Period, to io.Writer) error {
	out := csv.NewWriter(to)
	balances := func(h *statements.Head, kind string, at scalar.Time, sequence int64, of func(statements.Balance) string) error {
		for _, b := range h.Balances {
			if err := out.Write([]string{at.String(), strconv.FormatInt(sequence, 10), kind, "", "", of(b), b.Currency, "", "", ""}); err != nil {
				return err
			}
		}
		return nil
	}
	var head *statements.Head
	if err := statements.Read(ctx, db, p, func(h *statements.Head) error {
		head = h
		if err := out.Write(statementColumns); err != nil {
			return err
		}
		return balances(h, "opening_balance", h.From, h.Before, func(b statements.Balance) string { return b.Opening.String() })
	}, func(l *statements.Line) error {
		return out.Write([]string{l.Time.String(), strconv.FormatInt(l.Sequence, 10), string(l.Type), l.Symbol, l.Amount.String(),
			l.Balance.String(), l.Currency, l.ReferenceID, l.Code, l.OrderCode})
	}); err != nil {
		return err
	}
	if err := balances(head, "closing_balance", head.To, head.Last, func(b statements.Balance) string { return b.Closing.String() }); err != nil {
		return err
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing the statement: %w", err)
	}
	return nil
}

func statementJSON(ctx context.Context, db statements.DB, p statements.Period, std settings.IO) error {
	s := statement{CustomerCode: p.CustomerCode, From: p.From, To: p.To, Balances: []statementBalance{}, Lines: []statementLine{}}
	if err := statements.Read(ctx, db, p, func(h *statements.Head) error {
		s.Sequence = h.Last
		for _, b := range h.Balances {
			s.Balances = append(s.Balances, statementBalance{b.Currency, b.Opening.String(), b.Closing.String()})
		}
		return nil
	}, func(l *statements.Line) error {
		s.Lines = append(s.Lines, statementLine{l.Time, l.Sequence, string(l.Type), l.Symbol, l.Amount.String(), l.Balance.String(),
			l.Currency, l.ReferenceID, l.Code, l.OrderCode})
		return nil
	}); err != nil {
		return err
	}
	return std.PrintJSON(s)
}
