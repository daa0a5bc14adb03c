package trading_test

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// opened takes over the balances and positions of another venue.
func (s *story) opened() {
	const btc = "BTCUSDC_PERP"
	s.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: "opened-1"})
	s.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: "opened-2"})
	s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("65050")})
	s.do(trading.CommandImportOpening, &trading.ImportOpening{File: s.openingFile("a", opening.Line{Number: 2, CustomerCode: "opened-1", Currency: "USDC", Amount: dec("100000.5")},
		opening.Line{Number: 3, CustomerCode: trading.FundCode, Currency: "USDC", Amount: dec("100")},
		opening.Line{Number: 4, CustomerCode: "opened-2", Currency: "USDC", Amount: dec("100000")},
		opening.Line{Number: 5, CustomerCode: "opened-1", Symbol: btc, Amount: dec("0.5"), EntryPrice: dec("64999.12345678"), Lot: 1},
		opening.Line{Number: 6, CustomerCode: "opened-2", Symbol: btc, Amount: dec("-0.5"), EntryPrice: dec("65100"), Lot: 62})})
}

// openingFile returns a file with a hash of one digit.
func (s *story) openingFile(digit string, lines ...opening.Line) opening.File {
	return opening.File{Source: "books of the old venue", SHA256: strings.Repeat(digit, 64), Lines: lines}
}
