// Package demo trades the instruments of a venue, so that a new venue has a moving market. Its makers and takers use only
// the public REST and WebSocket interface, and follow an index price that moves at random. It creates a broker, a user and
// customers through the operator's routes.
//
// In each round of an instrument, the operator's user sets the next index price, the two makers amend, place and cancel a
// few quotes, and sometimes a taker trades. Rounds and their commands run one after another. Before each command, the
// socket has delivered the outcome of the previous one.
//
// One instrument also has a show: see show.go.
//
// Until the show begins, a run is repeatable: on a new venue without other traders, the same seed gives the same commands
// in the same order, with the same prices and amounts. Times, codes, and the middle part of a reference_id, which is
// derived from a log position, differ. Index prices do not depend on trades, so they repeat even if others trade. After a
// restart the demo continues from the venue's prices and orders, with new random numbers.
//
// Prices are in ticks, amounts in steps, distances in parts per million. There are no floats.
package demo
