// Package settings says what a process of perpetua can be told, on the command line and in the environment, and what
// follows from it alone: the logger, the connection options for Kafka, where the bucket is.
//
// It also has what all commands share: where they read and write (IO), and the error that means a wrong command line
// (UsageError).
package settings
