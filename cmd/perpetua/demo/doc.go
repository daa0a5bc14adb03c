// Package demo is a market that moves: makers and takers who trade the instruments of a venue through nothing but its
// public REST and WebSocket interface, after an index price that walks. It has a broker, a user and customers of its
// own, made through the operator's routes, and knows nothing that another client could not know.
//
// What happens in one turn of an instrument: the operator's user gives the next index price; the two makers bring a
// few of their quotes to where they belong by amending, placing and canceling; sometimes a taker trades. Turns come one
// after the other, and so do the commands in them. Before each command, the socket has told what the one before it did.
//
// On one instrument there is a show as well: see show.go.
//
// What is repeatable, until that begins: on a fresh venue where nobody else trades, the same seed gives the same commands in the same
// order, with the same prices and amounts. Times, codes and what is derived from log positions (the middle part of a
// reference_id) differ. The index prices do not depend on what is traded, so they repeat even if somebody joins in. A
// venue that was stopped goes on from the prices and orders it has, with new draws.
//
// Prices are whole ticks, amounts whole steps, distances parts per million; there is no float.
package demo
