// Package tools implements the commands that work on a log and do not serve it: `perpetua log` prints it, `audit` compares
// the read models with it, `rebuild` rebuilds them, and `admin forget-log` abandons it. A tool works on the brokers and the
// database that the settings name, on those of the node that runs on the data folder, or on the folder alone.
package tools
