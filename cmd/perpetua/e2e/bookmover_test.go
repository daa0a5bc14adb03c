package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
)

// bookMover has four customers move the book of bitcoin, and marks how far it has come.
type bookMover struct {
	t       *testing.T
	v       *venue
	traders []*bookTrader
	marks   int
	marked  int64 // the sequence of the last mark
}

// newBookMover funds the customers.
func newBookMover(t *testing.T, v *venue, seed uint64) *bookMover {
	t.Helper()
	m := &bookMover{t: t, v: v}
	for n, customer := range []string{"ANNA", "BEN", "CARL", "DORA"} {
		m.traders = append(m.traders, &bookTrader{customer: customer, random: rand.New(rand.NewPCG(seed, uint64(n)))})
		v.fund("10000000", customer)
	}
	v.fund("10000000", "MARK")
	return m
}

// move gives so many commands, and then marks the book. each, if there is one, is called before each command, by several at once.
func (m *bookMover) move(commands int, each func() error) {
	m.t.Helper()
	token := m.v.token("broker-a") // before it is shared
	problems := make(chan error, len(m.traders))
	for _, b := range m.traders {
		go func() { problems <- b.round(m.v.WebSocket, token, commands/len(m.traders), each) }()
	}
	var errs []error
	for range m.traders {
		errs = append(errs, <-problems)
	}
	if err := errors.Join(errs...); err != nil {
		m.t.Fatal(err)
	}
	m.mark()
}

// mark changes the book in a way that all who read it learn of.
func (m *bookMover) mark() {
	m.t.Helper()
	m.marks++
	a := m.v.must(201, "broker-a", http.MethodPost, "/v1/customers/MARK/orders",
		fmt.Sprintf(`{"symbol":%q,"action":"buy","type":"limit","amount":"0.001","limit_price":"%d"}`, bitcoin, 60_000+m.marks))
	var err error
	if m.marked, _, err = sequenceOf(a.Header.Get("X-Log-Position")); err != nil {
		m.t.Fatal(err)
	}
}

// quiet has the orders canceled that may expire, so that a last mark is the last that changes the book.
func (m *bookMover) quiet() {
	m.t.Helper()
	for _, b := range m.traders {
		m.v.must(200, "broker-a", http.MethodDelete, "/v1/customers/"+b.customer+"/orders", nil)
		b.orders = nil
	}
	m.mark()
}
