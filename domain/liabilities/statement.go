package liabilities

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Statement states the liabilities after a record, the position. Another record holds the statement.
type Statement struct {
	Timestamp scalar.Time `json:"timestamp"` // the instant of funding that the position fixes
	Position  Position    `json:"position"`
	Totals
}

// Position is a record that the statement is about.
type Position struct {
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"` // the SHA-256 of the record's value, in hex
}

// Totals are the sums of all accounts and the root of the tree. All accounts are counted as if every payment of funding and of
// settlement that was fixed had been posted. Amounts are in units of 10^−Scale of the asset.
type Totals struct {
	Asset     string  `json:"asset"`
	Scale     int     `json:"scale"`
	Leaves    int64   `json:"leaves"`   // of the tree, with those that pad it: a power of two
	Total     Amount  `json:"total"`    // the sum of the positive balances of customers: the sum of the leaves
	Deficits  Amount  `json:"deficits"` // the sum of the negative balances of customers, without the sign
	Venue     Venue   `json:"venue"`
	NetPaidIn Balance `json:"net_paid_in"` // deposits less withdrawals and less the costs of imported positions
	Root      Hash    `json:"root"`
}

// Venue holds the balances of the venue's own accounts.
type Venue struct {
	Insurance Balance `json:"insurance"`
	Fees      Balance `json:"fees"`
	Funding   Balance `json:"funding"`
	Clearing  Balance `json:"clearing"`
	Rounding  Balance `json:"rounding"`
}

// ErrSum reports totals that do not add up.
var ErrSum = errors.New("total − deficits + venue is not what was paid in")

// Check returns an error unless total − deficits + the venue's accounts = net paid in, and the number of leaves is a power of two.
func (t *Totals) Check() error {
	if t.Leaves < 1 || bits.OnesCount64(uint64(t.Leaves)) != 1 {
		return fmt.Errorf("leaves: %d is no power of two", t.Leaves)
	}
	sum := new(big.Int).Sub(t.Total.big(), t.Deficits.big())
	for _, b := range [...]Balance{t.Venue.Insurance, t.Venue.Fees, t.Venue.Funding, t.Venue.Clearing, t.Venue.Rounding} {
		sum.Add(sum, big.NewInt(int64(b)))
	}
	if sum.Cmp(big.NewInt(int64(t.NetPaidIn))) != 0 {
		return fmt.Errorf("net_paid_in: it is %d, and the sum %s: %w", t.NetPaidIn, sum, ErrSum)
	}
	return nil
}

// Published is a recorded Statement as everybody may see it: without the hash of the position's record, against which guesses of
// the record could be tried.
type Published struct {
	Sequence  int64       `json:"sequence"` // of the record with the statement
	Timestamp scalar.Time `json:"timestamp"`
	Position  int64       `json:"position"` // the sequence of the record that the statement is about
	Totals
}

// Recorded is a statement in the log.
type Recorded struct {
	Sequence int64 // of the record that holds it
	Statement
}

// Publish returns what everybody may see.
func (r *Recorded) Publish() Published {
	return Published{r.Sequence, r.Timestamp, r.Position.Sequence, r.Totals}
}
