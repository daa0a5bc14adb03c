package reference_test

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/opening"
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
