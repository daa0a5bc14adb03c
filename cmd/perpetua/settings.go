package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
)

// settings are what a node can be told. Each has one name: the flag --kafka-brokers is the environment variable
// PERPETUA_KAFKA_BROKERS. A flag wins over the environment, the environment over the default.
type settings struct {
	Data             string
	Listen           string
	Advertise        string
	Demo             bool
	DemoSeed         string
	Sync             bool
	NodeID           string
	Roles            string
	KafkaBrokers     string
	DatabaseURL      string
	BlobURL          string
	SnapshotRecords  string
	SnapshotInterval string
	TopicPrefix      string
	KafkaTLS         bool
	KafkaCA          string
	SASL             string
	SASLUser         string
	SASLPassword     string
	MasterKey        string
	Proxies          string
	LogLevel         string
	LogFormat        string
	DebugListen      string

	sources map[string]string // setting → flag, the variable's name, or default

	Trace struct{ Endpoint, Ratio string }
}

// setting describes one of them.
type setting struct {
	name    string
	usage   string
	aliases []string // environment names accepted beside PERPETUA_…
	secret  bool
	text    func(*settings) *string // one of the two
	toggle  func(*settings) *bool
	preset  string
}

func settingTable() []setting {
	return []setting{
		{name: "data", usage: "folder of everything this node keeps", preset: "./data", text: func(s *settings) *string { return &s.Data }},
		{name: "listen", usage: "address of REST and WebSocket", preset: "127.0.0.1:8080", text: func(s *settings) *string { return &s.Listen }},
		{name: "advertise", usage: "URL under which other nodes reach this one (default: http:// and the listen address)", text: func(s *settings) *string { return &s.Advertise }},
		{name: "demo", usage: "run: makers and takers of its own trade the first instruments, whose index prices go stale after ten seconds", preset: "true", toggle: func(s *settings) *bool { return &s.Demo }},
		{name: "demo-seed", usage: "number that the demo's random choices follow from", preset: "1", text: func(s *settings) *string { return &s.DemoSeed }},
		{name: "sync", usage: "sync each acknowledged batch of the embedded broker to disk", preset: "true", toggle: func(s *settings) *bool { return &s.Sync }},
		{name: "node-id", usage: "name of this node among its peers (default: a UUID kept in the data folder)", text: func(s *settings) *string { return &s.NodeID }},
		{name: "role", usage: "roles of this node: engine, api, projector, live", preset: "engine,api,projector,live", text: func(s *settings) *string { return &s.Roles }},
		{name: "kafka-brokers", usage: "Kafka bootstrap addresses, instead of the embedded broker", aliases: []string{"KAFKA_BROKERS"}, text: func(s *settings) *string { return &s.KafkaBrokers }},
		{name: "database-url", usage: "Postgres URL, instead of the embedded one", aliases: []string{"DATABASE_URL"}, secret: true, text: func(s *settings) *string { return &s.DatabaseURL }},
		{name: "blob-url", usage: "URL of the bucket for snapshots: file, or in binaries for clouds s3, gs, azblob (default: the folder blob in the data folder)", text: func(s *settings) *string { return &s.BlobURL }},
		{name: "snapshot-records", usage: "records of a journal after which this node saves what it has folded; 0 for never", preset: "100000", text: func(s *settings) *string { return &s.SnapshotRecords }},
		{name: "snapshot-interval", usage: "time after which it does so although there were fewer, but a hundredth of them", preset: "10m", text: func(s *settings) *string { return &s.SnapshotInterval }},
		{name: "topic-prefix", usage: "prefix of topic and group names", text: func(s *settings) *string { return &s.TopicPrefix }},
		{name: "kafka-tls", usage: "speak TLS to Kafka", preset: "false", toggle: func(s *settings) *bool { return &s.KafkaTLS }},
		{name: "kafka-ca-file", usage: "PEM file of the authorities that vouch for the brokers", text: func(s *settings) *string { return &s.KafkaCA }},
		{name: "kafka-sasl", usage: "SASL mechanism: plain, scram-sha-256, scram-sha-512", text: func(s *settings) *string { return &s.SASL }},
		{name: "kafka-user", usage: "SASL user", text: func(s *settings) *string { return &s.SASLUser }},
		{name: "kafka-password", usage: "SASL password", secret: true, text: func(s *settings) *string { return &s.SASLPassword }},
		{name: "master-key", usage: "base64 key that seals secrets (default: a file in the data folder)", secret: true, text: func(s *settings) *string { return &s.MasterKey }},
		{name: "trusted-proxies", usage: "networks, like 10.0.0.0/8, of the proxies whose X-Forwarded-For is believed", text: func(s *settings) *string { return &s.Proxies }},
		{name: "log-level", usage: "debug, info, warn or error", preset: "info", text: func(s *settings) *string { return &s.LogLevel }},
		{name: "log-format", usage: "text or json", preset: "text", text: func(s *settings) *string { return &s.LogFormat }},
		{name: "trace-endpoint", usage: "URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces, like http://localhost:4318 (default: none)", aliases: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}, text: func(s *settings) *string { return &s.Trace.Endpoint }},
		{name: "trace-ratio", usage: "which part of all commands is traced, from 0 to 1, the same on every node", preset: "1", aliases: []string{"OTEL_TRACES_SAMPLER_ARG"}, text: func(s *settings) *string { return &s.Trace.Ratio }},
		{name: "debug-listen", usage: "loopback address of Go's profiles, like 127.0.0.1:6060 (default: none)", text: func(s *settings) *string { return &s.DebugListen }},
	}
}

func (d setting) variable() string {
	return "PERPETUA_" + strings.ToUpper(strings.ReplaceAll(d.name, "-", "_"))
}

// value returns the setting as text.
func (d setting) value(s *settings) string {
	if d.toggle != nil {
		return fmt.Sprint(*d.toggle(s))
	}
	return *d.text(s)
}

func (d setting) set(s *settings, v string) error {
	if d.toggle == nil {
		*d.text(s) = v
		return nil
	}
	switch strings.ToLower(v) {
	case "true", "1", "yes", "on":
		*d.toggle(s) = true
	case "false", "0", "no", "off":
		*d.toggle(s) = false
	default:
		return fmt.Errorf("--%s takes true or false, not %q", d.name, v)
	}
	return nil
}

// flagValue lets the flag package write into a setting.
type flagValue struct {
	d setting
	s *settings
}

func (v flagValue) String() string {
	if v.s == nil {
		return ""
	}
	return v.d.value(v.s)
}
func (v flagValue) IsBoolFlag() bool { return v.d.toggle != nil }
func (v flagValue) Set(text string) error {
	if err := v.d.set(v.s, text); err != nil {
		return err
	}
	v.s.sources[v.d.name] = "flag"
	return nil
}

// parseSettings reads defaults, environment and flags, in rising order of weight. extra adds a command's own flags.
// What is left on the line after the flags is a usage error.
func parseSettings(command string, args []string, std stdio, extra func(*flag.FlagSet)) (*settings, error) {
	s := &settings{sources: make(map[string]string)}
	fs := flag.NewFlagSet("perpetua "+command, flag.ContinueOnError)
	fs.SetOutput(std.err)
	for _, d := range settingTable() {
		s.sources[d.name] = "default"
		if d.preset != "" {
			if err := d.set(s, d.preset); err != nil {
				return nil, err
			}
		}
		for _, name := range append([]string{d.variable()}, d.aliases...) {
			if v, ok := std.env(name); ok && v != "" {
				if err := d.set(s, v); err != nil {
					return nil, usagef("%s: %v", name, err)
				}
				s.sources[d.name] = name
				break
			}
		}
		fs.Var(flagValue{d, s}, d.name, d.usage+" ($"+d.variable()+")")
	}
	if extra != nil {
		extra(fs)
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usagef("%v", err)
	}
	if fs.NArg() > 0 {
		return nil, usagef("unexpected argument %q", fs.Arg(0))
	}
	return s, nil
}

// brokers returns the Kafka addresses, none if the embedded broker is to be used.
func (s *settings) brokers() []string {
	var out []string
	for _, b := range strings.Split(s.KafkaBrokers, ",") {
		if b = strings.TrimSpace(b); b != "" {
			out = append(out, b)
		}
	}
	return out
}

// proxies returns the networks whose word on a client's address is taken.
func (s *settings) proxies() ([]*net.IPNet, error) {
	var out []*net.IPNet
	for _, text := range strings.Split(s.Proxies, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return nil, usagef("--trusted-proxies: %q is not a network like 10.0.0.0/8", text)
		}
		out = append(out, network)
	}
	return out, nil
}

// configCommand prints every setting, its value and where that came from. Secrets show only whether they are set.
func configCommand(_ context.Context, args []string, std stdio) error {
	s, err := parseSettings("config", args, std, nil)
	if err != nil {
		return err
	}
	for _, d := range settingTable() {
		v := d.value(s)
		if d.secret && v != "" {
			v = "(set)"
		}
		fmt.Fprintf(std.out, "%-18s %-40s # %s\n", d.name, v, s.sources[d.name])
	}
	return nil
}
