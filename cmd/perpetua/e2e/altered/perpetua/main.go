// Command perpetua is the program that the end-to-end tests build and start. Their own binary could be the program, but it
// contains packages that take 20 ms of processor time to initialize.
package main

import (
	"os"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
)

func main() { os.Exit(altered.Main(os.Args[1:])) }
