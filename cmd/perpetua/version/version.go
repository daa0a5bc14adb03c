// Package version describes the build of a binary: its version and commit, the format of the log, the newest supported rules of each
// journal, and the Go release.
package version

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// number is the version of the last release. The tag of a release is v and this number. Builds from later commits
// have the same number and another commit.
const number = "0.1.0"

// commit is set by the linker (-ldflags "-X …/cmd/perpetua/version.commit=…"), for builds without a checkout such as
// container images.
var commit string

// Info describes a build.
type Info struct {
	// Version is that of the last release.
	Version string `json:"version"`
	// Commit is the hash of the commit, with "+dirty" if the checkout had changes; "unknown" if the build did not record it.
	// A binary of go install has the first 12 digits, or none if it is of a release.
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
	i := Info{Version: number, Commit: commit, LogFormat: record.Format, Rules: journals.All().Newest()}
	if build != nil {
		i.Go = build.GoVersion
		i.Commit = cmp.Or(i.Commit, revision(build.Settings), pseudoRevision(build.Main.Version))
	}
	i.Commit = cmp.Or(i.Commit, "unknown")
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

// pseudoVersion matches a module's version that names a time and a commit: v0.1.1-0.20260102030405-0123456789ab.
var pseudoVersion = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})(\+dirty)?$`)

// pseudoRevision returns the commit in a module's version, or "" if there is none.
func pseudoRevision(version string) string {
	if m := pseudoVersion.FindStringSubmatch(version); m != nil {
		return m[1] + m[2]
	}
	return ""
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
