package dataset

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/statements"
)

// StatementVersion is the version of the columns of a statement. It rises when a column is added, removed, or means something else.
const StatementVersion = 1

// statementRow is a line of a statement. A line with a balance has no amount and no code.
type statementRow struct {
	Time        scalar.Time `parquet:"time,timestamp(microsecond),delta,id(1)"`
	Sequence    int64       `parquet:"sequence,delta,id(2)"`
	Type        ledger.Type `parquet:"type,dict,id(3)"`
	Symbol      string      `parquet:"symbol,optional,dict,id(4)"`
	Amount      *number     `parquet:"amount,decimal(18:38),id(5)"`
	Balance     number      `parquet:"balance,decimal(18:38),id(6)"`
	Currency    string      `parquet:"currency,dict,id(7)"`
	ReferenceID string      `parquet:"reference_id,optional,id(8)"`
	Code        scalar.ID   `parquet:"code,optional,uuid,id(9)"`
	OrderCode   scalar.ID   `parquet:"order_code,optional,uuid,id(10)"`
}

// statementHeader says in the metadata of a file which statement it has.
type statementHeader struct {
	Version      int         `json:"version"`
	CustomerCode string      `json:"customer_code"`
	From         scalar.Time `json:"from"`
	To           scalar.Time `json:"to"`
	Sequence     int64       `json:"sequence"` // of the last record before To
}

// Statement writes a statement as a Parquet file. Equal statements are equal bytes.
type Statement struct {
	to *parquet.GenericWriter[statementRow]
}

// NewStatement starts to write a statement.
func NewStatement(to io.Writer) *Statement {
	return &Statement{newGenericWriter[statementRow](to, "statement", StatementVersion)}
}

// AddBalance writes a line with the balance before or after the movements.
func (s *Statement) AddBalance(l *statements.Line) error { return s.add(l, false) }

// AddMovement writes a movement.
func (s *Statement) AddMovement(l *statements.Line) error { return s.add(l, true) }

func (s *Statement) add(l *statements.Line, moves bool) error {
	m := maker{sequence: l.Sequence}
	row := statementRow{Time: l.Time, Sequence: l.Sequence, Type: l.Type, Symbol: l.Symbol, Balance: m.money(l.Balance), Currency: l.Currency,
		ReferenceID: l.ReferenceID}
	if moves {
		amount := m.money(l.Amount)
		row.Amount = &amount
	}
	for _, id := range []struct {
		text string
		to   *scalar.ID
	}{{l.Code, &row.Code}, {l.OrderCode, &row.OrderCode}} {
		if id.text == "" {
			continue
		}
		if err := id.to.UnmarshalText([]byte(id.text)); err != nil {
			return fmt.Errorf("dataset: the record %d has the code %q: %w", l.Sequence, id.text, err)
		}
	}
	if m.err != nil {
		return m.err
	}
	_, err := s.to.Write([]statementRow{row})
	return err
}

// Close writes the rest of the file. Its metadata names the customer, the period, and the last record.
func (s *Statement) Close(h *statements.Head) error {
	text, err := json.Marshal(&statementHeader{StatementVersion, h.CustomerCode, h.From, h.To, h.Last})
	if err != nil {
		return err
	}
	s.to.SetKeyValueMetadata(headerKey, string(text))
	return s.to.Close()
}
