// Package opening declares the content of a file of opening balances and positions, which an operator imports from another venue.
// Package handlers/admin reads such files, and package trading decides about their lines.
//
// Amounts of balances are in units of the currency, and amounts of positions in contracts: positive for a long position,
// negative for a short one. Lines are counted from 1; line 1 is the header of the file.
package opening

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Bounds of a file.
const (
	// MaxLines is the greatest number of balances and positions. All of them fit one record, so that they take effect together.
	MaxLines = 300
	// MaxLot is the greatest number of a lot.
	MaxLot = 62
	// MaxSource is the greatest length of the name of the source, in characters.
	MaxSource = 64
	// decimals is the greatest number of decimals of an amount and of an entry price.
	decimals = 8
)

// File is the content of a file.
type File struct {
	// Source names the books from which the lines are, for people.
	Source string `json:"source"`
	// SHA256 is the hash of the whole file, in 64 lower-case hexadecimal digits. It identifies the file.
	SHA256 string `json:"sha256"`
	// Journal is the id of the trading journal that the file was made for, or "" for any.
	Journal string `json:"journal,omitzero"`
	Lines   []Line `json:"lines"`
}

// Line is a balance or, with a symbol, a position.
type Line struct {
	Number       int           `json:"line"`
	CustomerCode string        `json:"customer_code"`
	Currency     string        `json:"currency,omitzero"` // of a balance
	Symbol       string        `json:"symbol,omitzero"`   // of a position
	Amount       fixed.Decimal `json:"amount"`
	EntryPrice   fixed.Decimal `json:"entry_price,omitzero"` // of a position
	// Lot numbers the parts of a position that several files bring, from 1.
	Lot int `json:"lot,omitzero"`
}

// IsPosition reports whether the line is a position.
func (l *Line) IsPosition() bool { return l.Symbol != "" }

// At returns the path of a member of a line, for errors: line[3].amount.
func At(line int, member ...any) validation.Path { return validation.At("line", line).Then(member...) }

// Check adds the errors that do not depend on the state of the venue.
func (f *File) Check(errs *validation.Errors) {
	add := func(path validation.Path, code, message string) {
		errs.Add(validation.FieldError{Path: path, Code: code, Message: message})
	}
	if !validSource(f.Source) {
		add(At(1, "source"), "INVALID_SOURCE", "the source must have 1 to "+strconv.Itoa(MaxSource)+" characters without control characters")
	}
	if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 || strings.ToLower(f.SHA256) != f.SHA256 {
		add(validation.At("sha256"), "INVALID_SHA256", "the hash of the file must have 64 lower-case hexadecimal digits")
	}
	switch {
	case len(f.Lines) == 0:
		add(nil, "NO_LINES", "the file has no balance and no position")
	case len(f.Lines) > MaxLines:
		add(nil, "TOO_MANY_LINES", "the file has more than "+strconv.Itoa(MaxLines)+" balances and positions: use several files")
	}
	last := 1
	for i := range f.Lines {
		l := &f.Lines[i]
		if l.Number <= last {
			add(At(l.Number), "INVALID_LINE", "the numbers of the lines must rise from 2 on")
		}
		last = l.Number
		l.check(add)
	}
}

func validSource(s string) bool {
	text, e := form.ReadText(form.Value{Kind: '"', Text: []byte(s)})
	return e == nil && len([]rune(text)) <= MaxSource && strings.ToValidUTF8(text, "") == text
}

func (l *Line) check(add func(path validation.Path, code, message string)) {
	if (l.Currency == "") == (l.Symbol == "") {
		add(At(l.Number), "INVALID_LINE", "a line has a currency or a symbol")
		return
	}
	if l.IsPosition() {
		if _, fits := l.Amount.In(decimals); !fits || l.Amount.Sign() == 0 {
			add(At(l.Number, "amount"), "INVALID_AMOUNT", "the amount of a position must not be 0, and has at most 8 decimals")
		}
		if _, fits := l.EntryPrice.In(decimals); !fits || l.EntryPrice.Sign() <= 0 {
			add(At(l.Number, "entry_price"), "INVALID_PRICE", "the entry price must be positive and have at most 8 decimals")
		}
		if l.Lot < 1 || l.Lot > MaxLot {
			add(At(l.Number, "lot"), "INVALID_LOT", "the lot must be from 1 to "+strconv.Itoa(MaxLot))
		}
		return
	}
	if _, fits := fixed.MoneyOf(l.Amount); !fits || l.Amount.Sign() <= 0 {
		add(At(l.Number, "amount"), "INVALID_AMOUNT", "the amount of a balance must be positive, at most 92233720368.54775807, and have at most 8 decimals")
	}
	if l.Lot != 0 || !l.EntryPrice.IsZero() {
		add(At(l.Number), "INVALID_LINE", "only a position has an entry price and a lot")
	}
}

// Reference returns the reference_id of the deposit that a balance becomes. It names the record that imports the file, and the line.
// It does not contain the hash, with which a customer could test guesses about the other lines of a short file.
func Reference(sequence int64, line int) string {
	return referencePrefix + strconv.FormatInt(sequence, 10) + ":" + strconv.Itoa(line)
}

// Reserves reports whether a reference begins as every Reference does. A command MUST NOT name anything else so.
func Reserves(reference string) bool { return strings.HasPrefix(reference, referencePrefix) }

// ReferenceLine returns the line that a Reference names, or 0.
func ReferenceLine(reference string) int {
	rest, ok := strings.CutPrefix(reference, referencePrefix)
	if _, number, found := strings.Cut(rest, ":"); ok && found {
		line, _ := strconv.Atoi(number) // 0 for what is no number
		return line
	}
	return 0
}

const referencePrefix = "opening:"

// BalanceTotal returns the sum of the balances, capped at the greatest amount of money.
func (f *File) BalanceTotal() fixed.Money {
	var total fixed.Wide
	for i := range f.Lines {
		if l := &f.Lines[i]; !l.IsPosition() {
			amount, _ := fixed.MoneyOf(l.Amount) // 0 if it is invalid
			total = total.Add(amount.Wide())
		}
	}
	return total.Capped()
}

// PositionTotal returns the sum of the absolute amounts of all positions, in units of 10⁻⁸ contracts.
func (f *File) PositionTotal() fixed.Wide {
	var total fixed.Wide
	for i := range f.Lines {
		if l := &f.Lines[i]; l.IsPosition() {
			units, _ := l.Amount.In(decimals) // 0 if it is invalid
			total = total.Add(fixed.WideOf(units).Abs())
		}
	}
	return total
}
