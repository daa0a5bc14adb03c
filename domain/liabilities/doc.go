// Package liabilities is the form of the venue's proofs of liabilities: what a record says about the money that the venue owes
// to its customers, and the proof that a customer's money is part of it. It follows the Merkle sum tree that BitMEX published
// (github.com/BitMEX/proof-of-reserves-liabilities).
//
// Amounts are whole numbers of the smallest unit of the asset, so 10⁻⁸ USDC. Those of the tree are unsigned and have 128 bits.
// streams/README.md, under "Proof of liabilities", specifies the bytes. form.go computes single nodes, statement.go is what is
// recorded, and proof.go is the proof and its check. Package streams/liabilities builds trees.
package liabilities
