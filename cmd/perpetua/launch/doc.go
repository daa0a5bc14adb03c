// Package launch starts a venue: `perpetua run` runs everything in one process, `perpetua serve` one node of many, and
// `perpetua cluster` several processes on this machine. It also creates a venue's initial contents: topics and tables
// (`perpetua migrate`), the first users and instruments (`perpetua admin bootstrap`).
package launch
