package ledger

import (
	"reflect"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// paid is an event that nobody knows of, with postings of its own.
type paid struct{ entries []Posting }

func (*paid) EventType() string                 { return "something.paid" }
func (e *paid) Postings() []Posting             { return e.entries }
func (e *paid) BrokerOf(customer string) string { return "broker of " + customer }

// moved is the event of a deposit or withdrawal.
type moved struct {
	Transaction
	entries []Posting
}

func (*moved) EventType() string     { return "something.moved" }
func (e *moved) Postings() []Posting { return e.entries }

// TestRows checks that the postings of any event to customers are rows, without a list of events that have some, and that
// a deposit or withdrawal is one row, whatever it posts.
func TestRows(t *testing.T) {
	at := decide.Stamp{Sequence: 7, Time: 90}
	rows := func(e decide.Event) (out []Row) {
		Rows(at, e, func(r *Row) { out = append(out, *r) })
		return out
	}
	code, order := scalar.ID{1}, scalar.ID{2}
	entries := []Posting{
		{Code: code, CustomerCode: "a", Type: FundingPayment, Currency: USDC, Amount: -5, Balance: 95, Symbol: "B", OrderCode: order},
		{Account: Funding, Type: FundingPayment, Currency: USDC, Amount: 5, Balance: 5, Symbol: "B"},
		{Code: code, CustomerCode: "b", Type: FundingPayment, Currency: USDC, Amount: 5, Balance: 105, Symbol: "B"},
	}
	want := []Row{
		{Code: code, CustomerCode: "a", Broker: "broker of a", Type: FundingPayment, Currency: USDC, Amount: -5, Status: Completed, Balance: 95,
			BalanceAsOf: 90, Symbol: "B", OrderCode: order, Created: 90, Updated: 90, Sequence: 7},
		{Code: code, CustomerCode: "b", Broker: "broker of b", Type: FundingPayment, Currency: USDC, Amount: 5, Status: Completed, Balance: 105,
			BalanceAsOf: 90, Symbol: "B", Created: 90, Updated: 90, Sequence: 7},
	}
	if got := rows(&paid{entries}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	asked := Transaction{Code: code, CustomerCode: "a", Broker: "alpha", Type: Withdrawal, Currency: USDC, Amount: -5, Status: Pending,
		Balance: 100, ReferenceID: "r", Created: 80, Updated: 90}
	one := Row{Code: code, CustomerCode: "a", Broker: "alpha", Type: Withdrawal, Currency: USDC, Amount: -5, Status: Pending,
		ReferenceID: "r", Created: 80, Updated: 90, Sequence: 7}
	if got := rows(&moved{asked, nil}); !reflect.DeepEqual(got, []Row{one}) {
		t.Errorf("%+v", got)
	}
	asked.Status, asked.Balance = Completed, 95
	one.Status, one.Balance, one.BalanceAsOf = Completed, 95, 90
	if got := rows(&moved{asked, entries}); !reflect.DeepEqual(got, []Row{one}) {
		t.Errorf("%+v", got)
	}
}
