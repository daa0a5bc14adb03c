package trading

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
)

// importPayload: import FILE [CUSTOMER AMOUNT [of SYMBOL at PRICE [lot N]] [in CURRENCY] ;]…
func (s *scenario) importPayload() *ImportOpening {
	sum := sha256.Sum256([]byte(s.word()))
	p := &ImportOpening{opening.File{Source: "old venue", SHA256: hex.EncodeToString(sum[:])}}
	if s.accept("for-journal") {
		p.Journal = s.word()
	}
	for number := 2; len(s.words) > 0 && s.words[0] != "person"; number++ {
		l := opening.Line{Number: number, CustomerCode: s.word(), Amount: s.decimal(s.word()), Currency: ledger.USDC}
		if s.accept("of") {
			l.Symbol, l.Currency, l.Lot = s.word(), "", 1
			s.accept("at")
			l.EntryPrice = s.decimal(s.word())
		}
		if s.accept("lot") {
			l.Lot = s.number(s.word())
		}
		if s.accept("in") {
			l.Currency = s.word()
		}
		p.Lines = append(p.Lines, l)
		if !s.accept(";") {
			break
		}
	}
	return p
}
