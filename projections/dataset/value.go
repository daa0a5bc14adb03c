package dataset

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// decimals is the number of decimals of every number in the files.
const decimals = fixed.MaxDigits

// number is a DECIMAL(38,18): an integer multiple of 10⁻¹⁸ in two's complement, big-endian. Any fixed.Decimal with at most 18 decimals
// fits, since it has at most 19 digits.
type number [16]byte

// PrecisionError reports a number with more decimals than the files have.
type PrecisionError struct {
	Sequence int64 // of the record
	Scale    int   // decimals of the number
}

// Error names the record.
func (e *PrecisionError) Error() string {
	return fmt.Sprintf("record %d has a number with %d decimals, and a file has %d", e.Sequence, e.Scale, decimals)
}

// maker converts the values of one record. It keeps the first error, so that the functions that make rows need no error.
type maker struct {
	sequence int64
	err      error
}

// decimal converts a number.
func (m *maker) decimal(d fixed.Decimal) number { return m.wide(d).Bytes() }

// wide returns the multiple of 10⁻¹⁸ that a number is.
func (m *maker) wide(d fixed.Decimal) fixed.Wide {
	if int(d.Scale) > decimals {
		if m.err == nil {
			m.err = &PrecisionError{m.sequence, int(d.Scale)}
		}
		return fixed.Wide{}
	}
	return fixed.Mul(d.Coef, fixed.Pow10(decimals-int(d.Scale)))
}

func (m *maker) money(a fixed.Money) number { return m.decimal(a.Decimal()) }

// originOf returns the origin of a row.
func originOf(e *record.Entry, ordinal int64) Origin {
	return Origin{e.Record.Sequence, ordinal, e.Record.Time}
}

// Origin is where a row comes from. Every table begins with it.
type Origin struct {
	Sequence int64       `parquet:"sequence,delta,id(1)"`
	Ordinal  int64       `parquet:"ordinal,delta,id(2)"`
	Time     scalar.Time `parquet:"time,timestamp(microsecond),delta,id(3)"`
}
