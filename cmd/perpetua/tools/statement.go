package tools

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/projections/statements"
	"github.com/perpetua-exchange/perpetua/streams/base"
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

// Statement prints the movements on a customer's account in a period, with the balances before and after it: as CSV, JSON, or
// Parquet. The period must be over.
func Statement(ctx context.Context, args []string, std settings.IO) error {
	var customer, from, to, format, out string
	var asJSON bool
	s, err := settings.Parse("statement", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&customer, "customer", "", "code of the customer")
		fs.StringVar(&from, "from", "", "beginning of the period, inclusive: a day such as 2026-04-01, which begins at midnight UTC, or a time in RFC 3339")
		fs.StringVar(&to, "to", "", "end of the period, exclusive, in the same form")
		fs.StringVar(&format, "format", "", "csv (default), json, or parquet, which needs --out")
		fs.StringVar(&out, "out", "", "`file` to write to; an existing one is replaced when the new one is complete (default: the standard output)")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	write, err := statementFormat(format, asJSON, out)
	if err != nil {
		return err
	}
	if about, err := os.Stat(out); err == nil && !about.Mode().IsRegular() {
		return settings.Usagef("--out: %s is a folder or a device, not a file to replace", out)
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
	if out == "" {
		return advised(write(ctx, pool, p, std.Out))
	}
	// Statements are as large as the movements of one customer, so one fits the memory.
	var content bytes.Buffer
	if err := write(ctx, pool, p, &content); err != nil {
		return advised(err)
	}
	if err := base.WriteFile(out, content.Bytes()); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(std.Out, "the statement of %s was written to %s\n", customer, out)
	return nil
}

// advised adds what the user can do to the error about a period that is not over.
func advised(err error) error {
	var notOver *statements.NotOverError
	if errors.As(err, &notOver) {
		return fmt.Errorf("%w: name an earlier --to, or try again when the journal trading has a record of that time or later", err)
	}
	return err
}

// statementFormat returns the function that writes a statement in the format of the flags.
func statementFormat(format string, asJSON bool, out string) (func(context.Context, statements.DB, statements.Period, io.Writer) error, error) {
	if asJSON && format != "" && format != "json" {
		return nil, settings.Usagef("--json and --format %s name two formats", format)
	}
	switch {
	case asJSON, format == "json":
		return statementJSON, nil
	case format == "", format == "csv":
		return statementCSV, nil
	case format != "parquet":
		return nil, settings.Usagef("--format must be csv, json, or parquet, not %q", format)
	case out == "":
		return nil, settings.Usagef("--format parquet needs --out")
	}
	return statementParquet, nil
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

// eachLine passes the lines of a statement: the opening balances, the movements, and the closing balances. It reads while it writes, so
// a statement of any length needs little memory.
func eachLine(ctx context.Context, db statements.DB, p statements.Period, balance, movement func(*statements.Line) error) (*statements.Head, error) {
	balances := func(kind ledger.Type, at scalar.Time, sequence int64, all []statements.Balance, of func(*statements.Balance) fixed.Money) error {
		for i := range all {
			l := statements.Line{Time: at, Sequence: sequence, Type: kind, Balance: of(&all[i]), Currency: all[i].Currency}
			if err := balance(&l); err != nil {
				return err
			}
		}
		return nil
	}
	var head *statements.Head
	if err := statements.Read(ctx, db, p, func(h *statements.Head) error {
		head = h
		return balances("opening_balance", h.From, h.Before, h.Balances, func(b *statements.Balance) fixed.Money { return b.Opening })
	}, movement); err != nil {
		return nil, err
	}
	return head, balances("closing_balance", head.To, head.Last, head.Balances, func(b *statements.Balance) fixed.Money { return b.Closing })
}

func statementCSV(ctx context.Context, db statements.DB, p statements.Period, to io.Writer) error {
	out := csv.NewWriter(to)
	began := false
	begin := func() error { // not earlier: a refused statement prints nothing
		if began {
			return nil
		}
		began = true
		return out.Write(statementColumns)
	}
	write := func(l *statements.Line, amount string) error {
		if err := begin(); err != nil {
			return err
		}
		return out.Write([]string{l.Time.String(), strconv.FormatInt(l.Sequence, 10), string(l.Type), l.Symbol, amount, l.Balance.String(),
			l.Currency, l.ReferenceID, l.Code, l.OrderCode})
	}
	if _, err := eachLine(ctx, db, p, func(l *statements.Line) error { return write(l, "") },
		func(l *statements.Line) error { return write(l, l.Amount.String()) }); err != nil {
		return err
	}
	if err := begin(); err != nil { // a customer without balances has no lines
		return err
	}
	if out.Flush(); out.Error() != nil {
		return fmt.Errorf("writing the statement: %w", out.Error())
	}
	return nil
}

func statementParquet(ctx context.Context, db statements.DB, p statements.Period, to io.Writer) error {
	out := dataset.NewStatement(to)
	head, err := eachLine(ctx, db, p, out.AddBalance, out.AddMovement)
	if err != nil {
		return err
	}
	return out.Close(head)
}

func statementJSON(ctx context.Context, db statements.DB, p statements.Period, to io.Writer) error {
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
	return settings.IO{Out: to}.PrintJSON(s)
}
