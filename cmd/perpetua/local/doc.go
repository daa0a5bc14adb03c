// Package local manages the resources of a process on its own machine: the data folder with its lock, run.json and
// users.json; the embedded broker and Postgres, which run if the settings name no others (Services); and nodes that run as
// child processes (Process).
package local
