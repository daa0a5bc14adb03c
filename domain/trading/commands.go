package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The command types of the journal. decide.Command.Payload points to the type in the comment.
const (
	CommandRegisterCustomer   = "customer.register"    // *RegisterCustomer
	CommandListInstrument     = "instrument.list"      // *ListInstrument
	CommandChangeInstrument   = "instrument.change"    // *ChangeInstrument
	CommandDelistInstrument   = "instrument.delist"    // *DelistInstrument
	CommandSetIndexPrice      = "index.set"            // *SetIndexPrice
	CommandMakeDeposit        = "deposit.make"         // *MakeDeposit
	CommandRequestWithdrawal  = "withdrawal.request"   // *RequestWithdrawal
	CommandCompleteWithdrawal = "withdrawal.complete"  // *CompleteWithdrawal
	CommandCancelWithdrawal   = "withdrawal.cancel"    // *CancelWithdrawal
	CommandDepositInsurance   = "insurance.deposit"    // *DepositInsurance
	CommandSetFeeProfile      = "fee_profile.set"      // *SetFeeProfile
	CommandSetMarginProfile   = "margin_profile.set"   // *SetMarginProfile
	CommandSetLeverage        = "leverage.set"         // *SetLeverage
	CommandPlaceOrder         = "order.place"          // *PlaceOrder
	CommandAmendOrder         = "order.amend"          // *AmendOrder
	CommandCancelOrder        = "order.cancel"         // *CancelOrder
	CommandCancelAll          = "orders.cancel_all"    // *CancelAll
	CommandSetCancelAllAfter  = "cancel_all_after.set" // *SetCancelAllAfter
)

// AccountPayload is implemented by the commands about a customer's own orders and leverage. A token for one account may
// give no other commands.
type AccountPayload interface {
	decide.Payload
	// Account returns the code of the customer.
	Account() string
}

// Payloads returns the payload types of all commands of the journal.
func Payloads() *decide.Payloads { return commandTable.Payloads() }

// commandTable is the table of the journal's commands.
var commandTable = decide.NewCommands(
	decide.Handle(request.registerCustomer),
	decide.Handle(request.listInstrument),
	decide.Handle(request.changeInstrument),
	decide.Handle(request.delistInstrument),
	decide.Handle(request.setIndexPrice),
	decide.Handle(request.makeDeposit),
	decide.Handle(request.requestWithdrawal),
	decide.Handle(request.completeWithdrawal),
	decide.Handle(request.cancelWithdrawal),
	decide.Handle(request.depositInsurance),
	decide.Handle(request.setFeeProfile),
	decide.Handle(request.setMarginProfile),
	decide.Handle(request.setLeverage),
	decide.Handle(request.placeOrder),
	decide.Handle(request.amendOrder),
	decide.Handle(request.cancelOrder),
	decide.Handle(request.cancelAll),
	decide.Handle(request.setCancelAllAfter),
	decide.Handle(request.openSession),
	decide.Handle(request.keepGateway),
	decide.Handle(request.endSession),
	decide.Handle(request.recordLiabilities),
	decide.Handle(request.importOpening),
)

// RegisterCustomer opens a customer account with the actor's broker, or with Broker if it is set.
//
// Event: customer.registered. Refusals: Conflict CUSTOMER_CODE_TAKEN; Invalid INVALID_CUSTOMER_CODE, INVALID_NAME,
// INVALID_BROKER.
type RegisterCustomer struct {
	// CustomerCode is 1–32 of [A-Za-z0-9._-], or "" for C and 12 hex digits of the derived id.
	CustomerCode string
	// Name is a label of at most 64 characters, possibly empty.
	Name string
	// Broker is the tenant; "" means the actor's.
	Broker string
}

// CommandType returns the type of the command.
func (*RegisterCustomer) CommandType() string { return CommandRegisterCustomer }

// ListInstrument lists a new instrument. A symbol is listed only once.
//
// Event: instrument.listed. Refusals: Conflict SYMBOL_TAKEN; Invalid INVALID_INSTRUMENT with the field.
type ListInstrument struct {
	// Instrument is complete except that without Tiers it gets one tier, made of the two margin requirements. Status ""
	// means open.
	Instrument market.Instrument
}

// CommandType returns the type of the command.
func (*ListInstrument) CommandType() string { return CommandListInstrument }

// ChangeInstrument changes those parameters of an instrument that are set. A nil field changes nothing, except that max_leverage is
// lowered to what new margins permit: see State.Changed.
//
// Events: instrument.changed, and guard.set if the index price is fresh again under the new parameters. Refusals:
// NotFound UNKNOWN_SYMBOL; Conflict INSTRUMENT_WITHDRAWN; Invalid INVALID_INSTRUMENT with the field.
type ChangeInstrument struct {
	Symbol                 string
	Status                 *market.Status
	MinAmount              *fixed.Decimal
	MaxAmount              *fixed.Decimal
	InitMarginReq          *fixed.Decimal // InitMarginReq or MaintMarginReq replaces the tiers by one, unless Tiers is set
	MaintMarginReq         *fixed.Decimal
	MaxLeverage            *int
	FundingIntervalSeconds *int
	PriceBand              *fixed.Decimal
	LimitBand              *fixed.Decimal
	MakerFee               *fixed.Decimal
	TakerFee               *fixed.Decimal
	IndexStaleSeconds      *int
	Tiers                  []market.Tier
}

// CommandType returns the type of the command.
func (*ChangeInstrument) CommandType() string { return CommandChangeInstrument }

// DelistInstrument withdraws an instrument that has no open positions and cancels its orders. If they are too many for
// one record, steps cancel the rest and the decision is Pending.
//
// Events: instrument.delisted, order.canceled…, work.started or work.finished. Refusals: NotFound UNKNOWN_SYMBOL;
// Conflict INSTRUMENT_WITHDRAWN, INSTRUMENT_HAS_OPEN_POSITIONS.
type DelistInstrument struct{ Symbol string }

// CommandType returns the type of the command.
func (*DelistInstrument) CommandType() string { return CommandDelistInstrument }

// SetIndexPrice sets the instrument's index price.
//
// Events: index.updated, and guard.set if it ends a guard. Refusals: NotFound UNKNOWN_SYMBOL; Conflict
// INSTRUMENT_WITHDRAWN; Invalid INVALID_PRICE (not positive, more than 8 decimals, or too large); Unacceptable
// PRICE_ABOVE_MAXIMUM (the open positions would be worth more than can be counted), with an alarm.
type SetIndexPrice struct {
	Symbol string
	Price  fixed.Decimal
}

// CommandType returns the type of the command.
func (*SetIndexPrice) CommandType() string { return CommandSetIndexPrice }

// MakeDeposit credits a customer.
//
// Event: deposit.completed. Repeated: same ReferenceID, same fingerprint. Refusals: NotFound UNKNOWN_CUSTOMER;
// Conflict REFERENCE_ID_REUSED; Invalid UNSUPPORTED_CURRENCY, INVALID_AMOUNT, INVALID_REFERENCE_ID, RESERVED_REFERENCE_ID,
// AMOUNT_ABOVE_MAXIMUM.
type MakeDeposit struct {
	CustomerCode string
	Currency     string
	Amount       fixed.Money // positive
	ReferenceID  string      // 1–64 of [A-Za-z0-9._:-], or "" for the transaction's code
}

// CommandType returns the type of the command.
func (*MakeDeposit) CommandType() string { return CommandMakeDeposit }

// DepositInsurance pays into the insurance fund.
//
// Event: insurance.deposited. Repeated: same ReferenceID, same fingerprint. Refusals: Conflict REFERENCE_ID_REUSED;
// Invalid INVALID_AMOUNT, INVALID_REFERENCE_ID, RESERVED_REFERENCE_ID, AMOUNT_ABOVE_MAXIMUM.
type DepositInsurance struct {
	Amount      fixed.Money // positive
	ReferenceID string      // 1–64 of [A-Za-z0-9._:-], or "" for the transaction's code
}

// CommandType returns the type of the command.
func (*DepositInsurance) CommandType() string { return CommandDepositInsurance }

// RequestWithdrawal reserves an amount for a withdrawal, which the operator then completes or cancels.
//
// Event: withdrawal.requested. Repeated: same ReferenceID, same fingerprint. Refusals: those of MakeDeposit, and
// Unacceptable INSUFFICIENT_FUNDS (more than the account can withdraw).
type RequestWithdrawal struct {
	CustomerCode string
	Currency     string
	Amount       fixed.Money // positive
	ReferenceID  string
}

// CommandType returns the type of the command.
func (*RequestWithdrawal) CommandType() string { return CommandRequestWithdrawal }

// CompleteWithdrawal pays out a pending withdrawal if its account still has the money.
//
// Event: withdrawal.completed. Refusals: NotFound UNKNOWN_WITHDRAWAL; Conflict WITHDRAWAL_NOT_PENDING; Unacceptable
// INSUFFICIENT_FUNDS: the withdrawal stays pending.
type CompleteWithdrawal struct{ Code scalar.ID }

// CommandType returns the type of the command.
func (*CompleteWithdrawal) CommandType() string { return CommandCompleteWithdrawal }

// CancelWithdrawal cancels a pending withdrawal and releases its reserve.
//
// Event: withdrawal.canceled. Refusals: NotFound UNKNOWN_WITHDRAWAL; Conflict WITHDRAWAL_NOT_PENDING.
type CancelWithdrawal struct{ Code scalar.ID }

// CommandType returns the type of the command.
func (*CancelWithdrawal) CommandType() string { return CommandCancelWithdrawal }

// SetFeeProfile sets a customer's fees on one instrument.
//
// Event: fee_profile.set. Refusals: NotFound UNKNOWN_CUSTOMER, UNKNOWN_SYMBOL; Invalid INVALID_FEE with the field.
type SetFeeProfile struct {
	CustomerCode string
	Symbol       string
	MakerFee     fixed.Decimal // basis points, at most 4 decimals
	TakerFee     fixed.Decimal
	// Operator permits rebates, and customers of every broker.
	Operator bool
}

// CommandType returns the type of the command.
func (*SetFeeProfile) CommandType() string { return CommandSetFeeProfile }

// SetMarginProfile sets the account's default margins. Either Leverage is set, or both percentages are.
//
// Event: margin_profile.set. Refusals: NotFound UNKNOWN_CUSTOMER; Invalid INVALID_LEVERAGE, INVALID_MARGIN.
type SetMarginProfile struct {
	CustomerCode      string
	Leverage          int           // 1–100, or 0 if percentages are given
	InitialMargin     fixed.Decimal // percent, at most 4 decimals
	MaintenanceMargin fixed.Decimal
}

// CommandType returns the type of the command.
func (*SetMarginProfile) CommandType() string { return CommandSetMarginProfile }

// SetLeverage sets or removes a customer's override of the initial margin on an instrument, without an order. It
// applies immediately to the position and to open orders.
//
// Event: leverage.changed. Refusals: NotFound UNKNOWN_CUSTOMER, UNKNOWN_SYMBOL; Invalid INVALID_LEVERAGE,
// LEVERAGE_ABOVE_MAXIMUM; Unacceptable INSUFFICIENT_MARGIN: nothing changed.
type SetLeverage struct {
	CustomerCode string
	Symbol       string
	Leverage     int // 1–13, or 0 to remove the override
}

// CommandType returns the type of the command.
func (*SetLeverage) CommandType() string { return CommandSetLeverage }

// Account returns the code of the customer.
func (p *SetLeverage) Account() string { return p.CustomerCode }

// CancelOrder cancels a live order, identified by its code or by the client's name for it.
//
// Event: order.canceled. Refusals: NotFound UNKNOWN_CUSTOMER, UNKNOWN_ORDER; Conflict ORDER_NOT_LIVE.
type CancelOrder struct {
	CustomerCode string
	OrderCode    scalar.ID
	ReferenceID  string // instead of the code
}

// CommandType returns the type of the command.
func (*CancelOrder) CommandType() string { return CommandCancelOrder }

// Account returns the code of the customer.
func (p *CancelOrder) Account() string { return p.CustomerCode }

// CancelAll cancels a customer's live orders. If they are too many for one record, steps cancel the rest and the
// decision is Pending.
//
// Events: order.canceled…, then work.finished with the total, or work.started. Refusals: NotFound UNKNOWN_CUSTOMER,
// Invalid UNKNOWN_SYMBOL.
type CancelAll struct {
	CustomerCode string
	Symbol       string // "" for all instruments
}

// CommandType returns the type of the command.
func (*CancelAll) CommandType() string { return CommandCancelAll }

// Account returns the code of the customer.
func (p *CancelAll) Account() string { return p.CustomerCode }

// SetCancelAllAfter arms, extends or (with 0) disarms the customer's dead man's switch.
//
// Event: cancel_all_after.set. Refusals: NotFound UNKNOWN_CUSTOMER, Invalid INVALID_TIMEOUT (0–86400).
type SetCancelAllAfter struct {
	CustomerCode   string
	TimeoutSeconds int
}

// CommandType returns the type of the command.
func (*SetCancelAllAfter) CommandType() string { return CommandSetCancelAllAfter }

// Account returns the code of the customer.
func (p *SetCancelAllAfter) Account() string { return p.CustomerCode }

// currency is the currency of all accounts.
const currency = ledger.USDC
