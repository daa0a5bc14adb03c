// Package launch brings a venue up: `perpetua run` with everything in one process, `perpetua serve` as one node of many,
// `perpetua cluster` as several processes of this machine. And it makes what a venue begins with: topics and tables
// (`perpetua migrate`), the first users and instruments (`perpetua admin bootstrap`).
package launch
