// Package liabilities computes the trees of the venue's liabilities, has their roots recorded, and proves what a customer has in
// them.
//
// A Follower listens to the fold of the trading journal. After the record that fixes the funding of an instant for the last
// instrument, it copies what the venue owes each customer, builds the tree, writes the balances to the bucket, and submits the
// statement. A Prover reads the balances and builds the tree again; when they
// are not kept any more, it takes them from a past state. The form of a tree is that of package domain/liabilities.
package liabilities
