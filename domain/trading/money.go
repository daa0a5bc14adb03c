package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// makeDeposit decides a deposit.
func (r request) makeDeposit(payload *MakeDeposit) (decide.Decision, error) {
	a, repeated, err := r.transferOf(payload.CustomerCode, payload.Currency, payload.Amount, payload.ReferenceID)
	if err != nil || repeated.Repeated {
		return repeated, err
	}
	house := r.newHouseAccounts()
	events, before, _ := house.postFirst(r.State, r.at, nil, a)
	external := r.venue[ledger.External].Sub(payload.Amount)
	balance, countable := before.Plus(payload.Amount)
	if !countable || -external > maxNotional || balance > maxNotional || a.equity().Add(payload.Amount.Wide()).Cmp(maxNotional.Wide()) > 0 {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Invalid, Code: "AMOUNT_ABOVE_MAXIMUM", Field: "amount", Message: "the venue cannot keep this much money"}
	}
	t := transaction(r.at, len(events), a, ledger.Deposit, payload.Amount, payload.ReferenceID)
	t.Status, t.Balance = ledger.Completed, balance
	return accepted(append(events, &DepositCompleted{t, outside(t, external)})...)
}

// transferOf makes the checks that deposits and withdrawals share. It returns the decision if the request is a repeat.
func (r request) transferOf(customer, in string, amount fixed.Money, reference string) (*account, decide.Decision, error) {
	a, err := r.anyCustomer(customer)
	if err != nil {
		return nil, decide.Decision{}, err
	}
	if known, ok := a.transfers[reference]; ok && reference != "" {
		d, err := repeat(known.fingerprint, r.command.Metadata.Fingerprint, known.sequence)
		return a, d, err
	}
	var f validation.Errors
	if in != currency {
		f.AddCode("currency", "UNSUPPORTED_CURRENCY", "currency must be %s", currency)
	}
	if amount <= 0 {
		f.AddCode("amount", "INVALID_AMOUNT", "amount must be positive")
	}
	if amount > maxNotional {
		f.AddCode("amount", "AMOUNT_ABOVE_MAXIMUM", "amount must not be above %s", maxNotional)
	}
	r.checkTransferReference(&f, reference)
	return a, decide.Decision{}, refuseFirst(f.List)
}

// checkTransferReference adds the errors of the reference_id of a deposit or a withdrawal; "" means none was given. The venue makes two
// kinds of references itself, which no command may give: those of imported balances, and the codes of transactions without a name.
func (r request) checkTransferReference(f *validation.Errors, reference string) {
	switch {
	case reference == "":
	case !validReference(reference):
		f.AddCode("reference_id", "INVALID_REFERENCE_ID", "reference_id must be 1 to 64 of A-Z a-z 0-9 . _ : -")
	case r.ownsNames() && (opening.Reserves(reference) || decide.Derivable(reference)):
		f.AddCode("reference_id", "RESERVED_REFERENCE_ID", "reference_id must not begin with opening: or be a UUID of version 8 in lower case, since the venue makes such references itself")
	}
}

// transaction returns the deposit or withdrawal for the record's event at index.
func transaction(at decide.Stamp, index int, a *account, kind ledger.Type, amount fixed.Money, reference string) ledger.Transaction {
	code := at.Derive(index)
	if reference == "" {
		reference = code.String()
	}
	return ledger.Transaction{Code: code, CustomerCode: a.code, Broker: a.broker, Type: kind, Currency: currency,
		Amount: amount, Balance: a.balance, ReferenceID: reference, Created: at.Time, Updated: at.Time}
}

// outside returns the postings of a transaction between the customer and the venue's account for the outside world.
func outside(t ledger.Transaction, external fixed.Money) []ledger.Posting {
	return []ledger.Posting{
		{Code: t.Code, CustomerCode: t.CustomerCode, Type: t.Type, Currency: currency, Amount: t.Amount, Balance: t.Balance},
		{Account: ledger.External, Type: t.Type, Currency: currency, Amount: -t.Amount, Balance: external},
	}
}

// requestWithdrawal decides a withdrawal. Its amount is reserved until it is completed or canceled.
func (r request) requestWithdrawal(payload *RequestWithdrawal) (decide.Decision, error) {
	a, repeated, err := r.transferOf(payload.CustomerCode, payload.Currency, payload.Amount, payload.ReferenceID)
	if err != nil || repeated.Repeated {
		return repeated, err
	}
	if most := r.standing(a, r.at.Time, nil).Withdrawable(); payload.Amount > most {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Unacceptable, Code: "INSUFFICIENT_FUNDS", Field: "amount",
			Message: "at most " + most.String() + " " + currency + " can be withdrawn"}
	}
	house := r.newHouseAccounts()
	events, balance, _ := house.postFirst(r.State, r.at, nil, a)
	t := transaction(r.at, len(events), a, ledger.Withdrawal, -payload.Amount, payload.ReferenceID)
	t.Status, t.Balance = ledger.Pending, balance
	return accepted(append(events, &WithdrawalRequested{t})...)
}

// pendingWithdrawal returns a withdrawal that the operator has not completed or canceled.
func (r request) pendingWithdrawal(code scalar.ID) (*withdrawal, error) {
	w := r.withdrawals[code]
	switch {
	case w == nil:
		return nil, decide.Refuse(decide.NotFound, "UNKNOWN_WITHDRAWAL", "there is no such withdrawal")
	case w.transaction.Status != ledger.Pending:
		return nil, decide.Refuse(decide.Conflict, "WITHDRAWAL_NOT_PENDING", "the withdrawal is "+string(w.transaction.Status))
	}
	return w, nil
}

// completeWithdrawal decides to pay out a withdrawal. Since the request, the account may have lost the reserved money.
// The withdrawal then stays pending until there is enough again or it is canceled.
func (r request) completeWithdrawal(payload *CompleteWithdrawal) (decide.Decision, error) {
	w, err := r.pendingWithdrawal(payload.Code)
	if err != nil {
		return decide.Decision{}, err
	}
	house := r.newHouseAccounts()
	events, balance, rest := house.postFirst(r.State, r.at, nil, w.account)
	amount, m := -w.transaction.Amount, r.standing(w.account, r.at.Time, nil)
	most := min(m.Balance.Capped(), m.Available().Add(amount.Wide()).Capped())
	if rest.Sign() != 0 { // credits that steps have yet to post cannot be paid out
		most = min(most, balance)
	}
	if amount > most {
		return decide.Decision{}, decide.Refuse(decide.Unacceptable, "INSUFFICIENT_FUNDS", "the withdrawal stays pending: at most "+
			max(0, most).String()+" "+currency+" can be paid out now")
	}
	t := w.transaction
	t.Status, t.Updated, t.Balance = ledger.Completed, r.at.Time, balance.Add(t.Amount)
	return accepted(append(events, &WithdrawalCompleted{t, outside(t, r.venue[ledger.External].Sub(t.Amount))})...)
}

// cancelWithdrawal decides not to pay out a withdrawal.
func (r request) cancelWithdrawal(payload *CancelWithdrawal) (decide.Decision, error) {
	w, err := r.pendingWithdrawal(payload.Code)
	if err != nil {
		return decide.Decision{}, err
	}
	t := w.transaction
	t.Status, t.Updated, t.Balance = ledger.Canceled, r.at.Time, w.account.balance
	return accepted(&WithdrawalCanceled{t})
}
