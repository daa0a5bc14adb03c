package settings

import "strings"

// TakeOver is the command that makes a fenced venue act. It needs the settings of the venue.
const TakeOver = "perpetua admin take-over"

// TakeOverCommand returns TakeOver with the settings that it needs.
func (s *Settings) TakeOverCommand() string {
	command := []string{TakeOver}
	for _, d := range Table() {
		switch d.Name {
		case "data", "kafka-brokers", "topic-prefix", "key-url":
			if v := d.Value(s); v != "" && (d.Name == "data" || s.Source(d.Name) != "default") {
				command = append(command, "--"+d.Name, v)
			}
		}
	}
	return strings.Join(command, " ")
}
