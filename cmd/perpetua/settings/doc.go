// Package settings defines the settings of a process, which come from flags and environment variables, and derives values
// that depend on nothing else: the logger, the options of connections to Kafka, the location of the bucket.
//
// It also defines what all commands share: their input and output (IO), and the error that means a wrong command line
// (UsageError).
package settings
