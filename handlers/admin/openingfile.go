package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// The type and the version in the first line of a file, and the type of the last line.
const (
	openingType    = "perpetua-opening"
	openingVersion = 1
	openingEnd     = "end"
)

// maxOpeningVersion is above the number of any version of the form.
const maxOpeningVersion = 1_000_000

// openingReader reads a file of opening balances and positions: a JSON object on each line. The first line names the form and the
// source. The last line has the numbers and the sums of the lines, and the hash of all bytes before it, so that a damaged or cut
// file is noticed.
type openingReader struct {
	raw   []byte
	file  opening.File
	errs  validation.Errors
	line  int
	ended bool
}

// readOpening reads a file. It returns up to validation.MaxErrors errors, each with its line.
func readOpening(raw []byte) (*opening.File, []validation.FieldError) {
	sum := sha256.Sum256(raw)
	r := &openingReader{raw: raw, file: opening.File{SHA256: hex.EncodeToString(sum[:])}, errs: validation.Errors{Limit: validation.MaxErrors}}
	r.read()
	return &r.file, r.errs.List
}

func (r *openingReader) read() {
	for rest := r.raw; len(rest) > 0 || r.line == 0; {
		at := len(r.raw) - len(rest)
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		rest = after
		r.line++
		switch {
		case r.line == 1:
			if !r.header(line) {
				return
			}
		case r.ended:
			r.fail("", validation.TrailingData, "there is data after the last line, whose type is end")
			return
		case r.line > opening.MaxLines+2:
			r.fail("", "TOO_MANY_LINES", "the file has more than %d balances and positions: use several files", opening.MaxLines)
			return
		default:
			r.content(line, at)
		}
	}
	if !r.ended {
		r.fail("", "FILE_INCOMPLETE", "the file ends without a line of the type end: it was cut")
	}
}

func (r *openingReader) fail(member, code, format string, args ...any) {
	path := opening.At(r.line)
	if member != "" {
		path = opening.At(r.line, member)
	}
	r.errs.Add(validation.FieldError{Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

// header reads the first line. It returns false if the file is of another form or version, so that its other lines mean nothing.
func (r *openingReader) header(line []byte) bool {
	f := input.Body(line, nil)
	if !f.Sound() || f.String("type") != openingType {
		r.fail("type", "NOT_AN_OPENING_FILE", "the first line must be a JSON object with the type %s", openingType)
		return false
	}
	if version := f.Integer("version", 1, maxOpeningVersion); f.Sound() && version != openingVersion {
		r.fail("version", "UNKNOWN_VERSION", "this build reads version %d of the form, and not %d", openingVersion, version)
		return false
	}
	r.file.Source = f.String("source")
	if id := f.OptionalID("journal"); id.Set {
		r.file.Journal = id.Value.String()
	}
	r.done(f)
	return true
}

// content reads another line than the first. at is its offset in the file.
func (r *openingReader) content(line []byte, at int) {
	f := input.Body(line, nil)
	switch l := (opening.Line{Number: r.line}); f.Enum("type", "balance", "position", openingEnd) {
	case "balance":
		l.CustomerCode, l.Currency, l.Amount = f.String("customer_code", input.CustomerCode), f.Enum("currency", ledger.USDC), f.Decimal("amount")
		r.add(f, l)
	case "position":
		l.CustomerCode, l.Symbol, l.Amount = f.String("customer_code", input.CustomerCode), f.String("symbol", venue.Symbols.Rule), f.Decimal("amount")
		l.EntryPrice, l.Lot = f.Decimal("entry_price"), int(f.OptionalInteger("lot", 1, opening.MaxLot).Or(1))
		r.add(f, l)
	case openingEnd:
		r.end(f, at)
	default:
		r.done(f)
	}
}

func (r *openingReader) add(f *input.Form, l opening.Line) {
	if r.done(f) {
		r.file.Lines = append(r.file.Lines, l)
	}
}

// done adds the errors of a line, and returns whether there are none.
func (r *openingReader) done(f *input.Form) bool {
	var invalid *problem.Problem
	if !errors.As(f.Done(), &invalid) {
		return true
	}
	for _, e := range invalid.Errors {
		e.Path = opening.At(r.line, e.Path...)
		r.errs.Add(e)
	}
	return false
}

// end compares the last line with the lines before it. Without an error in one of them, also their numbers and sums. The lines
// are checked first, because the sum of an amount that is too large means nothing.
func (r *openingReader) end(f *input.Form, at int) {
	r.ended = true
	balances, positions := f.Integer("balances", 0, opening.MaxLines), f.Integer("positions", 0, opening.MaxLines)
	balanceTotal, positionTotal, sum := f.Decimal("balance_total"), f.Decimal("position_total"), f.String("sha256")
	if !r.done(f) {
		return
	}
	if is := sha256.Sum256(r.raw[:at]); sum != hex.EncodeToString(is[:]) {
		r.fail("sha256", "CHECKSUM_MISMATCH", "the lines before the last one have the SHA-256 %x: the file is damaged", is)
		return
	}
	if len(r.errs.List) == 0 {
		r.file.Check(&r.errs)
	}
	if len(r.errs.List) > 0 {
		return
	}
	is := make(map[bool]int64) // by whether it is a position
	for i := range r.file.Lines {
		is[r.file.Lines[i].IsPosition()]++
	}
	if is[false] != balances || is[true] != positions {
		r.fail("", "COUNT_MISMATCH", "the file has %d balances and %d positions", is[false], is[true])
	}
	if total, fits := fixed.MoneyOf(balanceTotal); !fits || total != r.file.BalanceTotal() {
		r.fail("balance_total", "SUM_MISMATCH", "the balances sum to %s", r.file.BalanceTotal())
	}
	units, fits := positionTotal.In(8)
	if total := r.file.PositionTotal(); !fits || total.Cmp(fixed.WideOf(units)) != 0 {
		r.fail("position_total", "SUM_MISMATCH", "the absolute amounts of the positions sum to %s", total.Capped())
	}
}
