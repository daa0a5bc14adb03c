package reference_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// opening imports two files, of which the second adds a lot to each position of the first. The long holder holds no short
// position on the product, and the short holder no long one.
func (c *crowd) opening(long, short string, p *product) {
	c.t.Helper()
	index := p.price(0)
	give := func(digit string, lines ...opening.Line) {
		c.give(operator, decide.Metadata{}, &trading.SetIndexPrice{Symbol: p.Symbol, Price: index})
		c.drain()
		for n := range lines {
			lines[n].Number = n + 2
		}
		c.give(operator, decide.Metadata{}, &trading.ImportOpening{File: opening.File{Source: "books", SHA256: strings.Repeat(digit, 64), Lines: lines}})
		c.drain()
	}
	position := func(code, amount string, price fixed.Decimal, lot int) opening.Line {
		return opening.Line{CustomerCode: code, Symbol: p.Symbol, Amount: decimal(amount), EntryPrice: price, Lot: lot}
	}
	give("a", opening.Line{CustomerCode: long, Currency: "USDC", Amount: decimal("50000.25")}, opening.Line{CustomerCode: trading.FundCode, Currency: "USDC", Amount: decimal("1")},
		position(long, "0.007", p.price(-0.01), 1), position(short, "-0.007", p.price(0.01), 1))
	give("b", position(short, "-0.003", p.price(0.02), 2), position(long, "0.003", p.price(0.02), 7))
	if c.auditor.Seen.Opened != 2 {
		c.t.Errorf("%d files were imported: %v", c.auditor.Seen.Opened, c.answers)
	}
}

// TestTheAuditorFindsWrongImports: records of imports in which one thing is another.
func TestTheAuditorFindsWrongImports(t *testing.T) {
	v := openVenue(t, 3, scalar.TimeOf(time.Date(2027, 3, 1, 7, 50, 0, 0, time.UTC)))
	v.keeps = true
	c := openCrowd(v, 3, 5, trading.Rules().Newest())
	for _, code := range []string{"o1", "o2"} {
		c.give(operator, decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: code, Broker: "alpha"})
		c.give(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 100_000 * fixed.Unit})
	}
	threshold := fixed.Decimal{Coef: 60_000} // above the balances of the files
	c.give(operator, decide.Metadata{}, &decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600,
		Rules: []decide.PolicyRule{{Action: trading.CommandSetFeeProfile, Threshold: &threshold}}}})
	c.opening("o1", "o2", c.products[0])
	if err := replay(v.tail, func(value []byte) []byte { return value }); err != nil {
		t.Fatalf("nothing is changed, and the auditor says %v", err)
	}
	for name, test := range map[string]struct {
		change func([]byte) []byte
		want   string // a pattern
	}{
		"a sum":            {replace(`("type":"opening.imported".*"balance_total":"\d+)`, `${1}1`), "an import of"},
		"a number":         {replace(`("type":"opening.imported".*"positions":)2`, `${1}3`), "an import of"},
		"the same file":    {replace(`b{64}`, strings.Repeat("a", 64)), "is imported again"},
		"the same lot":     {replace(`"lot":7`, `"lot":1`), "is brought again"},
		"the same line":    {replace(`"lot":7,"line":3`, `"lot":7,"line":2`), "line 2 follows line 2"},
		"an entry price":   {replace(`("type":"position.opened".*"entry_price":")(\d+\.?\d*","cost")`, `${1}1$2`), "opens"},
		"a line's record":  {replace(`"opening:\d+:2"`, `"opening:1:2"`), "is no line of record"},
		"only one person":  {replace(`"action":"fee_profile.set"`, `"action":"opening.import"`), "without a second person"},
		"another clearing": {replace(`("type":"opening.imported".*"account":"clearing".{1,40}"amount":"-?)(\d)`, `${1}1$2`), "the balance of|moved to the clearing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := replay(v.tail, test.change)
			if err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) {
				t.Errorf("the auditor says %v, not: %s", err, test.want)
			}
		})
	}
}
