// Package audit checks a trading journal record by record, from the bytes that the log holds and by the rules as the
// interface's document tells them. It shares no arithmetic and no state with the engine (package trading): what it counts
// is in 10⁻⁸, what it divides is in fractions, and what it knows of the market it has from the events that it read.
//
// After every record it holds that money is conserved and every balance is what its postings come to; that positions sum to
// zero; that no book is crossed and nobody was passed over in it; that stops fired when their prices were reached, orders
// expired, funding and settlement were posted and accounts were liquidated, each when it was due and not before; and that
// marks, funding rates, fees, bankruptcy prices and the ranks of deleveraging are what their formulas say.
//
// It is for tests: it takes a log from its genesis and keeps all of it that matters in memory.
package audit
