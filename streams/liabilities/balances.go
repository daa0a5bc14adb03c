package liabilities

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
)

// Balances are what the tree of a position is built from.
type Balances struct {
	Position  int64
	Hash      [sha256.Size]byte // of the position's record
	Customers []Customer
}

// balancesMagic begins the encoded balances.
const balancesMagic = "perpetua liabilities 1\n"

// maxBalances bounds the bytes of decoded balances: of 32 million customers.
const maxBalances = 2 << 30

// encode returns the balances in the form that the bucket keeps, before it is encrypted.
func (b *Balances) encode() ([]byte, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("liabilities: %w", err)
	}
	defer z.Close()
	out := make([]byte, 0, len(balancesMagic)+48+len(b.Customers)*32)
	out = append(out, balancesMagic...)
	out = binary.BigEndian.AppendUint64(out, uint64(b.Position))
	out = append(out, b.Hash[:]...)
	out = binary.BigEndian.AppendUint64(out, uint64(len(b.Customers)))
	for i := range b.Customers {
		c := &b.Customers[i]
		value := c.Value.Bytes()
		out = append(append(out, byte(len(c.Code))), c.Code...)
		out = append(out, value[:]...)
	}
	return z.EncodeAll(out, nil), nil
}

var errBalances = errors.New("liabilities: the balances are damaged")

// decodeBalances reads what encode returns.
func decodeBalances(text []byte) (*Balances, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBalances))
	if err != nil {
		return nil, fmt.Errorf("liabilities: %w", err)
	}
	defer z.Close()
	text, err = z.DecodeAll(text, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBalances, err)
	}
	text, ok := bytes.CutPrefix(text, []byte(balancesMagic))
	if !ok || len(text) < 48 {
		return nil, errBalances
	}
	b := &Balances{Position: int64(binary.BigEndian.Uint64(text)), Hash: [32]byte(text[8:40])}
	n := binary.BigEndian.Uint64(text[40:48])
	if text = text[48:]; n > uint64(len(text))/18 {
		return nil, errBalances
	}
	b.Customers = make([]Customer, n)
	for i := range b.Customers {
		if len(text) < 1 || len(text) < 17+int(text[0]) {
			return nil, errBalances
		}
		size := int(text[0])
		b.Customers[i] = Customer{string(text[1 : 1+size]), form.AmountOfBytes((*[16]byte)(text[1+size : 17+size]))}
		text = text[17+size:]
	}
	if len(text) > 0 {
		return nil, errBalances
	}
	return b, nil
}
