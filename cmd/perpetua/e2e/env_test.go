package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/docker"
)

// TestEnvIsEmbedded checks that the binary contains every file of docker/env.
func TestEnvIsEmbedded(t *testing.T) {
	files, err := filepath.Glob(dockerDir + "env/*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := fs.ReadFile(docker.Env, "env/"+filepath.Base(file)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
