package liabilities_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// accounts is the number of customers of the benchmarks; PERPETUA_BENCH_ACCOUNTS sets it.
func accounts(b *testing.B) int {
	n, err := strconv.Atoi(os.Getenv("PERPETUA_BENCH_ACCOUNTS"))
	if err != nil {
		n = 10_000
	}
	b.Helper()
	return n
}

// BenchmarkBuild builds trees.
func BenchmarkBuild(b *testing.B) {
	all := customers(rand.New(rand.NewPCG(1, 2)), accounts(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := liabilities.Build(treeKey, 4711, slices.Clone(all)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(all))*float64(b.N)/b.Elapsed().Seconds(), "accounts/s")
}

// BenchmarkProve makes proofs, and reports their size.
func BenchmarkProve(b *testing.B) {
	all := customers(rand.New(rand.NewPCG(1, 2)), accounts(b))
	tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
	if err != nil {
		b.Fatal(err)
	}
	statement, most, n := published(tree), 0, 0
	for b.Loop() {
		p, _ := tree.Prove(statement, all[n%len(all)].Code)
		text, err := p.Encode()
		if err != nil {
			b.Fatal(err)
		}
		most, n = max(most, len(text)), n+1
	}
	b.ReportMetric(float64(most), "bytes/most")
}

// BenchmarkVerify reads and checks proofs.
func BenchmarkVerify(b *testing.B) {
	all := customers(rand.New(rand.NewPCG(1, 2)), accounts(b))
	tree, err := liabilities.Build(treeKey, 4711, slices.Clone(all))
	if err != nil {
		b.Fatal(err)
	}
	statement := published(tree)
	p, _ := tree.Prove(statement, all[1].Code)
	text, err := p.Encode()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := verify(text, &statement); err != nil {
			b.Fatal(err)
		}
	}
}
