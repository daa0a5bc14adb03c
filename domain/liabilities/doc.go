// Package liabilities defines the venue's proofs of liabilities: the recorded statement of the money that the venue owes to its
// customers, and the proof that a customer's money is part of it. The Merkle sum tree follows the form that BitMEX published
// (github.com/BitMEX/proof-of-reserves-liabilities).
//
// Amounts are whole numbers of the smallest unit of the asset, so 10⁻⁸ USDC. Those of the tree are unsigned and have 128 bits.
// streams/README.md, under "Proof of liabilities", specifies the bytes. form.go computes single nodes, statement.go has the
// recorded statement, and proof.go the proof and its check. Package streams/liabilities builds trees.
package liabilities
