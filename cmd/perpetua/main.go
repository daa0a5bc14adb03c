// Command perpetua is the whole system in one binary: the venue and the onboarding service on a Kafka log, with
// everything embedded (`perpetua run`) or against a cluster (`perpetua serve`), and the tools that read the log.
package main

import (
	"os"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/command"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

func main() { os.Exit(command.Main(os.Args[1:], settings.StandardIO())) }
