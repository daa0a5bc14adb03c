// Package version describes the build of a binary: its version and commit, the format of the log, the newest supported rules of each
// journal, and the Go release.
package version

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// release is the version of a released binary. The linker sets it: -ldflags "-X …/cmd/perpetua/version.release=v1.2.3".
var release string

// commit is set by the linker like release, for builds without a checkout such as container images.
var commit string

// Info describes a build.
type Info struct {
	// Version is that of the release, or else the module's: a pseudo-version of the commit, or "devel".
	Version string `json:"version"`
	// Commit is the hash of the commit, with "+dirty" if the checkout had changes; "unknown" if the build did not record it.
	Commit string `json:"commit"`
	// LogFormat is the format of the records that the build writes.
	LogFormat int `json:"log_format"`
	// Rules is the number of the newest supported rules, by journal.
	Rules map[string]int `json:"rules"`
	Go    string         `json:"go"`
}

// Current returns the description of this build.
func Current() Info {
	build, _ := debug.ReadBuildInfo()
	return describe(build)
}

// describe returns the description of a binary from its build information, which may be nil.
func describe(build *debug.BuildInfo) Info {
	i := Info{Version: release, Commit: commit, LogFormat: record.Format, Rules: journals.All().Newest()}
	if build != nil {
		i.Go = build.GoVersion
		if build.Main.Version != "(devel)" {
			i.Version = cmp.Or(i.Version, build.Main.Version)
		}
		if i.Commit == "" {
			i.Commit = revision(build.Settings)
		}
	}
	i.Version, i.Commit = cmp.Or(i.Version, "devel"), cmp.Or(i.Commit, "unknown")
	return i
}

// revision returns the recorded commit, or "" if there is none.
func revision(settings []debug.BuildSetting) string {
	var hash, suffix string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			hash = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			suffix = "+dirty"
		}
	}
	if hash == "" {
		return ""
	}
	return hash + suffix
}

// RulesText lists the newest rules of each journal, like "identity 1, onboarding 3, trading 1".
func (i Info) RulesText() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(i.Rules)) {
		texts = append(texts, fmt.Sprintf("%s %d", name, i.Rules[name]))
	}
	return strings.Join(texts, ", ")
}

// Print writes the description for a person.
func (i Info) Print(w io.Writer) {
	fmt.Fprintf(w, "perpetua %s\n", i.Version)
	for _, line := range [][2]string{{"commit", i.Commit}, {"log format", fmt.Sprint(i.LogFormat)}, {"rules", i.RulesText()}, {"go", i.Go}} {
		fmt.Fprintf(w, "  %-10s  %s\n", line[0], line[1])
	}
}

// Log writes the first line of the log of a process.
func (i Info) Log(log *slog.Logger, command string) {
	log.Info("perpetua "+command, "version", i.Version, "commit", i.Commit, "log_format", i.LogFormat, "rules", i.RulesText(), "go", i.Go)
}
