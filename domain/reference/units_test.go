package reference_test

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/schemas"
)

// TestUnitsOfAMarket splits the records of a short market with a settlement, liquidations and stops. No unit holds what is
// another party's.
func TestUnitsOfAMarket(t *testing.T) {
	classes, err := disclose.Compile(schemas.Events())
	if err != nil {
		t.Fatal(err)
	}
	s, err := classes.Splitter("trading")
	if err != nil {
		t.Fatal(err)
	}
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, 7, morning-15*scalar.Second)
	seen := make(map[disclose.Class]int)
	v.log.Each = func(value []byte) {
		for _, u := range disclosetest.Check(t, s, value) {
			seen[u.Class]++
		}
	}
	c := openCrowd(v, 7, 60, trading.Rules().Newest())
	for c.now < morning+15*scalar.Second {
		c.second()
	}
	for _, code := range []string{"o1", "o2"} {
		c.give(operator, decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: code, Broker: "alpha"})
		c.give(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 100_000 * fixed.Unit})
	}
	c.opening("o1", "o2", c.products[0])
	for class := disclose.Public; class <= disclose.Venue; class++ {
		if seen[class] < 100 {
			t.Errorf("only %d units are of the class %v", seen[class], class)
		}
	}
	t.Logf("%d records, units %v", v.log.Records(), seen)
}
