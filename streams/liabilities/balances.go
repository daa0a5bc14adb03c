package liabilities

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// Balances are a statement and the balances that its tree is built from.
type Balances struct {
	Statement form.Statement
	Customers []Customer
}

// tree builds the tree.
func (b *Balances) tree(key *commitment.EpochKey) (*Tree, error) {
	var hash [32]byte
	if n, err := hex.Decode(hash[:], []byte(b.Statement.Position.Hash)); err != nil || n != len(hash) {
		return nil, fmt.Errorf("liabilities: %.80q is no hash of a record", b.Statement.Position.Hash)
	}
	at := b.Statement.Position.Sequence
	return Build(form.TreeKey([commitment.KeySize]byte(key.Bytes()), at, hash), at, b.Customers)
}

// balancesMagic begins the encoded balances.
const balancesMagic = "perpetua liabilities 1\n"

// maxBalances bounds the bytes of decoded balances: of 32 million customers.
const maxBalances = 2 << 30

// encode returns the balances in the form that the bucket keeps, before it is encrypted: the statement as a line of JSON, and
// each customer as the length of the code in one byte, the code, and the value in 16 bytes.
func (b *Balances) encode() ([]byte, error) {
	statement, err := json.Marshal(&b.Statement)
	if err != nil {
		return nil, fmt.Errorf("liabilities: %w", err)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("liabilities: %w", err)
	}
	defer z.Close()
	out := make([]byte, 0, len(balancesMagic)+len(statement)+9+len(b.Customers)*32)
	out = append(append(append(out, balancesMagic...), statement...), '\n')
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
	statement, text, complete := bytes.Cut(text, []byte("\n"))
	if !ok || !complete || len(text) < 8 {
		return nil, errBalances
	}
	b := new(Balances)
	if err := json.Unmarshal(statement, &b.Statement, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", errBalances, err)
	}
	n := binary.BigEndian.Uint64(text)
	if text = text[8:]; n > uint64(len(text))/17 {
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
