// Package local is what a process of perpetua has on its own machine: the data folder with its lock, run.json and
// users.json; the broker and the Postgres that are embedded where no others are named (Services); and nodes that run as
// processes of their own (Process).
package local
