// Package reference is an independent model of the rules of trading. It checks a trading journal record by record, from the
// bytes in the log and by the rules in the document of the interface. It imports nothing of the engine (package trading) and
// of the packages under domain: it computes in units of 10⁻⁸ and in fractions, and derives the state of the market from the
// events that it has read.
//
// After every record it checks that money is conserved and each balance is the sum of its postings; that positions sum to
// zero; that no book is crossed and price-time priority was kept; that stops fired, orders expired, funding and settlement
// were posted, and accounts were liquidated when they were due and not earlier; and that marks, funding rates, fees,
// bankruptcy prices and deleveraging ranks equal their formulas.
//
// It reads a log from genesis and keeps the state of the whole market in memory. Tests use it, and `perpetua audit verify --rules`.
// The rules MUST NOT import it, and it MUST NOT import them: see .golangci.yml. It does not cover due work that was set aside.
package reference
