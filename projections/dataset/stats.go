package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Stats are the statistics of a column of a file.
type Stats struct {
	Column
	Bytes    int64 // compressed
	Values   int64 // that are not NULL
	Nulls    int64
	Min, Max *string // in the text form that DuckDB casts to the type; nil if all values are NULL
}

// statsOf reads a file with a number of rows.
func statsOf(content []byte, columns []Column, rows int64) ([]Stats, error) {
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	all := make([]Stats, len(columns))
	for i, c := range columns {
		b := bounds{kind: c.Type}
		all[i].Column = c
		for g, group := range f.RowGroups() {
			if err := b.read(group.ColumnChunks()[i]); err != nil {
				return nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
			all[i].Bytes += f.Metadata().RowGroups[g].Columns[i].MetaData.TotalCompressedSize
		}
		if b.values+b.nulls != rows {
			return nil, fmt.Errorf("column %s has %d values, and the table %d rows", c.Name, b.values+b.nulls, rows)
		}
		all[i].Values, all[i].Nulls = b.values, b.nulls
		if b.values > 0 {
			low, high := textOf(c.Type, b.low), textOf(c.Type, b.high)
			all[i].Min, all[i].Max = &low, &high
		}
	}
	return all, nil
}

// bounds collects the lowest and the highest value of a column.
type bounds struct {
	kind          string
	values, nulls int64
	low, high     parquet.Value
}

func (b *bounds) read(chunk parquet.ColumnChunk) (err error) {
	pages := chunk.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	buffer := make([]parquet.Value, 512)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		values := page.Values()
		for err == nil {
			var n int
			n, err = values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				b.add(v)
			}
		}
		parquet.Release(page)
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
}

func (b *bounds) add(v parquet.Value) {
	if v.IsNull() {
		b.nulls++
		return
	}
	b.values++
	switch {
	case b.values == 1:
		b.low, b.high = v.Clone(), v.Clone()
	case b.less(v, b.low):
		b.low = v.Clone()
	case b.less(b.high, v):
		b.high = v.Clone()
	}
}

// less compares two values in the order of the column's type. Only numbers have a sign in their bytes.
func (b *bounds) less(x, y parquet.Value) bool {
	switch b.kind {
	case intType, timeType:
		return x.Int64() < y.Int64()
	case boolType:
		return !x.Boolean() && y.Boolean()
	case decimalType:
		if nx, ny := x.ByteArray()[0] >= 0x80, y.ByteArray()[0] >= 0x80; nx != ny {
			return nx
		}
	}
	return bytes.Compare(x.ByteArray(), y.ByteArray()) < 0
}

// textOf returns the text form of a value.
func textOf(kind string, v parquet.Value) string {
	switch kind {
	case intType:
		return fmt.Sprint(v.Int64())
	case boolType:
		if v.Boolean() {
			return "1"
		}
		return "0"
	case idType:
		return scalar.ID(v.ByteArray()).String()
	case timeType:
		return time.UnixMicro(v.Int64()).UTC().Format("2006-01-02 15:04:05.000000+00")
	case decimalType:
		return number(v.ByteArray()).String()
	}
	return string(v.ByteArray())
}

// String returns the number with all its decimals.
func (n number) String() string {
	whole := new(big.Int).SetBytes(n[:])
	if n[0]&0x80 != 0 {
		whole.Sub(whole, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	return new(big.Rat).SetFrac(whole, new(big.Int).Exp(big.NewInt(10), big.NewInt(decimals), nil)).FloatString(decimals)
}

// Widen makes the bounds of s those of both files. Both MUST be of the same column.
func (s *Stats) Widen(other *Stats) error {
	s.Bytes, s.Values, s.Nulls = s.Bytes+other.Bytes, s.Values+other.Values, s.Nulls+other.Nulls
	for _, b := range []struct {
		bound, other **string
		sign         int
	}{{&s.Min, &other.Min, -1}, {&s.Max, &other.Max, 1}} {
		if *b.other == nil {
			continue
		}
		if *b.bound == nil {
			*b.bound = *b.other
			continue
		}
		order, err := compareTexts(s.Type, **b.other, **b.bound)
		if err != nil {
			return fmt.Errorf("dataset: bounds of the column %s: %w", s.Name, err)
		}
		if order == b.sign {
			*b.bound = *b.other
		}
	}
	return nil
}

// compareTexts compares two values in the text form of a type.
func compareTexts(kind, x, y string) (int, error) {
	if kind != intType && kind != decimalType {
		return bytes.Compare([]byte(x), []byte(y)), nil
	}
	a, ok := new(big.Rat).SetString(x)
	b, also := new(big.Rat).SetString(y)
	if !ok || !also {
		return 0, fmt.Errorf("%q or %q is no number", x, y)
	}
	return a.Cmp(b), nil
}
