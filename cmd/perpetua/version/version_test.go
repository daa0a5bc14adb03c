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
	for name, test := range map[string]struct {
		build           *debug.BuildInfo
		release, commit string // of the linker
		wantVersion     string
		wantCommit      string
	}{
		"a checkout":                {vcs("vcs.revision", "abc", "vcs.modified", "false"), "", "", "v0.0.0-20260102030405-0123456789ab", "abc"},
		"a checkout with changes":   {vcs("vcs.modified", "true", "vcs.revision", "abc"), "", "", "v0.0.0-20260102030405-0123456789ab", "abc+dirty"},
		"a release":                 {vcs("vcs.revision", "abc"), "v1.2.3", "", "v1.2.3", "abc"},
		"an image":                  {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "v1.2.3", "def", "v1.2.3", "def"},
		"no checkout":               {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", "devel", "unknown"},
		"no checkout, with changes": {&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}}}, "", "", "devel", "unknown"},
		"no build information":      {nil, "", "", "devel", "unknown"},
	} {
		release, commit = test.release, test.commit
		if got := describe(test.build); got.Version != test.wantVersion || got.Commit != test.wantCommit || got.LogFormat != 1 || len(got.Rules) != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	release, commit = "", ""
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
