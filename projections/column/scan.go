package column

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The types below are targets for Scan. Each reads into the Go value that it points to. NULL becomes the zero value:
//
//	rows.Scan(column.IntoID(&o.Code), column.IntoText(&o.Symbol), column.IntoDecimal(&o.Amount))
//
// Numerics must be selected as text.
type (
	idTarget      scalar.ID
	timeTarget    scalar.Time
	decimalTarget fixed.Decimal
	moneyTarget   fixed.Money
	intTarget     int64
	smallTarget   int
	idsTarget     []scalar.ID
)

// IntoID reads a uuid.
func IntoID(id *scalar.ID) any { return (*idTarget)(id) }

// IntoTime reads a timestamptz.
func IntoTime(t *scalar.Time) any { return (*timeTarget)(t) }

// IntoDecimal reads a numeric selected as text, with its stored decimals.
func IntoDecimal(d *fixed.Decimal) any { return (*decimalTarget)(d) }

// IntoMoney reads a numeric selected as text.
func IntoMoney(m *fixed.Money) any { return (*moneyTarget)(m) }

// IntoText reads a text into any string type.
func IntoText[S ~string](s *S) any { return textInto[S]{s} }

type textInto[S ~string] struct{ s *S }

type bytesInto[B ~[]byte] struct{ b *B }

type hashInto[H ~[32]byte] struct{ h *H }

// ScanText implements pgtype.TextScanner.
func (t textInto[S]) ScanText(v pgtype.Text) error {
	*t.s = S(v.String)
	return nil
}

// ScanText implements pgtype.TextScanner.
func (t *idsTarget) ScanText(v pgtype.Text) error {
	*t = nil
	for _, word := range strings.Fields(v.String) {
		id, err := scalar.ParseID(word)
		if err != nil {
			return fmt.Errorf("the uuid %q: %w", word, err)
		}
		*t = append(*t, id)
	}
	return nil
}

// ScanUUID implements pgtype.UUIDScanner.
func (t *idTarget) ScanUUID(v pgtype.UUID) error {
	*t = v.Bytes
	return nil
}

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (t *timeTarget) ScanTimestamptz(v pgtype.Timestamptz) error {
	*t = 0
	if v.Valid {
		*t = timeTarget(scalar.TimeOf(v.Time))
	}
	return nil
}

// ScanText implements pgtype.TextScanner.
func (t *decimalTarget) ScanText(v pgtype.Text) error {
	*t = decimalTarget{}
	if !v.Valid {
		return nil
	}
	if err := (*fixed.Decimal)(t).UnmarshalText([]byte(v.String)); err != nil {
		return fmt.Errorf("the numeric %q: %w", v.String, err)
	}
	return nil
}

type wholeInto struct{ to encoding.TextUnmarshaler }

// ScanText implements pgtype.TextScanner.
func (t wholeInto) ScanText(v pgtype.Text) error { return t.to.UnmarshalText([]byte(v.String)) }

// ScanText implements pgtype.TextScanner.
func (t *moneyTarget) ScanText(v pgtype.Text) error {
	*t = 0
	if !v.Valid {
		return nil
	}
	if err := (*fixed.Money)(t).UnmarshalText([]byte(v.String)); err != nil {
		return fmt.Errorf("the numeric %q: %w", v.String, err)
	}
	return nil
}

// IntoInt reads a bigint.
func IntoInt(n *int64) any { return (*intTarget)(n) }

// ScanInt64 implements pgtype.Int64Scanner.
func (t *intTarget) ScanInt64(v pgtype.Int8) error {
	*t = intTarget(v.Int64)
	return nil
}

// ScanInt64 implements pgtype.Int64Scanner.
func (t *smallTarget) ScanInt64(v pgtype.Int8) error {
	*t = smallTarget(v.Int64)
	return nil
}

// ScanBytes implements pgtype.BytesScanner.
func (t hashInto[H]) ScanBytes(b []byte) error {
	var hash [32]byte
	copy(hash[:], b)
	*t.h = H(hash)
	return nil
}

// ScanBytes implements pgtype.BytesScanner.
func (t bytesInto[B]) ScanBytes(b []byte) error {
	*t.b = nil
	if len(b) > 0 {
		*t.b = append(B(nil), b...) // copied: the connection reuses the scanned bytes
	}
	return nil
}
