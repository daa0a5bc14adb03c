// Package tools is what can be done with a log beside serving it: print it (`perpetua log`), hold the read models
// against it (`audit`), make them anew (`rebuild`), give it up (`admin forget-log`). A tool works on the brokers and the
// database that it is told, on those of the node that runs on the data folder, or on the folder alone.
package tools
