package version

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	vcs := func(settings ...string) *debug.BuildInfo {
		b := &debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: "v0.0.0-20260102030405-0123456789ab"}}
		for i := 0; i < len(settings); i += 2 {
			b.Settings = append(b.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return b
	}
	module := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for name, test := range map[string]struct {
		build        *debug.BuildInfo
		commit, want string // of the linker, and of the description
	}{
		"a checkout":                {vcs("vcs.revision", "abc", "vcs.modified", "false"), "", "abc"},
		"a checkout with changes":   {vcs("vcs.modified", "true", "vcs.revision", "abc"), "", "abc+dirty"},
		"an image":                  {module("(devel)"), "def", "def"},
		"an installed commit":       {module("v0.1.1-0.20260102030405-0123456789ab"), "", "0123456789ab"},
		"an installed release":      {module("v0.1.0"), "", "unknown"},
		"no checkout":               {module("(devel)"), "", "unknown"},
		"no checkout, with changes": {&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}}, "", "unknown"},
		"no build information":      {nil, "", "unknown"},
	} {
		commit = test.commit
		if got := describe(test.build); got.Version != "0.1.0" || got.Commit != test.want || got.LogFormat != 1 || len(got.Rules) != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	commit = ""
}

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	Info{Version: "v1", Commit: "abc", LogFormat: 1, Rules: map[string]int{"trading": 2, "identity": 1}, Go: "go1.99"}.Print(&out)
	want := "perpetua v1\n  commit      abc\n  log format  1\n  rules       identity 1, trading 2\n  go          go1.99\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
	if i := Current(); !strings.HasPrefix(i.Go, "go") {
		t.Errorf("%+v", i)
	}
}
