package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// WriteJSON writes the posting's JSON form, exactly as the generic encoder writes it.
func (p *Posting) WriteJSON(w *fastjson.Writer) {
	w.Raw(`{`)
	if !p.Code.IsZero() {
		w.Raw(`"code":`)
		fastjson.Text(w, p.Code)
		w.Raw(`,`)
	}
	if p.Account != "" {
		w.Raw(`"account":`)
		w.String(string(p.Account))
		w.Raw(`,`)
	}
	if p.CustomerCode != "" {
		w.Raw(`"customer_code":`)
		w.String(p.CustomerCode)
		w.Raw(`,`)
	}
	w.Raw(`"type":`)
	w.String(string(p.Type))
	w.Raw(`,"currency":`)
	w.String(p.Currency)
	w.Raw(`,"amount":`)
	fastjson.Text(w, p.Amount)
	w.Raw(`,"balance":`)
	fastjson.Text(w, p.Balance)
	if p.Symbol != "" {
		w.Raw(`,"symbol":`)
		w.String(p.Symbol)
	}
	if !p.OrderCode.IsZero() {
		w.Raw(`,"order_code":`)
		fastjson.Text(w, p.OrderCode)
	}
	w.Raw(`}`)
}

// ReadJSON reads the output of WriteJSON into a zero posting.
func (p *Posting) ReadJSON(r *fastjson.Reader) {
	r.Raw(`{`)
	if r.Try(`"code":`) {
		p.Code.ReadJSON(r)
		r.Raw(`,`)
	}
	if r.Try(`"account":`) {
		p.Account = fastjson.Word(r, Fees, Clearing, External)
		r.Raw(`,`)
	}
	if r.Try(`"customer_code":`) {
		p.CustomerCode = r.String()
		r.Raw(`,`)
	}
	r.Raw(`"type":`)
	p.Type = fastjson.Word(r, Trade, TradeFee)
	r.Raw(`,"currency":`)
	p.Currency = fastjson.Word(r, USDC)
	r.Raw(`,"amount":`)
	p.Amount.ReadJSON(r)
	r.Raw(`,"balance":`)
	p.Balance.ReadJSON(r)
	if r.Try(`,"symbol":`) {
		p.Symbol = r.String()
	}
	if r.Try(`,"order_code":`) {
		p.OrderCode.ReadJSON(r)
	}
	r.Raw(`}`)
}
