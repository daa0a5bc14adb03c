// Package docker embeds the settings files that docker/compose.yaml and `perpetua cluster` start their nodes with, so that an installed
// binary needs no checkout.
package docker

import "embed"

// Env contains env/node.env with the settings of every node, and env/ROLE.env for each role.
//
//go:embed env/*.env
var Env embed.FS
